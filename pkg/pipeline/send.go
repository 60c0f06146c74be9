package pipeline

import (
	"fmt"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/writer"
)

// intend commits the intent: the offset of what is settled, the list of what
// is under way.
func (m *Machine) intend() {
	j := m.job
	j.digest = digest(j.set)
	j.phase = phaseIntent
	e := &offsets.Entry{Range: j.span, Tables: []offsets.Sent{m.sent(j)}}
	if j.late != nil {
		e.Late = j.set.offsets()
		first, last := j.set.span()
		e.Range = batcher.Range{First: first, Last: last}
		j.span = e.Range
		j.late.entry = e
	} else {
		j.batch.entry = e
	}
	m.commitNow()
}

func (m *Machine) sent(j *job) offsets.Sent {
	s := offsets.Sent{
		Table: m.cfg.Table, Rows: j.set.Len(), Digest: j.digest,
		Deadline: milli(j.left + m.cfg.Deadline), FirstAttempt: milli(j.left), Attempt: j.attempt, Nonce: j.nonce,
	}
	if j.prior != nil {
		p := j.prior.Tables[0]
		s.FirstAttempt, s.Replica = p.FirstAttempt, p.Replica
		s.Mixed = p.Mixed || p.Rows != s.Rows || p.Digest != s.Digest
	}
	return s
}

// send sends the set; its intent is committed.
func (m *Machine) send() {
	j := m.job
	j.phase = phaseInsert
	j.attempt++
	replica := ""
	if j.prior != nil {
		replica = j.prior.Tables[0].Replica
	}
	m.emit(Insert{Ref: m.mainCall(), Set: j.set, Range: j.span, Digest: j.digest, Deadline: j.left + m.cfg.Deadline, Attempt: j.attempt, Parts: m.parts, Replica: replica})
}

func (m *Machine) inserted(e Inserted) {
	j, r := m.job, e.Result
	switch {
	case r.Outcome == writer.Written:
		m.waits("")
		j.set.mark(vOwn)
		j.fails = 0
		m.acknowledgedAll()
	case r.Outcome == writer.Rejected && r.Cause == writer.Late:
		m.renewOrSend()
	case r.Outcome == writer.Rejected && r.Cause == writer.Data:
		j.lastly = r.Message
		if len(e.Written) > 0 {
			j.set.at(e.Written).Each(func(_ int, b *Batch, row int32) { b.drop(row, vOwn, j.nonce) })
			j.set = m.jobRows()
		}
		j.phase = phaseIsolate
		m.emit(Isolate{Ref: m.mainCall(), Set: j.set})
	case r.Outcome == writer.Rejected:
		m.backoff(r)
	default:
		// Whatever was sent may be written, or may yet be: from here on the
		// attempt is a prior one, judged like one of another life.
		e := j.batchEntry()
		c := *e
		c.Tables = append([]offsets.Sent(nil), e.Tables...)
		if r.Replica != "" {
			c.Tables[0].Replica = r.Replica
		}
		j.prior, j.met, j.several = &c, j.nonce, false
		j.judged, j.safeAt = false, 0
		j.lastly = r.Message
		j.fails++
		m.waits("insert " + j.span.String() + " has an unknown outcome, waiting until its attempt is over: " + r.Message)
		m.awaitOver()
	}
}

func (j *job) batchEntry() *offsets.Entry {
	if j.late != nil {
		return j.late.entry
	}
	return j.batch.entry
}

func (m *Machine) backoff(r writer.Result) {
	j := m.job
	j.fails++
	wait := int64(100) << min(j.fails-1, 7)
	if wait > 10_000 {
		wait = 10_000
	}
	m.waits("insert " + j.span.String() + " was refused and is repeated: " + r.Message)
	j.phase = phaseBackoff
	m.emit(Sleep{Ref: m.mainCall(), Millis: wait})
}

func (m *Machine) isolated(bad []Refusal) {
	j := m.job
	if len(bad) == 0 {
		m.halt(fmt.Sprintf("ClickHouse refuses the rows of %s, but none of them alone: %s", j.span, j.lastly),
			"correct the table (constraint, expression) and start the sink again; nothing of this range was written")
		return
	}
	pos := map[int]Refusal{}
	for _, r := range bad {
		pos[r.Pos] = r
	}
	j.poison = j.set.filter(func(i int, b *Batch, row int32) bool {
		r, ok := pos[i]
		if !ok {
			return false
		}
		b.verdicts[row] = vDead
		if b.Rejects == nil {
			b.Rejects = map[int32]Reject{}
		}
		b.Rejects[row] = Reject{Class: "server_rejected", Detail: fmt.Sprintf("code %d: %s", r.Code, r.Message)}
		return true
	})
	// Every attempt of this set was refused before it wrote, so the rows that
	// stay are simply sent again, under the token of their own set.
	j.judged = true
	if j.late != nil {
		m.latePoison()
		return
	}
	m.judged()
}
