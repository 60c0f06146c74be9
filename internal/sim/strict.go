package sim

import (
	"fmt"
	"strings"
)

// Comparison holds a world as it is explored against the same world with
// nothing left out of a state and each step taken by itself.
type Comparison struct {
	Loose, Strict Exploration
	Differ        []string // ends, or violations, that only one of the two has
}

// Compare explores both, up to most states.
func Compare(s *Small, walkers, most int) Comparison {
	loose, strict := *s, *s
	strict.Strict = true
	c := Comparison{Loose: Explore(&loose, walkers, most, false), Strict: Explore(&strict, walkers, most, false)}
	for v := range c.Loose.Verdicts {
		if c.Strict.Verdicts[v] == 0 {
			c.Differ = append(c.Differ, "with nothing left out there is no end "+v)
		}
	}
	for v := range c.Strict.Verdicts {
		if c.Loose.Verdicts[v] == 0 {
			c.Differ = append(c.Differ, "what is left out hides the end "+v)
		}
	}
	if a, b := len(c.Loose.Broken), len(c.Strict.Broken); a != b {
		c.Differ = append(c.Differ, fmt.Sprintf("%d violations, %d with nothing left out", a, b))
	}
	for _, e := range []Exploration{c.Loose, c.Strict} {
		if !e.Complete && len(e.Broken) == 0 {
			c.Differ = append(c.Differ, fmt.Sprintf("not complete after %d states", e.States))
		}
	}
	return c
}

// FewStrict are compared by every test run.
func FewStrict() []*Small {
	return []*Small{
		{Name: "one sink, answers", Logs: []string{"aa"}, Sinks: 1, Cut: 2, Faults: []fault{faultLostAck, faultLostReply}, Most: 1},
		{Name: "one sink, servers", Logs: []string{"a"}, Sinks: 1, Cut: 1, Faults: []fault{faultServerCrash, faultFlush, faultStoreRestart, faultFailover}, Most: 1},
	}
}

// AllStrict take minutes.
func AllStrict() []*Small {
	return append(FewStrict(),
		&Small{Name: "one sink, a view, what comes late", Logs: []string{"a"}, Sinks: 1, Views: 1, Cut: 1, Faults: []fault{faultLateInsert, faultLateCommit, faultLateLanding}, Most: 1},
		&Small{Name: "one sink, two batches, a view, what comes late", Logs: []string{"ab"}, Sinks: 1, Views: 1, Cut: 1, Faults: []fault{faultLateInsert, faultLateCommit}, Most: 1},
		&Small{Name: "one sink, a restart", Logs: []string{"ab"}, Sinks: 1, Cut: 1, Faults: []fault{faultCrash}, Most: 1},
		&Small{Name: "two sinks, a crash", Logs: []string{"a"}, Sinks: 2, Cut: 1, Faults: []fault{faultCrash}, Most: 1},
		&Small{Name: "two partitions, one key", Logs: []string{"a", "a"}, Sinks: 2, Cut: 1},
	)
}

// Comparisons is a line a world.
func Comparisons(list []Comparison) string {
	var b strings.Builder
	b.WriteString("| world | states | ends that differ in what they came to | states with nothing left out | ends that differ | the same | seconds |\n|---|---|---|---|---|---|---|\n")
	for _, c := range list {
		same := "yes"
		if len(c.Differ) > 0 {
			same = "no"
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %s | %.1f |\n", c.Loose.World.Name, c.Loose.States, len(c.Loose.Verdicts), c.Strict.States, len(c.Strict.Verdicts), same,
			c.Loose.Took.Seconds()+c.Strict.Took.Seconds())
	}
	return b.String()
}
