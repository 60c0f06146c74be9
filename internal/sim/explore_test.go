package sim

import (
	"runtime"
	"testing"
)

func explore(t *testing.T, s *Small) Exploration {
	t.Helper()
	e := Explore(s, runtime.GOMAXPROCS(0), 500_000, false)
	if !e.Complete && len(e.Broken) == 0 {
		t.Errorf("%s: not complete after %d states", s, e.States)
	}
	return e
}

// TestEverySchedule explores the worlds that take seconds, to their ends.
func TestEveryScheduleOfASmallWorldHolds(t *testing.T) {
	var list []Exploration
	for _, s := range FewWorlds() {
		e := explore(t, s)
		list = append(list, e)
		if len(e.Broken) > 0 {
			t.Errorf("%s\n%s", s, Shortest(s, e).Transcript(s))
		}
		if e.Ends == 0 {
			t.Errorf("%s: no end", s)
		}
	}
	t.Log("\n" + Table(list))
}

// TestTheExplorerFindsWhatIsBroken: it would prove nothing otherwise.
func TestTheExplorerFindsWhatIsBroken(t *testing.T) {
	for _, c := range []struct {
		rule string
		s    Small
	}{
		{"I2", Small{Name: "the deadline is not checked", Logs: []string{"ab"}, Sinks: 1, Cut: 1, Window: 1, Faults: []fault{faultLateInsert}, Most: 1, Break: Break{NoDeadline: true}}},
		{"I4", Small{Name: "errors of views count as refused", Logs: []string{"a"}, Sinks: 2, Views: 1, Cut: 1, Faults: []fault{faultViewBroken}, Most: 1, Break: Break{ViewErrorIsData: true}}},
		{"I4", Small{Name: "running statements are killed", Logs: []string{"a"}, Sinks: 2, Views: 1, Cut: 1, Window: 1, Finish: true, Faults: []fault{faultCrash}, Most: 1, Break: Break{Kill: true}}},
	} {
		e := Explore(&c.s, runtime.GOMAXPROCS(0), 500_000, false)
		if len(e.Broken) == 0 || e.Broken[0].Violation.Rule != c.rule {
			t.Errorf("%s: want %s broken, got %v", &c.s, c.rule, e.Broken)
			continue
		}
		way, err := ParseWay(WayText(e.Broken[0].Way))
		if err != nil {
			t.Fatal(err)
		}
		if r := Replay(&c.s, way); r.Violation == nil || r.Violation.Error() != e.Broken[0].Violation.Error() {
			t.Errorf("%s: its way breaks %v when it is gone again, want %v", &c.s, r.Violation, e.Broken[0].Violation)
		}
		t.Log("\n" + Table([]Exploration{e}))
	}
}

// TestNothingThatMattersIsLeftOut: what is left out of a state, and steps that
// are taken together, hide no end and no violation.
func TestNothingThatMattersIsLeftOut(t *testing.T) {
	var list []Comparison
	for _, s := range FewStrict() {
		c := Compare(s, runtime.GOMAXPROCS(0), 100_000)
		list = append(list, c)
		for _, d := range c.Differ {
			t.Errorf("%s: %s", s, d)
		}
	}
	t.Log("\n" + Comparisons(list))
}
