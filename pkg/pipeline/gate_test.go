package pipeline

import (
	"testing"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/dedup"
)

// F5: a closed gate holds back the offset, never the next insert. Otherwise two
// partitions whose duplicates name each other wait for ever.
func TestAClosedGateDoesNotHoldTheNextInsert(t *testing.T) {
	m := NewMachine(Config{Metadata: 4096})
	m.started, m.committed, m.next = true, 100, 200
	m.held = []*Batch{{waiting: 1}}
	m.held[0].Range.First, m.held[0].Range.Last = 100, 199
	if !m.Ready() {
		t.Error("the next batch is held back by a closed gate")
	}
	if got := m.safeOffset(); got != 100 {
		t.Errorf("the offset moves to %d, past a closed gate at 100", got)
	}
}

// A row that was read in ClickHouse settles a duplicate only while the claim
// still names the owner that was met before the read: between the two another
// record, with other fields, may have brought the row.
func TestAReadSettlesOnlyWhoseOwnerWasMetBefore(t *testing.T) {
	met := dedup.Owner{Owner: batcher.Owner{Group: "main", Offset: 7}, Nonce: 1, Fingerprint: 11}
	for _, c := range []struct {
		name    string
		now     dedup.Owner
		settled bool
	}{
		{"the same", met, true},
		{"the same, renewed", dedup.Owner{Owner: met.Owner, Nonce: 2, Fingerprint: 11}, true},
		{"another record", dedup.Owner{Owner: batcher.Owner{Group: "main", Offset: 8}, Nonce: 1, Fingerprint: 11}, false},
		{"other fields", dedup.Owner{Owner: met.Owner, Nonce: 1, Fingerprint: 12}, false},
	} {
		m := NewMachine(Config{Metadata: 4096, Group: "main"})
		b := &Batch{
			Records: []Record{{Offset: 100, Fingerprint: 11}}, verdicts: []verdict{vWait},
			owners: map[int32]dedup.Owner{0: met}, read: map[int32]dedup.Owner{0: met},
		}
		m.started, m.held = true, []*Batch{b}
		m.gate.set, m.gate.owners = b.set(vWait), []dedup.Owner{met}
		m.gateAsked([]dedup.GateAnswer{{State: dedup.GateWaiting, Owner: c.now}})
		if got := b.verdicts[0].settled(); got != c.settled {
			t.Errorf("%s: settled %v, want %v", c.name, got, c.settled)
		}
	}
}

// A row that the run of the life before settles keeps the nonce of its own claim
// when the others of its batch are renewed. Vouched for under the later nonce it
// would not be settled, and where its run is broken by a gap, the duplicates of
// another partition would wait for it for ever.
func TestARowThatIsNotRenewedIsVouchedForUnderItsOwnNonce(t *testing.T) {
	m := NewMachine(Config{Group: "main"})
	m.acked, m.ackedAt = dedup.Run{Lo: 0, Hi: 3, Known: true}, dedup.Ticket{}
	b := &Batch{Records: []Record{{Offset: 2}, {Offset: 5}}, verdicts: make([]verdict, 2)}
	j := &job{batch: b, set: Set{Parts: []Part{{b, []int32{0, 1}}}}, nonce: 8}
	own := func(offset int64) dedup.Owner {
		return dedup.Owner{Owner: batcher.Owner{Group: "main", Offset: offset}, Nonce: 1}
	}
	m.job = j
	m.apply(j, &dedup.Reply{
		Owners:  []dedup.Owner{own(2), own(5)},
		Answers: []dedup.Answer{{Verdict: dedup.Mine, Owner: 0}, {Verdict: dedup.Mine, Owner: 1}},
	})
	if b.verdicts[0] != vOwn || b.verdicts[1] != vMine {
		t.Fatalf("verdicts %v, want the first settled by the run and the second to be judged", b.verdicts)
	}
	renewed := uint32(10)
	if got := nonces(b.set(vOwn), renewed); len(got) != 1 || got[0] != 8 {
		t.Errorf("the row is vouched for under %d, its claim holds 8", got)
	}
}

// A sink is killed with an insert under way. While its session runs out, a duplicate in
// another partition took one of its rows over, and the insert could not be sent again
// as it was: with views the partition stopped, for nothing but a kill.
func TestARowThatAnIntentListsIsNotTakenWhileItsPartitionChangesHands(t *testing.T) {
	const d = 5000
	for _, c := range []struct {
		after int64 // since the batch waits, in deadlines
		fate  Fate
		taken bool
	}{
		{5, Fate{}, false},
		{7, Fate{}, true},
		{7, Fate{Listed: true}, false},
		{23, Fate{Listed: true}, false},
		{25, Fate{Listed: true}, true}, // a record that vanished, while its batch waits for us
		{1, Fate{Listed: true, Gone: true}, true},
	} {
		owner := dedup.Owner{Owner: batcher.Owner{Group: "main", Offset: 7}, Nonce: 1}
		b := &Batch{Records: []Record{{Offset: 100}}, verdicts: []verdict{vWait}, owners: map[int32]dedup.Owner{0: owner}, heldSince: 1}
		m := NewMachine(Config{Metadata: 4096, Deadline: d, Group: "main", StemOf: func(dedup.Owner) string { return "stem" }})
		m.started, m.held, m.now = true, []*Batch{b}, 1+c.after*d
		m.gate.set, m.gate.owners, m.gate.present = b.set(vWait), []dedup.Owner{owner}, []bool{false}
		m.ownersGone([]Fate{c.fate})
		if got := m.gate.phase == gateOver; got != c.taken {
			t.Errorf("after %d deadlines, %+v: taken %v, want %v", c.after, c.fate, got, c.taken)
		}
	}
}
