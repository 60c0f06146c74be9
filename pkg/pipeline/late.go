package pipeline

import (
	"sort"

	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// planLate queues the late entries of the intent once every range that holds
// their offsets has been cut.
func (m *Machine) planLate() {
	for i := 0; i < len(m.plan); {
		e := m.plan[i]
		if e.Late == nil || e.Range.Last >= m.next {
			i++
			continue
		}
		var rows []Row
		for _, b := range m.held {
			for r, v := range b.verdicts {
				if v == vLate && contains(e.Late, b.Records[r].Offset) {
					rows = append(rows, Row{b, r})
				}
			}
		}
		m.plan = append(m.plan[:i], m.plan[i+1:]...)
		if len(rows) > 0 {
			c := e
			c.Tables = append([]offsets.Sent(nil), e.Tables...)
			m.late = append(m.late, &lateSet{rows: rows, entry: &c})
		}
	}
}

func contains(sorted []int64, offset int64) bool {
	i := sort.Search(len(sorted), func(i int) bool { return sorted[i] >= offset })
	return i < len(sorted) && sorted[i] == offset
}

// turnLate starts the next late set when the main lane is free.
func (m *Machine) turnLate() {
	if !m.quiet() || len(m.late) == 0 {
		return
	}
	ls := m.late[0]
	j := &job{late: ls, nonce: ls.nonce, left: ls.claimed, replied: ls.replied, ticket: ls.ticket, verify: true}
	m.job = j
	first, last := setOf(ls.rows).span()
	j.span.First, j.span.Last = first, last
	if ls.entry != nil && ls.nonce == 0 { // of a life before
		j.prior = ls.entry
		m.claim(setOf(ls.rows))
		return
	}
	m.settle()
}

// lateClaimed applies the answers to claims of late rows.
func (m *Machine) lateClaimed(r *dedup.Reply) {
	j := m.job
	j.set.Each(func(i int, b *Batch, row int32) {
		a := &r.Answers[i]
		switch a.Verdict {
		case dedup.New:
		case dedup.Mine:
			if a.Owner >= 0 && r.Owners[a.Owner].Settled {
				b.verdicts[row] = vOwn
				return
			}
			j.late.mine = true
			if a.Owner >= 0 {
				j.meet(r.Owners[a.Owner].Nonce)
			} else {
				j.meet(0)
			}
		case dedup.Settled:
			b.verdicts[row] = duplicateKind(m.cfg.Group, m.cfg.Source, b.Records[row].Offset, r.Owners[a.Owner])
		default:
			// Another took the claim over, or its fields differ: the gate asks
			// again and decides.
			b.verdicts[row] = vWait
			b.setOwner(row, r.Owners[a.Owner])
		}
	})
	m.settle()
}

// latePoison dead-letters late rows that the server refuses.
func (m *Machine) latePoison() {
	j := m.job
	var letters []Letter
	j.poison.Each(func(_ int, b *Batch, row int32) {
		letters = append(letters, Letter{Row: Row{b, int(row)}, Class: b.Rejects[row].Class, Detail: b.Rejects[row].Detail})
	})
	j.letters = letters
	j.phase = phaseLetters
	m.emit(DeadLetter{Ref: m.mainCall(), Letters: letters})
}

// finishLate: every row of the set is settled, or went back to the gate.
func (m *Machine) finishLate() {
	m.late = m.late[1:]
	m.job = nil
	for _, b := range m.held {
		m.unfollow(b)
		b.recount()
	}
	m.gate.wake()
}

// unfollow judges anew the records that followed one which fell out (F4): the
// first of them asks the store, the others follow it.
func (m *Machine) unfollow(b *Batch) {
	fell := false
	for i, v := range b.verdicts {
		if (v == vDead || v == vConflict) && b.followed(int32(i)) {
			fell = true
		}
	}
	if !fell {
		return
	}
	m.fold(b)
	for i, v := range b.verdicts {
		if v == vOpen {
			b.verdicts[i] = vWait
			delete(b.owners, int32(i)) // unknown: the gate claims it
		}
	}
}

// followed: some later record of the batch follows this one's key.
func (b *Batch) followed(row int32) bool {
	for i := int(row) + 1; i < len(b.verdicts); i++ {
		if b.verdicts[i] == vFollower && b.Records[i].Key == b.Records[row].Key {
			return true
		}
	}
	return false
}
