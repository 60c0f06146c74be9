package dedup

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// Every item goes to its group once, slots stand together and keys of a bucket
// stand together, whatever the mix.
func TestItemsAreOrderedByGroupSlotAndBucket(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		groups, items, slots int
		crowded              bool
	}{{1, 0, 1, false}, {1, 1, 1, false}, {1, 5000, 1, false}, {16, 5000, 1, false}, {4, 3000, 5, false}, {32, 4000, 1000, false}, {1, 3000, 2, true}, {16, 2000, 40, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			m := NewMemory(time.Now, c.groups)
			s, err := m.Open(t.Context(), Config{}, 0, testDomain, quietHooks(), Events{})
			must(t, err)
			items := make([]Item, c.items)
			for i := range items {
				items[i] = Item{Key: batcher.Key{Hi: rnd.Uint64(), Lo: uint64(i)}, Offset: int64(i), EventMs: int64(rnd.IntN(c.slots)-c.slots/2) * time.Hour.Milliseconds()}
				if c.crowded {
					items[i].Key.Hi >>= 40
				}
			}
			sc := &scratch{}
			for range 2 { // the second time over used buffers
				must(t, sc.load(s, len(items), func(i int) *Item { return &items[i] }))
				seen := make([]bool, c.items)
				n := 0
				for g := range c.groups {
					past := map[int64]bool{}
					for {
						rows := sc.next(g)
						if len(rows) == 0 {
							break
						}
						for i := range rows {
							r := &rows[i]
							it := &items[r.index]
							if seen[r.index] || it.Key != r.key || it.Offset != r.offset || s.groupOf(r.key) != g || r.slot != floorDiv(it.EventMs, time.Hour.Milliseconds()) {
								t.Fatalf("group %d: row %+v of item %+v", g, r, it)
							}
							seen[r.index] = true
							n++
							if i > 0 && rows[i-1].slot == r.slot {
								if bucket(rows[i-1].key, s.gbits, 20) > bucket(r.key, s.gbits, 20) {
									t.Fatalf("group %d: buckets are mixed", g)
								}
							} else if past[r.slot] && i > 0 {
								t.Fatalf("group %d: slot %d twice", g, r.slot)
							}
							past[r.slot] = true
						}
					}
				}
				if n != c.items {
					t.Fatalf("%d of %d items", n, c.items)
				}
			}
		})
	}
}
