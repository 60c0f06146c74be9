package dedup

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// scratch holds the buffers of one batch call.
type scratch struct {
	rows  []row
	order []sortKey // two halves: unsorted, sorted
	count []uint32
	slots []int64
	calls [MaxGroups]call
	at    [MaxGroups]int // next row of the group
	end   [MaxGroups]int
	list  []*call
}

// sortKey is the place of an item: its group, its slot, then the bits of its
// key that choose the bucket.
type sortKey struct {
	place uint64
	index int32
	slot  int32 // in scratch.slots
}

// load sorts the items by group, slot and key, so that a script meets the keys
// of a bucket together.
func (sc *scratch) load(s *Store, n int, item func(i int) *Item) error {
	h := s.head.Load()
	sc.order = slices.Grow(sc.order[:0], 2*n)[:2*n]
	keys := sc.order[:n]
	sc.slots = sc.slots[:0]
	var lookup map[int64]int32
	at := int32(-1)
	for i := range n {
		it := item(i)
		if it.Offset < 0 || it.Offset > maxOffset {
			return &Unfit{Problem: fmt.Sprintf("offset %d does not fit 40 bits", it.Offset)}
		}
		if slot := s.slotOf(it, h); at < 0 || sc.slots[at] != slot {
			at, lookup = sc.slotIndex(slot, lookup)
		}
		keys[i] = sortKey{place: it.Key.Hi, index: int32(i), slot: at}
	}
	if len(sc.slots) > 1 {
		sc.fold(keys, s.gbits)
	}
	keys = sc.sort(keys)
	sc.rows = slices.Grow(sc.rows[:0], n)[:n]
	group := 0
	sc.at[0] = 0
	for i := range keys {
		it := item(int(keys[i].index))
		sc.rows[i] = row{key: it.Key, slot: sc.slots[keys[i].slot], offset: it.Offset, fp: it.Fingerprint, nonce: it.Nonce, index: keys[i].index, want: -1}
		if i > 0 && sc.rows[i].key == sc.rows[i-1].key && sc.rows[i].slot == sc.rows[i-1].slot {
			return fmt.Errorf("dedup: offsets %d and %d of one call carry the same key; see Seen", sc.rows[i-1].offset, sc.rows[i].offset)
		}
		for here := s.groupOf(it.Key); group < here; group++ {
			sc.end[group], sc.at[group+1] = i, i
		}
	}
	for ; group < s.groups; group++ {
		sc.end[group] = n
		if group+1 < s.groups {
			sc.at[group+1] = n
		}
	}
	return nil
}

// slotIndex finds a slot among those of the batch. Few batches have more than
// one; a replay of old records may have thousands.
func (sc *scratch) slotIndex(slot int64, lookup map[int64]int32) (int32, map[int64]int32) {
	if lookup == nil && len(sc.slots) < 16 {
		if i := slices.Index(sc.slots, slot); i >= 0 {
			return int32(i), nil
		}
	} else {
		if lookup == nil {
			lookup = map[int64]int32{}
			for i, known := range sc.slots {
				lookup[known] = int32(i)
			}
		}
		if i, ok := lookup[slot]; ok {
			return i, lookup
		}
		lookup[slot] = int32(len(sc.slots))
	}
	sc.slots = append(sc.slots, slot)
	return int32(len(sc.slots) - 1), lookup
}

// fold puts the slot between the group and the rest of the key.
func (sc *scratch) fold(keys []sortKey, gbits uint) {
	width := uint(bits.Len(uint(len(sc.slots) - 1)))
	for i := range keys {
		hi := keys[i].place
		var group uint64
		if gbits > 0 {
			group = hi >> (64 - gbits) << (64 - gbits)
		}
		keys[i].place = group | uint64(keys[i].slot)<<(64-gbits-width) | hi<<gbits>>(gbits+width)
	}
}

// sort orders by place: one counting pass over the leading bits, which are a
// hash and so spread evenly, then insertion within what is left together.
func (sc *scratch) sort(keys []sortKey) []sortKey {
	n := len(keys)
	if n < 2 {
		return keys
	}
	width := min(16, bits.Len(uint(n)))
	shift := 64 - width
	sc.count = slices.Grow(sc.count[:0], 1<<width+1)[:1<<width+1]
	clear(sc.count)
	for i := range keys {
		sc.count[keys[i].place>>shift+1]++
	}
	for i := 1; i < len(sc.count); i++ {
		sc.count[i] += sc.count[i-1]
	}
	out := sc.order[n : 2*n]
	for i := range keys {
		bin := &sc.count[keys[i].place>>shift]
		out[*bin] = keys[i]
		*bin++
	}
	for i := 1; i < n; i++ {
		k := out[i]
		j := i
		for ; j > 0 && out[j-1].place > k.place; j-- {
			if i-j > 64 { // a few slots or groups crowd the leading bits
				out[j] = k
				slices.SortFunc(out, func(a, b sortKey) int {
					switch {
					case a.place < b.place:
						return -1
					case a.place > b.place:
						return 1
					}
					return int(a.index - b.index)
				})
				return out
			}
			out[j] = out[j-1]
		}
		out[j] = k
	}
	return out
}

// groupOf is the hash-tag group of a key.
func (s *Store) groupOf(k batcher.Key) int {
	if s.gbits == 0 {
		return 0
	}
	return int(k.Hi >> (64 - s.gbits))
}
