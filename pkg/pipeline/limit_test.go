package pipeline

import (
	"maps"
	"testing"
)

// A sink set to fewer table partitions a statement took over an intent that
// named more: its pieces were refused by the sink's own setting, for ever.
func TestPiecesOfALargerLimitAreLetThrough(t *testing.T) {
	limit := func(n string) map[string]string { return map[string]string{"max_partitions_per_insert_block": n} }
	for _, c := range []struct {
		ours, parts int
		want        map[string]string
	}{
		{ours: 1, parts: 4, want: limit("4")},
		{ours: 1, parts: 0, want: limit("0")}, // whole: the intent knew no limit
		{ours: 4, parts: 4},
		{ours: 4, parts: 1},
		{ours: 0, parts: 4}, // no limit of ours, or a table without partitions
		{ours: 0, parts: 0},
	} {
		w := &worker{target: &Target{PartitionMost: c.ours}}
		if got := w.limitFor(c.parts); !maps.Equal(got, c.want) {
			t.Errorf("limit of %d, pieces of %d: %v, want %v", c.ours, c.parts, got, c.want)
		}
	}
}
