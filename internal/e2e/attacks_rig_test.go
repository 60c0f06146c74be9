//go:build chaos

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/bench/load"
	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// rig is an arena whose sinks the attack itself starts and ends.
type rig struct {
	*arena
	attack  *attack
	running []*sink
	groups  []with     // drained at the end, beside the world's own
	byHand  load.Truth // what was sent beside the load
	letters int        // distinct records expected in the dead letters; -1: any number
	encoder *load.Generator
}

// with is what a sink is started with.
type with struct {
	settings
	group    string     // "": the world's
	routes   [][]string // the topics of each route; none: the world's topic
	horizon  string     // "": the default
	inserts  string     // settings of each insert
	replicas []string   // instead of clickhouse
}

func newRig(t *testing.T, a *attack, b *broker, dir string, rng *rand.Rand, seed uint64) *rig {
	t.Helper()
	if a.design.partitions == 0 {
		a.design.partitions = 2
	}
	if a.rows == 0 {
		a.rows = 2000
	}
	r := &rig{attack: a, arena: newArena(t, &schedule{name: a.name, design: a.design, store: a.store}, b, dir, rng)}
	o := load.Options{Seed: seed, Rows: a.rows, Duplicates: 0.05, Elsewhere: 0.5, Partitions: r.partitions, Spread: a.spread}
	if a.spread > 0 {
		o.Start = time.Now().Add(-a.spread)
	}
	r.encoder = load.New(o)
	r.feed = r.produceFrom(load.New(o), a.rows)
	r.seen.stop = r.background(func() time.Duration {
		r.look()
		return 100 * time.Millisecond
	})
	return r
}

// produceFrom is produce with a generator of its own.
func (r *rig) produceFrom(gen *load.Generator, rows int) *feed {
	f := &feed{t: r.t, rows: rows, kafka: r.kafka, gen: gen, done: make(chan struct{})}
	f.more.L = &f.mu
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(f.done)
		f.err = f.send(ctx, r.topic)
	}()
	r.t.Cleanup(func() {
		cancel()
		f.allow(rows)
		<-f.done
	})
	return f
}

// truth is what everything sent so far adds up to.
func (r *rig) truth() load.Truth {
	t := r.feed.truth()
	r.mu.Lock()
	defer r.mu.Unlock()
	return load.Truth{Keys: t.Keys + r.byHand.Keys, Amount: t.Amount + r.byHand.Amount, Qty: t.Qty + r.byHand.Qty}
}

// promise counts n rows of 0.5 and 1 as produced, before they are.
func (r *rig) promise(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byHand.Keys += int64(n)
	r.byHand.Amount += int64(n) * 5000
	r.byHand.Qty += int64(n)
}

func (r *rig) look() {
	wrong, err := r.sampleNow()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.seen.away++
		return
	}
	r.seen.taken++
	if wrong != "" {
		r.seen.above++
		if r.seen.told++; r.seen.told <= 3 {
			r.t.Errorf("%s: %s", time.Now().UTC().Format("15:04:05.000"), wrong)
		}
	}
}

func (r *rig) sampleNow() (wrong string, err error) {
	views := make([]found, len(r.views))
	for i, v := range r.views {
		if views[i], err = r.inView(v); err != nil {
			return "", err
		}
	}
	table, err := r.inTable()
	if err != nil {
		return "", err
	}
	truth := r.truth()
	if table.rows != table.keys {
		return fmt.Sprintf("%d rows for %d keys in %s%s", table.rows, table.keys, r.table, r.doubles()), nil
	}
	if table.rows > truth.Keys || table.amount > truth.Amount || table.qty > truth.Qty {
		return fmt.Sprintf("the table holds %+v, produced were %+v", table, truth), nil
	}
	for i, v := range views {
		if v.rows > table.rows || v.amount > table.amount || v.qty > table.qty {
			return fmt.Sprintf("view target %s holds %+v, its table a moment later %+v", r.views[i], v, table), nil
		}
	}
	return "", nil
}

func (r *rig) configOf(o with) string {
	r.t.Helper()
	c := o.settings
	or := func(v *string, d string) {
		if *v == "" {
			*v = d
		}
	}
	or(&o.group, r.group)
	or(&o.horizon, "24h")
	or(&c.kafka, r.s.kafka)
	or(&c.clickhouse, r.toEngine.Addr())
	or(&c.redis, r.arena.store.settings())
	or(&c.memory, "64MiB")
	or(&c.bytes, "4MiB")
	if c.rows == 0 {
		c.rows = 200
	}
	if c.age == 0 {
		c.age = 100 * time.Millisecond
	}
	if c.session == 0 {
		c.session = 3 * time.Second
	}
	if c.insertTimeout == 0 {
		c.insertTimeout = 3 * time.Second
	}
	instance := ""
	if c.member != "" {
		instance = "instance_id: " + c.member + ", "
	}
	if o.routes == nil {
		o.routes = [][]string{{r.topic}}
	}
	if o.replicas == nil {
		o.replicas = []string{c.clickhouse}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `kafka: {brokers: [%q], group: %s, %ssession_timeout: %s}
clickhouse: {addresses: ["%s"], database: %s, insert_deadline: 1s, insert_timeout: %s, settings: {%s}}
redis: {%s, horizon: %s}
routes:
`, c.kafka, o.group, instance, c.session, strings.Join(o.replicas, `", "`), r.s.database, c.insertTimeout, o.inserts, c.redis, o.horizon)
	for _, topics := range o.routes {
		fmt.Fprintf(&b, "  - {topics: [%s], table: %s, key: [settle_ms, id, rev], event_time: settle_ms, ignore: [create_time], dead_letter: %s}\n",
			strings.Join(topics, ", "), r.table, r.world.letters)
	}
	fmt.Fprintf(&b, `batch: {max_rows: %d, max_bytes: %s, max_age: %s, max_inserts_per_second: 100}
memory: {limit: %s}
http: {listen: ""}
log: {format: text}
`, c.rows, c.bytes, c.age, c.memory)
	r.lives++
	path := filepath.Join(r.dir, fmt.Sprintf("attack-%d.yaml", r.lives))
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// sink starts a sink.
func (r *rig) sink(o with, more ...string) *sink {
	r.t.Helper()
	config := r.configOf(o)
	tr := newTrace(r.t, filepath.Join(r.dir, fmt.Sprintf("steps-%d", r.lives)))
	p := r.launch(fmt.Sprintf("run-%d", r.lives), append([]string{"run", "-c", config, "--trace-steps", tr.path}, more...)...)
	p.trace = tr
	go func() {
		<-p.exited
		tr.wake(true)
	}()
	r.running = append(r.running, p)
	return p
}

// ready is sink, and waits until it reads.
func (r *rig) ready(o with) *sink {
	r.t.Helper()
	p := r.sink(o)
	r.until(40*time.Second, func() bool { return !p.running() || strings.Contains(p.said(1000), "msg=consuming") })
	return p
}

// until waits for something that may not come.
func (r *rig) until(patience time.Duration, cond func() bool) bool {
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// step waits until a sink takes a step once more; false: it did not.
func (r *rig) step(p *sink, s pipeline.Step) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	if p.trace.awaitStep(ctx, s, 1) != nil || !p.running() {
		r.count("moments missed")
		return false
	}
	return true
}

// met waits until a rule holds something.
func (r *rig) met(rule *faultproxy.Rule) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if rule.Await(ctx, func(a faultproxy.Account) bool { return a.Holding > 0 }) != nil {
		r.count("moments missed")
		return false
	}
	return true
}

func freeze(p *sink) { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }
func thaw(p *sink)   { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

func (r *rig) freezeFor(p *sink, d time.Duration) {
	freeze(p)
	time.Sleep(d)
	thaw(p)
	r.count("zombies")
}

func (r *rig) kill(p *sink) {
	if p.running() {
		p.kill()
		r.count("kill -9")
	}
}

// make has n more records made and sent.
func (r *rig) make(n int) {
	r.feed.mu.Lock()
	to := min(r.feed.upTo+n, r.feed.rows)
	r.feed.mu.Unlock()
	r.feed.allow(to)
	r.awaitMade(to)
}

// inserted waits until n rows are in the table, or for 15 s.
func (r *rig) inserted(n int64) bool {
	return r.until(15*time.Second, func() bool {
		table, err := r.inTable()
		return err == nil && table.rows >= n
	})
}

// quiet waits until the world's group has committed everything, or for 25 s.
func (r *rig) quiet() bool {
	return r.until(25*time.Second, func() bool { return r.openIn(r.group, r.topic) == 0 })
}

// sent is every settlement sent so far.
func (r *rig) sent() []load.Settlement {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	return append([]load.Settlement(nil), r.feed.gen.Recent()...)
}

// again sends settlements again: the i-th to a partition of a topic; negative: not.
func (r *rig) again(topic string, of []load.Settlement, to func(i int, home int32) int32) {
	r.t.Helper()
	var records []*kgo.Record
	for i := range of {
		p := to(i, r.encoder.Home(&of[i]))
		if p < 0 {
			continue
		}
		value := append([]byte(nil), r.encoder.Encode(&of[i], time.Now().UnixMilli())...)
		records = append(records, &kgo.Record{Topic: topic, Partition: p, Value: value})
	}
	r.put(records...)
	r.add("records sent again", len(records))
}

func (r *rig) put(records ...*kgo.Record) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.kafka.ProduceSync(ctx, records...).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}

// elsewhere is the next partition.
func (r *rig) elsewhere(_ int, home int32) int32 { return (home + 1) % int32(r.partitions) }

func (r *rig) topicBeside(suffix string) string {
	r.t.Helper()
	name := r.topic + suffix
	if err := load.CreateTopic(r.t.Context(), r.kafka, name, r.partitions); err != nil {
		r.t.Fatal(err)
	}
	return name
}

// hold makes a rule of one insert, on the link that all sinks share.
func (r *rig) hold(f faultproxy.Fault, every int) *faultproxy.Rule {
	return r.insertRule(r.toEngine, faultproxy.RuleOptions{Fault: f, Every: every, Limit: 1})
}

// intents makes a rule of commits that carry an intent.
func (r *rig) intents(o faultproxy.RuleOptions) *faultproxy.Rule {
	o.Marker = "os1."
	return r.toKafka.Add(o)
}

// claims makes a rule of calls of the store.
func (r *rig) claims(o faultproxy.RuleOptions) *faultproxy.Rule {
	o.Marker = "evalsha"
	return r.arena.store.link.Add(o)
}

func (r *rig) flush() {
	r.arena.store.do(r.arena.store.node(), "FLUSHALL")
	r.count("FLUSHALL")
}
