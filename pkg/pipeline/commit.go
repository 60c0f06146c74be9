package pipeline

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/oncesink/oncesink/pkg/offsets"
)

// heldMost bounds how many batches wait behind a closed gate, beside the
// bound that the metadata sets.
const heldMost = 16

// room: a batch that claims always finds room for its intent, so the bound is
// checked before: the encoded list with the batch to come and one late entry.
// A range that the list holds already is replaced in it and needs no room: held
// back, it could be what others wait for.
func (m *Machine) room() bool {
	if m.WantFrom(m.next).Exact {
		return true
	}
	if len(m.held) >= heldMost {
		return false
	}
	entries := 2 // the batch to come, one late set
	late := lateMost
	for _, b := range m.held {
		if b.entry != nil {
			entries++
		}
	}
	for i := range m.plan {
		entries++
		late += len(m.plan[i].Late)
		if m.plan[i].Late != nil && m.plan[i].Range.First < m.next {
			// This late set waits for its range to be cut to the end, and goes
			// before any other.
			entries, late = entries-1, late-lateMost
		}
	}
	if len(m.held) == 0 {
		return true // the smallest list; check refuses a broker with less room
	}
	return offsets.WorstCase(entries, 1, late) <= m.cfg.Metadata
}

// safeOffset is the offset up to which everything is settled.
func (m *Machine) safeOffset() int64 {
	for _, b := range m.held {
		if b.waiting > 0 {
			return b.Range.First
		}
	}
	if m.job != nil && m.job.batch != nil {
		return m.job.batch.Range.First
	}
	return m.next
}

// commitNow commits the safe offset with the list of what lies behind it.
func (m *Machine) commitNow() {
	m.commit(m.safeOffset(), m.job.phase)
}

func (m *Machine) commit(offset int64, _ phase) {
	if offset < m.committed {
		panic("a commit below the committed offset " + strconv.FormatInt(m.committed, 10))
	}
	in := &offsets.Intent{MaxPartitions: m.parts}
	if m.passed > offset {
		in.Passed = m.passed
	}
	for _, b := range m.held {
		if b.Range.First >= offset && b.entry != nil {
			in.Entries = append(in.Entries, *b.entry)
		}
	}
	if m.job != nil {
		if e := m.job.batchEntry(); e != nil {
			in.Entries = append(in.Entries, *e)
		}
	}
	for i := range m.late {
		if e := m.late[i].entry; e != nil && (m.job == nil || m.job.late != m.late[i]) {
			in.Entries = append(in.Entries, *e)
		}
	}
	for i := range m.plan { // of the life before, not yet recovered
		e := &m.plan[i]
		if m.job != nil && m.job.batch != nil && m.job.batch.entry != nil && e.Late == nil && e.Range == m.job.batch.Range {
			continue
		}
		in.Entries = append(in.Entries, *e)
	}
	m.emit(Commit{Ref: m.mainCall(), Offset: offset, Intent: in})
	m.pending = offset
	m.pendingIntent = len(in.Entries) > 0
}

// committedTo counts what the commit moved past and gives its memory back.
func (m *Machine) committedTo() {
	m.committed, m.intent = m.pending, m.pendingIntent
	if !m.intent {
		m.parts = m.cfg.Parts // no set is listed that was cut by another L
	}
	n := 0
	for _, b := range m.held {
		if b.Range.Next() > m.committed {
			break
		}
		m.emit(Account{Batch: b, Counts: b.counts()})
		n++
	}
	if n > 0 {
		m.held = append(m.held[:0], m.held[n:]...)
	}
}

// idle: no batch is ready. What is settled is published to every group and
// committed at once.
func (m *Machine) idle() {
	if !m.quiet() || len(m.late) > 0 {
		return
	}
	offset := m.safeOffset()
	open := len(m.held) > 0 && offset < m.next
	if offset == m.committed && (!m.intent || open) {
		return
	}
	m.idlePhase = phasePublishAll
	if m.shared || m.hi <= m.lo {
		m.idleCommit()
		return
	}
	m.emit(Publish{Ref: m.mainCall(), Lo: m.lo, Hi: m.hi, Ticket: m.ticket, All: true})
}

func (m *Machine) idleCommit() {
	m.idlePhase = phaseCommitIdle
	m.commit(m.safeOffset(), phaseCommitIdle)
}

// idleAnswer goes on where the main lane has no job: the start of an
// assignment, and the commit of an idle partition.
func (m *Machine) idleAnswer(ev Event) {
	if a, ok := ev.(AckedRun); ok {
		m.acked, m.ackedAt = a.Run, a.Ticket
		if a.Run.Known && a.Run.Hi == m.committed {
			m.lo, m.hi = a.Run.Lo, a.Run.Hi
			m.begun()
			return
		}
		m.idlePhase = phaseStartRun
		m.emit(StartRun{Ref: m.mainCall(), At: m.committed})
		return
	}
	switch m.idlePhase {
	case phaseStartRun:
		m.begun()
	case phasePublishAll:
		m.shared = true
		m.idleCommit()
	case phaseCommitIdle:
		m.idlePhase = phaseNone
		m.committedTo()
	}
}

func (m *Machine) begun() {
	m.idlePhase = phaseNone
	m.started = true
	m.planLate()
}

// digest is over the 128-bit keys of the rows, in offset order: it names the
// set whatever the columns or bytes become between two tries.
func digest(s Set) uint64 {
	d := xxhash.New()
	var buf [4096]byte
	n := 0
	s.Each(func(_ int, b *Batch, row int32) {
		if n == len(buf) {
			_, _ = d.Write(buf[:n])
			n = 0
		}
		k := b.Records[row].Key
		binary.LittleEndian.PutUint64(buf[n:], k.Hi)
		binary.LittleEndian.PutUint64(buf[n+8:], k.Lo)
		n += 16
	})
	_, _ = d.Write(buf[:n])
	return d.Sum64()
}

func milli(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
