//go:build chaos

package e2e

import (
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

func kafkaAttacks() []attack {
	return []attack{
		{name: "kafka-black-hole-in-an-insert", door: linkKafka, run: (*rig).kafkaBlackHole,
			what: "Kafka silent for longer than the session while an insert is held back; copies elsewhere"},
		{name: "kafka-commit-replies-swallowed", door: linkKafka, rows: 3000, run: (*rig).commitRepliesSwallowed,
			what: "every third commit of an intent lost with its connection, or its reply, and kills"},
		{name: "kafka-killed-with-an-intent-under-way", door: linkKafka, run: (*rig).brokerKilledWithIntent,
			what: "the broker killed between claim and intent, and behind an unanswered intent, and started again"},
		{name: "kafka-rebalance-at-each-step", door: linkKafka, design: design{partitions: 4}, rows: 3000, run: (*rig).rebalanceAtEachStep,
			what: "a member joins or leaves at each step of a batch, copies elsewhere all the time"},
		{name: "kafka-log-start-behind-the-reset", door: linkKafka, design: design{partitions: 1}, run: (*rig).logStartBehindReset,
			what: "committed records deleted, offsets reset by hand to where nothing is, the sink killed in between"},
		{name: "kafka-slower-than-the-deadline", door: linkKafka, run: (*rig).kafkaSlow,
			what: "each way to and from Kafka takes longer than the insert deadline, two sinks, copies elsewhere"},
		{name: "kafka-commit-held-past-the-session", door: linkKafka, rows: 2500, run: (*rig).commitHeld,
			what: "commits of intents held for 5 s with a session of 3 s, two sinks with different bounds"},
	}
}

func (r *rig) silence2(p *faultproxy.Proxy, on bool) {
	for _, d := range []faultproxy.Direction{faultproxy.ToServer, faultproxy.ToClient} {
		p.BlackHole(d, on)
	}
}

func (r *rig) kafkaBlackHole() {
	p, q := r.ready(with{}), r.ready(with{settings: settings{rows: 70}})
	for n := range 2 {
		rule := r.hold([]faultproxy.Fault{faultproxy.HoldReply, faultproxy.HoldRequest}[n], 2)
		r.make(900)
		r.met(rule)
		r.silence2(r.toKafka, true)
		r.count("black holes")
		r.again(r.topic, r.sent(), r.elsewhere)
		time.Sleep(4 * time.Second)
		r.silence2(r.toKafka, false)
		if n == 1 {
			r.toKafka.Cut()
		}
		rule.Remove()
		time.Sleep(time.Second)
	}
	r.kill(p)
	r.end(q)
}

func (r *rig) commitRepliesSwallowed() {
	for n := range 4 {
		fault := []faultproxy.Fault{faultproxy.CutReply, faultproxy.Swallow, faultproxy.CutRequest, faultproxy.CutReply}[n]
		p := r.ready(with{settings: settings{rows: 50 + 60*n}})
		rule := r.intents(faultproxy.RuleOptions{Fault: fault, Every: 3})
		r.feed.allow(750 * (n + 1))
		r.inserted(int64(500*n + 300))
		time.Sleep(time.Second)
		r.kill(p)
		r.add("commits cut", rule.Account().Faults)
		rule.Remove()
	}
}

func (r *rig) brokerKilledWithIntent() {
	p := r.ready(with{settings: settings{rows: 150}})
	for n := range 2 {
		rule := r.intents(faultproxy.RuleOptions{Fault: []faultproxy.Fault{faultproxy.HoldRequest, faultproxy.HoldReply}[n], Limit: 1})
		r.make(900)
		r.met(rule)
		r.broker.Kill()
		r.count("kill -9 of the broker")
		rule.Remove()
		if n == 1 {
			r.kill(p)
		}
		r.broker.Start()
		if n == 1 {
			p = r.ready(with{settings: settings{rows: 60}})
		}
		r.inserted(r.truth().Keys)
	}
	r.end(p)
}

func (r *rig) rebalanceAtEachStep() {
	p := r.ready(with{settings: settings{rows: 100}})
	steps := []pipeline.Step{pipeline.StepClaimed, pipeline.StepIntent, pipeline.StepInserting, pipeline.StepWritten, pipeline.StepPublished}
	for n := range 6 {
		r.feed.allow(500 * (n + 1))
		r.step(p, steps[n%len(steps)])
		q := r.sink(with{settings: settings{rows: 40}})
		r.again(r.topic, r.sent()[max(0, len(r.sent())-300):], r.elsewhere)
		r.step(q, steps[(n+2)%len(steps)])
		if n%2 == 0 {
			r.kill(q)
		} else {
			r.end(q)
		}
		r.count("rebalances")
	}
	r.end(p)
}

func (r *rig) logStartBehindReset() {
	p := r.ready(with{settings: settings{rows: 100}})
	r.make(1200)
	if !r.quiet() {
		r.t.Error("nothing is settled")
		return
	}
	r.kill(p)
	r.deleteRecords(700)
	r.resetByHand(r.group, r.topic, func(int32, int64) int64 { return 300 })
	q := r.ready(with{settings: settings{rows: 33}})
	r.feed.allow(2000)
	time.Sleep(2 * time.Second)
	r.kill(q)
}

func (r *rig) kafkaSlow() {
	p := r.ready(with{settings: settings{rows: 150, session: 6 * time.Second}})
	q := r.ready(with{settings: settings{rows: 100, session: 6 * time.Second}})
	for n := range 2 {
		r.make(500)
		for _, d := range []faultproxy.Direction{faultproxy.ToServer, faultproxy.ToClient} {
			r.toKafka.Delay(d, 700*time.Millisecond)
		}
		r.feed.allow(1000 * (n + 1))
		r.count("times of delay")
		r.again(r.topic, r.sent(), r.elsewhere)
		time.Sleep(5 * time.Second)
		for _, d := range []faultproxy.Direction{faultproxy.ToServer, faultproxy.ToClient} {
			r.toKafka.Delay(d, 0)
		}
	}
	r.kill(p)
	r.end(q)
}

func (r *rig) commitHeld() {
	p, q := r.ready(with{settings: settings{rows: 150}}), r.ready(with{settings: settings{rows: 60}})
	rule := r.intents(faultproxy.RuleOptions{Fault: faultproxy.HoldRequest, Every: 4, For: 5 * time.Second})
	for n := range 5 {
		r.feed.allow(500 * (n + 1))
		time.Sleep(1500 * time.Millisecond)
		if n == 2 {
			r.again(r.topic, r.sent(), r.elsewhere)
		}
	}
	r.add("commits held", rule.Account().Faults)
	rule.Remove()
	r.kill(q)
	r.end(p)
}
