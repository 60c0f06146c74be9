package e2e

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// SCRIPT FLUSH takes the scripts away, not what they keep: nothing waits for
// long, and no verdict changes (field case D10).
func TestScriptsThatAreFlushedAreLoadedAgain(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 4, report: true})
	rdb := redis.NewClient(&redis.Options{Addr: w.s.redis})
	defer func() { _ = rdb.Close() }()
	f := w.produce(20_000, 6)
	p := w.start(settings{rows: 300, age: 50 * time.Millisecond})
	const flushes = 20
	for n := range flushes {
		f.allow(20_000 / flushes * (n + 1))
		w.awaitInserted(p, int64(15_000/flushes*n))
		if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	truth := f.all()
	w.awaitSettled(p)
	p.stop()
	w.verify(truth)
}
