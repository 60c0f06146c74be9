package e2e

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// Between a crash and the restart another writer puts more blocks into the table than its deduplication window remembers, so that a repeat under the
// same token would double the rows (field cases A3, A4).
func TestWindowOverrunBetweenCrashAndRestart(t *testing.T) {
	for _, c := range []struct {
		name    string
		report  bool
		slow    time.Duration // the kill comes while this view is served; 0: when the insert is done and its acknowledgement on the way
		forget  bool          // the query log is gone
		settled bool          // the restart must settle it alone
		stops   bool          // the restart must stop
	}{
		{name: "without a view the rows are read back", settled: true},
		{name: "with a view the query log settles it", report: true, settled: true},
		{name: "with a view and no query log the partition stops", report: true, forget: true, stops: true},
		{name: "an insert cut between table and view stops the partition or was finished by the engine", report: true, slow: time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, stackWithEngine(t), design{partitions: 1, window: 5, report: c.report, slow: c.slow})
			truth := w.produce(6000, 4).all()
			if c.slow > 0 {
				w.killInView()
			} else {
				w.killUnacknowledged()
			}
			w.foreign(20)
			if c.forget {
				w.s.sql(t, "SYSTEM FLUSH LOGS query_log")
				w.s.sql(t, "TRUNCATE TABLE system.query_log")
			}
			code, _, stderr := w.drain(settings{rows: 700})
			w.nothingDoubled()
			switch {
			case code == 0 && c.stops, code == 3 && c.settled, code != 0 && code != 3:
				t.Fatalf("the drain ended with %d:\n%s", code, stderr)
			case code == 3:
				t.Logf("the partition stopped: %s", stopLine(stderr))
				w.resolve(stderr)
			}
			w.verify(truth)
		})
	}
}

// killUnacknowledged kills the sink when the engine has finished an insert and the sink doesn't know.
func (w *world) killUnacknowledged() {
	w.t.Helper()
	w.killUnacknowledgedIn(settings{rows: 1000, member: "-"})
}

// killUnacknowledgedIn is killUnacknowledged of a sink that is set otherwise.
func (w *world) killUnacknowledgedIn(c settings) {
	w.t.Helper()
	proxy := w.proxy()
	rule := w.insertRule(proxy, faultproxy.RuleOptions{Fault: faultproxy.HoldReply, Every: 3, Limit: 1})
	c.clickhouse = proxy.Addr()
	p := w.start(c)
	w.await(p, rule, func(a faultproxy.Account) bool { return a.Holding > 0 })
	p.kill()
	if met := p.trace.last(); !slices.Contains(slices.Collect(maps.Values(met)), pipeline.StepInserting) {
		w.t.Fatalf("the kill met the steps %v, want an insert without an answer", met)
	}
	proxy.Close()
}

// killInView kills the sink when a part of its insert is in the table and a view is still being served.
func (w *world) killInView() {
	w.t.Helper()
	p := w.start(settings{rows: 1000, member: "-"})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		running := w.s.sql(w.t, "SELECT count() FROM system.processes WHERE startsWith(query_id, '%s')", w.queryIDs())
		table, err := w.inTable()
		if err != nil {
			w.t.Fatal(err)
		}
		slow, err := w.inView(w.views[1])
		if err != nil {
			w.t.Fatal(err)
		}
		if running != "0" && table.rows > slow.rows && table.rows >= 2000 {
			break
		}
		if !p.running() || time.Now().After(deadline) {
			w.t.Fatalf("no insert was met in its view: %+v, %+v", table, slow)
		}
	}
	p.kill()
	w.awaitNoInsert()
}

// awaitNoInsert waits until the engine runs no statement of the sink for this table.
func (w *world) awaitNoInsert() {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); w.s.sql(w.t, "SELECT count() FROM system.processes WHERE startsWith(query_id, '%s')", w.queryIDs()) != "0"; {
		if time.Now().After(deadline) {
			w.t.Fatal("an insert of the killed sink still runs after a minute")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// nothingDoubled holds at every moment, also for a partition that stopped.
func (w *world) nothingDoubled() {
	w.t.Helper()
	table, err := w.inTable()
	if err != nil {
		w.t.Fatal(err)
	}
	if table.rows != table.keys {
		w.t.Errorf("%d rows for %d keys%s", table.rows, table.keys, w.doubles())
	}
	for _, v := range w.views {
		seen, err := w.inView(v)
		if err != nil {
			w.t.Fatal(err)
		}
		if seen.rows > table.rows || seen.amount > table.amount {
			w.t.Errorf("view target %s holds %+v, its table %+v", v, seen, table)
		}
	}
}

// resolve does what the sink said when it stopped: recomputes the views, vouches for them, and drains.
func (w *world) resolve(stderr string) {
	w.t.Helper()
	said := stopLine(stderr)
	for _, want := range append(w.viewNames(), "sink offsets resolve", "topic="+w.topic+" partition=0") {
		if !strings.Contains(said, want) {
			w.t.Errorf("the sink stopped with %q, which doesn't name %q", said, want)
		}
	}
	if !regexp.MustCompile(`\[\d+\.\.\d+\]`).MatchString(said) {
		w.t.Errorf("the sink stopped with %q, which names no range", said)
	}
	w.recompute()
	config := w.config(settings{})
	args := []string{"offsets", "resolve", "-c", config, "--topic", w.topic, "--partition", "0", "--views-recomputed"}
	w.awaitNoMember(args)
	if code, stdout, stderr := w.command(append(args, "--apply")...); code != 0 {
		w.t.Fatalf("offsets resolve ended with %d:\n%s%s", code, stdout, stderr)
	}
	w.mustDrain(settings{rows: 700})
}

// awaitNoMember repeats the dry run while the group still counts the stopped sink as a member: a static one is, until its session ends.
func (w *world) awaitNoMember(args []string) {
	w.t.Helper()
	before := w.offsets()[0]
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		code, stdout, stderr := w.command(args...)
		if code == 0 {
			w.t.Logf("the plan:\n%s", stdout)
			break
		}
		if !strings.Contains(stderr, "live member") || time.Now().After(deadline) {
			w.t.Fatalf("the dry run of offsets resolve ended with %d:\n%s%s", code, stdout, stderr)
		}
	}
	if after := w.offsets()[0]; after != before {
		w.t.Errorf("the dry run moved the offsets from %+v to %+v", before, after)
	}
}

func (w *world) viewNames() []string {
	var out []string
	for _, v := range w.views {
		out = append(out, v+"_mv")
	}
	return out
}

// recompute fills the views' targets anew from the table.
func (w *world) recompute() {
	w.t.Helper()
	for _, target := range w.views {
		query := w.s.sql(w.t, "SELECT as_select FROM system.tables WHERE database = '%s' AND name = '%s_mv' FORMAT TSVRaw", w.s.database, target)
		w.s.sql(w.t, "TRUNCATE TABLE %s", target)
		w.s.sql(w.t, "%s", fmt.Sprintf("INSERT INTO %s %s SETTINGS deduplicate_insert = 'disable'", target, query))
	}
}

// stopLine is what the log says of the partition that stopped: it is told once.
func stopLine(stderr string) string {
	for line := range strings.Lines(stderr) {
		if strings.Contains(line, "partition stopped") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
