package sim

import (
	"fmt"
	"strings"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/pipeline"
	"github.com/oncesink/oncesink/pkg/writer"

	"github.com/oncesink/oncesink/pkg/dedup"
)

var tableID = [16]byte{0: 0xab, 15: 1}

// process is one sink process.
type process struct {
	w          *world
	name       string
	group      *group
	alive      bool
	paused     bool
	member     int // 0: not a member
	generation int32
	workers    []*worker // by partition
	skew       int64     // its estimate of the server clock is this much behind
	born       int
	client     *storeClient
}

// worker is one partition's machine for one assignment.
type worker struct {
	w       *world
	proc    *process
	part    int
	lease   lease
	m       *pipeline.Machine
	gone    bool
	fed     bool // a feed is planned
	halt    *pipeline.Halt
	waits   string
	at      string // what it did last, for the transcript
	doing   [2]at  // what each lane waits for, if it does
	counted int64  // accounted up to here
	floor   int64  // the highest offset this lease committed
	source  batcher.Source
	name    string
	told    string
}

// start brings a process up.
func (p *process) start() {
	if p.alive {
		return
	}
	p.alive, p.paused = true, false
	p.born++
	p.workers = make([]*worker, p.w.p.Partitions)
	p.skew = p.w.below(20)
	p.client = p.w.store.client(p)
	if p.w.budget[faultExchange] > 0 {
		p.watch(p.born)
	}
	born := p.born
	p.w.local(p.w.soon(), &task{proc: p, kind: "joins", run: func() {
		if p.born == born {
			p.w.kafka.leave(p) // the coordinator may not have missed its last life yet
			p.w.kafka.join(p)
		}
	}})
}

// watch is the client's: it asks the store so often that it can't miss one that
// has begun to answer claims.
func (p *process) watch(born int) {
	p.w.after(deadline/4, &task{proc: p, kind: "asks the store", run: func() {
		if p.born != born {
			return
		}
		if p.client.s != nil && p.w.now >= p.w.store.downTo {
			_, _ = p.client.s.Epochs(forever)
		}
		p.watch(born)
	}})
}

// crash ends a process at once. What it sent is on its way.
func (p *process) crash() {
	p.alive = false
	for _, wk := range p.workers {
		if wk != nil {
			wk.drop("crashed")
		}
	}
}

// assign starts a worker.
func (p *process) assign(part int) {
	w := p.w
	if !p.alive {
		return // it is gone, and the coordinator has not noticed yet
	}
	if old := p.workers[part]; old != nil && !w.p.Break.NoDrain {
		old.drop("assigned anew")
	}
	src := w.kafka.parts[part].source
	wk := &worker{w: w, proc: p, part: part, source: src, lease: lease{p.member, p.group.generation}, counted: -1, at: "assigned"}
	wk.name = fmt.Sprintf("%s/P%d", p.name, part)
	most := w.p.Most
	if p.born > 1 {
		most = w.p.MostAfter
	}
	stem := func(group string, s batcher.Source) string { return writer.Stem(tableID, group, s) }
	wk.m = pipeline.NewMachine(pipeline.Config{
		Group: p.group.name, Source: src, Table: tableID, Deadline: deadline, Views: w.p.Views > 0,
		Metadata: w.p.Metadata - offsets.EpochsMost(w.p.Groups), Horizon: horizon, Parts: most, Conflict: w.p.Stop, Nonce: w.nonce,
		Stem:   stem(p.group.name, src),
		StemOf: func(o dedup.Owner) string { return stem(o.Group, o.Source) },
	})
	p.workers[part] = wk
	w.logf("%s is assigned, generation %d", wk.name, p.group.generation)
	w.local(w.soon(), &task{worker: wk, kind: "fetches its offset", run: wk.fetchCommitted})
}

// began is what a worker begins with.
type began struct {
	offset int64
	intent *offsets.Intent
}

func (wk *worker) fetchCommitted() {
	w := wk.w
	c := wk.proc.group.parts[wk.part]
	offset, meta := c.offset, c.meta
	in, err := offsets.Decode(meta)
	if err != nil {
		w.fail("I4", "our own intent can't be read: %v", err)
	}
	if in != nil && wk.proc.client.s != nil {
		wk.proc.client.s.Learn(in.Epochs)
	}
	start, end := w.kafka.parts[wk.part].start, w.kafka.parts[wk.part].end
	w.local(w.soon(), &task{worker: wk, kind: "begins", what: &began{offset, in}, run: func() {
		if offset >= 0 && offset < start {
			wk.step(pipeline.Broken{Reason: "offsets are gone", Cure: "resolve"})
			return
		}
		if offset < 0 {
			offset = start
		}
		w.logf("%s starts at %d %s", wk.name, offset, intentText(meta))
		wk.counted, wk.floor = offset, offset
		wk.step(pipeline.Assigned{Committed: offset, Intent: in, End: end})
		wk.plan()
	}})
}

// drop ends a worker: whatever it waits for is abandoned.
func (wk *worker) drop(why string) {
	if wk.gone {
		return
	}
	wk.gone = true
	wk.proc.workers[wk.part] = nil
	wk.w.logf("%s ends: %s (at %s)", wk.name, why, wk.at)
	wk.w.house.abandon(wk)
}

// step gives the machine an event and does what it says.
func (wk *worker) step(ev pipeline.Event) {
	w := wk.w
	if w.tracing {
		w.logf("%s <- %s", wk.name, eventText(ev))
	}
	for _, e := range wk.m.Step(w.now-wk.proc.skew, ev) {
		wk.perform(e)
	}
	wk.plan()
}

// plan has the shell look soon whether a batch can be cut.
func (wk *worker) plan() {
	if wk.fed || wk.gone || wk.halt != nil {
		return
	}
	wk.fed = true
	wk.w.local(wk.w.soon(), &task{worker: wk, kind: "feeds", run: wk.feed})
}

// feed is the shell's: cut when it is time, else tell the machine it is idle.
func (wk *worker) feed() {
	w := wk.w
	wk.fed = false
	if wk.halt != nil {
		return
	}
	if wk.m.Ready() && !w.chance(15) {
		_, next, _ := wk.m.Position()
		if b := w.kafka.cut(wk, wk.m.WantFrom(next), w.most()); b != nil {
			w.logf("%s cuts %s: %s", wk.name, b.Range, w.recordsText(b))
			wk.step(pipeline.Cut{Batch: b})
			return
		}
	}
	effects := wk.m.Step(w.now-wk.proc.skew, pipeline.Idle{})
	if len(effects) == 0 && (w.chance(2) || w.small != nil && wk.setBack()) {
		effects = wk.m.Step(w.now-wk.proc.skew, pipeline.Again{})
	}
	for _, e := range effects {
		wk.perform(e)
	}
	if w.small != nil {
		return // woken by what changes
	}
	if !w.settledWorker(wk) || w.chance(20) {
		wk.fed = true
		w.after(20+w.below(200), &task{worker: wk, run: wk.feed})
	} else {
		wk.fed = true
		w.after(2000+w.below(20000), &task{worker: wk, run: wk.feed})
	}
}

// most is how many records the next batch may hold.
func (w *world) most() int {
	if w.small != nil && !w.small.Cuts {
		return w.p.MaxCut
	}
	return 1 + w.pick(w.p.MaxCut)
}

// perform starts one effect.
func (wk *worker) perform(e pipeline.Effect) {
	w := wk.w
	if w.tracing {
		w.logf("%s -> %s", wk.name, effectText(e))
	}
	switch e := e.(type) {
	case pipeline.Account:
		w.checkAccount(wk, e)
		return
	case pipeline.Waits:
		wk.waits = e.Reason
		return
	case pipeline.Halt:
		h := e
		wk.halt = &h
		wk.at = "halted"
		return
	}
	wk.at = strings.TrimPrefix(fmt.Sprintf("%T", e), "pipeline.")
	lane, step := stepOf(e)
	wk.doing[lane] = step
	switch e := e.(type) {
	case pipeline.ReadAcked, pipeline.StartRun, pipeline.Claim, pipeline.Renew, pipeline.Release, pipeline.Settle, pipeline.Publish, pipeline.AskGate, pipeline.TakeOver:
		wk.proc.client.do(wk, e)
	case pipeline.Commit:
		wk.commit(e)
	case pipeline.Insert:
		wk.insert(e)
	case pipeline.AwaitOver:
		wk.awaitOver(e)
	case pipeline.AskFacts:
		wk.askFacts(e)
	case pipeline.Read:
		wk.read(e)
	case pipeline.Isolate:
		wk.isolate(e)
	case pipeline.AskOwners:
		wk.request("AskOwners", &e, nil, func() (pipeline.Event, answer) {
			fates := make([]pipeline.Fate, len(e.Owners))
			for i, o := range e.Owners {
				fates[i] = w.kafka.fate(o.Group, o.Source, o.Offset)
			}
			return pipeline.OwnersGone{Ref: e.Ref, Fates: fates}, answered
		})
	case pipeline.DeadLetter:
		wk.request("DeadLetter", &e, nil, func() (pipeline.Event, answer) {
			for _, l := range e.Letters {
				o := l.Row.Batch.Records[l.Row.Index].Offset
				if !w.letters[place{wk.part, o}] {
					w.moved++
				}
				w.letters[place{wk.part, o}] = true
				w.logf("dead-letter topic has P%d@%d (%s)", wk.part, o, l.Class)
			}
			return pipeline.Done{Ref: e.Ref}, answered
		})
	case pipeline.Sleep:
		ms := e.Millis
		if w.small != nil {
			ms = max(ms, deadline+1) // a slow process sleeps in fewer steps
		}
		w.after(ms, &task{worker: wk, kind: "sleeps", what: &e, run: func() { wk.step(pipeline.Done{Ref: e.Ref}) }})
	default:
		w.fail("panic", "effect %T is not known to the simulation", e)
	}
}

// answer is the end of a request as the server sees it.
type answer uint8

const (
	answered answer = iota
	again           // not now: the client repeats
	silent          // never: the client's assignment is over
)
