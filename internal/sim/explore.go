package sim

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// tired: nothing was settled for so long, in virtual milliseconds, that nothing
// will be.
const tired = 200_000

// Exploration is what all schedules of a small world came to.
type Exploration struct {
	World       *Small
	States      int
	Transitions int
	Depth       int // steps of the longest way to a new state
	Ends        int // states in which everything is settled
	Stopped     int // states in which a partition is stopped (I4)
	Took        time.Duration
	Complete    bool // nothing is left unexplored
	Broken      []Broken
	Verdicts    map[string]int // what the ends, and the states with a stop, came to, and how many did
}

// Broken is a way to a broken promise.
type Broken struct {
	Violation *Violation
	Way       []byte // the choices
}

// Explore goes through all schedules of a small world, up to most states. It
// walks depth first, with so many walkers; shortest: breadth first with one
// walker, up to the first violation.
func Explore(s *Small, walkers, most int, shortest bool) Exploration {
	x := &explorer{small: s, most: most, shortest: shortest, ids: make([]shard, 64), verdicts: map[string]int{}}
	for i := range x.ids {
		x.ids[i].known = map[uint64]uint32{}
	}
	x.idle = sync.NewCond(&x.mu)
	x.todo = []branch{{from: noState}}
	start := time.Now()
	var wg sync.WaitGroup
	if shortest {
		walkers = 1
	}
	for range walkers {
		wg.Go(x.walk)
	}
	wg.Wait()
	e := Exploration{World: s, States: int(x.states.Load()), Transitions: int(x.transitions.Load()), Depth: x.depth,
		Complete: !x.stopped.Load(), Broken: x.broken, Verdicts: x.verdicts}
	for _, m := range x.marks {
		if m&markDone != 0 {
			e.Ends++
		}
		if m&markHalted != 0 {
			e.Stopped++
		}
	}
	if e.Complete && len(e.Broken) == 0 {
		e.Broken = x.stuck()
	}
	sort.Slice(e.Broken, func(i, j int) bool { return len(e.Broken[i].Way) < len(e.Broken[j].Way) })
	e.Took = time.Since(start)
	return e
}

const noState = ^uint32(0)

const (
	markDone   = 1 << iota // everything is settled, or waits for what is stopped
	markHalted             // a partition is stopped
)

// explorer is the search: the world is run again from its beginning for each
// branch, since what is under way in it can't be copied.
type explorer struct {
	small    *Small
	most     int
	shortest bool

	ids         []shard
	states      atomic.Int64
	transitions atomic.Int64
	stopped     atomic.Bool

	mu      sync.Mutex
	idle    *sync.Cond
	todo    []branch
	working int
	depth   int
	marks   []uint8
	parents []branch // the step that first came to a state
	edges   []uint64 // without those that take a fault: from<<32 | to
	broken  []Broken

	verdicts map[string]int
}

type shard struct {
	mu    sync.Mutex
	known map[uint64]uint32
}

// branch is a step of a world: the state that it leaves, and its choices. The
// way there is told by the step that first came to that state, and so on.
type branch struct {
	from    uint32
	n       uint8
	choices [mostChoices]byte
}

// mostChoices is how many choices one step may take.
const mostChoices = 11

func stepOn(from uint32, choices []byte) branch {
	b := branch{from: from, n: uint8(len(choices))} //nolint:gosec // checked by copy
	if copy(b.choices[:], choices) < len(choices) {
		panic(fmt.Sprintf("a step takes %d choices, there is room for %d", len(choices), mostChoices))
	}
	return b
}

// way lists all choices up to the end of a branch.
func (x *explorer) way(b branch) []byte {
	var steps []branch
	for ; ; b = x.parents[b.from] {
		steps = append(steps, b)
		if b.from == noState {
			break
		}
	}
	var way []byte
	for _, s := range slices.Backward(steps) {
		way = append(way, s.choices[:s.n]...)
	}
	return way
}

// id names a state; fresh: it was not known.
func (x *explorer) id(hash uint64) (id uint32, fresh bool) {
	s := &x.ids[hash%uint64(len(x.ids))]
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.known[hash]
	if !ok {
		id = uint32(x.states.Add(1) - 1)
		s.known[hash] = id
	}
	return id, !ok
}

func (x *explorer) next() (b branch, way []byte, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.todo) == 0 && x.working > 0 {
		x.idle.Wait()
	}
	if len(x.todo) == 0 || x.stopped.Load() {
		x.idle.Broadcast()
		return b, nil, false
	}
	if x.shortest {
		b, x.todo = x.todo[0], x.todo[1:]
	} else {
		b, x.todo = x.todo[len(x.todo)-1], x.todo[:len(x.todo)-1]
	}
	x.working++
	return b, x.way(b), true
}

func (x *explorer) walk() {
	hash := newStateHash()
	for {
		b, way, ok := x.next()
		if !ok {
			return
		}
		g := &goer{x: x, hash: hash, branch: b, way: way, at: b.from}
		g.run()
		x.mu.Lock()
		x.working--
		x.todo = append(x.todo, g.found...)
		x.edges = append(x.edges, g.edges...)
		x.depth = max(x.depth, g.depth)
		x.marks = grow(x.marks, int(x.states.Load()))
		x.parents = grow(x.parents, int(x.states.Load()))
		for _, s := range g.fresh {
			x.marks[s.id], x.parents[s.id] = s.marks, s.parent
			if s.verdict != "" {
				x.verdicts[s.verdict]++
			}
		}
		if g.violation != nil {
			x.broken = append(x.broken, Broken{g.violation, g.taken})
			x.stopped.Store(true)
		}
		if int(x.states.Load()) > x.most {
			x.stopped.Store(true)
		}
		x.idle.Broadcast()
		x.mu.Unlock()
	}
}

func grow[T any](s []T, n int) []T {
	for len(s) < n {
		var zero T
		s = append(s, zero)
	}
	return s
}

// goer goes one branch: back to where it begins, then on until a state that is
// known. It chooses for the world.
type goer struct {
	x      *explorer
	hash   *stateHash
	branch branch
	way    []byte // up to the end of the branch
	at     uint32 // the state that was left last
	taken  []byte
	step   int // choices before the step under way

	found     []branch
	edges     []uint64
	fresh     []freshState
	depth     int
	violation *Violation
}

type freshState struct {
	id      uint32
	marks   uint8
	parent  branch
	verdict string
}

func (g *goer) pick(n int) int {
	i := len(g.taken)
	if i < len(g.way) {
		g.taken = append(g.taken, g.way[i])
		return int(g.way[i])
	}
	g.taken = append(g.taken, 0)
	for c := n - 1; c > 0; c-- {
		g.taken[i] = byte(c)
		g.found = append(g.found, stepOn(g.at, g.taken[g.step:]))
	}
	g.taken[i] = 0
	return 0
}

// ways are those that lead on from here.
func (g *goer) ways(n int) []branch {
	var out []branch
	for c := range n {
		out = append(out, stepOn(g.at, []byte{byte(c)}))
	}
	return out
}

func (g *goer) below(int64) int64       { return 0 }
func (g *goer) soon() int64             { return 0 }
func (g *goer) chance(percent int) bool { return percent > 50 }
func (g *goer) either(int) bool         { return g.pick(2) == 1 }
func (g *goer) meets() bool             { return g.pick(2) == 1 }

func (g *goer) run() {
	w := newSmallWorld(g.x.small, g, false)
	defer func() {
		if r := recover(); r != nil {
			g.violation = w.violation(r)
		}
	}()
	w.begin()
	if g.branch.from == noState && !g.arrived(w, w.left) {
		return
	}
	for {
		moves := w.moves()
		if len(moves) == 0 {
			return
		}
		if g.x.shortest && len(g.taken) >= len(g.way) && g.at != g.branch.from {
			g.found = append(g.found, g.ways(len(moves))...) // each in its turn
			return
		}
		left := w.left
		g.step = len(g.taken)
		w.make(moves[g.pick(len(moves))])
		if len(g.taken) < len(g.way) {
			continue // still on the way back
		}
		g.x.transitions.Add(1)
		if !g.arrived(w, left) {
			return
		}
	}
}

// arrived looks at the state after a step; false: go no further.
func (g *goer) arrived(w *world, left int) bool {
	id, fresh := g.x.id(g.hash.of(w))
	if g.at != noState && w.left == left {
		g.edges = append(g.edges, uint64(g.at)<<32|uint64(id))
	}
	if !fresh {
		return false
	}
	s := freshState{id: id, parent: stepOn(g.at, g.taken[g.step:])}
	g.at = id
	g.depth = max(g.depth, w.step)
	halts := w.halts()
	if len(halts) > 0 {
		s.marks |= markHalted
		for _, h := range halts {
			w.justified(h)
		}
	}
	if w.settled(halts) {
		s.marks |= markDone
		s.verdict = w.verdict(halts)
		w.finalChecks()
	} else if w.nothingGoes() {
		w.fail("stuck", "no fault is under way and nothing is left to do, but not everything is settled: %s", w.unsettled())
	}
	g.fresh = append(g.fresh, s)
	if w.step > endless {
		w.fail("stuck", "it goes on for ever: %s", w.unsettled())
	}
	return !w.tired()
}

// verdict is what an end comes to for whoever reads the tables.
func (w *world) verdict(halts []string) string {
	var b strings.Builder
	for _, t := range w.house.targets() {
		fmt.Fprintf(&b, "%s", t.name)
		for _, rows := range t.rows {
			b.WriteString(" " + rowsText(rows))
		}
		b.WriteString("; ")
	}
	for _, g := range w.kafka.groups {
		for i, c := range g.parts {
			fmt.Fprintf(&b, "P%d %d %v; ", i, c.offset, c.meta != "")
		}
	}
	told := map[string]bool{} // what the servers hold of each insert that has ended
	for _, l := range w.house.log {
		if l.state == logRunning {
			continue
		}
		told[fmt.Sprintf("log %s %d", short(l.id[:strings.LastIndexByte(l.id, '/')]), l.state)] = true
	}
	for _, t := range w.house.targets() {
		for _, block := range t.window {
			told[t.name+" knows "+short(block.token)] = true
		}
	}
	fmt.Fprintf(&b, "%v; %d letters; %d faults left; %s", slices.Sorted(maps.Keys(told)), len(w.letters), w.left, strings.Join(halts, ", "))
	return b.String()
}

// endless: no way is that long.
const endless = 2000

// settled: everything is, or what is not waits for what is stopped.
func (w *world) settled(halts []string) bool {
	return w.done() || len(halts) > 0 && (w.tired() || w.nothingGoes())
}

func (w *world) tired() bool { return w.now-w.movedAt > tired }

// nothingGoes: no step is left but faults.
func (w *world) nothingGoes() bool {
	for _, t := range w.tasks {
		if !t.idle() && !t.asleep() {
			return false
		}
	}
	return true
}
