package sim

import (
	"fmt"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
)

// Outcome is what many seeds came to.
type Outcome struct {
	Seeds  int
	Steps  int
	Halts  int // partitions stopped (I4)
	Seen   Coverage
	Failed []Failure // by seed
	Took   time.Duration
}

// Failure is a seed that broke an invariant.
type Failure struct {
	Seed      uint64
	Params    Params
	Violation *Violation
}

// Seeds runs seeds [first, first+n) on all cores.
func Seeds(first, n uint64, draw func(uint64) Params) *Outcome {
	start := time.Now()
	o := &Outcome{Seeds: int(n)} //nolint:gosec // a count
	seeds := make(chan uint64)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for s := range seeds {
				p := draw(s)
				res := Run(p, false)
				mu.Lock()
				o.Steps += res.Steps
				o.Halts += len(res.Halts)
				o.Seen.Add(&res.Seen)
				if res.Violation != nil {
					o.Failed = append(o.Failed, Failure{s, p, res.Violation})
				}
				mu.Unlock()
			}
		})
	}
	for s := first; s < first+n; s++ {
		seeds <- s
	}
	close(seeds)
	wg.Wait()
	sort.Slice(o.Failed, func(i, j int) bool { return o.Failed[i].Seed < o.Failed[j].Seed })
	o.Took = time.Since(start)
	return o
}

// Kinds counts the violations that differ in more than their numbers.
func (o *Outcome) Kinds() string {
	where := map[string][]uint64{}
	var kinds []string
	for _, f := range o.Failed {
		k := f.Violation.Head()
		if where[k] == nil {
			kinds = append(kinds, k)
		}
		where[k] = append(where[k], f.Seed)
	}
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "%4d x %s, seeds %v\n", len(where[k]), k, where[k][:min(len(where[k]), 6)])
	}
	return b.String()
}

// Head is the rule and the first line of a violation, without its numbers.
func (v *Violation) Head() string {
	line, _, _ := strings.Cut(v.What, "\n")
	var b strings.Builder
	for _, r := range line {
		if r < '0' || r > '9' {
			b.WriteRune(r)
		} else if !strings.HasSuffix(b.String(), "#") {
			b.WriteByte('#')
		}
	}
	s := b.String()
	return v.Rule + ": " + s[:min(len(s), 150)]
}

// Transcript runs a world once more and writes the schedule down.
func Transcript(p Params) string {
	res := Run(p, true)
	text := p.String() + "\n" + strings.Join(res.Trace, "\n") + "\n"
	for _, h := range res.Halts {
		text += "stopped: " + h + "\n"
	}
	return text
}

// Fill aims at each pair of a fault and a step that seen met fewer times than
// least and that has no reason: it runs up to most seeds for each, from first on.
func Fill(seen *Coverage, least, first, most int) *Outcome {
	start := time.Now()
	sum := &Outcome{}
	why := unmet()
	for f := range faults {
		for s := range atSteps {
			if why[f][s] != "" {
				continue
			}
			a := Aim{Fault: f, Step: s}
			for tried := 0; tried < most && seen.Met[f][s] < least; tried += aimedAtOnce {
				o := Seeds(uint64(first+tried), aimedAtOnce, a.Draw) //nolint:gosec // a seed
				seen.Add(&o.Seen)
				sum.Seeds += o.Seeds
				sum.Steps += o.Steps
				sum.Halts += o.Halts
				sum.Failed = append(sum.Failed, o.Failed...)
			}
		}
	}
	sum.Took = time.Since(start)
	return sum
}

const aimedAtOnce = 8
