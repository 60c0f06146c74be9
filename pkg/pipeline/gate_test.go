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
