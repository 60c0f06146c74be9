//go:build chaos

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/embedded"
)

// outcome is a row of the table.
type outcome struct {
	name, faults         string
	records              int
	lost, doubled        int64
	samples, above, away int
	stops, exits         int
	failed               bool
	seconds              float64
	dir                  string
}

// fill takes what an arena has to tell.
func (a *arena) fill(o *outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o.faults = a.did.String()
	if a.feed != nil {
		a.feed.mu.Lock()
		o.records = a.feed.gen.Made()
		a.feed.mu.Unlock()
	}
	o.lost, o.doubled, o.samples, o.above, o.away = a.lost, a.doubled, a.seen.taken, a.seen.above, a.seen.away
	o.stops, o.exits = a.stops, len(a.exits)
	for _, n := range a.notes {
		a.t.Log(n)
	}
	for _, e := range a.exits {
		a.t.Log("ended by itself: " + e)
	}
}

func (o *outcome) result() string {
	text := "survived"
	if o.failed {
		text = "**FAILED**"
	}
	if o.stops > 0 {
		text += fmt.Sprintf("; %d stops, gone on as told", o.stops)
	}
	if o.exits > 0 {
		text += fmt.Sprintf("; %d ends of a sink, started again", o.exits)
	}
	return text
}

// report keeps docs/chaos.md: each row with the commit that it was run on, so that a run of some rows leaves the others.
type report struct {
	t       testing.TB
	path    string
	seed    uint64
	commit  string
	rows    []outcome
	started time.Time
}

func openReport(t testing.TB, seed uint64) *report {
	t.Helper()
	r := &report{t: t, path: filepath.Join("..", "..", "docs", "chaos.md"), seed: seed, commit: said("git", "rev-parse", "--short", "HEAD"), started: time.Now()}
	fmt.Printf("seed %d, commit %s\n%s", seed, r.commit, heading)
	return r
}

const heading = "| schedule | faults done | records | lost | doubled | view samples / above truth | result | seconds | commit |\n|---|---|---|---|---|---|---|---|---|\n"

func (r *report) line(o outcome) string {
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d / %d | %s | %.0f | %s |", o.name, o.faults, o.records, o.lost, o.doubled, o.samples, o.above, o.result(), o.seconds, r.commit)
}

// add prints a row at once and keeps it.
func (r *report) add(o outcome) {
	fmt.Println(r.line(o))
	if o.dir != "" {
		fmt.Printf("  logs of %s: %s\n", o.name, o.dir)
	}
	r.rows = append(r.rows, o)
	r.write()
}

func (r *report) end() {
	failed := 0
	for _, o := range r.rows {
		if o.failed {
			failed++
		}
	}
	fmt.Printf("\n%d schedules, %d survived, in %.0f s; the table is in docs/chaos.md\n", len(r.rows), len(r.rows)-failed, time.Since(r.started).Seconds())
}

const (
	tableTitle = "## Schedules"
	mixedTitle = "## Mixed faults"
)

var rowOf = regexp.MustCompile(`(?m)^\| ([a-z0-9-]+) \|.*$`)

// write puts the rows of this run in the place of their predecessors.
func (r *report) write() {
	old, _ := os.ReadFile(r.path) // none at the first run
	before, mixed, _ := strings.Cut(string(old), mixedTitle+"\n")
	lines := map[string]string{}
	for _, m := range rowOf.FindAllStringSubmatch(before, -1) {
		lines[m[1]] = m[0]
	}
	for _, o := range r.rows {
		lines[o.name] = r.line(o)
	}
	var b strings.Builder
	b.WriteString(r.preamble())
	b.WriteString(tableTitle + "\n\n" + heading)
	for _, s := range schedules() {
		if line := lines[s.name]; line != "" {
			b.WriteString(line + "\n")
		}
	}
	if mixed = strings.TrimSpace(mixed); mixed != "" {
		b.WriteString("\n" + mixedTitle + "\n\n" + mixed + "\n")
	}
	r.save(b.String())
}

func (r *report) save(text string) {
	if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
		r.t.Error(err)
		return
	}
	if err := os.WriteFile(r.path, []byte(text), 0o644); err != nil { //nolint:gosec // a document
		r.t.Error(err)
	}
}

func (r *report) preamble() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# What was done to it

Written by `+"`make chaos`"+` itself. Three `+"`sink run`"+` processes in one group read 8 partitions of a real Kafka broker, 5 %% of the records duplicates in and across
partitions, produced while the faults are under way; a real redis-server, a ClickHouse engine, a table with a view that sums and counts. A fault proxy lies on each
link. Every 100 ms the view is held against the sum of what had been produced by then, and the table's rows against its keys. Afterwards the faults end, everything
is drained, and then: keys lost, keys doubled, sums of table and view exact, committed = end, no dead letters; where no process was killed, the sinks' own account.

"n stops, gone on as told": that many partitions stopped by rule (I4) and went on by the command that their log line names, after the views were recomputed.
"n ends of a sink": a process ended by itself with a reason and was started again, as an orchestrator does. A row's commit is the one that it was last run on.

Last run: %s, commit %s, seed %d. %s

`, r.started.UTC().Format("2006-01-02 15:04 MST"), r.commit, r.seed, versions())
	return b.String()
}

// versions names what it ran against.
func versions() string {
	list := []string{said("go", "version"), "redis-server " + firstMatch(`v=(\S+)`, said(embedded.FindRedis(), "--version"))}
	if jars, _ := filepath.Glob(filepath.Join(filepath.Dir(embedded.FindCached("kafka/.stamp")), "libs", "kafka-clients-*.jar")); len(jars) > 0 {
		list = append(list, "Apache Kafka "+firstMatch(`kafka-clients-(.*)\.jar`, filepath.Base(jars[0])))
	}
	list = append(list, "ClickHouse "+engineVersion, said("uname", "-sr"))
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return strings.TrimSpace(s) == "" }), ", ") + "."
}

// engineVersion is what the engine said of itself.
var engineVersion string

func said(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func firstMatch(pattern, text string) string {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return "?"
}
