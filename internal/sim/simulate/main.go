// Command simulate runs the simulation at length: random schedules, schedules in
// which each fault waits for each step of the protocol, and all schedules of
// small worlds. It prints what they came to, and ends with 1 when an invariant
// broke, or when a fault met no step that it could have met.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/oncesink/oncesink/internal/sim"
)

// Memory is bounded: much of what is explored is kept to know it again.
const (
	memory     = 2 << 30
	mostStates = 2_000_000 // of one world
)

// enough is how often a fault meets a step, at least, and aimed how many seeds
// are tried for that.
const (
	enough = 20
	aimed  = 400
)

// counted from so many seeds on, the table of faults and steps may have no gap.
const counted = 10_000

func main() {
	var o options
	flag.Uint64Var(&o.seeds, "seeds", counted, "how many `seeds`")
	flag.Uint64Var(&o.first, "first", 1, "the first `seed`")
	flag.Uint64Var(&o.seed, "seed", 0, "run this `seed` alone and print its schedule")
	flag.StringVar(&o.aim, "aim", "", "with -seed: the `fault @ step` that it was aimed at")
	flag.StringVar(&o.focus, "focus", "", "narrow the worlds of the seeds: `words` between commas")
	flag.StringVar(&o.world, "world", "", "explore this small `world` alone")
	flag.StringVar(&o.way, "way", "", "with -world: go this `way` alone and print it")
	flag.BoolVar(&o.strict, "strict", false, "only explore worlds with nothing left out of a state, and compare")
	flag.StringVar(&o.page, "page", "", "write the tables into this `file`, between its marks")
	flag.Parse()
	debug.SetGCPercent(200)
	debug.SetMemoryLimit(memory)
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

type options struct {
	seeds, first, seed           uint64
	aim, focus, world, way, page string
	strict                       bool
}

var errBroken = errors.New("an invariant broke, see above")

func (o *options) run() error {
	focus, err := sim.ParseFocus(o.focus)
	if err != nil {
		return err
	}
	draw := focus.Draw
	if o.aim != "" {
		a, err := sim.ParseAim(o.aim)
		if err != nil {
			return err
		}
		draw = a.Draw
	}
	switch {
	case o.seed != 0:
		return one(draw(o.seed))
	case o.strict:
		_, err := compare(sim.AllStrict())
		return err
	case o.way != "":
		return o.again()
	case o.world != "":
		s, err := sim.WorldNamed(o.world)
		if err != nil {
			return err
		}
		_, err = explore([]*sim.Small{s})
		return err
	}
	return o.all(draw)
}

// one runs a single seed and prints its schedule.
func one(p sim.Params) error {
	fmt.Print(sim.Transcript(p))
	if sim.Run(p, false).Violation != nil {
		return errBroken
	}
	return nil
}

// again goes one way of a small world.
func (o *options) again() error {
	s, err := sim.WorldNamed(o.world)
	if err != nil {
		return err
	}
	way, err := sim.ParseWay(o.way)
	if err != nil {
		return err
	}
	r := sim.Replay(s, way)
	fmt.Println(s)
	fmt.Println(strings.Join(r.Trace, "\n"))
	if r.Violation != nil {
		return errBroken
	}
	return nil
}

func (o *options) all(draw func(uint64) sim.Params) error {
	start := time.Now()
	random := sim.Seeds(o.first, o.seeds, draw)
	line := fmt.Sprintf("%d seeds from %d on: %d violations, %d steps, %d partitions stopped (I4), %.0f seeds/s",
		random.Seeds, o.first, len(random.Failed), random.Steps, random.Halts, float64(random.Seeds)/random.Took.Seconds())
	fmt.Println(line)
	if broken(random) {
		return errBroken
	}
	seen := random.Seen
	fill := sim.Fill(&seen, enough, int(o.first), aimed) //nolint:gosec // a seed
	aimedLine := fmt.Sprintf("%d seeds aimed at faults and steps that met fewer than %d times: %d violations, %.0f seeds/s",
		fill.Seeds, enough, len(fill.Failed), float64(fill.Seeds)/fill.Took.Seconds())
	fmt.Printf("%s\n\n%s\n", aimedLine, seen.String())
	if broken(fill) {
		return errBroken
	}
	missing, wrong := seen.Gaps()
	for _, a := range missing {
		fmt.Printf("not met, without a reason: %s\n", a)
	}
	for _, w := range wrong {
		fmt.Println(w)
	}
	list, err := explore(sim.AllWorlds())
	if err != nil {
		return err
	}
	strict, err := compare(sim.AllStrict())
	if err != nil {
		return err
	}
	fmt.Printf("%.0f s in all\n", time.Since(start).Seconds())
	if o.seeds >= counted && len(missing)+len(wrong) > 0 {
		return errors.New("a fault met no step that it could have met, or one that it could not: mend the simulation, or its list of reasons (internal/sim/cover.go)")
	}
	if o.page == "" {
		return nil
	}
	text := fmt.Sprintf("Last run: %s, %s, %s. %s.\n\n%s. %s.\n\n### Faults and steps\n\nHow often each fault met a worker at each step, over the seeds:\n\n%s\n### Small worlds\n\n%s\n### What is left out\n\n%s",
		time.Now().UTC().Format("2006-01-02 15:04 MST"), commit(), runtime.Version(), fmt.Sprintf("%.0f s in all", time.Since(start).Seconds()),
		line, aimedLine, seen.String(), sim.Table(list), strict)
	return write(o.page, text)
}

// broken prints the first seed that failed, made as small as it goes, and how it
// is run again.
func broken(o *sim.Outcome) bool {
	if len(o.Failed) == 0 {
		return false
	}
	f := o.Failed[0]
	again := fmt.Sprintf("make sim SEED=%d", f.Seed)
	if f.Params.Aim.On {
		again += fmt.Sprintf(" AIM=%q", f.Params.Aim)
	}
	fmt.Printf("%s\nseed %d: %v\n\nThe same rule broken in a smaller world:\n%s\nThe seed itself again: %s\n",
		o.Kinds(), f.Seed, f.Violation, sim.Transcript(sim.Shrink(f.Params, f.Violation.Rule)), again)
	return true
}

// explore goes through all schedules of each world and prints the table.
func explore(worlds []*sim.Small) ([]sim.Exploration, error) {
	var list []sim.Exploration
	var bad error
	for _, s := range worlds {
		e := sim.Explore(s, runtime.GOMAXPROCS(0), mostStates, false)
		list = append(list, e)
		fmt.Printf("%-32s %8d states, %4.0f s\n", s.Name, e.States, e.Took.Seconds())
		switch {
		case len(e.Broken) > 0:
			fmt.Println(sim.Shortest(s, e).Transcript(s))
			bad = errBroken
		case !e.Complete:
			bad = fmt.Errorf("%s: not complete after %d states: a world that is listed must be", s, e.States)
		}
		debug.FreeOSMemory()
	}
	fmt.Println(sim.Table(list))
	return list, bad
}

// compare explores worlds as they are and with nothing left out.
func compare(worlds []*sim.Small) (string, error) {
	var list []sim.Comparison
	var bad error
	for _, s := range worlds {
		c := sim.Compare(s, runtime.GOMAXPROCS(0), mostStates)
		list = append(list, c)
		for _, d := range c.Differ {
			bad = fmt.Errorf("%s: what is left out of a state matters: %s", s, d)
			fmt.Println(bad)
		}
		debug.FreeOSMemory()
	}
	fmt.Println(sim.Comparisons(list))
	return sim.Comparisons(list), bad
}

func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown commit"
	}
	return "commit " + strings.TrimSpace(string(out))
}

var marks = regexp.MustCompile(`(?s)(<!-- run -->\n).*(<!-- end -->)`)

// write puts text between the marks of a page.
func write(page, text string) error {
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if !marks.Match(b) {
		return fmt.Errorf("%s: there are no marks <!-- run --> and <!-- end -->", page)
	}
	// Not as a template: a text may hold dollars.
	out := marks.ReplaceAllFunc(b, func([]byte) []byte { return []byte("<!-- run -->\n" + text + "<!-- end -->") })
	return os.WriteFile(page, out, 0o644) //nolint:gosec // a page of the repository
}
