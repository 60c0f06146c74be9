package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// worker runs the machine of one partition for one assignment. Its goroutine
// is the only one that touches the machine, the batches and their columns,
// except that an effect under way may read the columns of its set.
type worker struct {
	shell     *Shell
	target    *Target
	topic     string
	partition int32
	source    batcher.Source
	lease     offsets.Lease
	pool      *blockPool
	machine   *Machine

	ctx     context.Context // ends at revoke, loss or hard stop
	cancel  context.CancelCauseFunc
	done    chan struct{}
	effects sync.WaitGroup

	inbox   chan Event
	arrived chan struct{}
	softly  chan struct{} // closed: finish what is under way, then end

	mu       sync.Mutex
	queue    []*kgo.Record
	buffered atomic.Int64 // bytes of queued, filling and held records
	exact    atomic.Int64 // of these, bytes taken into a range that must be cut exactly
	pausing  sync.Mutex   // held to change paused
	paused   atomic.Bool

	fill     *filling
	spare    []*kgo.Record // taken from queue; those from next on are not yet decoded
	next     int
	flush    int64 // drain: cut without waiting once this offset is reached; -1: never
	limits   batcher.Limits
	epoch    int32 // leader epoch of the last record taken
	lastDone time.Time

	reader *reader
	keep   []bool
	items  []dedup.Item // of the main lane's claim under way
	usual  int          // records of a batch, to begin with
	idle   []*material  // for reuse

	committed atomic.Int64
	halted    atomic.Bool
	reason    atomic.Pointer[Halt]
	waits     string // why the machine does
	lacks     string // why no batch can be begun

	turns   turns         // of the target's store
	turn    chan struct{} // gets one when the worker's turn has come
	inLine  bool
	hasTurn bool

	pace    batcher.Pace
	claimed atomic.Pointer[claimTime] // the last claim, not yet taken into account

	startedFresh bool // no committed offset
	gated        bool
	closedBy     atomic.Pointer[string] // what its gate waits for, while it does
	fetchFails   atomic.Bool
	shown        bool // that it has taken its partition over
}

type claimTime struct {
	rows int
	took time.Duration
}

// wall is local time in milliseconds, for ages; deadlines use server time.
func (w *worker) wall() int64 { return w.shell.clock().UnixMilli() }

// serverNow is the servers' time in milliseconds, on the side that makes a
// deadline come sooner.
func (w *worker) serverNow() int64 { return w.target.Clock.Now().UnixMilli() }

func (w *worker) run() {
	defer close(w.done)
	defer w.effects.Wait()
	defer w.dropAll()
	select {
	case <-w.shell.running: // the client may assign before there is a committer
	case <-w.ctx.Done():
		return
	}
	committed, err := w.lease.Committed(w.ctx)
	if err != nil {
		if w.ctx.Err() == nil && !errors.Is(err, offsets.ErrFenced) {
			w.step(Broken{Reason: err.Error(), Cure: "grant READ on the group, then start the sink again"})
			w.drainUntilGone()
		}
		return
	}
	if !w.begin(committed) {
		w.drainUntilGone()
		return
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	softly := w.softly
	for {
		wake := w.feed()
		if wake > 0 {
			timer.Reset(time.Duration(wake) * time.Millisecond)
		}
		if softly == nil && w.finished() {
			return
		}
		select {
		case <-w.ctx.Done():
			return
		case ev := <-w.inbox:
			if u, ok := ev.(unreadable); ok {
				ev = Broken{Reason: fmt.Sprintf("consume %s/%d behind the committed offset %d: %s", w.topic, w.partition, w.committed.Load(), u.text), Cure: u.cure}
			}
			w.step(ev)
		case <-w.arrived:
			if w.fetchFails.Swap(false) {
				w.tellState()
			}
		case <-w.turn:
			w.inLine, w.hasTurn = false, true
		case <-timer.C:
		case <-softly:
			softly = nil
		}
	}
}

// unreadable tells a worker that the next offset is not in the log. It alone
// knows where it stands: Kafka may say so before the committed offset is read.
type unreadable struct{ text, cure string }

func (unreadable) event() {}

// drainUntilGone: a stopped partition keeps nothing and waits to be taken away.
// It hears whatever the poll loop has to tell, which would wait for it otherwise
// and fetch for nobody.
func (w *worker) drainUntilGone() {
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.softly:
			return
		case <-w.inbox:
		case <-w.arrived:
			w.dropQueue()
		}
	}
}

// finished: nothing is under way that a soft stop should wait for. A closed
// gate or an unknown outcome is left to the next owner.
func (w *worker) finished() bool {
	return w.machine.Halted() != nil || w.machine.quiet() && !w.machine.uncommitted()
}

func (w *worker) step(ev Event) {
	effects := w.machine.Step(w.serverNow(), ev)
	if w.machine.started && !w.shown {
		// Told before the effects begin, which may tell of waits. A partition with
		// nothing to read would otherwise never be heard of again.
		w.shown = true
		w.tellState()
	}
	for _, e := range effects {
		w.perform(e)
	}
	committed, next, held := w.machine.Position()
	w.committed.Store(committed)
	w.shell.events.Position(w.topic, w.partition, committed, next, held, int(w.buffered.Load()))
	w.tellGate(held)
}

// tellGate shows a gate that stays closed for longer than a moment.
func (w *worker) tellGate(held int) {
	if w.halted.Load() {
		return // what is shown is why it stopped
	}
	gated := false
	if held > 0 && w.waits == "" {
		if r, offset, owner, closed := w.machine.ClosedBy(); closed {
			gated = true
			reason := fmt.Sprintf("the offset stays before %s: record %d is a duplicate of %s, whose row is not settled yet", r, offset, owner.Owner)
			w.closedBy.Store(&reason)
			w.shell.events.State(w.topic, w.partition, Gated, reason, "")
		}
	}
	if w.gated && !gated {
		w.closedBy.Store(nil)
		w.tellState()
	}
	w.gated = gated
}

// feed decodes what has arrived, cuts when it is time, and lets an idle
// machine commit. It returns when to look again, in milliseconds; 0: only when
// something happens.
func (w *worker) feed() (wake int64) {
	for {
		if w.machine.Halted() != nil {
			w.halted.Store(true)
			w.dropQueue()
			return 0
		}
		stopping := w.stopping()
		d := w.fillUp(stopping)
		if d.Cut && w.machine.Ready() && !stopping && w.mayClaim() {
			w.cut()
			continue
		}
		// Not kept for later: what this partition waits for may be another one's
		// claim, which waits for the turn.
		w.passTurn()
		// A full batch that finds no room waits for the gate: what the gate has
		// settled must be committed, or room never comes back.
		if w.machine.quiet() && (!d.Cut || stopping || !w.machine.Ready()) {
			before := w.machine.seq
			w.step(Idle{})
			if w.machine.seq == before && w.shell.clock().Sub(w.lastDone) > idleAgain {
				w.lastDone = w.shell.clock()
				w.step(Again{})
			}
		}
		if d.WakeMs > 0 {
			return max(d.WakeMs-w.wall(), 1)
		}
		return idleAgain.Milliseconds()
	}
}

// idleAgain is how often an idle partition commits again (F9): a delayed
// commit that landed late is overwritten, and offsets do not expire.
const idleAgain = 5 * time.Minute

func (w *worker) stopping() bool {
	select {
	case <-w.softly:
		return true
	default:
		return false
	}
}

// fillUp moves records from the queue into the batch being put together.
func (w *worker) fillUp(stopping bool) batcher.Decision {
	if w.fill == nil {
		if stopping {
			return batcher.Decision{}
		}
		if !w.openFilling() {
			return batcher.Decision{WakeMs: w.wall() + 100}
		}
	}
	f := w.fill
	if c := w.claimed.Swap(nil); c != nil {
		w.pace = w.pace.Took(c.rows, c.took.Milliseconds(), w.target.Deadline.Milliseconds())
		w.limits.MaxRows = w.pace.Rows()
	}
	now := w.wall()
	for n := 1; ; n++ {
		if n%clockEvery == 0 {
			now = w.wall()
		}
		d := w.limits.Decide(f.want, f.state, now, w.flush >= 0 && f.state.Next >= w.flush)
		if d.Full || stopping {
			return d
		}
		r := w.nextRecord()
		if r == nil {
			return d
		}
		if r.Offset < f.state.Next {
			w.discard(r) // fetched again from a position before ours
			continue
		}
		if !f.want.Takes(r.Offset) {
			w.next--
			f.state.Beyond = true
			continue
		}
		w.epoch = r.LeaderEpoch
		w.take(f, r, now)
	}
}

// clockEvery is the number of records after which the clock is read again: a
// few microseconds of decoding.
const clockEvery = 64

// openFilling starts the next batch where the last one ended.
func (w *worker) openFilling() bool {
	if !w.machine.started {
		return false
	}
	next := w.fillNext()
	if !w.peek() {
		if last := w.machine.WantFrom(next).Last; last < next || last < 0 {
			return false // nothing there, and nothing to complete
		}
	}
	block, err := w.pool.get(w.ctx)
	if err != nil {
		w.tellWaiting("evaluate the DEFAULT expressions of the columns: " + err.Error())
		return false
	}
	w.tellWaiting("")
	w.fill = &filling{
		batch: &Batch{Records: make([]Record, 0, w.usual)},
		mat:   w.newMaterial(block),
		want:  w.machine.WantFrom(next),
		state: batcher.Filling{Next: next},
	}
	return true
}

// fillNext is where the next batch starts: behind the one under way.
func (w *worker) fillNext() int64 {
	if j := w.machine.job; j != nil && j.batch != nil {
		return j.batch.Range.Next()
	}
	return w.machine.next
}

// cut hands the batch to the machine.
func (w *worker) cut() {
	f := w.fill
	w.fill = nil
	w.exact.Store(0)
	f.batch.Range = f.want.Range(f.state)
	f.batch.Data = f.mat
	w.shell.events.Consumed(w.topic, w.partition, len(f.batch.Records))
	w.usual = len(f.batch.Records) + len(f.batch.Records)/8
	w.step(Cut{f.batch})
	w.passTurn() // nothing was to be claimed
}

// dropAll gives up everything that is not committed past; effects are over.
func (w *worker) dropAll() {
	w.effects.Wait()
	w.leaveLine()
	w.dropQueue()
}

// perform runs one effect; what takes time runs in a goroutine of its own,
// which ends before the worker does.
func (w *worker) perform(e Effect) {
	switch e := e.(type) {
	case Account:
		w.buffered.Add(-int64(w.release(e.Batch)))
		w.shell.events.Account(w.topic, w.partition, w.target.Table.String(), e.Counts)
		w.shell.events.Step(w.topic, w.partition, StepCommitted)
		w.shell.mayResume(w)
		return
	case Waits:
		w.waits = e.Reason
		w.tellState()
		return
	case Halt:
		h := e
		w.reason.Store(&h)
		w.halted.Store(true)
		w.shell.events.State(w.topic, w.partition, Stopped, e.Reason, e.Cure)
		return
	}
	_, claims := e.(Claim)
	turn := claims && w.hasTurn // goes over to the effect
	if turn {
		w.hasTurn = false
	}
	w.effects.Add(1)
	go func() {
		defer w.effects.Done()
		defer w.shell.guard(w)
		ev := w.do(e)
		if turn {
			<-w.turns
		}
		if ev == nil {
			return // the assignment is over
		}
		select {
		case w.inbox <- ev:
		case <-w.ctx.Done():
		}
	}()
}

// tellWaiting tells why no batch can be begun; "": it can again.
func (w *worker) tellWaiting(reason string) {
	if w.lacks != reason {
		w.lacks = reason
		w.tellState()
	}
}

func (w *worker) tellState() {
	switch {
	case w.halted.Load():
	case w.waits != "":
		w.shell.events.State(w.topic, w.partition, Waiting, w.waits, "")
	case w.lacks != "":
		w.shell.events.State(w.topic, w.partition, Waiting, w.lacks, "")
	default:
		w.shell.events.State(w.topic, w.partition, Running, "", "")
	}
}
