//go:build chaos

package e2e

import (
	"fmt"
	"time"

	"github.com/oncesink/oncesink/bench/load"
	"github.com/oncesink/oncesink/internal/faultproxy"
)

func tableSchedules() []schedule {
	return []schedule{
		{
			name: "window-of-5-foreign-writer", account: true, design: design{window: 5}, settings: settings{insertTimeout: 3 * time.Second}, span: 24 * time.Second,
			stops: "a repeat outside the window, with a view", run: (*arena).smallWindow,
		},
		{name: "alter-add-column", account: true, run: (*arena).alters},
		{name: "exchange-for-a-copy", alone: true, run: (*arena).exchangeForCopy},
		{name: "exchange-under-load", alone: true, run: (*arena).exchangeUnderLoad},
		{name: "view-throws", account: true, span: 20 * time.Second, prepare: (*arena).addFragileView, run: (*arena).viewThrows},
		{
			name: "clickhouse-restart", account: true, span: 24 * time.Second, stops: "an insert that a restart cut, with a view", run: (*arena).engineStops,
		},
		{
			name: "clickhouse-killed", account: true, span: 24 * time.Second, stops: "an insert that a kill cut, with a view", run: (*arena).engineKills,
		},
	}
}

// smallWindow: others fill the deduplication window, and acknowledgements are lost meanwhile.
func (a *arena) smallWindow() {
	stop := a.background(func() time.Duration {
		a.foreign(1)
		a.count("blocks of another writer")
		return 200 * time.Millisecond
	})
	r := a.insertRule(a.toEngine, faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 4})
	for a.feeding(100 * time.Millisecond) {
	}
	a.add("acknowledgements cut off", r.Account().Faults)
	r.Remove()
	stop()
}

// alters: columns come and go while rows are written.
func (a *arena) alters() {
	for n := 0; a.feeding(a.between(time.Second, 2*time.Second)); n++ {
		a.s.sql(a.t, "ALTER TABLE %s ADD COLUMN note_%d String DEFAULT 'none'", a.table, n)
		a.count("ADD COLUMN")
		if n > 1 {
			a.s.sql(a.t, "ALTER TABLE %s DROP COLUMN note_%d", a.table, n-2)
			a.count("DROP COLUMN")
		}
	}
}

// twin makes a table like the target.
func (a *arena) twin() string {
	name := a.table + "_twin"
	a.s.sql(a.t, "%s", load.Table(name, 1000))
	return name
}

// exchangeForCopy: the table is copied while nothing is produced, and the copy takes its place. What comes later has duplicates of what was copied.
func (a *arena) exchangeForCopy() {
	rows := a.feed.rows
	a.seatAll()
	a.watch()
	a.feed.allow(rows / 2)
	a.awaitMade(rows / 2)
	a.settleAll()
	twin := a.twin()
	a.s.sql(a.t, "INSERT INTO %s SELECT * FROM %s", twin, a.table)
	a.s.sql(a.t, "EXCHANGE TABLES %s AND %s", a.table, twin)
	a.count("EXCHANGE TABLES")
	a.finish()
}

// exchangeUnderLoad: an empty table takes the place of the target while batches are under way. Old and new together have to hold every key, each of them
// once; a key may be in both when its batch was under way, or when a duplicate of it came later: the new table is another one.
func (a *arena) exchangeUnderLoad() {
	rows := a.feed.rows
	a.seatAll()
	a.watch()
	a.pace(rows)
	a.feeding(5 * time.Second)
	a.watched() // from here on the view tells of two tables
	twin := a.twin()
	a.s.sql(a.t, "EXCHANGE TABLES %s AND %s", a.table, twin)
	a.count("EXCHANGE TABLES")
	for a.feeding(time.Second) {
	}
	truth := a.feed.all()
	a.settleAll()
	a.stopAll()
	a.drainAll()
	if a.t.Failed() {
		return
	}
	fresh, err := a.inTable()
	if err != nil {
		a.t.Fatal(err)
	}
	columns := "settle_ms, id, rev, amount, qty, tenant"
	old, err := a.count2(fmt.Sprintf("SELECT %s FROM %s", columns, twin))
	if err != nil {
		a.t.Fatal(err)
	}
	both, err := a.count2(fmt.Sprintf("SELECT %[1]s FROM %[2]s UNION ALL SELECT %[1]s FROM %[3]s", columns, twin, a.table))
	if err != nil {
		a.t.Fatal(err)
	}
	a.lost, a.doubled = truth.Keys-both.keys, fresh.rows-fresh.keys+old.rows-old.keys
	a.note("%d rows in the old table, %d in the new one, %d keys in both", old.rows, fresh.rows, both.rows-both.keys)
	if a.lost != 0 || a.doubled != 0 || fresh.rows == 0 || old.rows == 0 {
		a.t.Errorf("old %+v, new %+v, together %+v, produced were %+v", old, fresh, both, truth)
	}
	view, err := a.inView(a.views[0])
	if err != nil || view.rows != both.rows || view.amount != both.amount {
		a.t.Errorf("the view holds %+v, both tables %+v (%v)", view, both, err)
	}
	a.verifyOffsets()
}

// count2 is what a query of rows adds up to.
func (a *arena) count2(query string) (found, error) {
	return a.world.count(fmt.Sprintf("SELECT count(), uniqExact(settle_ms, id, rev), toString(sum(amount)), sum(qty) FROM (%s) WHERE %s", query, ours))
}

const fragileView = `SELECT tenant, sum(amount) AS amount, sum(qty) AS qty, count() AS events FROM %s WHERE NOT throwIf(%s, 'this view is broken') GROUP BY tenant`

// addFragileView gives the table a second view, which a row in another table breaks.
func (a *arena) addFragileView() {
	target := a.table + "_fragile"
	a.s.sql(a.t, "CREATE TABLE %s_switch (n UInt8) ENGINE = MergeTree ORDER BY n", a.table)
	a.s.sql(a.t, `CREATE TABLE %s (tenant LowCardinality(String), amount Decimal(38, 4), qty UInt64, events UInt64)
ENGINE = SummingMergeTree ORDER BY tenant SETTINGS non_replicated_deduplication_window = 1000`, target)
	a.s.sql(a.t, "CREATE MATERIALIZED VIEW %[1]s_mv TO %[1]s AS "+fragileView, target, a.table, "(SELECT count() FROM "+a.table+"_switch) > 0")
	a.views = append(a.views, target)
}

// viewThrows: a view fails for every insert, or for some rows, until it is mended.
func (a *arena) viewThrows() {
	view := a.table + "_fragile_mv"
	for n := 0; a.feeding(a.between(time.Second, 2*time.Second)); n++ {
		if n%2 == 0 {
			a.s.sql(a.t, "INSERT INTO %s_switch VALUES (1)", a.table)
			a.feeding(a.between(2*time.Second, 4*time.Second))
			a.s.sql(a.t, "TRUNCATE TABLE %s_switch", a.table)
		} else {
			a.s.sql(a.t, "ALTER TABLE %s MODIFY QUERY "+fragileView, view, a.table, "tenant = 'tenant-7'")
			a.feeding(a.between(2*time.Second, 4*time.Second))
			a.s.sql(a.t, "ALTER TABLE %s MODIFY QUERY "+fragileView, view, a.table, "(SELECT count() FROM "+a.table+"_switch) > 0")
		}
		a.count("times broken and mended")
	}
}

// engineStops: ClickHouse stops in good order and comes back.
func (a *arena) engineStops() {
	for a.feeding(a.between(3*time.Second, 6*time.Second)) {
		a.engine.Stop()
		a.count("stops of ClickHouse")
		time.Sleep(a.between(200*time.Millisecond, 2*time.Second))
		a.engine.Start()
	}
}

// engineKills: ClickHouse is killed and comes back.
func (a *arena) engineKills() {
	for a.feeding(a.between(3*time.Second, 6*time.Second)) {
		a.engine.Kill()
		a.count("kill -9 of ClickHouse")
		time.Sleep(a.between(200*time.Millisecond, 2*time.Second))
		a.engine.Start()
	}
}
