package dedup

import "github.com/oncesink/oncesink/pkg/batcher"

// Seen is the set of keys of one batch with the index at which each was met
// first. It is reused from batch to batch; nothing is allocated once it has
// grown to the size of a batch. Not safe for concurrent use.
type Seen struct {
	slots []seenSlot
	mask  uint64
	round uint32
	used  int
}

type seenSlot struct {
	key   batcher.Key
	index int32
	round uint32 // the slot is taken when this is the set's round
}

// Reset empties the set and makes room for n keys.
func (s *Seen) Reset(n int) {
	s.used = 0
	s.round++
	want := 64
	for want < 2*n {
		want *= 2
	}
	if s.round == 0 || want > len(s.slots) {
		s.slots = make([]seenSlot, max(want, len(s.slots)))
		s.mask = uint64(len(s.slots) - 1)
		s.round = 1
	}
}

// Len tells how many keys the set holds.
func (s *Seen) Len() int { return s.used }

// Add notes the key at index. When the key was met before, it answers the
// index of that first time and true.
func (s *Seen) Add(key batcher.Key, index int) (first int, seen bool) {
	if 2*(s.used+1) > len(s.slots) {
		s.grow()
	}
	for i := key.Lo & s.mask; ; i = (i + 1) & s.mask {
		slot := &s.slots[i]
		if slot.round != s.round {
			*slot = seenSlot{key, int32(index), s.round}
			s.used++
			return index, false
		}
		if slot.key == key {
			return int(slot.index), true
		}
	}
}

// Remove forgets a key, so that the next record that carries it is judged
// anew: the one that was met first has been dead-lettered.
func (s *Seen) Remove(key batcher.Key) bool {
	if s.used == 0 {
		return false
	}
	i := key.Lo & s.mask
	for ; ; i = (i + 1) & s.mask {
		if s.slots[i].round != s.round {
			return false
		}
		if s.slots[i].key == key {
			break
		}
	}
	s.used--
	// Close the gap: move up every later key of the same run that may not stand
	// behind a free slot.
	for j := (i + 1) & s.mask; s.slots[j].round == s.round; j = (j + 1) & s.mask {
		home := s.slots[j].key.Lo & s.mask
		if (j-home)&s.mask >= (j-i)&s.mask {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i].round = s.round - 1
	return true
}

func (s *Seen) grow() {
	old, round := s.slots, s.round
	if len(old) == 0 {
		s.Reset(0)
		return
	}
	s.slots = make([]seenSlot, 2*len(old))
	s.mask = uint64(len(s.slots) - 1)
	s.round, s.used = 1, 0
	for i := range old {
		if old[i].round == round {
			s.Add(old[i].key, int(old[i].index))
		}
	}
}
