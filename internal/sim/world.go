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
	"strings"
)

// The deadline of an insert, and the units of everything else.
const (
	deadline = 5000 // D, ms
	horizon  = 1000 * deadline
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
}

// world is one run.
type world struct {
	p    Params
	rng  *rand.Rand
	now  int64
	step int

	tasks  []*task
	kafka  *kafka
	store  *store
	house  *house
	procs  []*process
	budget [faults]int
	calm   bool
	nonces uint32
	moved  int // counts what was settled

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
	w := &world{p: p, rng: rand.New(rand.NewPCG(p.Seed, 0x0ce51)), now: day0, tracing: trace, letters: map[place]bool{}}
	w.budget = p.Faults
	defer func() {
		if r := recover(); r != nil {
			v, ok := r.(*Violation)
			if !ok {
				v = &Violation{"panic", fmt.Sprint(r) + stackOf()}
			}
			w.logf("VIOLATION %s", v.Error())
			res.Violation = v
		}
		res.Steps, res.Trace, res.Seen = w.step, w.lines, w.seen
	}()
	w.build()
	w.play()
	res.Halts = w.halts()
	return res
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

// after plans something.
func (w *world) after(ms int64, t *task) {
	t.due = w.now + ms
	w.tasks = append(w.tasks, t)
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

// soon is a short delay: most steps take milliseconds, a few much longer.
func (w *world) soon() int64 {
	switch w.rng.IntN(20) {
	case 0:
		return w.rng.Int64N(1500)
	case 1, 2:
		return w.rng.Int64N(150)
	}
	return w.rng.Int64N(8)
}

// play runs the world with faults until they are used up or it is time, then
// without until everything is settled.
func (w *world) play() {
	for w.step = 0; w.step < w.p.Steps; w.step++ {
		if w.rng.IntN(1000) < w.p.FaultRate && w.fault() {
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
	keep := w.tasks[:0]
	for _, t := range w.tasks {
		if t.worker != nil && t.worker.gone || t.proc != nil && !t.proc.alive {
			continue
		}
		keep = append(keep, t)
	}
	for i := len(keep); i < len(w.tasks); i++ {
		w.tasks[i] = nil
	}
	w.tasks = keep
	for i, t := range w.tasks {
		if t.worker != nil && t.worker.proc.paused || t.proc != nil && t.proc.paused {
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
	i := ready[w.rng.IntN(len(ready))]
	t := w.tasks[i]
	w.tasks = append(w.tasks[:i], w.tasks[i+1:]...)
	t.run()
	w.now += w.rng.Int64N(3)
	return true
}

// nonce is never 0 and never given twice.
func (w *world) nonce() uint32 {
	w.nonces++
	return w.nonces
}
