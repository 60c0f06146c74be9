package wiring

import (
	"strings"
	"testing"
)

// An orchestrator that waits for readiness must not wait for the first record: a topic may be empty for days, and a restart may find nothing to do.
func TestASinkWithNothingToReadIsReady(t *testing.T) {
	r := newRig(t, 2)
	r.tables()
	first := r.start(nil)
	first.awaitReady()
	if _, text := first.get("/metrics"); !strings.Contains(text, `sink_partition_state{partition="1",state="running",topic="orders"} 1`) ||
		!strings.Contains(text, `sink_partition_wait_seconds{partition="1",topic="orders"} 0`) {
		t.Errorf("an empty partition is not running:\n%s", text)
	}
	first.end(true)

	r.produce(0, 10)
	if got := r.start(func(o *RunOptions) { o.Drain = true }).end(false); got.Counts.Inserted != 10 {
		t.Fatalf("%+v", got)
	}
	r.start(nil).awaitReady() // warm, with no lag
}

// A spare replica has joined and stands by; only before its first join nothing is known of it.
func TestASpareWithoutPartitionsIsReady(t *testing.T) {
	r := newRig(t, 1)
	r.tables()
	one := r.start(nil)
	one.awaitReady()
	spare := r.start(nil)
	if code, text := spare.get("/readyz"); code == 200 {
		t.Errorf("ready before the first join: %s", text)
	}
	spare.awaitReady()
	one.awaitReady()
	_, a := one.get("/metrics")
	_, b := spare.get("/metrics")
	if n := strings.Count(a+b, `sink_partition_state{partition="0",state="running"`); n != 1 {
		t.Errorf("%d sinks hold the one partition, want one and a spare", n)
	}
}
