package sim

import (
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func env(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// runSeeds runs seeds [first, first+n) and returns the first few that fail.
func runSeeds(first, n uint64, most int, draw func(uint64) Params) (failed []Params, found []*Violation, seen Coverage, steps, halts int) {
	type end struct {
		seed uint64
		p    Params
		res  Result
	}
	seeds := make(chan uint64)
	ends := make(chan end, 64)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for s := range seeds {
				p := draw(s)
				ends <- end{s, p, Run(p, false)}
			}
		}()
	}
	go func() {
		for s := first; s < first+n; s++ {
			seeds <- s
		}
		close(seeds)
		wg.Wait()
		close(ends)
	}()
	var bad []end
	for e := range ends {
		steps += e.res.Steps
		halts += len(e.res.Halts)
		seen.Add(e.res.Seen)
		if e.res.Violation != nil {
			bad = append(bad, e)
		}
	}
	sort.Slice(bad, func(i, j int) bool { return bad[i].seed < bad[j].seed })
	for _, e := range bad {
		if len(failed) < most {
			failed, found = append(failed, e.p), append(found, e.res.Violation)
		}
	}
	return failed, found, seen, steps, halts
}

// TestMutantIsCaught is what a mutant of the product is run with: it stops at
// the first seed that breaks an invariant.
func TestMutantIsCaught(t *testing.T) {
	focus, err := ParseFocus(os.Getenv("FOCUS"))
	if err != nil {
		t.Fatal(err)
	}
	first, n := env("FIRST", 1), env("SEEDS", 60)
	for ; n > 0; first, n = first+min(n, 50), n-min(n, 50) {
		failed, found, _, _, _ := runSeeds(first, min(n, 50), 1, focus.Draw)
		if len(failed) > 0 {
			t.Fatalf("caught by seed %d: %s", failed[0].Seed, head(found[0]))
		}
	}
}

// TestNoScheduleBreaksAnInvariant runs SEEDS schedules from FIRST on.
func TestNoScheduleBreaksAnInvariant(t *testing.T) {
	focus, err := ParseFocus(os.Getenv("FOCUS"))
	if err != nil {
		t.Fatal(err)
	}
	first, n := env("FIRST", 1), env("SEEDS", 3000)
	if one := os.Getenv("SEED"); one != "" {
		p := focus.Draw(env("SEED", 1))
		if r := Run(p, false); r.Violation != nil && os.Getenv("SHRINK") != "" {
			p = Shrink(p, r.Violation.Rule)
		}
		replay(t, p)
		return
	}
	failed, found, seen, steps, halts := runSeeds(first, n, 1000, focus.Draw)
	t.Logf("%d seeds from %d on: %d steps, %d partitions stopped (I4)", n, first, steps, halts)
	if testing.Verbose() && os.Getenv("COVER") != "" {
		t.Log("\n" + coverageText(seen))
	}
	if len(failed) == 0 {
		return
	}
	kinds := map[string]int{}
	where := map[string][]uint64{}
	for i := range found {
		kinds[head(found[i])]++
		where[head(found[i])] = append(where[head(found[i])], failed[i].Seed)
	}
	for k, n := range kinds {
		t.Logf("%4d x %s %v", n, k, where[k][:min(len(where[k]), 6)])
	}
	p, v := failed[0], found[0]
	t.Logf("seed %d: %v", p.Seed, v)
	for i := range found {
		if want := os.Getenv("RULE"); want != "" && strings.Contains(found[i].Error(), want) {
			p, v = failed[i], found[i]
			t.Logf("seed %d: %v", p.Seed, v)
			break
		}
	}
	p = Shrink(p, v.Rule)
	replay(t, p)
	t.Errorf("%d of %d seeds broke an invariant; replay one with SEED=%d", len(failed), n, failed[0].Seed)
}

func head(v *Violation) string {
	line, _, _ := strings.Cut(v.Error(), "\n")
	var b strings.Builder
	for _, r := range line {
		if r >= '0' && r <= '9' {
			r = '#'
		}
		b.WriteRune(r)
	}
	s := strings.ReplaceAll(b.String(), "##", "#")
	if len(s) > 150 {
		s = s[:150]
	}
	return s
}

func replay(t *testing.T, p Params) {
	res := Run(p, true)
	t.Log(p.String())
	text := strings.Join(res.Trace, "\n") + "\n"
	if to := os.Getenv("TRACE"); to != "" {
		if err := os.WriteFile(to, []byte(p.String()+"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Log("\n" + text)
	}
	if res.Violation != nil {
		t.Errorf("%v", res.Violation)
	}
	for _, h := range res.Halts {
		t.Logf("stopped: %s", h)
	}
}

func coverageText(c Coverage) string {
	var b strings.Builder
	var steps []string
	for s := range c.Steps {
		steps = append(steps, s)
	}
	sort.Strings(steps)
	for f := range faults {
		b.WriteString(faultNames[f] + ":")
		for _, s := range steps {
			if n := c.Met[faultNames[f]+" @ "+s]; n > 0 {
				b.WriteString(" " + s + "=" + strconv.Itoa(n))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
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
