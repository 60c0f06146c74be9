package ops

import (
	"slices"
	"testing"

	"github.com/oncesink/oncesink/pkg/offsets"
)

// What an operator sets aside was claimed under epochs all the same. Without
// them a store that was exchanged and comes back would pass for the present one.
func TestAResolutionKeepsTheEpochs(t *testing.T) {
	known := []uint64{1790000000123456, 1790000000123789}
	for name, c := range map[string]struct {
		was offsets.Intent
		r   Resolution
	}{
		"idle, moved on":         {offsets.Intent{Epochs: known}, Resolution{To: 60, Last: -1}},
		"idle, moved back":       {offsets.Intent{Epochs: known}, Resolution{To: 10, Last: -1}},
		"moved back once before": {offsets.Intent{Passed: 70, Epochs: known}, Resolution{To: -1, Drop: true, Last: -1}},
		"vouched for":            {offsets.Intent{Passed: 70, Epochs: known}, Resolution{To: -1, Vouch: true, First: 50, Last: 55}},
	} {
		meta, err := c.was.Encode()
		if err != nil {
			t.Fatal(err)
		}
		before := describePartition("t", 0, offsets.Bounds{Start: 0, Stable: 100, High: 100}, offsets.Committed{Offset: 50, Metadata: meta})
		if (before.Intent != nil) != (c.was.Passed > 0) {
			t.Errorf("%s: shown as %+v", name, before.Intent)
		}
		p, err := plan(before, c.r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if meta, err = p.metadata(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if in, err := offsets.Decode(meta); err != nil || in == nil || !slices.Equal(in.Epochs, known) {
			t.Errorf("%s: commits %+v, %v", name, in, err)
		}
	}
	// A group that has never met a store commits no metadata.
	p, err := plan(describePartition("t", 0, offsets.Bounds{High: 100}, offsets.Committed{Offset: 50}), Resolution{To: 60, Last: -1})
	if err != nil {
		t.Fatal(err)
	}
	if meta, err := p.metadata(); err != nil || meta != "" {
		t.Errorf("%q, %v", meta, err)
	}
}
