package sim

import (
	"fmt"
	"strings"
)

// stuck finds states from which, without another fault, nothing leads to an end.
func (x *explorer) stuck() []Broken {
	heads := make([]uint32, len(x.marks)+1) // the edges into each state, one state after the other
	for _, e := range x.edges {
		heads[uint32(e)]++
	}
	for i := range x.marks {
		heads[i+1] += heads[i]
	}
	into := make([]uint32, len(x.edges))
	for _, e := range x.edges {
		to := uint32(e)
		heads[to]--
		into[heads[to]] = uint32(e >> 32)
	}
	ends := make([]bool, len(x.marks))
	var list []uint32
	for i, m := range x.marks {
		if m&markDone != 0 {
			ends[i] = true
			list = append(list, uint32(i))
		}
	}
	for len(list) > 0 {
		s := list[len(list)-1]
		list = list[:len(list)-1]
		for _, from := range into[heads[s]:heads[s+1]] {
			if !ends[from] {
				ends[from] = true
				list = append(list, from)
			}
		}
	}
	for i, ok := range ends {
		if !ok {
			return []Broken{{&Violation{"stuck", "from here on, without another fault, nothing leads to an end"}, x.way(x.parents[i])}}
		}
	}
	return nil
}

// Replay goes a way again and writes it down.
func Replay(s *Small, way []byte) Result {
	x := &explorer{small: s}
	g := &goer{x: x, way: way}
	w := newSmallWorld(s, g, true)
	var broken *Violation
	func() {
		defer func() {
			if r := recover(); r != nil {
				broken = w.violation(r)
			}
		}()
		w.begin()
		for len(g.taken) < len(way) {
			moves := w.moves()
			w.make(moves[g.pick(len(moves))])
		}
		for _, h := range w.halts() {
			w.justified(h)
		}
		if w.done() {
			w.finalChecks()
		}
	}()
	return Result{Violation: broken, Steps: w.step, Trace: w.lines, Halts: w.halts(), Seen: w.seen}
}

func newSmallWorld(s *Small, c chooser, trace bool) *world {
	return &world{p: s.params(), choose: c, small: s, now: day0, movedAt: day0, tracing: trace, letters: map[place]bool{}}
}

// Table is a line a world, then what the worlds are.
func Table(list []Exploration) string {
	var b, legend strings.Builder
	b.WriteString("| world | states | transitions | depth | ends | with a stop | violations | complete | seconds |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, e := range list {
		complete := "yes"
		if !e.Complete {
			complete = "no"
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %s | %.1f |\n",
			e.World.Name, e.States, e.Transitions, e.Depth, e.Ends, e.Stopped, len(e.Broken), complete, e.Took.Seconds())
		fmt.Fprintf(&legend, "- %s\n", e.World)
	}
	return b.String() + "\n" + legend.String()
}

// Shortest looks for the shortest way to a violation of the same world, and
// takes the shortest that e has where it finds none.
func Shortest(s *Small, e Exploration) Broken {
	b := e.Broken[0]
	if again := Explore(s, 1, e.States+100_000, true); len(again.Broken) > 0 && len(again.Broken[0].Way) < len(b.Way) {
		b = again.Broken[0]
	}
	return b
}

// Transcript writes the way down, and how it is gone again.
func (b Broken) Transcript(s *Small) string {
	return fmt.Sprintf("%s\n%s\n%v\nAgain: make sim WORLD=%q WAY=%s\n", s, strings.Join(Replay(s, b.Way).Trace, "\n"), b.Violation, s.Name, WayText(b.Way))
}

const wayDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// WayText writes choices down, ParseWay reads them.
func WayText(way []byte) string {
	var b strings.Builder
	for _, c := range way {
		b.WriteByte(wayDigits[c])
	}
	return b.String()
}

// ParseWay reads what WayText wrote.
func ParseWay(text string) ([]byte, error) {
	way := make([]byte, len(text))
	for i, r := range text {
		c := strings.IndexRune(wayDigits, r)
		if c < 0 {
			return nil, fmt.Errorf("choice %d of the way is %q: want one of %s", i+1, r, wayDigits)
		}
		way[i] = byte(c)
	}
	return way, nil
}
