package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncesink/oncesink/bench/load"
)

// change is a route that changes while inserts are under way.
type change struct {
	name          string
	quick         bool
	design        design
	load          load.Options
	before, after settings
	refused       []string // what the refusal says; none: the change is taken, and exact
	forget        bool     // the other way that the refusal names is gone too: the keys are deleted
}

const (
	keyLine     = "key: [settle_ms, id, rev]"
	timeLine    = "    event_time: settle_ms\n"
	ignoreLine  = "ignore: [create_time]"
	serverLine  = "insert_deadline: 1s"
	storePrefix = "redis: {"
)

var days = load.Options{Start: time.Now().Add(-20 * time.Hour), Spread: 19 * time.Hour}

var changes = []change{
	{name: "key", after: settings{edits: []string{keyLine, "key: [settle_ms, id]"}}, refused: []string{"key was settle_ms,id,rev and is settle_ms,id", "routes.key"}},
	{name: "ignore", quick: true, after: settings{edits: []string{ignoreLine, "ignore: [create_time, currency]"}}, forget: true,
		refused: []string{"ignore was create_time and is create_time,currency", "routes.ignore"}},
	{name: "ignore in another order", before: settings{edits: []string{ignoreLine, "ignore: [currency, create_time]"}},
		after: settings{edits: []string{ignoreLine, "ignore: [create_time, currency]"}}},
	{name: "event_time removed", after: settings{edits: []string{timeLine, ""}}, refused: []string{"event_time was settle_ms and is none"}, forget: true},
	{name: "event_time added", before: settings{edits: []string{timeLine, ""}}, refused: []string{"event_time was none and is settle_ms"}, forget: true},
	{name: "larger batches", before: settings{rows: 150}, after: settings{rows: 5000, age: time.Second}},
	{name: "smaller batches", before: settings{rows: 900}, after: settings{rows: 70, age: 20 * time.Millisecond}},
	{name: "fewer partitions a statement", design: design{daily: true}, load: days, before: settings{edits: partitionsAtMost(4)}, after: settings{edits: partitionsAtMost(1)}},
	{name: "more partitions a statement", design: design{daily: true}, load: days, before: settings{edits: partitionsAtMost(1)}},
	{name: "longer deadline", after: settings{edits: []string{serverLine, "insert_deadline: 3s"}}},
	{name: "shorter deadline", before: settings{edits: []string{serverLine, "insert_deadline: 3s"}}},
	{name: "longer horizon", after: settings{edits: []string{storePrefix, "redis: {horizon: 72h, "}}},
	{name: "shorter horizon", after: settings{edits: []string{storePrefix, "redis: {horizon: 10m, "}}},
}

func partitionsAtMost(n int) []string {
	return []string{"clickhouse: {", fmt.Sprintf("clickhouse: {settings: {max_partitions_per_insert_block: %d}, ", n)}
}

// TestARouteThatChangesIsRefusedOrExact: a sink is killed with an insert under way and another one comes with a changed route; then both live at the same time.
func TestARouteThatChangesIsRefusedOrExact(t *testing.T) {
	for _, c := range changes {
		if c.quick || wholeUpgrade {
			t.Run(c.name, c.behindAKill)
		}
	}
}

func (c *change) world(t *testing.T) (*world, *feed) {
	d := c.design
	d.partitions, d.report = 2, true
	w := newWorld(t, sharedStack(t), d)
	o := c.load
	o.Seed, o.Rows, o.Duplicates, o.Elsewhere = 35, 12_000, 0.1, 0.3
	return w, w.produceLoad(o)
}

func (c change) behindAKill(t *testing.T) {
	w, f := c.world(t)
	f.allow(5000)
	before, after := c.before, c.after
	if before.rows == 0 {
		before.rows = 500
	}
	w.killUnacknowledgedIn(before)
	if len(c.refused) == 0 {
		w.mustDrain(after)
		truth := f.all()
		w.mustDrain(before) // and back
		w.verify(truth)
		return
	}
	at := w.offsets()
	code, stdout, stderr := w.command("check", "-c", w.config(after))
	if code != 3 || !strings.Contains(stdout+stderr, c.refused[0]) {
		t.Errorf("check ended with %d and doesn't say %q:\n%s%s", code, c.refused[0], stdout, stderr)
	}
	said := w.refused(after, c.refused...)
	for p, o := range w.offsets() {
		if o.committed != at[p].committed {
			t.Errorf("partition %d was committed up to %d by a sink that was refused", p, o.committed)
		}
	}
	w.nothingDoubled()
	if c.forget {
		w.forgetKeys(said)
		w.mustDrain(after)
		truth := f.all()
		w.mustDrain(after)
		w.verify(truth)
		return
	}
	truth := f.all()
	w.mustDrain(before)
	w.verify(truth)
}

// TestTwoSinksOfOneGroupThatAreSetDifferentlyAreRefusedOrExact: both run at the same time, and then the first is killed.
func TestTwoSinksOfOneGroupThatAreSetDifferentlyAreRefusedOrExact(t *testing.T) {
	for n, c := range changes {
		if n == 0 || wholeUpgrade {
			t.Run(c.name, c.sideBySide)
		}
	}
}

func (c change) sideBySide(t *testing.T) {
	w, f := c.world(t)
	f.allow(3000)
	before, after := c.before, c.after
	before.member, after.member = "first", "second"
	if before.rows == 0 {
		before.rows = 300
	}
	samples := w.watch(f)
	defer samples()
	first := w.start(before)
	w.awaitInserted(first, 300)
	if len(c.refused) > 0 {
		w.refused(after, c.refused...)
		truth := f.all()
		w.awaitSettled(first)
		first.stop()
		samples()
		w.verify(truth)
		return
	}
	second := w.start(after)
	w.awaitSharing(second, f, 3000)
	first.kill()
	first = w.start(before)
	truth := f.all()
	w.awaitSettled(first)
	second.stop()
	first.stop()
	samples()
	w.verify(truth)
}

// TestARouteIntoAnotherTableIsExactBehindADrain: what was under way into the old table is settled there first; a sink that would write it into the new one
// too stops and says so.
func TestARouteIntoAnotherTableIsExactBehindADrain(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	next := w.table + "_next"
	w.s.sql(t, "%s", load.Table(next, 1000))
	w.s.sql(t, `CREATE MATERIALIZED VIEW %[1]s_mv TO %[2]s AS
SELECT tenant, toDate(fromUnixTimestamp64Milli(settle_ms), 'UTC') AS day, sum(amount) AS amount, sum(qty) AS qty, count() AS events FROM %[1]s GROUP BY tenant, day`, next, w.views[0])
	into := settings{edits: []string{"table: " + w.table + "\n", "table: " + next + "\n"}}

	first := w.produce(5000, 36).all()
	w.killUnacknowledgedIn(settings{rows: 500, member: "-"})
	code, _, stderr := w.drain(into)
	said := stopLine(stderr)
	if code != 3 {
		t.Fatalf("a sink that writes another table ended with %d while inserts into the first one were under way, want 3:\n%s", code, stderr)
	}
	for _, want := range []string{"another table", w.table, "drain", "--drop-intent"} {
		if !strings.Contains(said, want) {
			t.Errorf("it stopped with %q, which doesn't say %q", said, want)
		}
	}
	w.mustDrain(settings{}) // as it says: the old route settles what it began
	second := w.produce(3000, 37).all()
	w.mustDrain(into)
	w.table = fmt.Sprintf("(SELECT * FROM %s UNION ALL SELECT * FROM %s)", w.table, next)
	w.verify(load.Truth{Keys: first.Keys + second.Keys, Amount: first.Amount + second.Amount, Qty: first.Qty + second.Qty})
}
