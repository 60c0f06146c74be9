package e2e

import (
	"testing"
	"time"
)

// outage is one server that is away for a while.
type outage struct {
	name        string
	end, launch func()
}

// The sink waits and goes on alone. With a view, a ClickHouse that dies in mid-insert takes the knowledge along whether the view was served: that partition
// stops by rule (see the window overrun), so those outages are met without one. Redis gone is waited for, and no row is written meanwhile (field case D18).
//
// (No commas in names of sub-tests: Kafka takes its data folder, which is named after the test, for a list.)
func TestServersThatGoAndComeBackLoseAndDoubleNothing(t *testing.T) {
	t.Run("Redis and Kafka with a view", func(t *testing.T) {
		s, servers := ownStack(t)
		w := newWorld(t, s, design{partitions: 4, report: true})
		w.survive([]outage{
			{"Redis stops", servers.redis.Stop, servers.redis.Start},
			{"Kafka stops", servers.kafka.Stop, servers.kafka.Start},
			{"Redis is killed", servers.redis.Kill, servers.redis.Start},
		})
	})
	t.Run("ClickHouse and Redis without a view", func(t *testing.T) {
		s, servers := ownStack(t)
		w := newWorld(t, s, design{partitions: 4})
		w.survive([]outage{
			{"ClickHouse stops", servers.engine.Stop, servers.engine.Start},
			{"Redis is killed", servers.redis.Kill, servers.redis.Start},
			{"ClickHouse is killed", servers.engine.Kill, servers.engine.Start},
		})
	})
}

// survive lets one life of the sink meet all outages in mid-load.
func (w *world) survive(outages []outage) {
	w.t.Helper()
	const share = 6000
	f := w.produce(share*(len(outages)+1), 8)
	p := w.start(settings{rows: 1000, age: 100 * time.Millisecond})
	for n, o := range outages {
		f.allow(share * (n + 1))
		w.awaitInserted(p, int64(share*n/2))
		w.t.Log(o.name)
		o.end()
		time.Sleep(500 * time.Millisecond)
		o.launch()
	}
	truth := f.all()
	w.awaitSettled(p)
	p.stop()
	w.verify(truth)
	w.mustDrain(settings{})
	w.verify(truth)
}

// Partitions move while inserts and buffers of their old owner are under way: neither those nor a commit of theirs reach the new owner's work (field cases
// C3, C7).
func TestRebalanceBetweenTwoSinksLosesAndDoublesNothing(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 8, report: true, slow: 20 * time.Millisecond})
	const share = 8000
	f := w.produce(4*share, 9)
	samples := w.watch(f)
	defer samples()
	first := w.start(settings{rows: 500, member: "-"})
	f.allow(share)
	w.awaitInserted(first, 0)
	second := w.start(settings{rows: 800, member: "-"}) // takes half of the partitions
	f.allow(2 * share)
	w.awaitInserted(second, share)
	first.kill() // its partitions come back when its session ends
	f.allow(3 * share)
	w.awaitInserted(second, 2*share)
	third := w.start(settings{rows: 300, member: "-"})
	f.allow(4 * share)
	w.awaitInserted(third, 5*share/2)
	second.stop()
	truth := f.all()
	w.awaitSettled(third)
	third.stop()
	w.verify(truth)
}
