package dedup

import (
	"math"
	"strconv"
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
	bitmapBytes  = 4 << 20 // of one hash-tag group
)

// layers is the client's view of how the slots of one hash-tag group are laid
// out. A stale view costs one more round trip: scripts compare.
type layers struct {
	mu        sync.Mutex
	slots     map[int64]*slotView
	from, cur int64 // arrival slots that are asked
	// trust names the epoch and the horizon of the last answer. What is known
	// under another one counts for nothing.
	trust string
	bytes int
}

// slotView is the layout of one slot, and the buckets of its newest layer that
// this client has seen to exist, with their expiry set.
type slotView struct {
	layers string
	trust  string
	known  *bitmap
}

// bitmap is a set of bucket numbers.
type bitmap []uint64

func (b *bitmap) has(n uint64) bool {
	return b != nil && atomic.LoadUint64(&(*b)[n>>6])&(1<<(n&63)) != 0
}

func (b *bitmap) add(n uint64) { atomic.OrUint64(&(*b)[n>>6], 1<<(n&63)) }

// view answers a slot's layers, "" when they are not known, and the buckets that
// are known under the trust, nil when none are.
func (l *layers) view(slot int64, trust string) (string, *bitmap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.slots[slot]
	if v == nil {
		return "", nil
	}
	if trust == "" || v.trust != trust {
		return v.layers, nil
	}
	return v.layers, v.known
}

func (l *layers) trusts() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trust
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
	for slot, text := range r.layers {
		if text == "" {
			delete(l.slots, slot)
		} else {
			l.set(slot, text)
		}
	}
}

func (l *layers) set(slot int64, text string) {
	if l.slots == nil || len(l.slots) > cachedSlots {
		l.slots, l.bytes = map[int64]*slotView{}, 0
	}
	l.slots[slot] = &slotView{layers: text}
}

// propose notes the layout that this client would give a slot.
func (l *layers) propose(slot int64, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(slot, text)
}

// exist answers where to note buckets of the slot that a script has just found
// or made under the trust; nil when the layout is another by now.
func (l *layers) exist(slot int64, text, trust string) *bitmap {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trust = trust
	v := l.slots[slot]
	if v == nil || v.layers != text {
		return nil
	}
	if v.known != nil && v.trust == trust {
		return v.known
	}
	words := 1 << max(0, int(text[len(text)-1])-6)
	if l.bytes += 8 * words; l.bytes > bitmapBytes {
		for _, other := range l.slots {
			other.known = nil
		}
		l.bytes = 8 * words
	}
	known := make(bitmap, words)
	v.trust, v.known = trust, &known
	return v.known
}

// noteBuckets remembers the buckets into which a claim has put keys.
func (b *redisBackend) noteBuckets(p *packed, c *call) {
	if c.op != opClaim {
		return
	}
	l := &b.layout[c.group]
	trust := strconv.FormatUint(c.got, 10) + ";" + strconv.FormatInt(c.h, 10)
	for i := range p.secs {
		sec := &p.secs[i]
		n := len(sec.slots) - 1
		text := sec.layers[n]
		known := l.exist(sec.slots[n], text, trust)
		if known == nil {
			continue
		}
		bits := uint(text[len(text)-1])
		for j := sec.from; j < sec.to; j++ {
			if c.verdicts[j] == codeNew {
				if n := bucket(c.rows[j].key, b.gbits, bits); !known.has(n) {
					known.add(n)
				}
			}
		}
	}
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
