package demo

import (
	"context"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/oncesink/oncesink/bench/load"
	"github.com/oncesink/oncesink/internal/progress"
)

// account asks the engine and Kafka; nothing runs any more that could change the answers.
func (r *run) account(ctx context.Context, db *asker, truth load.Truth) (*Account, error) {
	a := &Account{
		Seed: r.o.Seed, Produced: int64(r.o.Rows), True: Table{Rows: truth.Keys, Keys: truth.Keys, Amount: Amount(truth.Amount), Qty: truth.Qty},
		Seen: r.seen, Crashes: r.crashes, Cuts: r.cuts, Troubles: r.troubles,
		Doors: Doors{Producer: int64(r.o.Rows) - truth.Keys, Elsewhere: int64(r.feed.elsewhere), ByHand: r.byHand},
	}
	for _, s := range r.byHand {
		a.SentAgain += int64(s.Records)
	}
	for _, act := range r.acts {
		a.Planned.Cuts += act.cuts
		if act.kill != (kill{}) {
			a.Planned.Crashes++
		}
	}
	var err error
	if a.Table, err = db.table(ctx); err != nil {
		return nil, err
	}
	r.bar.Set(a.Table.Rows)
	r.setDoor("") // nothing happens any more
	r.bar.Note(r.note())
	if a.Report, err = db.report(ctx); err != nil {
		return nil, err
	}
	if a.Partitions, a.DeadLetters, err = r.feed.offsets(ctx); err != nil {
		return nil, err
	}
	for _, p := range a.Partitions {
		a.Records += p.End
	}
	statements, err := db.statements(ctx)
	if err != nil {
		return nil, err
	}
	a.Doors.Cuts, a.Doors.Restarts = sentAgain(statements, r.lives)
	a.Seconds = time.Since(r.begun).Round(100 * time.Millisecond).Seconds()
	a.Judge()
	return a, nil
}

// Write tells the account to people.
func (a *Account) Write(w io.Writer) error {
	var b strings.Builder
	n := progress.Thousands
	line := func(label string, format string, args ...any) {
		fmt.Fprintf(&b, "  %-26s %s\n", label, fmt.Sprintf(format, args...))
	}
	mark := func(right bool) string {
		if right {
			return "as it must be"
		}
		return "WRONG"
	}
	var byHand, there int64
	for _, s := range a.Doors.ByHand {
		byHand += int64(s.Records)
		there += int64(s.Written)
	}
	behind := 0
	for _, p := range a.Partitions {
		if p.Committed != p.End {
			behind++
		}
	}
	want := Totals{a.True.Keys, a.True.Amount, a.True.Qty}

	fmt.Fprintf(&b, "What came in, by four doors (seed %d)\n", a.Seed)
	line("the producer", "%s records, %s of them repeat an earlier one (%s in another partition)", n(a.Produced), n(a.Doors.Producer), n(a.Doors.Elsewhere))
	line("cut acknowledgements", "%d; %s", a.Cuts, a.Doors.Cuts.text())
	line("kill -9 of the sink", "%d (%s); %s", len(a.Crashes), crashes(a.Crashes), a.Doors.Restarts.text())
	line("sent again by hand", "%s records, in %s; %s of them were in the table at that moment", n(byHand), count(int64(len(a.Doors.ByHand)), "slice"), n(there))
	b.WriteString("\nWhat is there now\n")
	line("records in Kafka", "%s", n(a.Records))
	line("distinct settlements", "%s", n(a.True.Keys))
	line("rows in the table", "%s, with %s distinct keys: %s", n(a.Table.Rows), n(a.Table.Keys), mark(a.Table == a.True))
	line("count() - uniqExact(key)", "%s", n(a.Table.Rows-a.Table.Keys))
	line("the report's total", "%s events, amount %s, qty %s", n(a.Report.Events), a.Report.Amount.Text(), n(a.Report.Qty))
	line("the true total", "%s events, amount %s, qty %s: %s", n(want.Events), want.Amount.Text(), n(want.Qty), mark(a.Report == want))
	line("seen in the meantime", "%s: at most %s too many, the report at most %s ahead", count(int64(a.Seen.Samples), "look"), count(a.Seen.Twice, "row"), count(a.Seen.Ahead.Events, "event"))
	line("committed = end", "%d of %s", len(a.Partitions)-behind, count(int64(len(a.Partitions)), "partition"))
	c := a.Classes
	line("the account", "consumed %s = inserted %s + duplicates %s (of the producer %s, by hand %s) + dead letters %s: %s", n(c.Consumed), n(c.Inserted),
		n(c.Producer+c.ByHand), n(c.Producer), n(c.ByHand), n(c.DeadLetters), mark(c.Consumed == c.sum()))
	fmt.Fprintf(&b, "\n%s\n", a.Verdict())
	_, err := io.WriteString(w, b.String())
	return err
}

// Verdict is the account in one sentence, or in one for each fault.
func (a *Account) Verdict() string {
	if a.Balanced {
		return fmt.Sprintf("Balanced: every settlement is in the table and in the report exactly once, after %s and %s, in %.1f s.", count(int64(len(a.Crashes)), "crash"), count(int64(a.Cuts), "cut"), a.Seconds)
	}
	return "NOT balanced: " + strings.Join(a.Faults, "; ") + "."
}

func (s Sends) text() string {
	if s.Statements == 0 {
		return "nothing came to ClickHouse twice by them"
	}
	return fmt.Sprintf("%s rows came to ClickHouse twice by them (%s)", progress.Thousands(s.Rows), count(int64(s.Statements), "insert"))
}

// crashes are the moments, with how many hit each.
func crashes(list []Crash) string {
	by := map[string]int{}
	for _, c := range list {
		by[c.At]++
	}
	var out []string
	for at, n := range by {
		out = append(out, fmt.Sprintf("%d × %s", n, at))
	}
	sort.Strings(out)
	return strings.Join(out, ", ")
}
