// Package sim proves or breaks the protocol: it drives the real step machine of
// pkg/pipeline, one event at a time, over a simulated Kafka, dedup store and
// ClickHouse, under a seeded scheduler and virtual time. A seed replays to the
// last step.
//
// The three systems are not atomic with each other: every effect leaves its
// process, arrives, and is answered in steps of its own, and anything may
// happen in between. After each step that can break an invariant, it is checked.
//
// What it does not show: the shell of the machine (its goroutines, its clients
// and their buffers) and the wire formats, except the intent's codec and the
// tokens, which are the real ones.
package sim

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
)

// The deadline of an insert, and the units of everything else.
const (
	deadline = 5000 // D, ms
	horizon  = 1000 * deadline
	never    = 1 << 60
	loosely  = 2 * (deadline + 1) // how long what may happen at any time is waited for, where all schedules are explored
	day0     = 1_700_000_000_000
)

// Violation is a broken promise, with the schedule that led to it.
type Violation struct {
	Rule string // I1, I2, …, panic, stuck
	What string
}

func (v *Violation) Error() string { return v.Rule + ": " + v.What }

// task is something that happens at a later step: a request that arrives, an
// answer that is delivered, a process that comes back.
type task struct {
	due    int64
	worker *worker // it happens only while this worker lives and its process runs
	proc   *process
	run    func()

	// For the exploration of all schedules.
	kind  string // with what: all that run goes by
	what  any    // a pointer, or a value
	loose bool   // it may happen at any time between due and last
	last  int64
	void  func() bool // it would do nothing
	from  *worker     // a request on its way, and how it leaves once more
	leave func()
}

// world is one run.
type world struct {
	p      Params
	choose chooser
	small  *Small // nil: not explored, but by a seed
	now    int64
	step   int

	tasks    []*task
	kafka    *kafka
	store    *store
	house    *house
	procs    []*process
	budget   [faults]int
	left     int // of all faults, where all schedules are explored
	shuffles bool
	calm     bool
	nonces   uint32
	moved    int // counts what was settled
	movedAt  int64

	letters map[place]bool
	seen    Coverage

	tracing bool
	lines   []string
}

type place struct {
	part   int
	offset int64
}

// Result is what a run came to.
type Result struct {
	Violation *Violation
	Steps     int
	Halts     []string
	Trace     []string
	Seen      Coverage
}

// Run runs one world. With trace it keeps the schedule.
func Run(p Params, trace bool) (res Result) {
	w := &world{p: p, choose: bySeed{rand.New(rand.NewPCG(p.Seed, 0x0ce51))}, now: day0, tracing: trace, letters: map[place]bool{}}
	w.budget = p.Faults
	defer func() {
		if r := recover(); r != nil {
			res.Violation = w.violation(r)
		}
		res.Steps, res.Trace, res.Seen = w.step, w.lines, w.seen
	}()
	w.build()
	w.play()
	res.Halts = w.halts()
	return res
}

// violation is what a run panicked with.
func (w *world) violation(r any) *Violation {
	v, ok := r.(*Violation)
	if !ok {
		v = &Violation{"panic", fmt.Sprint(r) + stackOf()}
	}
	w.logf("VIOLATION %s", v.Error())
	return v
}

// stackOf keeps the frames of the machine.
func stackOf() string {
	var b strings.Builder
	lines := strings.Split(string(debug.Stack()), "\n")
	for _, l := range lines {
		if l = strings.TrimSpace(l); strings.Contains(l, "/pkg/pipeline/") || strings.Contains(l, "/internal/sim/") {
			l, _, _ = strings.Cut(l, " +0x")
			b.WriteString("\n    at " + l[strings.LastIndex(l, "/")+1:])
		}
	}
	return b.String()
}

func (w *world) fail(rule, format string, args ...any) {
	panic(&Violation{rule, fmt.Sprintf(format, args...)})
}

func (w *world) logf(format string, args ...any) {
	if w.tracing {
		w.lines = append(w.lines, fmt.Sprintf("%5d %8dms  ", w.step, w.now-day0)+fmt.Sprintf(format, args...))
	}
}

// play runs the world with faults until they are used up or it is time, then
// without until everything is settled.
func (w *world) play() {
	for w.step = 0; w.step < w.p.Steps; w.step++ {
		if w.aims() || w.pick(1000) < w.p.FaultRate && w.fault() {
			continue
		}
		if !w.turn() && w.done() {
			break
		}
	}
	w.calmDown()
	end, moved := w.step+patience, w.moved
	for ; w.step < end; w.step++ {
		if w.moved != moved {
			end, moved = w.step+patience, w.moved
		}
		if !w.turn() && w.done() {
			w.finalChecks()
			return
		}
		if w.step%64 == 0 && w.done() {
			w.finalChecks()
			return
		}
	}
	w.stuck()
}

// patience is how many steps without a fault may pass without a record or an
// offset that is settled.
const patience = 8_000

// turn does one step; false: nothing is left to do now.
func (w *world) turn() bool {
	var ready []int
	first := int64(-1)
	w.tasks = slices.DeleteFunc(w.tasks, (*task).dead)
	for i, t := range w.tasks {
		if t.asleep() {
			continue
		}
		if t.due <= w.now {
			ready = append(ready, i)
		} else if first < 0 || t.due < first {
			first = t.due
		}
	}
	if len(ready) == 0 {
		if first < 0 {
			return false
		}
		w.now = first
		return true
	}
	i := ready[w.pick(len(ready))]
	t := w.tasks[i]
	w.tasks = append(w.tasks[:i], w.tasks[i+1:]...)
	t.run()
	w.now += w.below(3)
	return true
}

// nonce is never 0 and never given twice.
func (w *world) nonce() uint32 {
	w.nonces++
	return w.nonces
}
