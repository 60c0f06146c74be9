package pipeline

import (
	"math"

	"github.com/oncesink/oncesink/pkg/dedup"
)

// acknowledgedAll: everything of the job is in ClickHouse. acked is published
// before the gate is asked.
func (m *Machine) acknowledgedAll() {
	j := m.job
	if j.late == nil {
		end := m.end
		if j.batch.entry == nil {
			j.batch.entry = j.prior // settled without sending: the list stays true
			end = math.MaxInt64     // no commit of this batch has shown that we are no zombie
		}
		m.breakRun(j.batch, end)
		m.hi = max(j.span.Next(), m.lo)
	}
	if set := m.unvouched(); set.Len() > 0 && j.nonce != 0 {
		j.phase = phaseSettle
		m.emit(Settle{Ref: m.mainCall(), Ticket: j.ticket, Nonces: nonces(set, j.nonce), Set: set})
		return
	}
	m.publish()
}

// unvouched lists the job's own rows that no run will vouch for: late ones,
// whose claims are taken, and those below the start of a run that was broken.
// Their claims are settled one by one, or their duplicates in other partitions
// could wait for each other for ever.
func (m *Machine) unvouched() Set {
	j := m.job
	if j.late != nil {
		return setOf(j.late.rows).filter(func(_ int, b *Batch, row int32) bool {
			return b.verdicts[row] == vOwn || b.verdicts[row] == vDupTable
		})
	}
	if m.lo <= j.span.First {
		return Set{}
	}
	return j.batch.set(vOwn, vDupTable).filter(func(_ int, b *Batch, row int32) bool { return b.Records[row].Offset < m.lo })
}

// publish tells the store how far the rows are in.
func (m *Machine) publish() {
	if m.job.late != nil {
		m.finishLate()
		return
	}
	m.job.phase = phasePublish
	m.shared = false
	m.emit(Publish{Ref: m.mainCall(), Lo: m.lo, Hi: m.hi, Ticket: m.ticket})
}

// breakRun starts the run behind what an earlier life may have claimed and
// this one does not bring: records that were compacted away or are filtered by
// now. Nobody may take their owners for settled. An earlier life claimed below
// end: the log's at the assignment, as long as a commit has told since that no
// other life has begun.
func (m *Machine) breakRun(b *Batch, end int64) {
	at := b.Range.First
	for i := range b.Records {
		o := b.Records[i].Offset
		if o > at && at < end {
			m.lo = max(m.lo, min(o, end))
		}
		if b.verdicts[i] == vFiltered && o < end {
			m.lo = max(m.lo, o+1)
		}
		at = o + 1
	}
	if at < b.Range.Next() && at < end {
		m.lo = max(m.lo, min(b.Range.Next(), end))
	}
}

func (m *Machine) published() {
	b := m.job.batch
	b.nonce = m.job.nonce
	m.job = nil
	m.next = b.Range.Next()
	kept := m.plan[:0]
	for _, e := range m.plan {
		if e.Late != nil || e.Range.Last >= m.next {
			kept = append(kept, e)
		}
	}
	m.plan = kept
	b.recount()
	b.heldSince = m.now
	m.held = append(m.held, b)
	if b.waiting > 0 {
		m.gate.wake()
	}
	m.planLate()
}

// nonces lists what the claims of a set hold: the job's last nonce, except
// where a row dropped out before.
func nonces(s Set, last uint32) []uint32 {
	out := make([]uint32, 0, s.Len())
	s.Each(func(_ int, b *Batch, row int32) {
		if n, ok := b.stray[row]; ok {
			out = append(out, n)
		} else {
			out = append(out, last)
		}
	})
	return out
}

// drop notes that a row is in and will not be renewed: its claim keeps the
// nonce it has now.
func (b *Batch) drop(row int32, v verdict, nonce uint32) {
	b.verdicts[row] = v
	if b.stray == nil {
		b.stray = map[int32]uint32{}
	}
	if _, ok := b.stray[row]; !ok {
		b.stray[row] = nonce
	}
}

// Waits of the vouching, in milliseconds.
const (
	vouchAfter = 5_000
	vouchAgain = 30_000
)

// startVouching: a gate that stays closed may wait for a partition that waits
// for this one, since a new epoch voids the runs that were published before
// it. Whatever is inserted here and held back is settled claim by claim, which
// needs no epoch: the rows are in the table.
func (m *Machine) startVouching() bool {
	g := &m.gate
	if len(m.held) == 0 || m.now-m.held[0].heldSince < vouchAfter || m.now-g.vouched < vouchAgain {
		return false
	}
	g.vouched = m.now
	g.vouch = append(g.vouch[:0], m.held...)
	return m.vouchNext()
}

func (m *Machine) vouchNext() bool {
	g := &m.gate
	for len(g.vouch) > 0 {
		b := g.vouch[0]
		g.vouch = g.vouch[1:]
		if b.nonce == 0 {
			continue
		}
		if set := b.set(vOwn, vDupTable); set.Len() > 0 {
			g.phase = gateVouch
			m.emit(Settle{Ref: m.gateCall(), Nonces: nonces(set, b.nonce), Set: set})
			return true
		}
	}
	if g.phase == gateVouch {
		m.gateSleeps()
		return true
	}
	return false
}

// neverBrings: the owner is a record of this partition that was cut in this
// life, and it brings no row: it follows another, or waits itself. A claim of a
// life before may name it.
func (m *Machine) neverBrings(o dedup.Owner) bool {
	if o.Group != m.cfg.Group || o.Source != m.cfg.Source {
		return false
	}
	for _, b := range m.held {
		if !b.Range.Contains(o.Offset) {
			continue
		}
		for i := range b.Records {
			if b.Records[i].Offset == o.Offset {
				return b.verdicts[i] != vLate && b.verdicts[i] != vOwn
			}
		}
		return true
	}
	return false
}
