package wiring

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/oncesink/oncesink/internal/faultproxy"
)

// A server that is away for long must not have the sink restarted, fill its memory or have it write rows unasked: it is alive, not ready, says who is
// missing, holds what its budget allows, and goes on alone (field cases D18, H7, K6).
func TestASinkThatWaitsForAServerIsAliveNotReadyAndBounded(t *testing.T) {
	for _, server := range []string{"redis", "clickhouse"} {
		t.Run(server, func(t *testing.T) {
			r := newRig(t, 1)
			r.tables()
			at := map[string]*string{"redis": &r.redis, "clickhouse": &r.engine}[server]
			direct := *at
			proxy, err := faultproxy.Listen(direct)
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close()
			*at = proxy.Addr()
			cfg := r.config()
			*at = direct
			const limit = 64 << 10
			cfg.Memory.Limit, cfg.Batch.MaxBytes = limit, 16<<10
			l := r.startWith(cfg, nil)
			l.awaitReady()
			proxy.Refuse(true)
			proxy.Cut()
			const records = 8000 // a multiple of what may be held
			r.produce(0, records)
			l.await("not ready, with the server's name", func() (bool, string) {
				code, text := l.get("/readyz")
				return code == http.StatusServiceUnavailable && strings.Contains(text, proxy.Addr()), text
			})
			if code, text := l.get("/healthz"); code != http.StatusOK {
				t.Errorf("not alive: %s", text)
			}
			if n := r.count("SELECT toInt64(count()) AS n FROM orders"); n != 0 && server == "redis" {
				t.Errorf("%d rows were written without the store", n)
			}
			if held := l.metric("sink_bytes_buffered"); held > limit {
				t.Errorf("%v bytes are held, the budget is %d", held, limit)
			}
			proxy.Refuse(false)
			r.awaitCommitted(l, r.topic, 0, records)
			l.awaitReady()
			l.end(true)
			if n := r.count("SELECT toInt64(count() * 100000 + uniqExact(id)) AS n FROM orders"); n != records*100_000+records {
				t.Errorf("rows and keys are %d, want %d of each", n, records)
			}
		})
	}
}

// metric reads one that has no labels.
func (l *life) metric(name string) (v float64) {
	l.t.Helper()
	_, text := l.get("/metrics")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(value, &v); err != nil {
				l.t.Fatal(err)
			}
			return v
		}
	}
	l.t.Fatalf("no %s", name)
	return 0
}
