package decode

import "hash/maphash"

// nameSet finds names that an object has twice. One set serves all objects of
// a record; each object has a number. Its memory is bounded by the largest
// record and reused.
type nameSet struct {
	seed  maphash.Seed
	slots []nameSlot
	arena []byte
	round uint32 // slots of another round are free
	used  int
	last  uint32 // number of the newest object
}

type nameSlot struct {
	round, object uint32
	from, to      uint32
	hash          uint32
}

func (n *nameSet) reset() {
	n.arena = n.arena[:0]
	n.used, n.last = 0, 0
	n.round++
	if n.round == 0 { // wrapped: old rounds would look new
		clear(n.slots)
		n.round = 1
	}
}

// object returns the number of a new object; 0 is the record's own.
func (n *nameSet) object() uint32 {
	n.last++
	return n.last
}

// add reports whether the object did not have the name yet.
func (n *nameSet) add(object uint32, name []byte) bool {
	if n.slots == nil {
		n.seed = maphash.MakeSeed()
		n.slots = make([]nameSlot, 64)
	}
	if 2*n.used >= len(n.slots) {
		n.grow()
	}
	h := uint32(maphash.Bytes(n.seed, name)) ^ object*0x9E3779B1
	mask := uint32(len(n.slots) - 1)
	i := h & mask
	for ; n.slots[i].round == n.round; i = (i + 1) & mask {
		s := &n.slots[i]
		if s.hash == h && s.object == object && string(n.arena[s.from:s.to]) == string(name) {
			return false
		}
	}
	from := len(n.arena)
	n.arena = append(n.arena, name...)
	n.slots[i] = nameSlot{n.round, object, uint32(from), uint32(len(n.arena)), h}
	n.used++
	return true
}

func (n *nameSet) grow() {
	old := n.slots
	n.slots = make([]nameSlot, 2*len(old))
	mask := uint32(len(n.slots) - 1)
	for _, s := range old {
		if s.round != n.round {
			continue
		}
		i := s.hash & mask
		for n.slots[i].round == n.round {
			i = (i + 1) & mask
		}
		n.slots[i] = s
	}
}
