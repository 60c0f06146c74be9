//go:build chaos

package e2e

import (
	"math/rand/v2"
	"time"

	"github.com/oncesink/oncesink/bench/load"
	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

func resendAttacks() []attack {
	one := design{partitions: 1, window: 5}
	return []attack{
		{name: "resend-replay-group-killed", door: doorResend, rows: 3000, run: (*rig).replayKilled,
			what: "a second group reads everything again into the table while the first one runs; it is killed at each step"},
		{name: "resend-kafka-tool-while-insert-cut", door: doorResend, design: one, run: (*rig).toolWhileCut,
			what: "kill with an insert held in the network, Kafka's own tool resets to 0 and to the midst of it, restart, then it lands"},
		{name: "resend-resolve-to-backwards", door: doorResend, design: design{partitions: 1}, rows: 3000, run: (*rig).resolveBackwards,
			what: "offsets resolve --to backwards again and again, each life killed"},
		{name: "resend-drop-intent", door: doorResend, design: design{partitions: 1}, run: (*rig).dropIntent,
			what: "offsets resolve --drop-intent at once behind a kill with the insert held in the network, restart, then it lands"},
		{name: "resend-other-topic-reversed", door: doorResend, rows: 3000, run: (*rig).otherTopicReversed,
			what: "everything again backwards by another topic of another group into the table, both sinks killed and frozen in turn"},
		{name: "resend-warm-under-load", door: doorResend, rows: 3000, run: (*rig).warmUnderLoad,
			what: "FLUSHALL, sink warm while sinks write, everything sent again elsewhere, kill"},
		{name: "resend-two-groups-drain-at-once", door: doorResend, rows: 3000, run: (*rig).twoGroupsDrain,
			what: "three new groups drain the same topic into the table at the same time, one of them killed and reset"},
		{name: "resend-other-values", door: doorResend, rows: 1500, run: (*rig).otherValues,
			what: "keys that are there again with other amounts, behind kills and from another partition"},
		{name: "resend-group-deleted", door: doorResend, run: (*rig).groupDeleted,
			what: "the group is deleted with an insert unanswered; the ways on as named; everything sent again elsewhere"},
		{name: "resend-reset-between-take-overs", door: doorResend, rows: 2500, run: (*rig).resetBetween,
			what: "offsets moved by hand into the midst of unanswered inserts, forwards and back, with other bounds each time"},
		{name: "resend-restored-records", door: doorResend, design: design{partitions: 1}, run: (*rig).restoredRecords,
			what: "the topic emptied by DeleteRecords behind the commit, its records sent again in another order, offsets reset to 0 by hand"},
	}
}

func (r *rig) replayKilled() {
	replay := with{group: r.group + "_replay"}
	r.groups = append(r.groups, replay)
	p := r.ready(with{})
	steps := []pipeline.Step{pipeline.StepClaimed, pipeline.StepInserting, pipeline.StepPublished, pipeline.StepIntent}
	for n := range 6 {
		r.feed.allow(500 * (n + 1))
		replay.rows = []int{30, 500, 120}[n%3]
		q := r.sink(replay)
		r.step(q, steps[n%len(steps)])
		if n%3 == 2 {
			freeze(p)
			time.Sleep(200 * time.Millisecond)
			thaw(p)
		}
		r.kill(q)
		if n == 3 {
			r.resetByHand(replay.group, r.topic, toStart)
		}
	}
	r.end(p)
}

func (r *rig) toolWhileCut() {
	for n := range 2 {
		p := r.ready(with{settings: settings{rows: 300}})
		rule := r.hold([]faultproxy.Fault{faultproxy.HoldRequest, faultproxy.HoldReply}[n], 2)
		r.make(900)
		r.met(rule)
		r.kill(p)
		to := int64(0)
		if n == 1 {
			to = r.offsets()[0].committed + 17
		}
		if n == 0 {
			r.resetByTool(r.group, r.topic, 0, to)
		} else {
			// Forwards would be a loss that the operator asked for: one step forwards, then back behind the start of it.
			r.resetByTool(r.group, r.topic, 0, to)
			r.resetByHand(r.group, r.topic, func(int32, int64) int64 { return to - 40 })
		}
		r.foreign(7)
		q := r.ready(with{settings: settings{rows: 55}})
		rule.Remove()
		time.Sleep(3 * time.Second)
		r.end(q)
	}
}

func (r *rig) resolveBackwards() {
	steps := []pipeline.Step{pipeline.StepInserting, pipeline.StepClaimed, pipeline.StepIntent, pipeline.StepWritten}
	for n := range 4 {
		p := r.ready(with{settings: settings{rows: []int{300, 40, 700}[n%3]}})
		r.feed.allow(750 * (n + 1))
		r.step(p, steps[n%len(steps)])
		if n%2 == 1 {
			r.inserted(int64(600 * n))
		}
		r.kill(p)
		r.awaitMade(750 * (n + 1))
		r.moveTo(0, max(0, r.offsets()[0].committed-int64(130*(n+1))))
		r.count("moved back")
		if n == 2 {
			r.moveTo(0, 5)
			r.count("moved back")
		}
	}
}

func (r *rig) dropIntent() {
	for n := range 2 {
		p := r.ready(with{settings: settings{rows: 300}})
		r.make(200)
		r.inserted(r.truth().Keys)
		rule := r.hold([]faultproxy.Fault{faultproxy.HoldRequest, faultproxy.HoldReply}[n], 2)
		r.make(700)
		r.met(rule)
		r.kill(p)
		r.resolveWith(with{}, "--topic", r.topic, "--partition", "0", "--drop-intent", "--apply")
		r.count("intents dropped")
		q := r.sink(with{settings: settings{rows: 45}})
		time.Sleep(2500 * time.Millisecond)
		rule.Remove()
		time.Sleep(time.Second)
		r.end(q)
	}
}

func (r *rig) otherTopicReversed() {
	other := r.topicBeside("_back")
	o := with{group: r.group + "_back", routes: [][]string{{other}}}
	r.groups = append(r.groups, o)
	p, q := r.ready(with{}), r.ready(o)
	for n := range 3 {
		r.feed.allow(1000 * (n + 1))
		time.Sleep(100 * time.Millisecond)
		all := r.sent()
		back := make([]load.Settlement, len(all))
		for i := range all {
			back[len(all)-1-i] = all[i]
		}
		r.again(other, back, func(i int, _ int32) int32 { return int32(i % 2) })
		victim, other := p, q
		if n%2 == 1 {
			victim, other = q, p
		}
		r.step(victim, pipeline.StepClaimed)
		r.freezeFor(victim, 1500*time.Millisecond)
		r.step(other, pipeline.StepInserting)
		r.kill(victim)
		if victim == p {
			p = r.ready(with{settings: settings{rows: 70}})
		} else {
			o.rows = 333
			q = r.ready(o)
		}
	}
	r.end(p)
	r.end(q)
}

func (r *rig) warmUnderLoad() {
	p, q := r.ready(with{}), r.ready(with{settings: settings{rows: 90}})
	for n := range 3 {
		r.make(600)
		r.feed.allow(1000 * (n + 1))
		r.flush()
		done := make(chan struct{})
		config := r.configOf(with{})
		warm := r.launch("warm-"+string(rune('a'+n)), "warm", "-c", config)
		go func() {
			<-warm.exited
			close(done)
		}()
		r.again(r.topic, r.sent(), r.elsewhere)
		if n == 1 {
			r.step(p, pipeline.StepInserting)
			r.kill(p)
			p = r.sink(with{settings: settings{rows: 300}})
		}
		select {
		case <-done:
			r.count("warmed")
			if warm.code != 0 {
				r.note("warm ended with %d: %s", warm.code, warm.said(2))
			}
		case <-time.After(20 * time.Second):
			r.note("warm took more than 20 s")
			warm.kill()
		}
	}
	r.quiet()
	r.end(p)
	r.end(q)
}

func (r *rig) twoGroupsDrain() {
	r.make(3000)
	var running []*sink
	for n := range 3 {
		o := with{group: r.group + "_" + string(rune('a'+n)), settings: settings{rows: []int{60, 250, 111}[n]}}
		r.groups = append(r.groups, o)
		running = append(running, r.sink(o, "--drain"))
	}
	running = append(running, r.sink(with{}, "--drain"))
	r.step(running[1], pipeline.StepInserting)
	r.kill(running[1])
	r.until(20*time.Second, func() bool { return !running[0].running() && !running[2].running() && !running[3].running() })
	r.resetByHand(r.groups[1].group, r.topic, toStart)
}

func (r *rig) otherValues() {
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 120}})
		r.make(500)
		if !r.quiet() {
			r.t.Error("nothing is settled")
			return
		}
		all := r.sent()
		part := all[len(all)-100:]
		for i := range part {
			part[i].Qty += 7
		}
		r.letters += len(part)
		r.again(r.topic, part, r.elsewhere)
		r.step(p, []pipeline.Step{pipeline.StepClaimed, pipeline.StepCommitted, pipeline.StepClaimed}[n])
		r.kill(p)
	}
}

func (r *rig) groupDeleted() {
	p := r.ready(with{settings: settings{rows: 150}})
	r.make(800)
	r.inserted(300)
	rule := r.hold(faultproxy.HoldReply, 2)
	r.make(600)
	r.met(rule)
	r.kill(p)
	r.deleteGroup(r.group)
	rule.Remove()
	r.again(r.topic, r.sent(), r.elsewhere)
}

func (r *rig) resetBetween() {
	for n := range 4 {
		p := r.ready(with{settings: settings{rows: []int{300, 77, 500}[n%3]}})
		rule := r.hold([]faultproxy.Fault{faultproxy.HoldReply, faultproxy.HoldRequest}[n%2], 2)
		r.feed.allow(625 * (n + 1))
		r.met(rule)
		freeze(p)
		q := r.ready(with{settings: settings{rows: 90}})
		time.Sleep(time.Second)
		rule.Release()
		thaw(p)
		r.kill(q)
		r.kill(p)
		r.resetByHand(r.group, r.topic, func(_ int32, committed int64) int64 { return rand.Int64N(committed + 1) })
		rule.Remove()
	}
}

func (r *rig) restoredRecords() {
	p := r.ready(with{})
	r.make(1500)
	if !r.quiet() {
		r.t.Error("nothing is settled")
		return
	}
	r.step(p, pipeline.StepCommitted)
	r.kill(p)
	at := r.offsets()[0].committed
	r.deleteRecords(at)
	all := r.sent()
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	r.again(r.topic, all, func(int, int32) int32 { return 0 })
	r.resetByHand(r.group, r.topic, toStart)
	q := r.ready(with{settings: settings{rows: 77}})
	r.step(q, pipeline.StepClaimed)
	r.kill(q)
}
