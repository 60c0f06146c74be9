//go:build chaos

package e2e

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

func restartAttacks() []attack {
	one := design{partitions: 1, window: 5}
	return []attack{
		{name: "restart-other-bounds-at-each-step", door: doorRestart, rows: 4000, run: (*rig).otherBounds,
			what: "killed at each step of a batch, started again with 7, 400, 33, … rows a batch"},
		{name: "restart-other-pieces", door: doorRestart, spread: 400 * 24 * time.Hour, rows: 2000, run: (*rig).otherPieces,
			what: "rows of 14 months, max_partitions_per_insert_block and max_rows changed at each restart, killed in between the pieces"},
		{name: "restart-recovery-killed", door: doorRestart, design: one, run: (*rig).recoveryKilled,
			what: "an insert without its acknowledgement, then eight lives killed in their recovery, window of 5 overrun"},
		{name: "restart-two-drains-and-a-twin", door: doorRestart, rows: 3000, run: (*rig).twoDrains,
			what: "two drains at once, and twice the same instance_id, behind a kill"},
		{name: "restart-everything-forgotten", door: doorRestart, design: one, run: (*rig).allForgotten,
			what: "an insert held in the network, kill, FLUSHALL, group deleted, window of 5 overrun, restart from the start, then it lands"},
		{name: "restart-column-added", door: doorRestart, run: (*rig).columnAdded,
			what: "a column with a random default is added between the kill and the restart with other bounds"},
		{name: "restart-log-cut-inside-the-intent", door: doorRestart, design: one, run: (*rig).logCutInIntent,
			what: "DeleteRecords into the midst of the range whose insert was unanswered when the sink was killed"},
		{name: "restart-commit-lands-late", door: doorRestart, run: (*rig).commitLandsLate,
			what: "the commit of an intent held in the network, its sink killed, taken over, then the commit lands"},
		{name: "restart-partitions-added", door: doorRestart, rows: 2500, run: (*rig).partitionsAdded,
			what: "partitions are added while the owner is frozen, copies go there, the owner is killed"},
	}
}

func (r *rig) otherBounds() {
	steps := []pipeline.Step{pipeline.StepClaimed, pipeline.StepIntent, pipeline.StepInserting, pipeline.StepWritten, pipeline.StepPublished, pipeline.StepCommitted}
	for n := range 9 {
		p := r.sink(with{settings: settings{rows: []int{400, 7, 150, 33, 1000, 1}[n%6]}})
		r.feed.allow(440 * (n + 1))
		r.step(p, steps[n%len(steps)])
		r.kill(p)
	}
}

func (r *rig) otherPieces() {
	for n := range 6 {
		limit := []string{"max_partitions_per_insert_block: 2", "max_partitions_per_insert_block: 100", "max_partitions_per_insert_block: 3", "max_partitions_per_insert_block: 1"}[n%4]
		p := r.ready(with{settings: settings{rows: []int{500, 60, 1000}[n%3]}, inserts: limit})
		r.feed.allow(333 * (n + 1))
		r.step(p, pipeline.StepInserting)
		time.Sleep(time.Duration(n) * 15 * time.Millisecond)
		r.kill(p)
	}
}

func (r *rig) recoveryKilled() {
	p := r.ready(with{settings: settings{rows: 300}})
	rule := r.hold(faultproxy.HoldReply, 2)
	r.make(1000)
	r.met(rule)
	r.kill(p)
	rule.Remove()
	r.foreign(7)
	steps := []pipeline.Step{pipeline.StepClaimed, pipeline.StepIntent, pipeline.StepInserting}
	for n := range 8 {
		p := r.sink(with{settings: settings{rows: []int{50, 300, 9}[n%3]}})
		cut := r.insertRule(r.toEngine, faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 2})
		r.step(p, steps[n%3])
		r.kill(p)
		cut.Remove()
		r.foreign(2)
	}
}

func (r *rig) twoDrains() {
	p := r.ready(with{})
	r.feed.allow(1500)
	r.step(p, pipeline.StepInserting)
	r.kill(p)
	r.awaitMade(1500)
	for n := range 2 {
		one := r.sink(with{settings: settings{rows: 50}}, "--drain")
		two := r.sink(with{settings: settings{rows: 170, member: "twin"}}, "--drain")
		time.Sleep(300 * time.Millisecond)
		three := r.sink(with{settings: settings{rows: 90, member: "twin"}}, "--drain")
		r.feed.allow(1500 + 750*(n+1))
		r.until(25*time.Second, func() bool { return !one.running() && !two.running() && !three.running() })
		r.endAll()
	}
}

func (r *rig) deleteGroup(group string) {
	r.t.Helper()
	if !r.until(20*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		gone, err := kadm.NewClient(r.kafka).DeleteGroups(ctx, group)
		return err == nil && gone.Error() == nil
	}) {
		r.t.Errorf("the group %s could not be deleted", group)
	}
	r.count("groups deleted")
}

func (r *rig) allForgotten() {
	for n := range 2 {
		p := r.ready(with{settings: settings{rows: 300}})
		rule := r.hold([]faultproxy.Fault{faultproxy.HoldRequest, faultproxy.HoldReply}[n%2], 2)
		r.make(900)
		r.met(rule)
		r.kill(p)
		r.flush()
		r.deleteGroup(r.group)
		q := r.ready(with{settings: settings{rows: 80}})
		r.foreign(7)
		r.inserted(r.truth().Keys)
		rule.Remove()
		time.Sleep(500 * time.Millisecond)
		r.end(q)
	}
}

func (r *rig) columnAdded() {
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 250}})
		rule := r.hold([]faultproxy.Fault{faultproxy.HoldReply, faultproxy.HoldRequest}[n%2], 1)
		r.make(600)
		r.met(rule)
		r.s.sql(r.t, "ALTER TABLE %s ADD COLUMN more_%d UInt64 DEFAULT rand64()", r.table, n)
		r.count("columns added")
		r.kill(p)
		q := r.sink(with{settings: settings{rows: 40}})
		time.Sleep(500 * time.Millisecond)
		rule.Remove()
		r.inserted(r.truth().Keys)
		r.end(q)
	}
}

func (r *rig) logCutInIntent() {
	p := r.ready(with{settings: settings{rows: 300}})
	rule := r.hold(faultproxy.HoldReply, 2)
	r.make(1500)
	r.met(rule)
	r.kill(p)
	rule.Remove()
	at := r.offsets()[0].committed
	r.deleteRecords(at + 50) // these rows are in the table
	r.foreign(7)
	r.count("logs cut")
}

func (r *rig) commitLandsLate() {
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 150}})
		r.make(200)
		r.inserted(r.truth().Keys)
		rule := r.intents(faultproxy.RuleOptions{Fault: faultproxy.HoldRequest, Limit: 1})
		r.make(450)
		r.met(rule)
		if n == 2 {
			freeze(p)
		} else {
			r.kill(p)
		}
		q := r.takeOver(60)
		rule.Release()
		r.count("commits landed late")
		time.Sleep(300 * time.Millisecond)
		r.kill(q)
		rule.Remove()
		r.kill(p)
	}
}

func (r *rig) partitionsAdded() {
	p := r.ready(with{})
	r.feed.allow(1200)
	r.step(p, pipeline.StepClaimed)
	freeze(p)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := kadm.NewClient(r.kafka).CreatePartitions(ctx, 2, r.topic); err != nil {
		r.t.Fatal(err)
	}
	r.count("partitions added")
	r.awaitMade(1200)
	q := r.ready(with{settings: settings{rows: 70}})
	r.kafka.ForceMetadataRefresh()
	time.Sleep(5500 * time.Millisecond)
	r.again(r.topic, r.sent(), func(i int, _ int32) int32 { return int32(r.partitions + i%2) })
	thaw(p)
	r.make(1300)
	time.Sleep(500 * time.Millisecond)
	r.kill(p)
	r.end(q)
}
