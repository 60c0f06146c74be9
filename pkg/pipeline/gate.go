package pipeline

import (
	"math"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/dedup"
)

// gatePhase is what the gate lane awaits.
type gatePhase uint8

const (
	gateIdle gatePhase = iota
	gateAsk
	gateSleep
	gateClaim
	gateLetters
	gateRead
	gateOwners
	gateOver
	gateReadAgain
	gateTake
	gateVouch
)

// takeAfter is how long a gate waits for an owner that could still come, in
// insert deadlines. After that its claim is taken over like that of one who is
// gone. That is safe in any case: what is not in the table after a wait of D
// under an unchanged nonce can't get there any more, for its owner has to renew
// the claim before it sends. It ends waits for records that vanished from the
// log of another partition, whose own gate may wait for this one.
const takeAfter = 6

// listedAfter is takeAfter for an owner whose partition's intent lists it: who
// gets the partition after a crash settles that insert first, by sending exactly
// the same rows again. A row that was taken from it meanwhile makes them others,
// and with views the partition may have to stop. It is longer than a member that
// was killed is missed for, and still ends a wait for a record that vanished
// while its batch waits for us.
const listedAfter = 24

// askMost bounds one question to the store.
const askMost = 10_000

// gateLane settles the duplicates of held batches: while one is not settled,
// the offset does not move past its batch, though later inserts go on (F5).
type gateLane struct {
	phase   gatePhase
	awake   bool  // a batch joined or changed: ask at once
	wait    int64 // milliseconds before the next question
	set     Set
	owners  []dedup.Owner
	asked   []Row  // to be claimed afresh after this question
	unread  Set    // closed for long: to be read
	present []bool // what was read of set
	again   bool   // ask at once: something was read
	nonce   uint32
	left    int64
	letters []Letter
	vouched int64 // server time of the last round of vouching
	vouch   []*Batch
}

func (g *gateLane) wake() {
	g.awake = true
	g.wait = gateFirst
}

// turnGate starts the next question when the lane is free.
func (m *Machine) turnGate() {
	g := &m.gate
	if m.gateRef != 0 || !g.awake {
		return
	}
	g.set, g.owners = m.closed()
	if g.set.Len() == 0 {
		g.awake, g.phase = false, gateIdle
		return
	}
	g.phase = gateAsk
	m.emit(AskGate{Ref: m.gateCall(), Set: g.set, Owners: g.owners})
}

// closed lists the rows that wait for another owner, the oldest of each key: a
// call to the store names a key once, and what settles the first is then asked
// for the next.
func (m *Machine) closed() (Set, []dedup.Owner) {
	var rows []Row
	var owners []dedup.Owner
	m.seen.Reset(0)
	for _, b := range m.held {
		if b.waiting == 0 {
			continue
		}
		for i, v := range b.verdicts {
			if v == vWait {
				if _, again := m.seen.Add(b.Records[i].Key, i); again {
					continue
				}
				rows = append(rows, Row{b, i})
				owners = append(owners, b.owners[int32(i)])
				if len(rows) == askMost {
					return setOf(rows), owners
				}
			}
		}
	}
	return setOf(rows), owners
}

func (m *Machine) gateAnswer(ev Event) {
	g := &m.gate
	switch e := ev.(type) {
	case GateAnswers:
		m.gateAsked(e.Answers)
	case Claimed:
		if g.phase == gateTake {
			m.taken(e.Reply)
		} else {
			m.gateClaimed(e.Reply)
		}
	case Found:
		m.gateFound(e.Present)
	case OwnersGone:
		m.ownersGone(e.Fates)
	case Refused:
		g.vouch = nil
		m.gateSleeps()
	case Done:
		switch g.phase {
		case gateVouch:
			m.vouchNext()
		case gateSleep:
			g.awake = true
		case gateLetters:
			acknowledged(g.letters)
			g.letters = nil
			m.gateSettled()
		case gateOver:
			g.phase = gateReadAgain
			m.emit(Read{Ref: m.gateCall(), Set: g.set})
		}
	}
}

// gateAsked sorts the rows: settled ones open the gate, lost or changed claims
// are claimed afresh, the others wait.
func (m *Machine) gateAsked(answers []dedup.GateAnswer) {
	g := &m.gate
	g.asked = g.asked[:0]
	var unread []Row
	g.set.Each(func(i int, b *Batch, row int32) {
		a := &answers[i]
		switch a.State {
		case dedup.GateSettled:
			b.verdicts[row] = duplicateKind(m.cfg.Group, m.cfg.Source, b.Records[row].Offset, g.owners[i])
		case dedup.GateWaiting:
			b.setOwner(row, a.Owner) // with the nonce it holds now
			if o, ok := b.read[row]; ok && o.Owner == a.Owner.Owner && o.Fingerprint == a.Owner.Fingerprint {
				// The key was read in ClickHouse, and the claim is still the one
				// that was met before: the row is this owner's, not that of
				// another with other fields that came in between.
				b.verdicts[row] = duplicateKind(m.cfg.Group, m.cfg.Source, b.Records[row].Offset, a.Owner)
				return
			}
			if m.now-b.heldSince > readAfter {
				unread = append(unread, Row{b, int(row)})
			}
		default:
			if len(g.asked) < lateMost {
				g.asked = append(g.asked, Row{b, int(row)})
			}
		}
	})
	g.unread = setOf(unread)
	if len(g.asked) > 0 {
		g.phase = gateClaim
		g.nonce, g.left = m.cfg.Nonce(), m.now
		g.set = setOf(g.asked)
		m.emit(Claim{Ref: m.gateCall(), First: math.MaxInt64, Nonce: g.nonce, Late: true, Set: g.set})
		return
	}
	m.gateReads()
}

// gateClaimed: a row whose owner's claim vanished is judged anew. What becomes
// ours after its batch was inserted is an insert of its own, and its claim is
// marked so that the run published for the batch never settles it.
func (m *Machine) gateClaimed(r *dedup.Reply) {
	g := &m.gate
	ls := &lateSet{nonce: g.nonce, claimed: g.left, replied: m.now, ticket: r.Ticket}
	fell := false
	g.set.Each(func(i int, b *Batch, row int32) {
		a := &r.Answers[i]
		switch a.Verdict {
		case dedup.New, dedup.Mine:
			if a.Owner >= 0 && r.Owners[a.Owner].Settled {
				b.verdicts[row] = vOwn
				return
			}
			ls.mine = ls.mine || a.Verdict == dedup.Mine
			b.verdicts[row] = vLate
			ls.rows = append(ls.rows, Row{b, int(row)})
		case dedup.Settled:
			b.verdicts[row] = duplicateKind(m.cfg.Group, m.cfg.Source, b.Records[row].Offset, r.Owners[a.Owner])
		case dedup.Conflict:
			b.verdicts[row] = vConflict
			b.setOwner(row, r.Owners[a.Owner])
			fell = true
		default:
			b.setOwner(row, r.Owners[a.Owner])
		}
	})
	if len(ls.rows) > 0 {
		m.late = append(m.late, ls)
	}
	if !fell {
		m.gateReads()
		return
	}
	for _, b := range m.held {
		g.letters = append(g.letters, m.letters(b)...)
	}
	if m.cfg.Conflict {
		m.halt("conflict: "+g.letters[0].Detail, "on_conflict is `stop`: correct the source, or set on_conflict: dead_letter to go on")
		return
	}
	g.phase = gateLetters
	m.emit(DeadLetter{Ref: m.gateCall(), Letters: g.letters})
}

func (m *Machine) gateReads() {
	g := &m.gate
	g.set = g.unread.filter(func(_ int, b *Batch, row int32) bool { return b.verdicts[row] == vWait })
	g.unread = Set{}
	if g.set.Len() == 0 {
		m.gateSettled()
		return
	}
	g.phase = gateRead
	m.emit(Read{Ref: m.gateCall(), Set: g.set})
}

// gateFound: a key that is in the table opens the gate. With dependent views
// the table alone proves nothing of them: there the owner's group must have
// committed past the owner as well. For a key that is not there the question is
// whether its owner can still come.
func (m *Machine) gateFound(present []bool) {
	g := &m.gate
	g.present = append(g.present[:0], present...)
	if !m.cfg.Views {
		g.set.Each(func(i int, b *Batch, row int32) {
			if present[i] {
				m.settleWait(b, row)
			}
		})
	}
	if g.phase == gateReadAgain {
		// What is there now waits as one that was there before; the rest is
		// taken over.
		g.set = g.set.filter(func(i int, _ *Batch, _ int32) bool { return !present[i] })
		m.takeOver()
		return
	}
	if !m.cfg.Views {
		g.set = g.set.filter(func(i int, _ *Batch, _ int32) bool { return !present[i] })
		g.present = g.present[:0]
	}
	m.collectOwners()
	if len(g.owners) == 0 {
		m.gateSettled()
		return
	}
	g.phase = gateOwners
	m.emit(AskOwners{Ref: m.gateCall(), Owners: g.owners})
}

// settleWait: the key's row is in, views included. The store is asked once more
// whether it is the row of the owner that was met.
func (m *Machine) settleWait(b *Batch, row int32) {
	if b.read == nil {
		b.read = map[int32]dedup.Owner{}
	}
	b.read[row] = b.owners[row]
	m.gate.again = true
}

func (m *Machine) collectOwners() {
	g := &m.gate
	if n := g.set.Len(); n > lateMost { // what one late set can hold
		g.set = g.set.filter(func(i int, _ *Batch, _ int32) bool { return i < lateMost })
	}
	g.owners = nil
	g.set.Each(func(_ int, b *Batch, row int32) { g.owners = append(g.owners, b.owners[row]) })
}

// ownersGone: claims of owners that can't come are taken over (F6), once their
// attempts are over and the key was read again.
func (m *Machine) ownersGone(fates []Fate) {
	g := &m.gate
	var owners []dedup.Owner
	there := func(i int) bool { return i < len(g.present) && g.present[i] }
	g.set.Each(func(i int, b *Batch, _ int32) {
		patience := int64(takeAfter)
		if fates[i].Listed {
			patience = listedAfter
		}
		fates[i].Gone = fates[i].Gone || m.neverBrings(g.owners[i]) || m.now-b.heldSince > patience*m.cfg.Deadline
	})
	g.set.Each(func(i int, b *Batch, row int32) {
		if there(i) && fates[i].Passed {
			m.settleWait(b, row)
		}
	})
	g.set = g.set.filter(func(i int, _ *Batch, _ int32) bool {
		if fates[i].Gone && !there(i) {
			owners = append(owners, g.owners[i])
			return true
		}
		return false
	})
	if g.set.Len() == 0 {
		m.gateSettled()
		return
	}
	g.owners = owners
	stems := map[string]bool{}
	var list []string
	for _, o := range owners {
		if s := m.cfg.StemOf(o); !stems[s] {
			stems[s] = true
			list = append(list, s)
		}
	}
	g.phase = gateOver
	m.emit(AwaitOver{Ref: m.gateCall(), Stems: list, Until: m.now + m.cfg.Deadline})
}

func (m *Machine) takeOver() {
	g := &m.gate
	if g.set.Len() == 0 {
		m.gateSettled()
		return
	}
	m.collectOwners() // with the nonces read before the wait
	g.phase = gateTake
	g.nonce, g.left = m.cfg.Nonce(), m.now
	m.emit(TakeOver{Ref: m.gateCall(), Nonce: g.nonce, Set: g.set, Owners: g.owners})
}

func (m *Machine) taken(r *dedup.Reply) {
	g := &m.gate
	ls := &lateSet{nonce: g.nonce, claimed: g.left, replied: m.now, ticket: r.Ticket}
	g.set.Each(func(i int, b *Batch, row int32) {
		if r.Answers[i].Verdict == dedup.Mine {
			b.verdicts[row] = vLate
			ls.rows = append(ls.rows, Row{b, int(row)})
		}
	})
	if len(ls.rows) > 0 {
		m.late = append(m.late, ls)
	}
	m.gateSleeps()
}

// gateSettled recounts what is closed, and sleeps while something is.
func (m *Machine) gateSettled() {
	for _, b := range m.held {
		if b.waiting > 0 {
			m.unfollow(b)
			b.recount()
		}
	}
	m.gateSleeps()
}

func (m *Machine) gateSleeps() {
	g := &m.gate
	if m.startVouching() {
		return
	}
	for _, b := range m.held {
		b.recount()
	}
	g.awake = false
	set, _ := m.closed()
	if set.Len() == 0 {
		g.phase = gateIdle
		return
	}
	if g.again {
		g.again, g.awake = false, true
		return
	}
	if g.wait < gateFirst {
		g.wait = gateFirst
	}
	g.phase = gateSleep
	m.emit(Sleep{Ref: m.gateCall(), Millis: g.wait})
	if g.wait *= 2; g.wait > gateMost {
		g.wait = gateMost
	}
}

// gateShown is how long a gate is closed, in milliseconds, before people are
// told: most open again at once.
const gateShown = 2_000

// ClosedBy is the owner that the oldest gate waits for which has been closed for
// longer than a moment.
func (m *Machine) ClosedBy() (rangeOf batcher.Range, offset int64, owner dedup.Owner, closed bool) {
	for _, b := range m.held {
		if b.waiting == 0 || m.now-b.heldSince < gateShown {
			continue
		}
		for i, v := range b.verdicts {
			if v == vWait {
				return b.Range, b.Records[i].Offset, b.owners[int32(i)], true
			}
		}
	}
	return batcher.Range{}, 0, dedup.Owner{}, false
}
