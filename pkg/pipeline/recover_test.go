package pipeline

import (
	"strings"
	"testing"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/writer"
)

// Rows with claims of ours that no intent lists, some of them in the table, which has views. A partition that stops here although the log proves that no
// insert of its own wrote anything (a worker died between its claim and its intent, and another partition's insert had brought the key before the store was
// lost) stops without need; one that goes on without that proof may leave rows out of the views (I1).
func TestRowsOfOthersUnderClaimsOfOursStopNothing(t *testing.T) {
	known := writer.Attempts{Known: true, OnlyRejected: true, NoneCut: true}
	wrote := writer.Attempts{Known: true, NoneCut: true}
	for _, c := range []struct {
		name   string
		facts  Facts
		passed int64
		want   verdict // of the row that is there; vOpen: the partition stops
	}{
		{"no insert of ours wrote", Facts{Attempts: known}, 0, vDupTable},
		{"no insert of ours wrote since; the group had committed past the row before", Facts{Attempts: known}, 101, vOwn},
		{"an insert of ours ended well over it", Facts{Attempts: wrote, Ended: []batcher.Range{{First: 90, Last: 100}}}, 0, vOwn},
		{"an insert of ours ended well elsewhere", Facts{Attempts: wrote, Ended: []batcher.Range{{First: 101, Last: 110}}}, 0, vOpen},
		{"an insert of ours was cut", Facts{Attempts: writer.Attempts{Known: true}}, 0, vOpen},
		{"the log doesn't reach back", Facts{}, 0, vOpen},
		{"the log doesn't reach back, and shows nothing", Facts{Attempts: writer.Attempts{OnlyRejected: true, NoneCut: true}}, 0, vOpen},
	} {
		m := NewMachine(Config{Metadata: 4096, Views: true, Deadline: 5000, Topic: "t", Nonce: func() uint32 { return 7 }})
		b := &Batch{Range: batcher.Range{First: 100, Last: 101}, Records: []Record{{Offset: 100}, {Offset: 101}}, verdicts: []verdict{vMine, vMine}}
		m.started, m.committed, m.next, m.passed = true, 100, 100, c.passed
		m.job = &job{batch: b, span: b.Range, phase: phaseFacts, nonce: 5, set: b.set(vMine), present: []bool{true, false}}
		m.factsKnown(c.facts)
		if c.want == vOpen {
			if h := m.Halted(); h == nil || !strings.Contains(h.Cure, "--views-recomputed --range 100-101") {
				t.Errorf("%s: halt %+v, want a stop that names the range", c.name, h)
			}
			continue
		}
		if h := m.Halted(); h != nil {
			t.Errorf("%s: stopped: %s", c.name, h.Reason)
			continue
		}
		if b.verdicts[0] != c.want || b.verdicts[1] != vNew {
			t.Errorf("%s: verdicts %v, want %d for the row that is there, and the other sent", c.name, b.verdicts, c.want)
		}
		if rows := m.job.set; rows.Len() != 1 || rows.Parts[0].Rows[0] != 1 {
			t.Errorf("%s: sends %v, want the missing row alone", c.name, rows)
		}
	}
}

// Two partitions stopped, each behind a batch that waited for the other: a way on
// that began at its own rows was refused for either, for ever.
func TestAStopBehindWhatWaitsNamesARangeFromTheOffsetOn(t *testing.T) {
	m := NewMachine(Config{Metadata: 4096, Views: true, Deadline: 5000, Topic: "t", Nonce: func() uint32 { return 7 }})
	b := &Batch{Range: batcher.Range{First: 100, Last: 100}, Records: []Record{{Offset: 100}}, verdicts: []verdict{vMine}}
	m.started, m.committed, m.next = true, 60, 100
	m.held = []*Batch{{Range: batcher.Range{First: 60, Last: 99}, waiting: 1}}
	m.job = &job{batch: b, span: b.Range, phase: phaseFacts, nonce: 5, set: b.set(vMine), present: []bool{true}}
	m.factsKnown(Facts{})
	if h := m.Halted(); h == nil || !strings.Contains(h.Cure, "for offsets [60..100]") || !strings.Contains(h.Cure, "--range 60-100 --apply") {
		t.Errorf("halt %+v", h)
	}
}
