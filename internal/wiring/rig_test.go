package wiring

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/status"
	"github.com/oncesink/oncesink/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// rig is a topic and a table with the servers behind them.
type rig struct {
	t                      *testing.T
	kafka, engine, redis   string
	database, topic, table string
	client                 *kgo.Client
}

func newRig(t *testing.T, partitions int32) *rig {
	t.Helper()
	e := testenv.SharedEngine(t)
	r := &rig{t: t, kafka: testenv.KFake(t).Addr, engine: e.Addr, redis: testenv.SharedRedis(t), database: e.Database, topic: "orders", table: "orders"}
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	r.client = cl
	if partitions > 0 {
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, 1, nil, r.topic); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *rig) sql(body string) {
	r.t.Helper()
	conn, err := ch.Dial(r.t.Context(), ch.Options{Address: r.engine, Database: r.database})
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Do(r.t.Context(), ch.Query{Body: body}); err != nil {
		r.t.Fatalf("%s: %v", body, err)
	}
}

// tables makes the target, and a view on it with a window of its own.
func (r *rig) tables() {
	r.t.Helper()
	r.sql("CREATE TABLE orders (id UInt64, amount Int64) ENGINE = MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 1000")
	r.sql("CREATE TABLE sums (day Date, amount Int64) ENGINE = SummingMergeTree ORDER BY day SETTINGS non_replicated_deduplication_window = 100")
	r.sql("CREATE MATERIALIZED VIEW sums_mv TO sums AS SELECT toDate(0) AS day, sum(amount) AS amount FROM orders GROUP BY day")
}

func (r *rig) produce(first, n int) {
	r.t.Helper()
	var records []*kgo.Record
	for i := first; i < first+n; i++ {
		records = append(records, &kgo.Record{Topic: r.topic, Partition: 0, Value: fmt.Appendf(nil, `{"id":%d,"amount":1}`, i)})
	}
	if err := r.client.ProduceSync(r.t.Context(), records...).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) config() *config.Config {
	r.t.Helper()
	cfg, err := config.Parse("sink.yaml", fmt.Appendf(nil, `
kafka: {brokers: [%q], group: g}
clickhouse: {addresses: [%q], database: %s, insert_deadline: 1s}
redis: {addresses: [%q]}
routes: [{topics: [%s], table: %s, key: [id], dead_letter: %s.dlq}]
batch: {max_age: 50ms}
`, r.kafka, r.engine, r.database, r.redis, r.topic, r.table, r.topic), func(string) (string, bool) { return "", false })
	if err != nil {
		r.t.Fatal(err)
	}
	return cfg
}

// life is one run under way, in this process.
type life struct {
	t      *testing.T
	status *status.Status
	log    *lines
	stop   context.CancelFunc
	done   chan struct{}
	report *Report
	err    error
}

func (r *rig) start(change func(*RunOptions)) *life {
	r.t.Helper()
	return r.startWith(r.config(), change)
}

func (r *rig) startWith(cfg *config.Config, change func(*RunOptions)) *life {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	l := &life{t: r.t, log: &lines{}, stop: cancel, done: make(chan struct{}), status: status.New(status.Options{Group: "g"})}
	o := RunOptions{Log: slog.New(slog.NewTextHandler(l.log, nil)), Status: l.status, Patience: 10 * time.Second, Version: "test"}
	if change != nil {
		change(&o)
	}
	go func() {
		defer close(l.done)
		l.report, l.err = Run(ctx, cfg, o)
	}()
	r.t.Cleanup(func() { cancel(); <-l.done })
	return l
}

// end stops the run, or awaits a drain's own end.
func (l *life) end(stop bool) *Report {
	l.t.Helper()
	if stop {
		l.stop()
	}
	select {
	case <-l.done:
	case <-time.After(time.Minute):
		l.t.Fatalf("the run does not end:\n%s", l.log)
	}
	if l.err != nil {
		l.t.Fatalf("%v\n%s", l.err, l.log)
	}
	return l.report
}

func (l *life) get(path string) (int, string) {
	w := httptest.NewRecorder()
	l.status.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// await asks until the answer is right.
func (l *life) await(what string, right func() (bool, string)) {
	l.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		ok, said := right()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("not %s: %s\n%s", what, said, l.log)
		}
		select {
		case <-l.done:
			l.t.Fatalf("the run ended before it was %s: %v\n%s", what, l.err, l.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (l *life) awaitReady() {
	l.t.Helper()
	l.await("ready", func() (bool, string) {
		code, text := l.get("/readyz")
		return code == http.StatusOK, text
	})
}

// lines is a log that is read while it is written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// with returns the lines that contain a text.
func (l *lines) with(text string) []string {
	var out []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}
