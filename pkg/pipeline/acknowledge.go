package pipeline

// acknowledgedAll: everything of the job is in ClickHouse. acked is published
// before the gate is asked.
func (m *Machine) acknowledgedAll() {
	j := m.job
	if j.late == nil {
		if j.batch.entry == nil {
			j.batch.entry = j.prior // settled without sending: the list stays true
		}
		m.breakRun(j.batch)
		m.hi = max(j.span.Next(), m.lo)
	}
	if set := m.unvouched(); set.Len() > 0 && j.nonce != 0 {
		j.phase = phaseSettle
		m.emit(Settle{Ref: m.mainCall(), Ticket: j.ticket, Nonce: j.nonce, Set: set})
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
// now. Nobody may take their owners for settled.
func (m *Machine) breakRun(b *Batch) {
	at := b.Range.First
	for i := range b.Records {
		o := b.Records[i].Offset
		if o > at && at < m.end {
			m.lo = max(m.lo, min(o, m.end))
		}
		if b.verdicts[i] == vFiltered && o < m.end {
			m.lo = max(m.lo, o+1)
		}
		at = o + 1
	}
	if at < b.Range.Next() && at < m.end {
		m.lo = max(m.lo, min(b.Range.Next(), m.end))
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
