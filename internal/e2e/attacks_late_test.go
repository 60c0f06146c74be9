//go:build chaos

package e2e

import (
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

func lateAttacks() []attack {
	one := design{partitions: 1, window: 5}
	return []attack{
		{name: "late-zombie-behind-its-intent", door: doorLate, design: one, run: (*rig).zombieBehindIntent,
			what: "frozen when its intent is committed and its insert not sent, taken over, window of 5 overrun, thawed"},
		{name: "late-block-of-a-running-insert", door: doorLate, design: one, run: (*rig).lateBlock,
			what: "an insert whose statement runs and whose rows are still in the frozen sink; the group moves on, window of 5 overrun, then the rows come"},
		{name: "late-request-lands", door: doorLate, design: one, run: (*rig).requestLands,
			what: "an insert held in the network, its sink killed, taken over with other bounds, window of 5 overrun, then it lands"},
		{name: "late-slow-view-times-out", door: doorLate, design: design{slow: 1500 * time.Millisecond}, run: (*rig).slowViewTimesOut,
			what: "a view slower than insert_timeout: every insert times out and is written again, with a take-over and a kill"},
		{name: "late-acks-cut-and-flush", door: doorLate, rows: 3000, run: (*rig).acksCutAndFlush,
			what: "every second acknowledgement cut, FLUSHALL in between, kills"},
		{name: "late-server-frozen", door: doorLate, design: one, run: (*rig).serverFrozen,
			what: "the server frozen with the insert in its socket, the sink killed, another one started, the server thawed behind the deadline"},
		{name: "late-window-shrunk", door: doorLate, rows: 3000, run: (*rig).windowShrunk,
			what: "the window is altered from 1000 to 3 blocks under way, another writer fills it, acknowledgements are cut and sinks killed"},
		{name: "late-just-at-the-deadline", door: doorLate, rows: 3000, run: (*rig).justAtTheDeadline,
			what: "requests delayed by 0.7 to 1.1 of the deadline, insert_timeout of one deadline, copies elsewhere"},
	}
}

// takeOver has another sink finish what there is, with other bounds.
func (r *rig) takeOver(rows int) *sink {
	p := r.ready(with{settings: settings{rows: rows}})
	r.inserted(r.truth().Keys)
	return p
}

func (r *rig) zombieBehindIntent() {
	for n := range 2 {
		first := r.ready(with{settings: settings{rows: 500}})
		rule := r.intents(faultproxy.RuleOptions{Fault: faultproxy.HoldReply, Limit: 1})
		r.make(900)
		if r.met(rule) {
			freeze(first)
		}
		rule.Remove() // the reply is in its socket
		second := r.takeOver(70)
		r.foreign(12)
		thaw(first)
		r.count("zombies")
		r.again(r.topic, r.sent(), r.elsewhere)
		time.Sleep(time.Second)
		if n == 0 {
			r.end(second) // the zombie is the owner again
			r.inserted(r.truth().Keys)
		} else {
			r.kill(second)
		}
		r.end(first)
	}
}

func (r *rig) lateBlock() {
	for n := range 2 {
		first := r.ready(with{settings: settings{rows: 500}})
		rule := r.toEngine.Add(faultproxy.RuleOptions{
			Fault: faultproxy.HoldReply, Turn: 1, Limit: 1, Marker: "INSERT INTO `" + r.s.database + "`.`" + r.table + "`",
		})
		r.make(900)
		if r.met(rule) {
			freeze(first)
		}
		rule.Remove() // what the server said is in its socket; the rows go out when it thaws
		second := r.ready(with{settings: settings{rows: 70}})
		r.foreign(12)
		time.Sleep(4500 * time.Millisecond)
		if n == 1 {
			r.flush()
		}
		thaw(first)
		r.count("rows late for a running insert")
		r.inserted(r.truth().Keys)
		r.end(first)
		r.end(second)
	}
}

func (r *rig) requestLands() {
	p := r.ready(with{settings: settings{rows: 300}})
	r.make(400)
	r.quiet()
	for range 2 {
		rule := r.hold(faultproxy.HoldRequest, 2)
		r.make(700)
		r.met(rule)
		r.kill(p)
		p = r.takeOver(40)
		r.foreign(12)
		rule.Release()
		r.count("inserts landed late")
		time.Sleep(700 * time.Millisecond)
		rule.Remove()
	}
	r.end(p)
}

func (r *rig) slowViewTimesOut() {
	o := with{settings: settings{insertTimeout: time.Second, rows: 300}}
	p := r.ready(o)
	r.make(700)
	time.Sleep(3 * time.Second)
	q := r.ready(with{settings: settings{insertTimeout: time.Second, rows: 100}})
	r.make(700)
	time.Sleep(3 * time.Second)
	r.kill(p)
	r.again(r.topic, r.sent(), r.elsewhere)
	time.Sleep(5 * time.Second)
	r.end(q)
}

func (r *rig) acksCutAndFlush() {
	rule := r.insertRule(r.toEngine, faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 2})
	for n := range 4 {
		p := r.ready(with{settings: settings{rows: 60 + 90*n}})
		r.feed.allow(750 * (n + 1))
		r.inserted(int64(500*n + 200))
		r.flush()
		r.again(r.topic, r.sent(), r.elsewhere)
		time.Sleep(time.Duration(n) * 400 * time.Millisecond)
		r.kill(p)
	}
	r.add("acknowledgements cut", rule.Account().Faults)
	rule.Remove()
}

func (r *rig) serverFrozen() {
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 300}})
		r.feed.allow(600 * (n + 1))
		r.step(p, pipeline.StepIntent)
		r.engine.Pause()
		r.count("freezes of the server")
		time.Sleep(500 * time.Millisecond)
		r.kill(p)
		q := r.sink(with{settings: settings{rows: 80}})
		time.Sleep(time.Duration(n+1) * 700 * time.Millisecond)
		r.engine.Resume()
		r.inserted(r.truth().Keys)
		r.foreign(6)
		r.end(q)
	}
}

func (r *rig) windowShrunk() {
	alter := func(n int) {
		r.s.sql(r.t, "ALTER TABLE %s MODIFY SETTING non_replicated_deduplication_window = %d", r.table, n)
		r.s.sql(r.t, "ALTER TABLE %s MODIFY SETTING non_replicated_deduplication_window = %d", r.views[0], n)
	}
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 150}})
		r.make(400)
		r.inserted(r.truth().Keys)
		rule := r.insertRule(r.toEngine, faultproxy.RuleOptions{Fault: faultproxy.HoldReply, Limit: 2})
		r.feed.allow(1000 * (n + 1))
		r.met(rule)
		alter(3)
		r.count("windows shrunk")
		r.foreign(8)
		if n == 1 {
			r.kill(p)
			p = r.ready(with{settings: settings{rows: 70}})
		}
		time.Sleep(3500 * time.Millisecond)
		rule.Remove()
		r.inserted(r.truth().Keys)
		alter(1000)
		r.end(p)
	}
}

func (r *rig) justAtTheDeadline() {
	p := r.ready(with{settings: settings{rows: 120, insertTimeout: time.Second}})
	q := r.ready(with{settings: settings{rows: 200, insertTimeout: time.Second}})
	for n := range 8 {
		r.feed.allow(375 * (n + 1))
		r.toEngine.Delay(faultproxy.ToServer, r.between(700*time.Millisecond, 1100*time.Millisecond))
		time.Sleep(1500 * time.Millisecond)
		r.toEngine.Delay(faultproxy.ToServer, 0)
		if n%3 == 0 {
			r.again(r.topic, r.sent(), r.elsewhere)
		}
		time.Sleep(300 * time.Millisecond)
	}
	r.end(p)
	r.end(q)
}
