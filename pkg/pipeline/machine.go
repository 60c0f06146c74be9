// Package pipeline drives one partition through the protocol: a pure step
// machine decides, a shell runs its effects.
//
// The machine has no goroutine, clock or I/O: Step takes the server time and an
// event and returns effects. Two lanes run side by side: the main lane takes
// one batch from its claim to its acknowledgement, the gate lane settles the
// duplicates of batches that are inserted but not yet committed past. A lane
// awaits one answer at a time.
//
// What the machine does not promise: that a record is decoded alike by two
// versions of a decoder (the digest tells when it was not), and anything about
// a table that others write without going through the dedup domain.
package pipeline

import (
	"fmt"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// Config is what a machine must know beside its events.
type Config struct {
	Group    string
	Source   batcher.Source
	Topic    string        // its name, for people
	Table    [16]byte      // UUID of the target table
	Deadline int64         // D, milliseconds
	Horizon  int64         // how long a claim is remembered, milliseconds
	Views    bool          // the table has dependent views
	Metadata int           // offset.metadata.max.bytes
	Parts    int           // L, the most table partitions of one piece; 0: not partitioned
	Conflict bool          // on_conflict: stop
	Nonce    func() uint32 // never 0, never twice the same in a row
	Stem     string        // query id stem of this group and source
	StemOf   func(dedup.Owner) string
}

// lateMost is how many late rows one intent entry lists; their offsets take
// about two bytes each of the metadata.
const lateMost = 128

// Waits of the gate, in milliseconds.
const (
	gateFirst = 20   // between the first two questions
	gateMost  = 1000 // between later ones
	readAfter = 500  // how long a closed gate waits before the key is read in ClickHouse
)

// Machine is the protocol for one partition. It is not safe for concurrent use.
type Machine struct {
	cfg Config

	started   bool
	halted    *Halt
	stopping  *Halt // it waits for a last commit
	waitsFor  string
	committed int64 // what the broker has, -1 before the first commit
	intent    bool  // the broker's metadata holds a non-empty intent
	next      int64 // first offset of the next batch
	plan      []offsets.Entry
	passed    int64 // the group had committed past what is below, before its offset was moved back
	parts     int   // L that sets are cut by: the intent's while one is listed
	end       int64 // of the log at the assignment: earlier lives claimed below it
	late      []*lateSet

	lo      int64        // start of the acked run
	hi      int64        // end of it: everything below is inserted, held or not
	ticket  dedup.Ticket // of the latest claims, for publishing at idle
	acked   dedup.Run    // as read at the assignment, before F3
	ackedAt dedup.Ticket
	shared  bool // hi was published to every group

	job  *job
	held []*Batch // inserted, not committed past; oldest first
	gate gateLane

	pending       int64 // offset and kind of the commit under way
	pendingIntent bool
	idlePhase     phase

	mainRef, gateRef uint32 // what each lane awaits; 0: nothing
	seq              uint32
	out              []Effect
	now              int64
	seen             dedup.Seen
	rows             []int32 // scratch
}

// lateSet is a set of rows that became ours after their batch was inserted.
type lateSet struct {
	rows    []Row
	entry   *offsets.Entry // from the intent; nil: claimed in this life
	nonce   uint32
	claimed int64 // server time at which the claim left
	replied int64
	ticket  dedup.Ticket
	mine    bool // some claim was there before: earlier attempts must be over
}

// NewMachine makes the machine of one partition for one assignment.
func NewMachine(cfg Config) *Machine {
	return &Machine{cfg: cfg, committed: -1, parts: cfg.Parts}
}

// Step takes one event at server time now (milliseconds) and returns what is
// to be done. The slice is valid until the next Step.
func (m *Machine) Step(now int64, ev Event) []Effect {
	m.out = m.out[:0]
	m.now = now
	if m.halted != nil {
		return nil
	}
	if m.stopping != nil {
		m.stop(ev)
		return m.out
	}
	switch e := ev.(type) {
	case Assigned:
		m.assigned(e)
	case Cut:
		m.startBatch(e.Batch)
	case Idle:
		m.idle()
	case Again:
		if m.quiet() && m.committed >= 0 {
			m.commit(m.committed, phaseCommitIdle)
		}
	case Broken:
		m.halt(e.Reason, e.Cure)
	default:
		m.answer(ev)
	}
	if m.halted == nil {
		m.turnGate()
		m.turnLate()
	}
	return m.out
}

func (m *Machine) answer(ev Event) {
	ref, lane := refOf(ev)
	if lane == LaneMain {
		if ref != m.mainRef || ref == 0 {
			return
		}
		m.mainRef = 0
		m.mainAnswer(ev)
		return
	}
	if ref != m.gateRef || ref == 0 {
		return
	}
	m.gateRef = 0
	m.gateAnswer(ev)
}

func refOf(ev Event) (uint32, Lane) {
	var r Ref
	switch e := ev.(type) {
	case AckedRun:
		r = e.Ref
	case Done:
		r = e.Ref
	case Claimed:
		r = e.Ref
	case Refused:
		r = e.Ref
	case Inserted:
		r = e.Ref
	case Facts:
		r = e.Ref
	case Found:
		r = e.Ref
	case Isolated:
		r = e.Ref
	case GateAnswers:
		r = e.Ref
	case OwnersGone:
		r = e.Ref
	}
	return r.Seq, r.Lane
}

func (m *Machine) emit(e Effect) { m.out = append(m.out, e) }

func (m *Machine) mainCall() Ref {
	m.seq++
	m.mainRef = m.seq
	return Ref{LaneMain, m.seq}
}

func (m *Machine) gateCall() Ref {
	m.seq++
	m.gateRef = m.seq
	return Ref{LaneGate, m.seq}
}

func (m *Machine) halt(reason, cure string) {
	h := Halt{Reason: reason, Cure: cure}
	if m.started && m.mainRef == 0 && m.stopping == nil && m.safeOffset() > m.committed {
		// What is settled needs no second look after the cure.
		m.gateRef = 0
		m.stopping = &h
		m.commit(m.safeOffset(), phaseNone)
		return
	}
	m.mainRef, m.gateRef = 0, 0
	m.halted = &h
	m.emit(h)
}

// stop waits for the last commit of a partition that is about to stop.
func (m *Machine) stop(ev Event) {
	switch e := ev.(type) {
	case Done:
		if e.Lane != LaneMain || e.Seq != m.mainRef {
			return
		}
		m.committedTo()
	case Broken:
	default:
		return
	}
	m.mainRef = 0
	m.halted = m.stopping
	m.emit(*m.stopping)
}

// waits tells the reason once a change.
func (m *Machine) waits(reason string) {
	if m.waitsFor != reason {
		m.waitsFor = reason
		m.emit(Waits{reason})
	}
}

// quiet: nothing is under way in the main lane.
func (m *Machine) quiet() bool {
	return m.started && m.halted == nil && m.stopping == nil && m.job == nil && m.mainRef == 0
}

// Ready tells whether the machine takes a batch now.
func (m *Machine) Ready() bool {
	return m.quiet() && len(m.late) == 0 && m.room()
}

// Halted returns why the partition is stopped, nil while it is not.
func (m *Machine) Halted() *Halt { return m.halted }

// WantFrom says how a batch that starts at first is to be cut. A range that an
// intent lists is cut as it was, what lies between two of them ends before the
// next one.
func (m *Machine) WantFrom(first int64) batcher.Want {
	for i := range m.plan {
		e := &m.plan[i]
		if e.Late != nil || e.Range.Last < first {
			continue
		}
		if e.Range.First <= first {
			return batcher.Want{First: first, Last: e.Range.Last, Exact: true}
		}
		return batcher.Want{First: first, Last: e.Range.First - 1}
	}
	return batcher.Want{First: first, Last: -1}
}

// uncommitted: something is settled that a commit would move past, or tell.
func (m *Machine) uncommitted() bool {
	offset := m.safeOffset()
	return offset > m.committed || m.intent && offset == m.next
}

// Position is what people see of a machine: the committed offset, the next one
// to be cut and the number of batches held back by the gate.
func (m *Machine) Position() (committed, next int64, held int) {
	return m.committed, m.next, len(m.held)
}

func (m *Machine) assigned(e Assigned) {
	m.committed = e.Committed
	if m.committed < 0 {
		m.committed = 0
	}
	m.next, m.end = m.committed, e.End
	m.lo, m.hi = m.next, m.next
	if e.Intent != nil {
		m.intent = len(e.Intent.Entries) > 0
		m.passed = e.Intent.Passed
		if m.intent {
			m.parts = e.Intent.MaxPartitions
		}
		m.plan = append(m.plan, e.Intent.Entries...)
		for _, p := range m.plan {
			if len(p.Tables) > 0 && p.Tables[0].Table != m.cfg.Table {
				continue // F: another table: its rows are claimed afresh and read in the new one
			}
			if p.Range.First < m.committed {
				m.halt(fmt.Sprintf("the intent lists %s, which is below the committed offset %d", p.Range, m.committed),
					"the committed offset was moved by hand without dropping its intent: `sink offsets resolve` shows the choices")
				return
			}
		}
	}
	m.emit(ReadAcked{m.mainCall()})
}

// entryOf is the intent's entry for exactly this range, nil when there is none
// or it was meant for another table.
func (m *Machine) entryOf(r batcher.Range) *offsets.Entry {
	for i := range m.plan {
		e := &m.plan[i]
		if e.Late == nil && e.Range == r && len(e.Tables) > 0 && e.Tables[0].Table == m.cfg.Table {
			return e
		}
	}
	return nil
}

// lateEntry names the late entry of the intent that lists the offset.
func (m *Machine) lateEntry(offset int64) *offsets.Entry {
	for i := range m.plan {
		e := &m.plan[i]
		if e.Late == nil || len(e.Tables) == 0 || e.Tables[0].Table != m.cfg.Table {
			continue
		}
		for _, o := range e.Late {
			if o == offset {
				return e
			}
		}
	}
	return nil
}
