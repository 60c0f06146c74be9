package sim

import (
	"math/rand/v2"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

// A chooser makes every choice of a run: a seed's, or one of all there are.
type chooser interface {
	pick(n int) int          // which of n, all of which matter
	below(n int64) int64     // how long something takes, or how much there is
	soon() int64             // how long a step takes
	chance(percent int) bool // whether something happens that makes runs more alike life
	either(percent int) bool // the same, where both ways matter
	meets() bool             // whether a request meets a fault that is there for it
}

// bySeed chooses at random.
type bySeed struct{ *rand.Rand }

func (r bySeed) pick(n int) int          { return r.IntN(n) }
func (r bySeed) below(n int64) int64     { return r.Int64N(n) }
func (r bySeed) chance(percent int) bool { return r.IntN(100) < percent }
func (r bySeed) either(percent int) bool { return r.IntN(100) < percent }
func (r bySeed) meets() bool             { return r.IntN(12) == 0 }

// soon is a short delay: most steps take milliseconds, a few much longer.
func (r bySeed) soon() int64 {
	switch r.IntN(20) {
	case 0:
		return r.Int64N(1500)
	case 1, 2:
		return r.Int64N(150)
	}
	return r.Int64N(8)
}

func (w *world) pick(n int) int          { return w.choose.pick(n) }
func (w *world) below(n int64) int64     { return w.choose.below(n) }
func (w *world) soon() int64             { return w.choose.soon() }
func (w *world) chance(percent int) bool { return w.choose.chance(percent) }
func (w *world) either(percent int) bool { return w.choose.either(percent) }

// after plans something that takes so long.
func (w *world) after(ms int64, t *task) {
	t.due = w.now + ms
	w.tasks = append(w.tasks, t)
}

// local plans a step that a process, or a server, takes by itself: nobody else
// can see whether it has been taken yet. Where all schedules are explored it is
// taken at once, for between the two nothing can happen that could not as well
// have happened before.
func (w *world) local(ms int64, t *task) {
	switch {
	case w.small == nil || w.small.Strict:
		w.after(ms, t)
	case t.asleep():
		w.after(0, t)
	case !t.idle():
		t.run()
	}
}

// within plans something that may happen at any time up to limit. A seed takes
// it to happen after ms.
func (w *world) within(ms, limit int64, t *task) {
	w.after(ms, t)
	if w.small != nil {
		t.due, t.loose, t.last = w.now, true, w.now+limit
	}
}

// lasting is for how long a condition lasts, and ends by itself.
func (w *world) lasting(what string, ms int64, end *int64) int64 {
	if w.small == nil {
		return w.now + ms
	}
	w.within(0, loosely, &task{kind: "it passes", what: what, run: func() { *end = 0 }})
	return never
}

// dead: it will never happen.
func (t *task) dead() bool {
	return t.worker != nil && t.worker.gone || t.proc != nil && !t.proc.alive
}

// asleep: it can't happen while its process is paused.
func (t *task) asleep() bool {
	return t.worker != nil && t.worker.proc.paused || t.proc != nil && t.proc.paused
}

// vain: a question whose answer nobody awaits any more, and that changes nothing.
func (t *task) vain() bool {
	var rq *request
	switch x := t.what.(type) {
	case *request:
		rq = x
	case *asked:
		return t.from != nil && t.from.gone
	default:
		return false
	}
	if !rq.over && !rq.wk.gone {
		return false
	}
	what := rq.what
	if s, ok := what.(*sent); ok {
		what = s.e
	}
	switch what.(type) {
	case pipeline.ReadAcked, pipeline.AskGate, *pipeline.Read, *pipeline.Isolate, *pipeline.AskOwners, *pipeline.AwaitOver, *asked:
		return true
	}
	return false
}

// idle: it will never happen, or would do nothing.
func (t *task) idle() bool { return t.dead() || t.void != nil && t.void() }
