package pipeline

import (
	"fmt"
	"math"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// phase is what the main lane awaits.
type phase uint8

const (
	phaseNone phase = iota
	phaseAcked
	phaseStartRun
	phaseClaim
	phaseLetters
	phaseVerify // reads NEW rows in ClickHouse: verify mode, cold keys, late rows
	phaseOver
	phaseFacts
	phaseRead
	phaseRenew
	phaseIntent
	phaseInsert
	phaseBackoff
	phaseIsolate
	phaseRelease
	phaseSettle
	phasePublish
	phasePublishAll
	phaseCommitIdle
)

// job is one set of rows on its way: a batch, or late rows of held batches.
type job struct {
	batch *Batch   // nil: late rows
	late  *lateSet // nil: a batch

	phase   phase
	nonce   uint32
	old     uint32 // nonce that a renewal replaces
	met     uint32 // nonce that claims of ours held before this attempt; 0: none, or several
	several bool
	left    int64 // server time at which the claims left; D counts from here
	replied int64
	ticket  dedup.Ticket
	verify  bool
	anew    bool  // claimed once more, since others had brought rows of the set
	early   bool  // the table is read before earlier attempts are over
	judged  bool  // earlier attempts are over and what they did is known
	asked   int64 // server time at which the windows were asked for
	safeAt  int64 // the judgement hangs on windows that were safe then; 0: it holds for good

	set     Set
	span    batcher.Range
	digest  uint64
	prior   *offsets.Entry // earlier attempts at this set, from the intent or this life
	attempt int
	fails   int
	letters []Letter
	poison  Set
	lastly  string // the last reason of a failure
	facts   Facts
	present []bool // what the table had of the set, while the logs are asked
}

// startBatch takes a batch from the shell.
func (m *Machine) startBatch(b *Batch) {
	if !m.Ready() {
		panic(fmt.Sprintf("batch %s was cut while %d waits", b.Range, m.mainRef))
	}
	if b.Range.First != m.next {
		panic(fmt.Sprintf("batch %s was cut where offset %d is next", b.Range, m.next))
	}
	m.begin(b)
	m.job = &job{batch: b, span: b.Range}
	if e := m.entryOf(b.Range); e != nil {
		c := *e
		c.Tables = append([]offsets.Sent(nil), e.Tables...)
		m.job.prior = &c
	}
	m.judge()
}

// judge claims what is open; when nothing is, the verdicts are complete.
func (m *Machine) judge() {
	j := m.job
	m.fold(j.batch)
	rows := m.open(j.batch)
	if len(rows) == 0 {
		m.judged()
		return
	}
	m.claim(Set{Parts: []Part{{Batch: j.batch, Rows: append([]int32(nil), rows...)}}})
}

func (m *Machine) claim(set Set) {
	j := m.job
	if j.nonce == 0 {
		j.nonce, j.left = m.cfg.Nonce(), m.now
	}
	j.set = set
	first := j.span.First
	if j.late != nil {
		first = math.MaxInt64 // only the very record: a later batch may own the key by now
	}
	j.phase = phaseClaim
	m.emit(Claim{Ref: m.mainCall(), First: first, Nonce: j.nonce, Late: j.late != nil, Set: set})
}

// afresh drops every verdict that came from the store: the epoch it was given
// under is gone, or a claim was lost to another.
func (m *Machine) afresh() {
	j := m.job
	old := j.nonce
	j.nonce, j.ticket, j.judged, j.verify, j.safeAt = 0, dedup.Ticket{}, false, false, 0
	if j.late != nil {
		rows := Set{}
		for _, r := range j.late.rows {
			if v := r.Batch.verdicts[r.Index]; v == vLate {
				rows = setOf(j.late.rows).filter(func(_ int, b *Batch, row int32) bool { return b.verdicts[row] == vLate })
				break
			}
		}
		if rows.Len() == 0 {
			m.finishLate()
			return
		}
		m.claim(rows)
		return
	}
	b := j.batch
	for i, v := range b.verdicts {
		switch v {
		case vOwn, vDupTable:
			b.drop(int32(i), v, old)
		case vNew, vMine, vWait, vDupProducer, vDupGroup, vDupTopic:
			b.verdicts[i] = vOpen
		}
	}
	m.judge()
}

// mainAnswer goes on with the main lane.
func (m *Machine) mainAnswer(ev Event) {
	j := m.job
	if j == nil {
		m.idleAnswer(ev)
		return
	}
	switch e := ev.(type) {
	case Refused:
		if j.phase == phaseSettle {
			// The rows are in; their claims are void, and so is the mark.
			m.publish()
			return
		}
		if j.phase == phasePublish {
			// The rows are in; only the run is void, and the next batch starts
			// a new one under the present epoch.
			m.published()
			return
		}
		m.afresh()
	case Claimed:
		if j.phase == phaseRenew {
			m.renewed(e.Reply)
		} else {
			m.claimed(e.Reply)
		}
	case Done:
		m.mainDone()
	case Found:
		m.found(e.Present)
	case Facts:
		m.factsKnown(e)
	case Inserted:
		m.inserted(e)
	case Isolated:
		m.isolated(e.Bad)
	}
}

func (m *Machine) mainDone() {
	j := m.job
	switch j.phase {
	case phaseLetters:
		acknowledged(j.letters)
		j.letters = nil
		m.lettersKept()
	case phaseOver:
		m.attemptsOver()
	case phaseIntent:
		m.committedTo()
		m.send()
	case phaseBackoff:
		m.renewOrSend()
	case phaseRelease:
		if j.late != nil {
			m.settle()
		} else {
			m.judge()
		}
	case phaseSettle:
		m.publish()
	case phasePublish:
		m.published()
	}
}

func (m *Machine) claimed(r *dedup.Reply) {
	j := m.job
	ticket, ok := j.ticket.Merge(r.Ticket)
	if !ok {
		m.afresh()
		return
	}
	j.ticket, m.ticket = ticket, ticket
	j.verify = j.verify || r.Verify
	j.replied = m.now
	m.waits("")
	if j.late != nil {
		m.lateClaimed(r)
		return
	}
	mine, fell := m.apply(j, r)
	if mine {
		j.judged, j.safeAt = false, 0
	}
	if fell && m.cfg.Conflict {
		l := m.letters(j.batch)
		m.halt("conflict: "+l[0].Detail+fmt.Sprintf(" (record %s@%d)", m.cfg.Source, j.batch.Records[l[0].Row.Index].Offset),
			"on_conflict is `stop`: correct the source, or set on_conflict: dead_letter to go on")
		return
	}
	m.judge() // followers of what fell out are judged anew; else complete
}

// judged: every record has its verdict. What can't go to the table goes to the
// dead-letter topic first, then the rows go on.
func (m *Machine) judged() {
	j := m.job
	if j.batch != nil {
		if j.letters = m.letters(j.batch); len(j.letters) > 0 {
			j.phase = phaseLetters
			m.emit(DeadLetter{Ref: m.mainCall(), Letters: j.letters})
			return
		}
	}
	m.settle()
}

func (m *Machine) lettersKept() {
	j := m.job
	if j.batch != nil { // claims of late rows are marked: no run covers them
		for i, v := range j.batch.verdicts {
			if v == vDead {
				// The record may own a claim from a time when it could be decoded
				// (F3): owners up to it are no longer covered by the run.
				m.lo = max(m.lo, j.batch.Records[i].Offset+1)
			}
		}
	}
	if j.poison.Len() > 0 {
		set := j.poison
		j.poison = Set{}
		j.phase = phaseRelease
		m.emit(Release{Ref: m.mainCall(), Ticket: j.ticket, Nonce: j.nonce, Set: set})
		return
	}
	m.settle()
}

// settle decides how the rows of the job go on.
func (m *Machine) settle() {
	j := m.job
	rows := m.jobRows()
	j.set = rows
	if rows.Len() == 0 {
		if m.vanished() {
			m.awaitOver()
		} else {
			m.acknowledgedAll()
		}
		return
	}
	mine := false
	cold := false
	rows.Each(func(_ int, b *Batch, row int32) {
		mine = mine || b.verdicts[row] == vMine
		r := &b.Records[row]
		// Not when it was decoded: a claim may be answered much later.
		cold = cold || r.Cold || r.EventMs != 0 && m.now > r.EventMs+m.cfg.Horizon
	})
	if j.late != nil {
		mine = j.late.mine
		cold = true // the claim vanished once: the table knows best
	}
	switch {
	case j.judged:
		m.renewOrSend()
	case mine && j.prior == nil && j.late == nil && m.allCommittedOnce(rows):
		// What is there needs no wait for attempts at what is not.
		j.early, j.phase = true, phaseRead
		m.emit(Read{Ref: m.mainCall(), Set: rows})
	case mine || j.prior != nil:
		m.awaitOver()
	case j.verify || cold:
		j.phase = phaseVerify
		m.emit(Read{Ref: m.mainCall(), Set: rows})
	default:
		m.renewOrSend()
	}
}

// jobRows is what the job would send.
func (m *Machine) jobRows() Set {
	j := m.job
	if j.late == nil {
		return j.batch.set(vNew, vMine)
	}
	return setOf(j.late.rows).filter(func(_ int, b *Batch, row int32) bool { return b.verdicts[row] == vLate })
}

// renewOrSend commits the intent when there is time left to send under it,
// and takes a new deadline with a renewed claim otherwise.
func (m *Machine) renewOrSend() {
	j := m.job
	j.set = m.jobRows()
	if j.set.Len() == 0 {
		m.acknowledgedAll()
		return
	}
	if j.safeAt > 0 && m.now > j.safeAt+m.cfg.Deadline {
		// Refused for so long that other writers may have filled the windows.
		j.judged, j.safeAt = false, 0
		m.awaitOver()
		return
	}
	if m.now > j.left+m.cfg.Deadline-m.cfg.Deadline/4 {
		j.old, j.nonce, j.left = j.nonce, m.cfg.Nonce(), m.now
		j.phase = phaseRenew
		m.emit(Renew{Ref: m.mainCall(), Ticket: j.ticket, First: j.span.First, Old: j.old, Nonce: j.nonce, Late: j.late != nil, Set: j.set})
		return
	}
	m.intend()
}

func (m *Machine) renewed(r *dedup.Reply) {
	ticket, ok := m.job.ticket.Merge(r.Ticket)
	for i := range r.Answers {
		if r.Answers[i].Verdict != dedup.New && r.Answers[i].Verdict != dedup.Mine {
			ok = false
		}
	}
	if !ok {
		m.afresh()
		return
	}
	m.job.ticket = ticket
	m.intend()
}
