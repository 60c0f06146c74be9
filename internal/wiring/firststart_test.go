package wiring

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oncesink/oncesink/internal/testenv"
)

// A first start must not look like a loss of claims, and a loss of claims not like a first start.
func TestAFirstStartIsNoAlarmAndAnEmptiedStoreIs(t *testing.T) {
	r := newRig(t, 1)
	r.redis = testenv.Redis(t).Addr // emptied below
	r.tables()
	r.produce(0, 10)
	l := r.start(func(o *RunOptions) { o.Drain = true })
	l.end(false)
	if alarms := l.log.with("level=WARN"); len(alarms) != len(l.log.with("msg=\"check:")) || len(l.log.with("first start with an empty table")) != 1 || len(l.log.with("waits_about=1s")) != 1 {
		t.Errorf("a first start:\n%s", l.log)
	}
	if said := l.log.with("offset.metadata.max.bytes"); len(said) > 0 {
		t.Errorf("the embedded broker doesn't tell its limit: %s", said)
	}
	if _, text := l.get("/metrics"); strings.Contains(text, "sink_redis_store_epoch_changes_total{") {
		t.Error("a first start is counted as a change of the store")
	}
	store := redis.NewClient(&redis.Options{Addr: r.redis})
	defer func() { _ = store.Close() }()
	if err := store.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	r.produce(10, 10)
	l = r.start(func(o *RunOptions) { o.Drain = true })
	l.end(false)
	if len(l.log.with("level=WARN msg=\"dedup store: new epoch")) != 1 {
		t.Errorf("an emptied store:\n%s", l.log)
	}
	if _, text := l.get("/metrics"); !strings.Contains(text, `sink_redis_store_epoch_changes_total{table="`+r.database+`.orders"} 1`) {
		t.Error("a change of the store is not counted")
	}
}
