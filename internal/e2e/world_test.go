package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/bench/load"
	"github.com/oncesink/oncesink/internal/testenv"
)

// world is a topic, a table with its views and a consumer group, of one test.
type world struct {
	t                            testing.TB
	s                            *stack
	topic, group, letters, table string
	partitions                   int
	views                        []string // their target tables
	kafka                        *kgo.Client
	dir                          string
	lives                        int
}

// design says what a world has.
type design struct {
	partitions int
	window     int           // of the table and each view's target, in blocks; 0: 1000
	report     bool          // a report by tenant and day
	slow       time.Duration // > 0: another report, whose view takes this long for each insert
	daily      bool          // a partition of the table for each day, not each month
}

func newWorld(t testing.TB, s *stack, d design) *world {
	t.Helper()
	name := testenv.Name(t, "e2e")
	w := &world{
		t: t, s: s, topic: name, group: name + "_group", letters: name + ".dlq", table: name, partitions: d.partitions, dir: t.TempDir(),
	}
	if d.window == 0 {
		d.window = 1000
	}
	table := load.Table(w.table, d.window)
	if d.daily {
		table = strings.Replace(table, "toYYYYMM(", "toYYYYMMDD(", 1)
	}
	s.sql(t, "%s", table)
	if d.report {
		w.views = append(w.views, name+"_report")
		for _, statement := range load.Report(w.table, name+"_report", d.window) {
			s.sql(t, "%s", statement)
		}
	}
	if d.slow > 0 {
		w.views = append(w.views, name+"_slow")
		s.sql(t, `CREATE TABLE %s_slow (tenant LowCardinality(String), amount Decimal(38, 4), qty UInt64, events UInt64)
ENGINE = SummingMergeTree ORDER BY tenant SETTINGS non_replicated_deduplication_window = %d`, name, d.window)
		s.sql(t, `CREATE MATERIALIZED VIEW %[1]s_slow_mv TO %[1]s_slow AS
SELECT tenant, sum(amount) AS amount, sum(qty) AS qty, count() AS events FROM %[1]s WHERE sleep(%[2]g) = 0 GROUP BY tenant`, name, d.slow.Seconds())
	}
	w.kafka = w.producer()
	if err := load.CreateTopic(t.Context(), w.kafka, w.topic, d.partitions); err != nil {
		t.Fatal(err)
	}
	return w
}

// producer is a client of the test's own.
func (w *world) producer() *kgo.Client {
	w.t.Helper()
	options := load.ProducerOptions(w.s.kafka)
	if w.s.dial != nil {
		options = append(options, kgo.Dialer(w.s.dial))
	}
	cl, err := kgo.NewClient(options...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(cl.Close)
	return cl
}

// settings is what a life of the sink may have different from the one before.
type settings struct {
	rows          int           // max_rows; 0: 2,000
	age           time.Duration // max_age; 0: 200 ms
	kafka         string        // "": the broker itself
	clickhouse    string        // "": the engine itself
	redis         string        // the settings of redis; "": the address of the server itself
	session       time.Duration // session_timeout; 0: 6 s
	listen        string        // of HTTP; "": none
	insertTimeout time.Duration // 0: 10 s
	memory        string        // memory.limit; "": 512MiB
	bytes         string        // batch.max_bytes; "": 16MiB
	member        string        // instance_id; "": "e2e". "-": none, a killed member is missed after its session only
	edits         []string      // old, new, …: what else the file has different
	binary        string        // the program; "": a build of the present tree
}

// config writes a sink.yaml and returns its path.
func (w *world) config(c settings) string {
	w.t.Helper()
	if c.rows == 0 {
		c.rows = 2000
	}
	if c.age == 0 {
		c.age = 200 * time.Millisecond
	}
	if c.kafka == "" {
		c.kafka = w.s.kafka
	}
	if c.clickhouse == "" {
		c.clickhouse = w.s.engine
	}
	if c.redis == "" {
		c.redis = fmt.Sprintf("addresses: [%q]", w.s.redis)
	}
	if c.session == 0 {
		c.session = 6 * time.Second
	}
	if c.insertTimeout == 0 {
		c.insertTimeout = 10 * time.Second
	}
	if c.memory == "" {
		c.memory = "512MiB"
	}
	if c.bytes == "" {
		c.bytes = "16MiB"
	}
	instance := "instance_id: e2e, "
	switch c.member {
	case "":
	case "-":
		instance = ""
	default:
		instance = "instance_id: " + c.member + ", "
	}
	text := fmt.Sprintf(`kafka: {brokers: [%q], group: %s, %ssession_timeout: %s}
clickhouse: {addresses: [%q], database: %s, insert_deadline: 1s, insert_timeout: %s}
redis: {%s}
routes:
  - topics: [%s]
    table: %s
    key: [settle_ms, id, rev]
    event_time: settle_ms
    ignore: [create_time]
    dead_letter: %s
batch: {max_rows: %d, max_bytes: %s, max_age: %s, max_inserts_per_second: 100}
memory: {limit: %s}
http: {listen: %q}
log: {format: text}
`, c.kafka, w.group, instance, c.session, c.clickhouse, w.s.database, c.insertTimeout, c.redis, w.topic, w.table, w.letters, c.rows, c.bytes, c.age, c.memory, c.listen)
	for i := 0; i < len(c.edits); i += 2 {
		if !strings.Contains(text, c.edits[i]) {
			w.t.Fatalf("the configuration has no %q:\n%s", c.edits[i], text)
		}
		text = strings.Replace(text, c.edits[i], c.edits[i+1], 1)
	}
	path := filepath.Join(w.dir, fmt.Sprintf("sink-%d.yaml", w.lives))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// foreign has another writer put n blocks of its own into the table: what a deduplication window of fewer blocks remembers is gone then.
func (w *world) foreign(n int) {
	w.t.Helper()
	for range n {
		w.s.sql(w.t, "INSERT INTO %s SELECT 0, 'foreign-' || toString(generateUUIDv4()), 0, 'foreign', 1, 1, 'EUR', now64(3)", w.table)
	}
}
