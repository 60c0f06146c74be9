package pipeline

import (
	"fmt"

	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// begin gives every record of the batch its first verdict.
func (m *Machine) begin(b *Batch) {
	b.verdicts = append(b.verdicts[:0], make([]verdict, len(b.Records))...)
	for i := range b.Records {
		switch b.Records[i].Status {
		case Rejected:
			b.verdicts[i] = vDead
		case Filtered:
			b.verdicts[i] = vFiltered
		case Decoded:
			if len(m.plan) > 0 && m.lateEntry(b.Records[i].Offset) != nil {
				// A later entry names the row: both sets come out as they were sent.
				b.verdicts[i] = vLate
			}
		}
	}
}

// fold compares the records of a batch with each other: the first record of a
// key stays, a later one follows it or, with another fingerprint, rivals it. It
// may be repeated after a first record fell out, which judges the others anew
// (F4). Afterwards only first records are open.
func (m *Machine) fold(b *Batch) {
	m.seen.Reset(len(b.Records))
	for i := range b.Records {
		v := b.verdicts[i]
		if v == vDead || v == vFiltered || v == vConflict {
			continue
		}
		first, seen := m.seen.Add(b.Records[i].Key, i)
		if !seen {
			if v == vFollower || v == vRival {
				b.verdicts[i] = vOpen
			}
			continue
		}
		if v != vOpen && v != vFollower && v != vRival {
			continue // it had a verdict of its own already
		}
		if b.Records[first].Fingerprint == b.Records[i].Fingerprint {
			b.verdicts[i] = vFollower
		} else {
			b.verdicts[i] = vRival
		}
	}
}

// open lists the rows that are still to be claimed.
func (m *Machine) open(b *Batch) []int32 {
	m.rows = m.rows[:0]
	for i, v := range b.verdicts {
		if v == vOpen {
			m.rows = append(m.rows, int32(i))
		}
	}
	return m.rows
}

// letters lists what is bound for the dead-letter topic and not acknowledged.
func (m *Machine) letters(b *Batch) []Letter {
	var out []Letter
	for i, v := range b.verdicts {
		row := int32(i)
		if v != vDead && v != vConflict && v != vRival || b.lettered[row] {
			continue
		}
		l := Letter{Row: Row{b, i}}
		switch v {
		case vDead:
			r := b.Rejects[row]
			l.Class, l.Detail = r.Class, r.Detail
		case vRival:
			l.Class, l.Detail = "conflict", "an earlier record of the same batch has this key with other fields"
		case vConflict:
			l.Class, l.Detail = "conflict", "the key is known with other fields"
			if o, ok := b.owners[row]; ok {
				owner := o
				l.Owner = &owner
				l.Detail = fmt.Sprintf("the key belongs to %s, whose other fields differ", o.Owner)
			}
		}
		out = append(out, l)
	}
	return out
}

// acknowledged marks letters as kept by the dead-letter topic.
func acknowledged(letters []Letter) {
	for _, l := range letters {
		b := l.Row.Batch
		if b.lettered == nil {
			b.lettered = map[int32]bool{}
		}
		row := int32(l.Row.Index)
		b.lettered[row] = true
		if b.verdicts[row] == vRival {
			b.verdicts[row] = vConflict
		}
	}
}

// apply writes the store's answers for the rows of the job into their batch.
// mine: some row was ours before and is not settled; fell: a record that others
// may follow fell out.
func (m *Machine) apply(j *job, reply *dedup.Reply) (mine, fell bool) {
	j.set.Each(func(i int, b *Batch, row int32) {
		a := &reply.Answers[i]
		switch a.Verdict {
		case dedup.New:
			b.verdicts[row] = vNew
		case dedup.Mine:
			met := uint32(0)
			if a.Owner >= 0 {
				o := reply.Owners[a.Owner]
				if o.Settled || m.covered(o, reply.Ticket) {
					b.drop(row, vOwn, j.nonce) // a renewal of the others leaves it out
					return
				}
				met = o.Nonce
				m.mix(o)
			}
			b.verdicts[row] = vMine
			mine = true
			j.meet(met)
		case dedup.Settled:
			b.verdicts[row] = duplicateKind(m.cfg.Group, m.cfg.Source, b.Records[row].Offset, reply.Owners[a.Owner])
		case dedup.Duplicate:
			b.verdicts[row] = vWait
			b.setOwner(row, reply.Owners[a.Owner])
		case dedup.Conflict:
			b.verdicts[row] = vConflict
			b.setOwner(row, reply.Owners[a.Owner])
			fell = true
		}
	})
	return mine, fell
}

// mix notes in the intent that a row of a set of a later range goes under
// another token: its claim's owner is a record there, and this one, which has
// the same key and comes first, is judged and sent in its place.
func (m *Machine) mix(o dedup.Owner) {
	for i := range m.plan {
		if e := &m.plan[i]; o.Offset >= m.job.span.Next() && e.Range.Contains(o.Offset) && len(e.Tables) > 0 {
			e.Tables = append([]offsets.Sent(nil), e.Tables...)
			e.Tables[0].Mixed = true
		}
	}
}

// meet notes the nonce that a claim of ours held before this attempt.
func (j *job) meet(nonce uint32) {
	switch {
	case nonce == 0:
		j.met, j.several = 0, true
	case j.several || nonce == j.met:
	case j.met == 0:
		j.met = nonce
	default:
		j.met, j.several = 0, true
	}
}

func (b *Batch) setOwner(row int32, o dedup.Owner) {
	if b.owners == nil {
		b.owners = map[int32]dedup.Owner{}
	}
	b.owners[row] = o
}

// recount finds how many records keep the gate closed.
func (b *Batch) recount() {
	n := 0
	for i, v := range b.verdicts {
		// A letter that the gate lane sends may still be on its way.
		if !v.settled() || (v == vConflict || v == vDead) && !b.lettered[int32(i)] {
			n++
		}
	}
	b.waiting = n
}

// set lists the rows of a batch with one of the verdicts.
func (b *Batch) set(want ...verdict) Set {
	var rows []int32
	for i, v := range b.verdicts {
		for _, w := range want {
			if v == w {
				rows = append(rows, int32(i))
				break
			}
		}
	}
	if rows == nil {
		return Set{}
	}
	return Set{Parts: []Part{{Batch: b, Rows: rows}}}
}

// setOf groups rows by batch, keeping offset order.
func setOf(rows []Row) Set {
	var s Set
	for _, r := range rows {
		if n := len(s.Parts); n == 0 || s.Parts[n-1].Batch != r.Batch {
			s.Parts = append(s.Parts, Part{Batch: r.Batch})
		}
		p := &s.Parts[len(s.Parts)-1]
		p.Rows = append(p.Rows, int32(r.Index))
	}
	return s
}

// filter keeps the rows of the set for which keep is true at their position.
func (s Set) filter(keep func(i int, b *Batch, row int32) bool) Set {
	var out Set
	s.Each(func(i int, b *Batch, row int32) {
		if !keep(i, b, row) {
			return
		}
		if n := len(out.Parts); n == 0 || out.Parts[n-1].Batch != b {
			out.Parts = append(out.Parts, Part{Batch: b})
		}
		p := &out.Parts[len(out.Parts)-1]
		p.Rows = append(p.Rows, row)
	})
	return out
}

// at picks rows by their positions, ascending.
func (s Set) at(positions []int32) Set {
	n := 0
	return s.filter(func(i int, _ *Batch, _ int32) bool {
		if n < len(positions) && int(positions[n]) == i {
			n++
			return true
		}
		return false
	})
}

func (s Set) mark(v verdict) {
	s.Each(func(_ int, b *Batch, row int32) { b.verdicts[row] = v })
}

// span is the smallest range that holds every row of the set.
func (s Set) span() (first, last int64) {
	first, last = -1, -1
	s.Each(func(_ int, b *Batch, row int32) {
		o := b.Records[row].Offset
		if first < 0 || o < first {
			first = o
		}
		if o > last {
			last = o
		}
	})
	return first, last
}

// offsets lists the offsets of the set.
func (s Set) offsets() []int64 {
	out := make([]int64, 0, s.Len())
	s.Each(func(_ int, b *Batch, row int32) { out = append(out, b.Records[row].Offset) })
	return out
}
