package demo

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncesink/oncesink/bench/load"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// sound is an account without a fault: 100 records, 90 settlements, 10 records by hand.
func sound() *Account {
	return &Account{
		Seed: 7, Seconds: 31.4, Produced: 100, SentAgain: 10, Records: 110,
		True:       Table{Rows: 90, Keys: 90, Amount: 1_234_500, Qty: 4711},
		Table:      Table{Rows: 90, Keys: 90, Amount: 1_234_500, Qty: 4711},
		Report:     Totals{Events: 90, Amount: 1_234_500, Qty: 4711},
		Partitions: []Partition{{0, 60, 60}, {1, 50, 50}},
		Seen:       Seen{Samples: 40},
		Doors: Doors{Producer: 10, Elsewhere: 4, Cuts: Sends{1, 20}, Restarts: Sends{2, 1500},
			ByHand: []Resend{{5, 3}, {5, 5}}},
		Crashes: []Crash{{At: "inserting", Inserting: 2}, {At: "claimed"}},
		Cuts:    3, Planned: Planned{Crashes: 2, Cuts: 3},
	}
}

func TestWhatIsOffIsNamedAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Account)
		want   []string
	}{
		{"nothing", func(*Account) {}, nil},
		{"a lost row", func(a *Account) {
			a.Table, a.Report = Table{89, 89, 1_234_000, 4700}, Totals{89, 1_234_000, 4700}
		}, []string{
			"1 settlement is lost: not in the table",
			"the report shows 89 events, amount 123.4 and qty 4,700, and not 90, 123.45 and 4,711",
		}},
		{"a row twice, the report is right", func(a *Account) { a.Table.Rows, a.Table.Amount = 91, 1_234_600 },
			[]string{"1 row of the table has a key that is there already"}},
		{"rows twice, everywhere", func(a *Account) {
			a.Table, a.Report = Table{93, 90, 1_300_000, 5000}, Totals{93, 1_300_000, 5000}
		}, []string{
			"3 rows of the table have a key that is there already",
			"the report shows 93 events, amount 130 and qty 5,000, and not 90, 123.45 and 4,711",
		}},
		{"as many lost as twice: count() alone would be right", func(a *Account) { a.Table.Keys = 89 }, []string{
			"1 settlement is lost: not in the table", "1 row of the table has a key that is there already",
		}},
		{"only the report missed an insert", func(a *Account) { a.Report.Events = 80 },
			[]string{"the report shows 80 events, amount 123.45 and qty 4,711, and not 90, 123.45 and 4,711"}},
		{"a changed value", func(a *Account) { a.Table.Amount++ },
			[]string{"the table's sums are wrong: amount 123.4501 and qty 4,711, and not 123.45 and 4,711"}},
		{"keys of nobody", func(a *Account) { a.Table.Rows, a.Table.Keys = 92, 92 },
			[]string{"the table has 2 keys that nobody sent"}},
		{"twice for a moment", func(a *Account) { a.Seen.Twice = 1 }, []string{"for a moment 1 row is too many in the table"}},
		{"an overshoot for a moment", func(a *Account) { a.Seen.Ahead = Totals{7, 5_000, 0} },
			[]string{"for a moment the report was ahead of what was there: by 7 events, amount 0.5 and qty 0"}},
		{"an overshoot of an amount alone", func(a *Account) { a.Seen.Ahead.Amount = 1 },
			[]string{"for a moment the report was ahead of what was there: by 0 events, amount 0.0001 and qty 0"}},
		{"an open offset", func(a *Account) { a.Partitions[1].Committed = 49 },
			[]string{"partition 1 is committed up to 49, and its end is 50"}},
		{"an offset that is too far", func(a *Account) { a.Partitions[0].Committed = 61 },
			[]string{"partition 0 is committed up to 61, and its end is 60"}},
		{"records that Kafka hasn't got", func(a *Account) { a.Records = 109 }, []string{"Kafka has 109 records, but 110 were sent"}},
		{"a dead letter", func(a *Account) { a.DeadLetters = 1 }, []string{"1 record went to the dead-letter topic, though every record is sound"}},
		{"a sink that gave up", func(a *Account) { a.Troubles = []string{"sink process 2: it ended"} }, []string{"sink process 2: it ended"}},
		{"a missed kill", func(a *Account) { a.Planned.Crashes = 3 }, []string{"the sink was killed twice instead of 3 times"}},
		{"kills beside every insert", func(a *Account) { a.Crashes[0].Inserting = 0 }, []string{"no kill hit an insert, so that door was not tried"}},
		{"no cut", func(a *Account) { a.Cuts = 0 }, []string{"no acknowledgement was cut, so that door was not tried"}},
		{"nothing by hand that was partly written", func(a *Account) { a.Doors.ByHand = []Resend{{5, 0}, {5, 5}} },
			[]string{"nothing was sent by hand that was partly written, so that door was not tried"}},
		{"a producer without repeats", func(a *Account) { a.Doors.Producer = 0 }, []string{"the producer repeated nothing, so that door was not tried"}},
		{"nobody looked", func(a *Account) { a.Seen.Samples = 0 }, []string{"nobody looked at the table while the sink was running"}},
	} {
		a := sound()
		c.change(a)
		a.Judge()
		if !slices.Equal(a.Faults, c.want) || a.Balanced != (len(c.want) == 0) {
			t.Errorf("%s: balanced %v\n got %q\nwant %q", c.name, a.Balanced, a.Faults, c.want)
		}
		var b strings.Builder
		if err := a.Write(&b); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !strings.Contains(b.String(), "NOT balanced: ") || !strings.Contains(b.String(), w) {
				t.Errorf("%s: not told: %s", c.name, b.String())
			}
		}
	}
}

func TestTheAccountIsToldInWordsAndAsJSON(t *testing.T) {
	a := sound()
	a.Judge()
	var b strings.Builder
	if err := a.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := `What came in, by four doors (seed 7)
  the producer               100 records, 10 of them repeat an earlier one (4 in another partition)
  cut acknowledgements       3; 20 rows came to ClickHouse twice by them (1 insert)
  kill -9 of the sink        2 (1 × claimed, 1 × inserting); 1,500 rows came to ClickHouse twice by them (2 inserts)
  sent again by hand         10 records, in 2 slices; 8 of them were in the table at that moment

What is there now
  records in Kafka           110
  distinct settlements       90
  rows in the table          90, with 90 distinct keys: as it must be
  count() - uniqExact(key)   0
  the report's total         90 events, amount 123.45, qty 4,711
  the true total             90 events, amount 123.45, qty 4,711: as it must be
  seen in the meantime       40 looks: at most 0 rows too many, the report at most 0 events ahead
  committed = end            2 of 2 partitions
  the account                consumed 110 = inserted 90 + duplicates 20 (of the producer 10, by hand 10) + dead letters 0: as it must be

Balanced: every settlement is in the table and in the report exactly once, after 2 crashes and 3 cuts, in 31.4 s.
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"balanced":true`, `"amount":123.45,`, `"committed":60`, `"by_hand":[{"records":5,"written":3}`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
}

// The account is what people are asked to believe: a class that is off must show.
func TestTheAccountByClassShowsWhatIsOff(t *testing.T) {
	a := sound()
	a.Table.Rows = 89
	a.Judge()
	var b strings.Builder
	if err := a.Write(&b); err != nil {
		t.Fatal(err)
	}
	if want := "consumed 110 = inserted 89 + duplicates 20 (of the producer 10, by hand 10) + dead letters 0: WRONG\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%q is missing in %s", want, b.String())
	}
}

// A bar that names a fault which is over misleads whoever watches.
func TestTheNoteTellsOnlyWhatGoesOnNow(t *testing.T) {
	r := &run{feed: &feed{gen: load.New(load.Options{Rows: 1})}, crashes: make([]Crash, 1), cuts: 1_000}
	r.setDoor("kill -9 in mid-insert")
	if got, want := r.note(), "(1 crash, 1,000 cuts; now: kill -9 in mid-insert; 0 records produced)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r.setDoor("")
	if got, want := r.note(), "(1 crash, 1,000 cuts; 0 records produced)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAmountsKeepTheirDigits(t *testing.T) {
	for a, want := range map[Amount]string{0: "0", 1: "0.0001", 10_000: "1", 12_340: "1.234", -5: "-0.0005", 90_071_992_547_409_931: "9007199254740.9931"} {
		if got := a.String(); got != want {
			t.Errorf("%d: %s, want %s", a, got, want)
		}
	}
	for a, want := range map[Amount]string{0: "0", 1: "0.0001", -5: "-0.0005", 123_456_785_000: "12,345,678.5", -10_000_000: "-1,000"} {
		if got := a.Text(); got != want {
			t.Errorf("%d: %s, want %s", a, got, want)
		}
	}
}

func TestASampleIsHeldAgainstTheTableAndWhatWasProduced(t *testing.T) {
	truth := load.Truth{Keys: 100, Amount: 1000, Qty: 500}
	full := Table{Rows: 100, Keys: 100}
	for _, c := range []struct {
		name  string
		shown Totals
		table Table
		want  Seen
	}{
		{"behind", Totals{90, 900, 450}, full, Seen{Samples: 1}},
		{"level", Totals{100, 1000, 500}, full, Seen{Samples: 1}},
		{"beyond what was produced", Totals{101, 1010, 505}, full, Seen{1, 0, Totals{1, 10, 5}}},
		{"beyond the table, though more was produced", Totals{60, 600, 300}, Table{Rows: 50, Keys: 50}, Seen{1, 0, Totals{10, 0, 0}}},
		{"keys twice", Totals{50, 500, 250}, Table{Rows: 57, Keys: 50}, Seen{1, 7, Totals{}}},
	} {
		var s Seen
		s.add(c.shown, c.table, truth)
		if s != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, s, c.want)
		}
	}
	var s Seen // the worst stays
	s.add(Totals{103, 0, 0}, full, truth)
	s.add(Totals{101, 0, 0}, full, truth)
	if s.Ahead.Events != 3 || s.Samples != 2 {
		t.Errorf("%+v", s)
	}
}

func TestARowThatCameTwiceIsBlamedOnTheDoorItCameBy(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	id := func(partition, offsets string) string {
		return "oncesink/table/group/cluster/topic/" + partition + "/" + offsets + "/0123456789abcdef/0/1.1"
	}
	lives := []time.Time{at(0), at(100), at(200)}
	cuts, restarts := sentAgain([]statement{
		{id("0", "0-9"), 10, at(1)},
		{id("1", "0-9"), 10, at(1)},   // another partition
		{id("0", "10-19"), 10, at(2)}, // what follows
		{id("0", "10-19"), 10, at(9)}, // cut, sent again
		{id("0", "15-24"), 7, at(101)},
		{id("1", "9-9"), 1, at(102)},
		{id("1", "5-9"), 5, at(103)}, // the latest that had these rows is of the same life
		{id("1", "10-12"), 3, at(201)},
		{"oncesink/canary/x", 1, at(201)},
	}, lives)
	if cuts != (Sends{2, 15}) || restarts != (Sends{2, 8}) {
		t.Errorf("cuts %+v, restarts %+v", cuts, restarts)
	}
}

func TestEveryRestartCutsOtherBatchesAndEveryFaultIsPlayed(t *testing.T) {
	for _, rows := range []int{LeastRows, 20_000, 200_000, 5_000_000} {
		acts, cuts, held := play(rows), 0, 0
		steps := map[pipeline.Step]int{}
		for i, a := range acts {
			if a.bounds.rows < 10 || i > 0 && a.bounds.rows == acts[i-1].bounds.rows {
				t.Errorf("%d rows, life %d: batches of %d", rows, i+1, a.bounds.rows)
			}
			if i > 0 && a.bounds.age == acts[i-1].bounds.age {
				t.Errorf("life %d cuts by the same age as the one before", i+1)
			}
			cuts += a.cuts
			if a.kill.held {
				held++
			} else {
				steps[a.kill.at]++
			}
			if last := i == len(acts)-1; last != (a.kill == kill{}) {
				t.Errorf("life %d of %d: kill %v", i+1, len(acts), a.kill)
			}
		}
		if cuts == 0 || held == 0 || steps[pipeline.StepInserting] < 2 || steps[pipeline.StepClaimed] == 0 {
			t.Errorf("%d cuts, %d held, %v", cuts, held, steps)
		}
	}
}
