package batcher

import "testing"

// Other bounds under the same rows are another token, which the server takes for
// new (field case A4).
func TestIntentRangeIsCutAsItWasOrNotAtAll(t *testing.T) {
	l := Limits{MaxRows: 2, MaxBytes: 10, MaxAgeMs: 5}
	w := Want{First: 100, Last: 199, Exact: true}
	for _, c := range []struct {
		name  string
		f     Filling
		flush bool
		cut   bool
	}{
		{"more rows than the limit", Filling{Rows: 50, Bytes: 500, Next: 150, SinceMs: 1}, false, false},
		{"drain in the middle", Filling{Rows: 50, Next: 150, SinceMs: 1}, true, false},
		{"the last record", Filling{Rows: 100, Next: 200, SinceMs: 1}, false, true},
		{"the last record was compacted away", Filling{Rows: 98, Next: 198, Beyond: true, SinceMs: 1}, false, true},
	} {
		if d := l.Decide(w, c.f, 1000, c.flush); d.Cut != c.cut {
			t.Errorf("%s: cut %v, want %v", c.name, d.Cut, c.cut)
		}
		if c.cut {
			if got, want := w.Range(c.f), (Range{100, 199}); got != want {
				t.Errorf("%s: range %s, want %s", c.name, got, want)
			}
		}
	}
}

func TestFreeBatchEndsByRowsBytesAgeOrTheNextIntent(t *testing.T) {
	l := Limits{MaxRows: 10, MaxBytes: 1000, MaxAgeMs: 50}
	for _, c := range []struct {
		name  string
		w     Want
		f     Filling
		now   int64
		flush bool
		want  Decision
		r     Range
	}{
		{"empty", Want{First: 5, Last: -1}, Filling{Next: 5}, 900, true, Decision{}, Range{5, 4}},
		{"young", Want{First: 5, Last: -1}, Filling{Rows: 3, Next: 8, SinceMs: 100}, 149, false, Decision{WakeMs: 150}, Range{5, 7}},
		{"old", Want{First: 5, Last: -1}, Filling{Rows: 3, Next: 8, SinceMs: 100}, 150, false, Decision{Cut: true}, Range{5, 7}},
		{"rows", Want{First: 5, Last: -1}, Filling{Rows: 10, Next: 15, SinceMs: 100}, 101, false, Decision{Cut: true, Full: true}, Range{5, 14}},
		{"bytes", Want{First: 5, Last: -1}, Filling{Rows: 1, Bytes: 1000, Next: 6, SinceMs: 100}, 101, false, Decision{Cut: true, Full: true}, Range{5, 5}},
		{"flush", Want{First: 5, Last: -1}, Filling{Rows: 1, Next: 6, SinceMs: 100}, 101, true, Decision{Cut: true}, Range{5, 5}},
		{"only control records", Want{First: 5, Last: -1}, Filling{Next: 6, SinceMs: 100}, 150, false, Decision{Cut: true}, Range{5, 5}},
		{"up to the next intent", Want{First: 5, Last: 7}, Filling{Rows: 3, Next: 8, SinceMs: 100}, 101, false, Decision{Cut: true, Full: true}, Range{5, 7}},
		{"a gap before the next intent", Want{First: 5, Last: 7}, Filling{Rows: 1, Next: 6, Beyond: true, SinceMs: 100}, 101, false, Decision{Cut: true, Full: true}, Range{5, 7}},
	} {
		if d := l.Decide(c.w, c.f, c.now, c.flush); d != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, d, c.want)
		}
		if r := c.w.Range(c.f); r != c.r {
			t.Errorf("%s: range %s, want %s", c.name, r, c.r)
		}
	}
}

// One message a second on each of 64 partitions is 64 parts a second (field case
// H12): all partitions of a table together keep max_inserts_per_second.
func TestAgeStretchesSoThatTricklesMakeNoPartStorm(t *testing.T) {
	l := Limits{MaxAgeMs: 1000}
	if got := l.Stretch(8, 20).MaxAgeMs; got != 1000 {
		t.Errorf("8 partitions: %d ms, want 1000", got)
	}
	if got := l.Stretch(64, 20).MaxAgeMs; got != 3200 {
		t.Errorf("64 partitions: %d ms, want 3200", got)
	}
	if got := l.Stretch(64, 0).MaxAgeMs; got != 1000 {
		t.Errorf("no limit: %d ms, want 1000", got)
	}
}

func TestSlowClaimsShrinkBatchesUntilTheyFitTheDeadline(t *testing.T) {
	p := NewPace(100_000)
	rows := 0
	for range 20 { // a store that takes 1 ms for 10 rows, under a deadline of 5 s
		rows = p.Rows()
		p = p.Took(rows, int64(rows/10), 5000)
	}
	if took := rows / 10; took > 5000/4 || rows < 1000 {
		t.Errorf("batches of %d rows take %d ms to claim", rows, took)
	}
	for range 60 {
		p = p.Took(p.Rows(), 1, 5000)
	}
	if p.Rows() != 100_000 {
		t.Errorf("a quick store gets batches of %d rows, want the limit back", p.Rows())
	}
	if p = NewPace(100).Took(100, 60_000, 5000); p.Rows() != 100 {
		t.Errorf("a batch of 100 rows was cut to %d", p.Rows())
	}
}
