package dedup

import (
	"math"
	"sync"
	"sync/atomic"
)

const (
	// defaultKeys is what a slot is laid out for when nothing is known: it costs
	// little when it is too much, since buckets exist once they are used, and
	// 10,000 keys/s outgrow it once an hour-slot, the first only.
	defaultKeys  = 1 << 20
	keysInBucket = 80
	cachedSlots  = 4096
)

// layers is the client's view of how the slots of one hash-tag group are laid
// out. A stale view costs one more round trip: scripts compare.
type layers struct {
	mu        sync.Mutex
	epoch     uint64
	slots     map[int64]string
	from, cur int64 // arrival slots that are asked
}

func (l *layers) get(slot int64) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots[slot]
}

func (l *layers) arrival() (from, cur int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from, l.cur
}

// put keeps what a script said of the slots.
func (l *layers) put(r *retry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.arrival {
		l.from, l.cur = r.from, r.cur
		return
	}
	if l.slots == nil || len(l.slots) > cachedSlots {
		l.slots = map[int64]string{}
	}
	for slot, text := range r.layers {
		if text == "" {
			delete(l.slots, slot)
		} else {
			l.slots[slot] = text
		}
	}
}

// created keeps the layout that a script took over from this client.
func (l *layers) created(slot int64, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots == nil || len(l.slots) > cachedSlots {
		l.slots = map[int64]string{}
	}
	l.slots[slot] = text
}

// estimate knows how many keys a slot of the whole domain will hold.
type estimate struct {
	keys atomic.Int64
	ask  func(slot int64) int
}

func (e *estimate) bits(slot int64, groups, rows int) byte {
	keys := e.keys.Load()
	if e.ask != nil {
		keys = int64(e.ask(slot))
	}
	if keys <= 0 {
		keys = defaultKeys
	}
	per := max(float64(keys)/float64(groups), float64(rows)) / keysInBucket
	if per <= 1 {
		return 0
	}
	return byte(min(maxBits, math.Round(math.Log2(per))))
}
