package pipeline

import "testing"

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
