package sim

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func env(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// TestMutantIsCaught is what a mutant of the product is run with: it stops at
// the first seed that breaks an invariant. WORLD: at the first violation in that
// small world.
func TestMutantIsCaught(t *testing.T) {
	focus, err := ParseFocus(os.Getenv("FOCUS"))
	if err != nil {
		t.Fatal(err)
	}
	if name := os.Getenv("WORLD"); name != "" {
		s, err := WorldNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		s.Break = focus.Break
		if e := Explore(s, runtime.GOMAXPROCS(0), 150_000, false); len(e.Broken) > 0 {
			t.Fatalf("caught by world %q: %s", name, e.Broken[0].Violation.Head())
		}
		return
	}
	first, n := env("FIRST", 1), env("SEEDS", 60)
	for ; n > 0; first, n = first+min(n, 50), n-min(n, 50) {
		if o := Seeds(first, min(n, 50), focus.Draw); len(o.Failed) > 0 {
			t.Fatalf("caught by seed %d: %s", o.Failed[0].Seed, o.Failed[0].Violation.Head())
		}
	}
}

// TestNoScheduleBreaksAnInvariant runs SEEDS schedules from FIRST on: rebalances, pauses beyond the session and commits that land late among
// them (field cases C2, C3, C4, C7).
func TestNoScheduleBreaksAnInvariant(t *testing.T) {
	focus, err := ParseFocus(os.Getenv("FOCUS"))
	if err != nil {
		t.Fatal(err)
	}
	first, n := env("FIRST", 1), env("SEEDS", 3000)
	o := Seeds(first, n, focus.Draw)
	t.Logf("%d seeds from %d on: %d steps, %d partitions stopped (I4)", n, first, o.Steps, o.Halts)
	if len(o.Failed) == 0 {
		return
	}
	f := o.Failed[0]
	t.Log("\n" + o.Kinds() + "\n" + Transcript(Shrink(f.Params, f.Violation.Rule)))
	t.Errorf("%d of %d seeds broke an invariant, the first: %v; `make sim SEED=%d` runs it again", len(o.Failed), n, f.Violation, f.Seed)
}

// TestEachFaultMeetsEachStep aims a few schedules at each pair. Where a pair has
// a reason not to be met, none may meet it.
func TestEachFaultMeetsEachStep(t *testing.T) {
	var seen Coverage
	o := Fill(&seen, 1, 1, 8*aimedAtOnce)
	if len(o.Failed) > 0 {
		t.Errorf("seed %d, %s: %v", o.Failed[0].Seed, o.Failed[0].Params.Aim, o.Failed[0].Violation)
	}
	_, wrong := seen.Gaps()
	for _, w := range wrong {
		t.Error(w)
	}
	t.Logf("%d seeds\n%s", o.Seeds, seen.String())
}

// TestSeedReplaysExactly: a transcript would be worth nothing otherwise.
func TestSeedReplaysExactly(t *testing.T) {
	for seed := range uint64(12) {
		a, b := Run(Draw(seed), true), Run(Draw(seed), true)
		if strings.Join(a.Trace, "\n") != strings.Join(b.Trace, "\n") {
			t.Fatalf("seed %d ran in two ways", seed)
		}
	}
}

// TestAimsAreReadAsTheyAreWritten: a failure that can't be run again is worth little.
func TestAimsAreReadAsTheyAreWritten(t *testing.T) {
	for f := range faults {
		for s := range atSteps {
			want := Aim{Fault: f, Step: s}
			if got, err := ParseAim(want.String()); err != nil || got != want {
				t.Errorf("%s: read as %s, %v", want, got, err)
			}
		}
	}
	if _, err := ParseAim("crash @ nowhere"); err == nil {
		t.Error("a step that there is not is taken")
	}
}
