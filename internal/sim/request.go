package sim

import (
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// request is something that a worker asks of a server until it is answered.
type request struct {
	wk   *worker
	name string
	what any // the effect, and what else it goes by
	over bool
}

// request sends something to a server: it leaves the process, arrives, and is
// answered, each in a step of its own. The request or its answer may get lost,
// or the request may land late, after the client has repeated it; the client
// repeats until it is answered. What it goes by is the effect, or holds it.
func (wk *worker) request(name string, what any, up func() bool, apply func() (pipeline.Event, answer)) {
	w := wk.w
	rq := &request{wk: wk, name: name, what: what}
	_, step := stepOf(effectOf(what))
	var leave func()
	retry := func() { w.repeat(rq, leave) }
	arrive := func() {
		if up != nil && !up() {
			retry()
			return
		}
		ev, how := apply()
		if rq.over || wk.gone {
			return // an answer that nobody awaits
		}
		switch how {
		case again:
			retry()
			return
		case silent:
			return
		}
		if w.spend(faultLostReply, step) {
			w.logf("fault: the answer to %s of %s is lost", name, wk.name)
			retry()
			return
		}
		w.answer(rq, ev)
	}
	leave = func() {
		if rq.over {
			return
		}
		if w.spend(faultLateLanding, step) {
			late := w.below(4 * deadline)
			w.logf("fault: %s of %s is held back for %d ms and repeated meanwhile", name, wk.name, late)
			w.within(late, loosely, &task{kind: "lands late", what: rq, run: arrive})
			retry()
			return
		}
		w.after(w.soon(), &task{kind: "arrives", what: rq, from: wk, leave: leave, run: arrive})
	}
	w.local(w.below(3), &task{worker: wk, kind: "leaves", what: rq, run: leave})
}

// repeat has the client send once more, some time later.
func (w *world) repeat(rq *request, leave func()) {
	w.within(20+w.below(300), deadline+1, &task{worker: rq.wk, kind: "repeats", what: rq, void: func() bool { return rq.over }, run: leave})
}

// delivery is an answer on its way.
type delivery struct {
	rq *request
	ev pipeline.Event
}

func (w *world) answer(rq *request, ev pipeline.Event) {
	w.local(w.soon(), &task{worker: rq.wk, kind: "is answered", what: &delivery{rq, ev}, void: func() bool { return rq.over }, run: func() {
		if rq.over {
			return
		}
		rq.over = true
		rq.wk.step(ev)
	}})
}

// commission is a commit as it left: under which lease.
type commission struct {
	rq    *request
	lease lease
}

// commit sends the commit under the worker's lease of the moment it leaves.
func (wk *worker) commit(e pipeline.Commit) {
	w := wk.w
	meta := ""
	in := *e.Intent
	if w.small == nil && wk.proc.client.s != nil {
		in.Epochs = wk.proc.client.s.Known()
	}
	if !in.Empty() || len(in.Epochs) > 0 {
		text, err := in.Encode()
		if err != nil {
			w.fail("panic", "the intent can't be written: %v", err)
		}
		if len(text) > w.p.Metadata {
			w.fail("R", "%s: an intent of %d bytes does not fit %d", wk.name, len(text), w.p.Metadata)
		}
		meta = text
	}
	if e.Offset < wk.floor {
		w.fail("F5", "%s commits %d below its own %d", wk.name, e.Offset, wk.floor)
	}
	wk.floor = e.Offset
	rq := &request{wk: wk, name: "Commit", what: &e}
	_, step := stepOf(e)
	var leave func()
	retry := func() { w.repeat(rq, leave) }
	leave = func() {
		if rq.over {
			return
		}
		l := wk.lease
		if w.p.Break.CurrentGeneration {
			l = lease{wk.proc.member, wk.proc.generation}
		}
		arrive := func() {
			ok := w.kafka.commit(wk.proc.group, l, wk.part, e.Offset, meta, wk.name)
			if rq.over || wk.gone {
				return
			}
			if !ok {
				if l != wk.lease || w.p.Break.CurrentGeneration {
					retry()
				}
				return // fenced: the assignment is over, its end is on the way
			}
			if w.spend(faultLostReply, step) {
				w.logf("fault: the answer to the commit of %s is lost", wk.name)
				retry()
				return
			}
			w.answer(rq, pipeline.Done{Ref: e.Ref})
		}
		if w.spend(faultLateCommit, step) {
			late := w.below(4 * deadline)
			w.logf("fault: the commit of %s (%d) is held back for %d ms and repeated meanwhile", wk.name, e.Offset, late)
			w.within(late, loosely, &task{kind: "lands late", what: &commission{rq, l}, run: arrive})
			retry()
			return
		}
		w.after(w.soon(), &task{kind: "arrives", what: &commission{rq, l}, from: wk, leave: leave, run: arrive})
	}
	w.local(w.below(3), &task{worker: wk, kind: "leaves", what: rq, run: leave})
}

// setBack: a delayed commit has taken the broker's record behind what this
// idle worker committed, so that it has to commit again (F9).
func (wk *worker) setBack() bool {
	committed, next, held := wk.m.Position()
	c := wk.proc.group.parts[wk.part]
	return held == 0 && next == committed && (c.offset < committed || c.open())
}
