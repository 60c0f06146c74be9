//go:build chaos

package e2e

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// mixedAttacks go through several doors and links at once.
func mixedAttacks() []attack {
	return []attack{
		{name: "mixed-zombie-flush-replay", door: doorLate + ", Redis, " + doorResend, design: design{window: 5}, rows: 2500, run: (*rig).zombieFlushReplay,
			what: "rows of a running insert late in a frozen sink, FLUSHALL, a replay group over the same records, window of 5 overrun, the replay killed, then thawed"},
		{name: "mixed-everything-restarts-at-once", door: "Kafka, Redis, ClickHouse, " + doorRestart, rows: 2500, run: (*rig).allRestart,
			what: "broker, Redis and ClickHouse killed together at an insert, all sinks too, started again in another order, other bounds"},
		{name: "mixed-warm-in-the-midst-of-an-insert", door: doorLate + ", Redis, " + doorResend, design: design{slow: 1200 * time.Millisecond}, run: (*rig).warmMidInsert,
			what: "FLUSHALL and sink warm while an insert is between its table and its slow view, its sink killed, copies elsewhere"},
		{name: "mixed-letter-then-flush-then-twin", door: doorProducer + ", Redis", rows: 300, run: (*rig).letterFlushTwin,
			what: "refused records, FLUSHALL or a kill behind their dead letters, good twins in the other partition of a frozen sink, the constraint dropped, all reset to 0"},
		{name: "mixed-reset-replay-and-drop-intent", door: doorResend + ", " + doorLate, design: design{partitions: 1}, rows: 2500, run: (*rig).resetReplayDrop,
			what: "two groups on the same records, both with an insert unanswered, both killed, one reset by Kafka's tool, one with its intent dropped, both started at once, then the inserts land"},
		{name: "mixed-view-throws-and-window-overrun", door: "ClickHouse, " + doorLate, design: design{window: 5}, run: (*rig).viewThrowsOverrun,
			what: "the table written and its view refusing, window of 5 overrun by another writer, FLUSHALL, kill, the view mended"},
		{name: "mixed-old-claims-after-a-skip", door: doorResend + ", " + doorRestart, design: design{partitions: 2}, run: (*rig).skipAndBack,
			what: "claims of killed lives, offsets moved to the end and back by hand crosswise, copies in the other partition"},
		{name: "mixed-claim-lost-at-the-end-of-verify", door: "Redis, " + doorProducer, run: (*rig).lostClaimVerify,
			what: "answers of claims cut around FLUSHALL and around the end of sink warm, kills, everything sent again elsewhere"},
	}
}

func (r *rig) zombieFlushReplay() {
	replay := with{group: r.group + "_replay", settings: settings{rows: 130}}
	r.groups = append(r.groups, replay)
	for n := range 2 {
		own := r.proxyTo(r.engine.Addr)
		p := r.ready(with{settings: settings{rows: 400, clickhouse: own.Addr()}})
		rule := own.Add(faultproxy.RuleOptions{
			Fault: faultproxy.HoldReply, Turn: 1, Limit: 1, Marker: "INSERT INTO `" + r.s.database + "`.`" + r.table + "`",
		})
		r.make(900)
		if r.met(rule) {
			freeze(p)
		}
		rule.Remove()
		r.flush()
		q := r.ready(replay)
		r.foreign(12)
		time.Sleep(2500 * time.Millisecond)
		if n == 1 {
			r.kill(q)
		}
		r.again(r.topic, r.sent(), r.elsewhere)
		thaw(p)
		r.count("rows late for a running insert")
		time.Sleep(1500 * time.Millisecond)
		r.kill(q)
		r.kill(p)
	}
}

func (r *rig) allRestart() {
	redis := r.arena.store.node()
	for n := range 2 {
		p, q := r.ready(with{settings: settings{rows: 250}}), r.ready(with{settings: settings{rows: 60}})
		r.feed.allow(1250 * (n + 1))
		r.step(p, pipeline.StepInserting)
		r.engine.Kill()
		redis.Kill()
		r.broker.Kill()
		r.kill(p)
		if n == 1 {
			r.kill(q)
		}
		r.count("kill -9 of all servers")
		if n == 0 {
			r.broker.Start()
			redis.Start()
			r.engine.Start()
		} else {
			r.engine.Start()
			redis.Start()
			r.broker.Start()
		}
		r.awaitMade(min(1250*(n+1), r.feed.rows))
		r.again(r.topic, r.sent(), r.elsewhere)
		s := r.ready(with{settings: settings{rows: 35}})
		time.Sleep(3 * time.Second)
		r.end(q)
		r.end(s)
	}
}

func (r *rig) warmMidInsert() {
	for n := range 2 {
		p := r.ready(with{settings: settings{rows: 300}})
		r.feed.allow(900 * (n + 1))
		r.step(p, pipeline.StepInserting)
		r.until(5*time.Second, func() bool {
			said, err := r.s.ask(fmt.Sprintf("SELECT count() FROM system.processes WHERE startsWith(query_id, '%s')", r.queryIDs()))
			return err == nil && said != "0"
		})
		time.Sleep(200 * time.Millisecond)
		r.flush()
		if n == 1 {
			r.kill(p)
		}
		if code, _, stderr := r.command("warm", "-c", r.configOf(with{})); code != 0 {
			r.note("warm ended with %d: %s", code, stderr)
		}
		r.count("warmed")
		r.again(r.topic, r.sent(), r.elsewhere)
		q := r.ready(with{settings: settings{rows: 70}})
		time.Sleep(2 * time.Second)
		r.kill(p)
		r.end(q)
	}
}

func (r *rig) letterFlushTwin() {
	const n = 40
	constraint := "recent CHECK create_time > toDateTime64('2001-01-01 00:00:00', 3, 'UTC')"
	r.s.sql(r.t, "ALTER TABLE %s ADD CONSTRAINT %s", r.table, constraint)
	r.letters = -1 // those of the first reading
	at := func(p int32, v []byte) *kgo.Record { return &kgo.Record{Topic: r.topic, Partition: p, Value: v} }
	p, q := r.ready(with{settings: settings{rows: 25}}), r.ready(with{settings: settings{rows: 25}})
	time.Sleep(time.Second)
	r.promise(n)
	var bad, good []*kgo.Record
	for i := range n {
		bad, good = append(bad, at(0, twin(i, 1000))), append(good, at(1, twin(i, time.Now().UnixMilli())))
	}
	r.put(bad...)
	r.until(10*time.Second, func() bool { return r.deadLetters() >= 5 })
	freeze(q)
	r.put(good...)
	r.flush()
	time.Sleep(4 * time.Second)
	thaw(q)
	r.make(300)
	r.quiet()
	r.kill(p)
	r.kill(q)
	r.s.sql(r.t, "ALTER TABLE %s DROP CONSTRAINT recent", r.table)
	r.resetByHand(r.group, r.topic, toStart)
}

func (r *rig) resetReplayDrop() {
	replay := with{group: r.group + "_replay", settings: settings{rows: 170}}
	r.groups = append(r.groups, replay)
	r.make(300)
	p, q := r.ready(with{settings: settings{rows: 250}}), r.ready(replay)
	r.inserted(r.truth().Keys)
	rule := r.insertRule(r.toEngine, faultproxy.RuleOptions{Fault: faultproxy.HoldRequest, Every: 2, Limit: 2})
	r.make(1200)
	r.met(rule)
	time.Sleep(300 * time.Millisecond)
	r.kill(p)
	r.kill(q)
	r.resetByTool(r.group, r.topic, 0, 100)
	r.resolveWith(replay, "--topic", r.topic, "--partition", "0", "--drop-intent", "--apply")
	p, q = r.ready(with{settings: settings{rows: 60}}), r.ready(replay)
	r.make(1000)
	time.Sleep(2 * time.Second)
	rule.Remove()
	time.Sleep(time.Second)
	r.kill(q)
	r.end(p)
}

func (r *rig) viewThrowsOverrun() {
	r.addFragileView()
	for n := range 2 {
		p := r.ready(with{settings: settings{rows: 200}})
		r.make(200)
		r.inserted(r.truth().Keys)
		r.s.sql(r.t, "ALTER TABLE %s_fragile_mv MODIFY QUERY "+fragileView, r.table, r.table, "tenant = 'tenant-7'")
		r.feed.allow(1000 * (n + 1))
		time.Sleep(1500 * time.Millisecond)
		r.s.sql(r.t, "ALTER TABLE %s_fragile_mv MODIFY QUERY "+fragileView, r.table, r.table, "tenant = 'foreign' AND 0")
		r.foreign(8)
		if n == 1 {
			r.flush()
		}
		r.kill(p)
		r.count("broken, overrun and mended")
		q := r.ready(with{settings: settings{rows: 60}})
		r.again(r.topic, r.sent(), r.elsewhere)
		time.Sleep(3 * time.Second)
		r.end(q)
	}
}

func (r *rig) skipAndBack() {
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 300}})
		r.feed.allow(660 * (n + 1))
		r.step(p, []pipeline.Step{pipeline.StepClaimed, pipeline.StepIntent, pipeline.StepInserting}[n])
		r.kill(p)
		r.awaitMade(660 * (n + 1))
		r.again(r.topic, r.sent(), r.elsewhere)
		before := r.offsets()
		r.resetByHand(r.group, r.topic, func(p int32, _ int64) int64 {
			if int(p) == n%2 {
				return before[p].end
			}
			return before[p].committed
		})
		q := r.ready(with{settings: settings{rows: 45}})
		time.Sleep(1500 * time.Millisecond)
		r.kill(q)
		r.resetByHand(r.group, r.topic, func(p int32, _ int64) int64 {
			if int(p) == n%2 {
				return before[p].committed
			}
			return before[p].committed / 2
		})
	}
}

func (r *rig) lostClaimVerify() {
	for n := range 3 {
		p, q := r.ready(with{settings: settings{rows: 150}}), r.ready(with{settings: settings{rows: 60}})
		r.make(300)
		r.inserted(r.truth().Keys)
		cut := r.claims(faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 2})
		r.flush()
		r.feed.allow(660 * (n + 1))
		r.again(r.topic, r.sent(), r.elsewhere)
		warm := r.launch(fmt.Sprintf("warm-%d", n), "warm", "-c", r.configOf(with{settings: settings{redis: fmt.Sprintf("addresses: [%q]", r.arena.store.node().Addr)}}))
		r.until(20*time.Second, func() bool { return !warm.running() })
		r.add("answers cut", cut.Account().Faults)
		if n == 1 {
			r.kill(p)
		}
		cut.Remove()
		r.again(r.topic, r.sent(), r.elsewhere)
		r.inserted(r.truth().Keys)
		r.kill(q)
		r.end(p)
	}
}
