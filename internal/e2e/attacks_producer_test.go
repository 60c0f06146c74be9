//go:build chaos

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/bench/load"
	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

func producerAttacks() []attack {
	return []attack{
		{name: "producer-acks-cut", door: doorProducer, rows: 3000, run: (*rig).producerAcksCut,
			what: "a producer without idempotence loses every second acknowledgement and sends again; the sink is killed twice meanwhile"},
		{name: "producer-elsewhere-while-zombie", door: doorProducer, run: (*rig).elsewhereWhileZombie,
			what: "everything is sent again to the other partition while the owner of the first copies is frozen past its session at claimed, intent and inserting"},
		{name: "producer-two-routes-at-once", door: doorProducer, rows: 3000, run: (*rig).twoRoutesAtOnce,
			what: "the same keys in two topics of two routes into one table at the same time, sinks killed at their inserts"},
		{name: "producer-four-copies-crossed", door: doorProducer, design: design{partitions: 4, window: 5}, rows: 1500, run: (*rig).fourCopiesCrossed,
			what: "each record four times in four partitions in opposite orders, window of 5 overrun by another writer, every third acknowledgement cut"},
		{name: "producer-bad-twin-first", door: doorProducer, rows: 500, run: (*rig).badTwinFirst,
			what: "a record that a constraint refuses for an ignored field, its good twin behind it, in one batch, in the next and in the other partition, with kills"},
		{name: "producer-key-spelled-otherwise", door: doorProducer, rows: 200, run: (*rig).otherSpellings,
			what: "the same key with escapes, 1.0, 1e0, quoted numbers, spaces and other order of fields, in two partitions"},
		{name: "producer-aborted-then-again", door: doorProducer, rows: 1000, run: (*rig).abortedThenAgain,
			what: "transactions aborted and sent again, here and to the other partition, the sink frozen or killed between them"},
		{name: "producer-again-into-a-flush", door: doorProducer, run: (*rig).againIntoFlush,
			what: "FLUSHALL while an insert is under way unseen, and its records at once again in the other partition of another sink"},
		{name: "producer-cold-keys", door: doorProducer, spread: 72 * time.Hour, rows: 1500, design: design{partitions: 4}, run: (*rig).coldKeys,
			what: "keys up to three days old with a horizon of 100 s, three copies each in three partitions at the same time, a kill and a FLUSHALL"},
	}
}

func (r *rig) producerAcksCut() {
	link := r.proxyTo(r.broker.Addr)
	options := append(load.ProducerOptions(r.s.kafka), kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1), kgo.ProducerBatchMaxBytes(20_000),
		kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, link.Addr())
		}))
	cl, err := kgo.NewClient(options...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(cl.Close)
	r.feed.mu.Lock()
	r.feed.kafka = cl
	r.feed.mu.Unlock()
	rule := link.Add(faultproxy.RuleOptions{Fault: faultproxy.CutReply, Marker: `"settle_ms"`, Every: 2})
	for range 3 {
		p := r.ready(with{})
		r.feed.allow(r.feed.gen.Made() + 1000)
		r.step(p, pipeline.StepInserting)
		r.kill(p)
	}
	r.feed.all()
	r.add("acknowledgements cut", rule.Account().Faults)
}

func (r *rig) elsewhereWhileZombie() {
	for n, step := range []pipeline.Step{pipeline.StepClaimed, pipeline.StepIntent, pipeline.StepInserting} {
		first, second := r.ready(with{}), r.ready(with{settings: settings{rows: 70}})
		time.Sleep(time.Second)
		r.feed.allow(600 * (n + 1))
		if r.step(first, step) {
			freeze(first)
		}
		r.awaitMade(min(600*(n+1), r.feed.rows))
		r.again(r.topic, r.sent(), r.elsewhere)
		time.Sleep(4500 * time.Millisecond)
		thaw(first)
		r.count("zombies")
		time.Sleep(500 * time.Millisecond)
		r.end(first)
		r.end(second)
	}
}

func (r *rig) twoRoutesAtOnce() {
	other := r.topicBeside("_other")
	o := with{routes: [][]string{{r.topic}, {other}}}
	r.groups = append(r.groups, o)
	done := 0
	stop := r.background(func() time.Duration {
		all := r.sent()
		fresh := all[done:]
		done = len(all)
		rand.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
		r.again(other, fresh, r.elsewhere)
		return 30 * time.Millisecond
	})
	for n := range 4 {
		p, q := r.sink(o), r.ready(with{settings: settings{rows: 90}, routes: o.routes})
		r.feed.allow(750 * (n + 1))
		r.step(q, pipeline.StepInserting)
		r.kill(q)
		r.inserted(int64(500 * (n + 1)))
		r.end(p)
	}
	r.awaitMade(r.feed.rows)
	stop()
}

func (r *rig) fourCopiesCrossed() {
	r.make(1500)
	all := r.sent()
	backwards := make([]load.Settlement, len(all))
	for i := range all {
		backwards[len(all)-1-i] = all[i]
	}
	for n := range int32(3) {
		of := all
		if n%2 == 0 {
			of = backwards
		}
		r.again(r.topic, of, func(_ int, home int32) int32 { return (home + n + 1) % 4 })
	}
	p := r.ready(with{settings: settings{rows: 60}})
	q := r.ready(with{settings: settings{rows: 130}})
	rule := r.insertRule(r.toEngine, faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 3})
	for n := range 30 {
		r.foreign(1)
		if n == 8 {
			r.kill(p)
		}
		time.Sleep(250 * time.Millisecond)
	}
	r.add("acknowledgements cut", rule.Account().Faults)
	rule.Remove()
	r.end(q)
}

// twin is a numbered row whose ignored field says when it was sent.
func twin(n int, createMs int64) []byte {
	return fmt.Appendf(nil, `{"settle_ms":%d,"id":"row-%d","rev":1,"tenant":"t","amount":0.5,"qty":1,"currency":"EUR","create_time":%d}`, settled+int64(n), n, createMs)
}

func (r *rig) badTwinFirst() {
	const pairs = 60
	r.s.sql(r.t, "ALTER TABLE %s ADD CONSTRAINT recent CHECK create_time > toDateTime64('2001-01-01 00:00:00', 3, 'UTC')", r.table)
	r.letters = pairs
	at := func(p int32, v []byte) *kgo.Record { return &kgo.Record{Topic: r.topic, Partition: p, Value: v} }
	now := time.Now().UnixMilli()
	for n := range 3 {
		p := r.ready(with{settings: settings{rows: 30}})
		r.promise(pairs / 3)
		var near, far []*kgo.Record
		for i := range pairs / 3 {
			bad, good := at(0, twin(pairs*n+i, 1000)), at(0, twin(pairs*n+i, now))
			near = append(near, bad)
			switch i % 3 {
			case 0:
				near = append(near, good)
			case 1:
				far = append(far, good)
			default:
				good.Partition = 1
				far = append(far, good)
			}
		}
		r.put(near...)
		r.put(far...)
		r.make(150)
		r.step(p, []pipeline.Step{pipeline.StepInserting, pipeline.StepClaimed, pipeline.StepPublished}[n])
		time.Sleep(time.Duration(n) * 150 * time.Millisecond)
		r.kill(p)
	}
}

func (r *rig) otherSpellings() {
	const n = 150
	r.letters = -1 // what can't be read exactly goes there
	r.promise(n)
	rest := `"tenant":"t","amount":0.5,"qty":1,"currency":"EUR","create_time":1767225600000`
	spell := []func(ms int64, i int) string{
		func(ms int64, i int) string {
			return fmt.Sprintf(`{"settle_ms":%d,"id":"ä-%d","rev":1,%s}`, ms, i, rest)
		},
		func(ms int64, i int) string {
			return fmt.Sprintf(`{"rev":1,"id":"\u00e4-%d",%s,"settle_ms":%d}`, i, rest, ms)
		},
		func(ms int64, i int) string {
			return fmt.Sprintf(`{"settle_ms":%d.0,"id":"ä-%d","rev":1.0,%s}`, ms, i, rest)
		},
		func(ms int64, i int) string {
			return fmt.Sprintf(`{"settle_ms":%de0,"id":"ä-%d","rev":1e0,%s}`, ms, i, rest)
		},
		func(ms int64, i int) string {
			return fmt.Sprintf(`{"settle_ms":"%d","id":"ä-%d","rev":"1",%s}`, ms, i, rest)
		},
		func(ms int64, i int) string {
			return fmt.Sprintf(` { "settle_ms" : %d , "id" : "\u00E4\u002d%d" , "rev" : 1 , %s } `, ms, i, rest)
		},
		func(ms int64, i int) string {
			return fmt.Sprintf(`{"settle_ms":%d,"\u0069d":"ä-%d","rev":1,%s}`, ms, i, rest)
		},
		func(ms int64, i int) string {
			return fmt.Sprintf(`{"settle_ms":%d,"id":"ä-%d","rev":1,"tenant":"t","amount":5e-1,"qty":1.0,"currency":"EUR","create_time":1767225600000}`, ms, i)
		},
	}
	p := r.ready(with{settings: settings{rows: 100}})
	var records []*kgo.Record
	for k := range spell {
		for i := range n {
			f := spell[(k+i)%len(spell)]
			records = append(records, &kgo.Record{Topic: r.topic, Partition: int32((k + i) % 2), Value: []byte(f(settled, i))})
		}
	}
	r.put(records...)
	r.make(200)
	r.step(p, pipeline.StepInserting)
	r.kill(p)
}

func (r *rig) abortedThenAgain() {
	options := []kgo.Opt{kgo.SeedBrokers(r.s.kafka), kgo.Dialer(r.s.dial), kgo.TransactionalID(r.topic), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	cl, err := kgo.NewClient(options...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(cl.Close)
	try := func(first int, partition int32, end kgo.TransactionEndTry) {
		if err := cl.BeginTransaction(); err != nil {
			r.t.Fatal(err)
		}
		for i := range 40 {
			cl.Produce(r.t.Context(), &kgo.Record{Topic: r.topic, Partition: partition, Value: row{n: first + i}.json()}, nil)
		}
		if err := cl.Flush(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
		if err := cl.EndTransaction(r.t.Context(), end); err != nil {
			r.t.Fatal(err)
		}
	}
	for n := range 4 {
		p := r.ready(with{settings: settings{rows: 25}})
		r.feed.allow(250 * (n + 1))
		try(1000*n, 0, kgo.TryAbort)
		r.promise(40)
		try(1000*n, 0, kgo.TryCommit)
		if n%2 == 0 {
			r.step(p, pipeline.StepClaimed)
			freeze(p)
		}
		try(1000*n, 1, kgo.TryAbort)
		try(1000*n, 1, kgo.TryCommit)
		try(1000*n+20, 0, kgo.TryAbort)
		time.Sleep(300 * time.Millisecond)
		r.kill(p)
	}
}

func (r *rig) againIntoFlush() {
	for n := range 3 {
		own := r.proxyTo(r.engine.Addr)
		first := r.ready(with{settings: settings{clickhouse: own.Addr()}})
		second := r.ready(with{})
		time.Sleep(1500 * time.Millisecond)
		rule := r.insertRule(own, faultproxy.RuleOptions{Fault: []faultproxy.Fault{faultproxy.HoldReply, faultproxy.HoldRequest}[n%2], Limit: 1})
		r.make(600)
		r.met(rule)
		r.flush()
		r.again(r.topic, r.sent(), r.elsewhere)
		time.Sleep(1500 * time.Millisecond)
		if n == 1 {
			r.kill(first)
		}
		rule.Release()
		time.Sleep(time.Second)
		r.end(first)
		r.end(second)
	}
}

func (r *rig) coldKeys() {
	o := with{settings: settings{rows: 80}, horizon: "100s"}
	r.groups = append(r.groups, o)
	p, q := r.ready(o), r.ready(o)
	for n := range 3 {
		r.make(500)
		all := r.sent()
		part := all[max(0, len(all)-450):]
		r.again(r.topic, part, func(_ int, home int32) int32 { return (home + 1) % 4 })
		r.again(r.topic, part, func(_ int, home int32) int32 { return (home + 2) % 4 })
		if n == 1 {
			r.flush()
		}
		time.Sleep(time.Second)
		if n == 0 {
			r.step(p, pipeline.StepInserting)
			r.kill(p)
			p = r.ready(o)
		}
	}
	r.quiet()
	r.end(q)
}
