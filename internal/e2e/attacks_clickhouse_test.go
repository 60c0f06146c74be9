//go:build chaos

package e2e

import (
	"fmt"
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

func engineAttacks() []attack {
	return []attack{
		{name: "clickhouse-killed-in-the-view", door: linkEngine, design: design{slow: 400 * time.Millisecond}, run: (*rig).killedInView,
			what: "the server killed while an insert is between its table and its view, then taken over with other bounds"},
		{name: "clickhouse-view-target-refuses", door: linkEngine, run: (*rig).viewTargetRefuses,
			what: "a constraint of the view's target refuses for a while (the code of bad data, but the table is written), with a kill"},
		{name: "clickhouse-view-target-too-many-parts", door: linkEngine, run: (*rig).tooManyParts,
			what: "the view's target has too many parts for a while (a code of refused before written, but the table is written), with a take-over"},
		{name: "clickhouse-inserts-killed", door: linkEngine, design: design{slow: 250 * time.Millisecond}, run: (*rig).insertsKilled,
			what: "an operator kills every insert that it sees, in the table and in the view, while sinks are killed"},
		{name: "clickhouse-view-throws-in-take-over", door: linkEngine, run: (*rig).viewThrowsTakeOver,
			what: "the view throws for a while, the sink is killed, another takes over with other bounds, the view is mended, copies elsewhere"},
		{name: "clickhouse-detached", door: linkEngine, rows: 3000, run: (*rig).detached,
			what: "the table is detached and attached under load, acknowledgements cut"},
		{name: "clickhouse-renamed-away", door: linkEngine, rows: 2500, run: (*rig).renamedAway,
			what: "the table is renamed away and back under load, with an insert held back"},
		{name: "clickhouse-cut-anywhere", door: linkEngine, design: design{window: 5}, rows: 3000, run: (*rig).cutAnywhere,
			what: "connections cut after any number of bytes of either way, window of 5 overrun, a kill"},
		{name: "clickhouse-stopped-with-acks-cut", door: linkEngine, rows: 2500, run: (*rig).stoppedAcksCut,
			what: "the server stopped and started right behind an unanswered insert, the sink killed, FLUSHALL"},
		{name: "clickhouse-log-forgotten", door: linkEngine, design: design{partitions: 1, window: 5}, run: (*rig).logForgotten,
			what: "query_log and part_log emptied behind an unanswered insert, window of 5 overrun, the sink killed"},
	}
}

func (r *rig) killedInView() {
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 250}})
		r.feed.allow(660 * (n + 1))
		r.step(p, pipeline.StepInserting)
		time.Sleep(time.Duration(40+110*n) * time.Millisecond)
		r.engine.Kill()
		r.count("kill -9 of ClickHouse")
		if n > 0 {
			r.kill(p)
		}
		time.Sleep(300 * time.Millisecond)
		r.engine.Start()
		q := r.ready(with{settings: settings{rows: 90}})
		time.Sleep(1500 * time.Millisecond)
		r.end(p)
		r.end(q)
	}
}

func (r *rig) viewTargetRefuses() {
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 200}})
		r.make(200)
		r.inserted(r.truth().Keys)
		check := []string{"qty > 100000000", "tenant != 'tenant-7'", "events > 1000000"}[n]
		r.s.sql(r.t, "ALTER TABLE %s ADD CONSTRAINT small CHECK %s", r.views[0], check)
		r.count("refused for a while")
		r.feed.allow(660 * (n + 1))
		time.Sleep(2 * time.Second)
		if n > 0 {
			r.kill(p)
			p = r.ready(with{settings: settings{rows: 70}})
			time.Sleep(1500 * time.Millisecond)
		}
		r.again(r.topic, r.sent(), r.elsewhere)
		r.s.sql(r.t, "ALTER TABLE %s DROP CONSTRAINT small", r.views[0])
		r.quiet()
		r.end(p)
	}
}

func (r *rig) tooManyParts() {
	target := r.views[0]
	for n := range 2 {
		p := r.ready(with{settings: settings{rows: 150}})
		r.make(200)
		r.inserted(r.truth().Keys)
		r.s.sql(r.t, "SYSTEM STOP MERGES %s", target)
		r.s.sql(r.t, "ALTER TABLE %s MODIFY SETTING parts_to_delay_insert = 1, parts_to_throw_insert = 2, max_delay_to_insert = 1", target)
		r.count("times of too many parts")
		r.feed.allow(1000 * (n + 1))
		time.Sleep(3 * time.Second)
		q := r.ready(with{settings: settings{rows: 60}})
		r.again(r.topic, r.sent(), r.elsewhere)
		if n == 1 {
			r.kill(p)
		}
		time.Sleep(2 * time.Second)
		r.s.sql(r.t, "ALTER TABLE %s RESET SETTING parts_to_delay_insert, parts_to_throw_insert, max_delay_to_insert", target)
		r.s.sql(r.t, "SYSTEM START MERGES %s", target)
		r.quiet()
		r.end(p)
		r.end(q)
	}
}

func (r *rig) insertsKilled() {
	stop := r.background(func() time.Duration {
		if said, err := r.s.ask(fmt.Sprintf("KILL QUERY WHERE startsWith(query_id, '%s') ASYNC", r.queryIDs())); err == nil && said != "" {
			r.count("inserts killed")
		}
		return r.between(50*time.Millisecond, 700*time.Millisecond)
	})
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 150 + 100*n}})
		r.feed.allow(660 * (n + 1))
		time.Sleep(2500 * time.Millisecond)
		if n == 1 {
			r.kill(p)
		} else {
			r.end(p)
		}
	}
	stop()
}

func (r *rig) viewThrowsTakeOver() {
	r.addFragileView()
	for n := range 2 {
		p := r.ready(with{settings: settings{rows: 200}})
		r.make(300)
		r.inserted(r.truth().Keys)
		r.s.sql(r.t, "INSERT INTO %s_switch VALUES (1)", r.table)
		r.feed.allow(1000 * (n + 1))
		time.Sleep(1500 * time.Millisecond)
		if n == 0 {
			r.kill(p)
		} else {
			freeze(p)
		}
		q := r.ready(with{settings: settings{rows: 55}})
		r.again(r.topic, r.sent(), r.elsewhere)
		time.Sleep(2 * time.Second)
		r.s.sql(r.t, "TRUNCATE TABLE %s_switch", r.table)
		r.count("times broken and mended")
		thaw(p)
		r.quiet()
		r.end(p)
		r.end(q)
	}
}

func (r *rig) detached() {
	p, q := r.ready(with{settings: settings{rows: 100}}), r.ready(with{settings: settings{rows: 60}})
	rule := r.insertRule(r.toEngine, faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 3})
	for n := range 6 {
		r.feed.allow(500 * (n + 1))
		time.Sleep(400 * time.Millisecond)
		name := []string{r.table, r.views[0]}[n%2]
		r.s.sql(r.t, "DETACH TABLE %s", name)
		time.Sleep(500 * time.Millisecond)
		r.s.sql(r.t, "ATTACH TABLE %s", name)
		r.count("detached and attached")
		time.Sleep(500 * time.Millisecond)
	}
	r.add("acknowledgements cut", rule.Account().Faults)
	rule.Remove()
	r.kill(p)
	r.end(q)
}

func (r *rig) renamedAway() {
	p := r.ready(with{settings: settings{rows: 150}})
	for n := range 3 {
		rule := r.hold([]faultproxy.Fault{faultproxy.HoldReply, faultproxy.HoldRequest}[n%2], 2)
		r.feed.allow(830 * (n + 1))
		r.met(rule)
		r.s.sql(r.t, "RENAME TABLE %[1]s TO %[1]s_away", r.table)
		r.count("renamed away and back")
		time.Sleep(1500 * time.Millisecond)
		rule.Remove()
		if n == 1 {
			r.kill(p)
		}
		r.s.sql(r.t, "RENAME TABLE %[1]s_away TO %[1]s", r.table)
		if n == 1 {
			p = r.ready(with{settings: settings{rows: 60}})
		}
		r.inserted(r.truth().Keys)
	}
	r.end(p)
}

func (r *rig) cutAnywhere() {
	p := r.ready(with{settings: settings{rows: 100}})
	q := r.ready(with{settings: settings{rows: 180}})
	for n := range 12 {
		d := faultproxy.Direction(n % 2)
		r.feed.allow(250 * (n + 1))
		r.toEngine.CutAfter(d, 1+int64(r.rng.IntN(1<<uint(6+r.rng.IntN(9)))))
		r.toEngine.Cut()
		time.Sleep(500 * time.Millisecond)
		r.foreign(2)
		r.toEngine.CutAfter(d, 0)
		r.toEngine.Cut()
		r.count("times of cuts")
		if n == 7 {
			r.kill(p)
		}
		time.Sleep(400 * time.Millisecond)
	}
	r.end(q)
}

func (r *rig) stoppedAcksCut() {
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 150}})
		rule := r.hold(faultproxy.HoldReply, 2)
		r.feed.allow(830 * (n + 1))
		r.met(rule)
		if n == 0 {
			r.engine.Stop()
		} else {
			r.kill(p)
			r.engine.Kill()
		}
		if n == 2 {
			r.flush()
		}
		r.count("restarts of ClickHouse")
		rule.Remove()
		r.engine.Start()
		q := r.ready(with{settings: settings{rows: 70}})
		time.Sleep(2 * time.Second)
		r.end(p)
		r.end(q)
	}
}

func (r *rig) logForgotten() {
	for n := range 2 {
		p := r.ready(with{settings: settings{rows: 200}})
		r.make(200)
		r.inserted(r.truth().Keys)
		rule := r.hold([]faultproxy.Fault{faultproxy.HoldReply, faultproxy.HoldRequest}[n], 2)
		r.make(800)
		r.met(rule)
		r.kill(p)
		r.foreign(7)
		r.s.sql(r.t, "SYSTEM FLUSH LOGS")
		r.s.sql(r.t, "TRUNCATE TABLE IF EXISTS system.query_log")
		r.s.sql(r.t, "TRUNCATE TABLE IF EXISTS system.part_log")
		r.count("logs emptied")
		q := r.ready(with{settings: settings{rows: 45}})
		time.Sleep(2 * time.Second)
		rule.Remove()
		r.end(q)
	}
}
