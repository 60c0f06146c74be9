package pipeline

import (
	"fmt"
	"strings"

	"github.com/oncesink/oncesink/pkg/dedup"
)

// covered tells whether the acked run, as it stood at the assignment, settles
// a row of ours under the present epoch: its row is in ClickHouse, views
// included, so that neither a wait nor a read is due. A taken claim is never
// settled by a run.
func (m *Machine) covered(o dedup.Owner, t dedup.Ticket) bool {
	return m.acked.Known && !o.Taken && o.Offset >= m.acked.Lo && o.Offset < m.acked.Hi && m.ackedAt.Holds(t)
}

// awaitOver waits until no earlier attempt at these rows can still write. The
// wait never kills: a killed insert leaves the table written and its views not.
func (m *Machine) awaitOver() {
	j := m.job
	until := j.replied + m.cfg.Deadline
	if j.prior != nil {
		// A claim that still held the nonce of the intent proves that no later
		// attempt follows it; otherwise a delayed commit may have overwritten a
		// newer intent (F2), whose deadline lies at most D after our own claim.
		if d := j.prior.Tables[0].Deadline.UnixMilli(); d > until || j.met != 0 && j.met == j.prior.Tables[0].Nonce {
			until = d
		}
	}
	j.phase = phaseOver
	m.emit(AwaitOver{Ref: m.mainCall(), Stems: []string{m.cfg.Stem}, Until: until})
}

func (m *Machine) attemptsOver() {
	j := m.job
	if j.prior == nil {
		j.phase = phaseRead
		m.emit(Read{Ref: m.mainCall(), Set: j.set})
		return
	}
	p := j.prior.Tables[0]
	j.phase, j.asked = phaseFacts, m.now
	m.emit(AskFacts{Ref: m.mainCall(), Set: j.set, Parts: m.parts, Range: j.prior.Range, Digest: p.Digest, FirstAttempt: p.FirstAttempt.UnixMilli(), Deadline: p.Deadline.UnixMilli(), Replica: p.Replica})
}

// vanished: the intent lists rows of which none is left to send, and which are
// not all accounted for: compaction took them, or they are filtered by now. If
// the table has them, their views may be behind, and nothing would mend that.
func (m *Machine) vanished() bool {
	j := m.job
	if j.batch == nil || j.prior == nil || j.judged || !m.cfg.Views {
		return false
	}
	p, own := j.prior.Tables[0], j.batch.set(vOwn)
	return !p.Vouched && (p.Rows != own.Len() || p.Digest != digest(own))
}

// same: the rows are those of the earlier attempts, in number and digest.
func (j *job) same() bool {
	p := j.prior.Tables[0]
	return p.Rows == j.set.Len() && p.Digest == digest(j.set)
}

func (m *Machine) factsKnown(f Facts) {
	j := m.job
	j.facts = f
	if j.set.Len() == 0 {
		if f.Attempts.Known && f.Attempts.NoneCut {
			m.acknowledgedAll()
			return
		}
		m.halt(m.undecidable(0, 0)+"; none of its rows is left to send: the records are gone from the log, or the rows are another record's by now",
			m.vouch("the range named", ""))
		return
	}
	if j.prior == nil {
		m.unlisted(f)
		return
	}
	if p := j.prior.Tables[0]; f.Safe && !j.verify && j.same() && !p.Mixed && !p.Vouched && (!f.Attempts.Known || !f.Attempts.Finished) {
		// Case 1: the whole set again under the same token. ClickHouse drops
		// what is there and completes partitions and views. What the log knows
		// to have finished isn't sent again: where a view is slower than the
		// insert timeout, each repeat would end in the same doubt, for ever.
		j.judged, j.safeAt = true, j.asked
		m.renewOrSend()
		return
	}
	j.phase = phaseRead
	m.emit(Read{Ref: m.mainCall(), Set: j.set})
}

// found judges the rows by what the table has.
func (m *Machine) found(present []bool) {
	j := m.job
	there := 0
	for _, p := range present {
		if p {
			there++
		}
	}
	if j.early {
		j.early = false
		if there < len(present) {
			m.awaitOver()
			return
		}
	}
	if j.phase == phaseRead && j.prior != nil {
		p := j.prior.Tables[0]
		views := m.cfg.Views && !p.Vouched && !m.viewsHave(j.facts, present)
		what := decide(j.same(), p.Mixed || p.Vouched, j.verify, j.facts, there, views)
		if what == claimAnew && j.anew {
			what = sendMissing
			if views {
				what = stopHere
			}
		}
		switch what {
		case sendAll:
			j.judged, j.safeAt = true, j.asked
			m.renewOrSend()
			return
		case allThere:
			j.set.mark(vOwn)
			m.acknowledgedAll()
			return
		case stopHere:
			m.halt(m.undecidable(there, len(present)),
				m.vouch("the range named", ""))
			return
		case claimAnew:
			j.anew = true
			m.afresh()
			return
		case sendMissing:
		}
	}
	listed := j.prior != nil
	if m.cfg.Views && !listed && j.phase == phaseRead && m.doubtful(present) {
		// No intent lists these rows: whoever reset the offset dropped it, or a
		// delayed commit overwrote it. The table has them, but only the end of
		// their inserts vouches for the views.
		j.present = append(j.present[:0], present...)
		j.phase = phaseFacts
		m.emit(AskFacts{Ref: m.mainCall(), Set: j.set, Parts: m.parts, Range: j.span, FirstAttempt: m.now - m.cfg.Horizon, Deadline: m.now})
		return
	}
	m.judgedByTable(present, listed)
}

// doubtful: a row of the set is in the table, and nothing but the ends of the
// inserts can tell whether the views have it too.
func (m *Machine) doubtful(present []bool) bool {
	doubt := false
	m.job.set.Each(func(i int, b *Batch, row int32) {
		doubt = doubt || present[i] && !m.committedOnce(b, row)
	})
	return doubt
}

// committedOnce: the group had committed past the row before an operator moved
// its offset back, so what the table has of it the views have too (I1).
func (m *Machine) committedOnce(b *Batch, row int32) bool { return b.Records[row].Offset < m.passed }

func (m *Machine) allCommittedOnce(s Set) bool {
	all := true
	s.Each(func(_ int, b *Batch, row int32) { all = all && m.committedOnce(b, row) })
	return all
}

// unlisted: what the query log says of every insert that may have held rows
// which no intent lists.
func (m *Machine) unlisted(f Facts) {
	j := m.job
	if m.viewsHave(f, j.present) {
		m.judgedByTable(j.present, false)
		return
	}
	if f.Attempts.Known && f.Attempts.OnlyRejected {
		// No insert over these rows wrote anything, so what is there is
		// others': the store was lost since, and the key became ours anew.
		j.set.Each(func(i int, b *Batch, row int32) {
			if j.present[i] && b.verdicts[row] == vMine && !m.committedOnce(b, row) {
				b.verdicts[row] = vNew
			}
		})
		m.judgedByTable(j.present, false)
		return
	}
	there := 0
	for _, p := range j.present {
		if p {
			there++
		}
	}
	j.facts.Why = "no intent lists these rows"
	doubt := j.span.Last // what an earlier life had inserted beyond is in doubt as well
	if m.acked.Known {
		doubt = max(doubt, m.acked.Hi-1)
	}
	// It begins where the group's offset stays: what is before the rows may wait
	// for a partition that has stopped as well, and this for that.
	first := min(j.span.First, m.safeOffset())
	m.halt(m.undecidable(there, len(j.present)),
		m.vouch(fmt.Sprintf("offsets [%d..%d]", first, doubt), fmt.Sprintf(" --range %d-%d", first, doubt)))
}

// viewsHave: what the table has of the set, the views have too. The log covers
// every insert that may have held one of the rows, none was cut, and each row
// that is there lies in one that ended well.
func (m *Machine) viewsHave(f Facts, present []bool) bool {
	if !f.Attempts.Known || !f.Attempts.NoneCut {
		return false
	}
	all := true
	m.job.set.Each(func(i int, b *Batch, row int32) {
		if !present[i] || m.committedOnce(b, row) {
			return
		}
		for _, r := range f.Ended {
			if r.Contains(b.Records[row].Offset) {
				return
			}
		}
		all = false
	})
	return all
}

// judgedByTable takes the table's word: what is there drops out, the rest is
// sent.
func (m *Machine) judgedByTable(present []bool, listed bool) {
	j := m.job
	j.set.Each(func(i int, b *Batch, row int32) {
		if !present[i] {
			if b.verdicts[row] == vMine {
				b.verdicts[row] = vNew // ours, judged: not there
			}
			return
		}
		if listed || b.verdicts[row] == vMine || j.late != nil && j.late.mine {
			b.drop(row, vOwn, j.nonce)
		} else {
			b.drop(row, vDupTable, j.nonce)
		}
	})
	j.judged = true
	m.renewOrSend()
}

type decision uint8

const (
	sendAll     decision = iota // under the same token
	allThere                    // settled
	sendMissing                 // what is not there, under the token of that set
	claimAnew                   // what is there is another's
	stopHere                    // I4
)

// decide is the recovery table, case by case, of attempts that are over.
// same: the rows are the attempt's, by number and digest. mixed: another token
// was used for some of them, or an operator vouched for the views. there: the rows found by
// key. views: the views may lack what the table has.
func decide(same, mixed, verify bool, f Facts, there int, views bool) decision {
	switch {
	case same && f.Attempts.Known && f.Attempts.Finished:
		return allThere
	case same && !mixed && f.Safe && (!verify || there == 0):
		return sendAll
	case there == 0 && f.Attempts.Known && f.Attempts.OnlyRejected:
		return sendMissing
	case f.Attempts.Known && f.Attempts.OnlyRejected:
		// No attempt of ours wrote anything: a waiter took these keys over while
		// we could not send, or a replay brought them. Their claims say who.
		return claimAnew
	case !views:
		return sendMissing
	default:
		return stopHere
	}
}

// vouch is the way on from a stop for the sake of views, as a command.
func (m *Machine) vouch(of, more string) string {
	return fmt.Sprintf("stop the sink, recompute these views for %s, then run: sink offsets resolve -c CONFIG --topic %s --partition %d --views-recomputed%s --apply",
		of, m.cfg.Topic, m.cfg.Source.Partition, more)
}

func (m *Machine) undecidable(there, total int) string {
	j := m.job
	var b strings.Builder
	b.WriteString("insert " + j.span.String() + " may have been pushed to the table but not to its views (")
	b.WriteString(strings.Join(j.facts.Views, ", "))
	b.WriteString("): ")
	b.WriteString(plural(there, "row") + " of " + plural(total, "row") + " found in the table")
	if j.prior != nil && !j.same() {
		b.WriteString("; the rows differ from those the intent lists")
	}
	if j.facts.Why != "" {
		b.WriteString("; a repeat under the same token is not safe: " + j.facts.Why)
	}
	switch {
	case !j.facts.Attempts.Known:
		b.WriteString("; the query log does not cover the attempt")
	case !j.facts.Attempts.Finished:
		b.WriteString("; the query log does not say that the attempt finished")
	}
	return b.String()
}
