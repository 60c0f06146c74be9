package dedup

import "strconv"

// memGroup is a hash-tag group in plain Go: the semantics of lua/*.lua without
// their layout. Where the two differ the test of their equality fails.
type memGroup struct {
	marker *marker
	acked  map[uint32]Run
	ids    map[string]uint32
	names  map[uint32]string
	claims map[place]claim
	lives  int // how often the group alone lost writes
}

// marker is what the scripts keep in the hash of the same name.
type marker struct {
	name, route  string
	groups       int
	epoch        uint64
	id           string // of the server process and its replication history
	table        [16]byte
	d, h, cutoff int64
	slot         int64 // length, ms
	q, verify    int64 // since, ms; 0: off
	max          int64 // newest arrival slot
}

// place is where a key's entry lies: a key has one in each slot.
type place struct {
	key  [2]uint64
	slot int64
}

type claim struct {
	entry
	expires int64
}

func newMemGroup() *memGroup {
	return &memGroup{acked: map[uint32]Run{}, ids: map[string]uint32{}, names: map[uint32]string{}, claims: map[place]claim{}}
}

// apply runs a call at a time under a server identity.
func (g *memGroup) apply(c *call, now int64, nowMicro uint64, id string) {
	if c.op == opRaise {
		g.raise(c, now, nowMicro, id)
		return
	}
	closed := c.op == opClaim || c.op == opRenew || c.op == opTake
	if !g.guard(c, now, id, closed) {
		return
	}
	switch c.op {
	case opClaim:
		g.claim(c, now)
	case opRenew:
		g.renew(c, now)
	case opFind:
		g.find(c, now)
	case opTake:
		g.take(c, now)
	case opRelease:
		g.release(c, now)
	case opAcked:
		if id, ok := g.ids[c.owner]; ok {
			c.run, c.met = g.acked[id], true
		}
	case opPublish:
		run, id := g.acked[g.intern(c.owner)], g.ids[c.owner]
		if !run.Known || run.Lo != c.lo || c.lo == c.hi || run.Hi < c.hi {
			g.acked[id] = Run{c.lo, c.hi, true}
		}
	case opNames:
		for _, id := range c.ids {
			c.names = append(c.names, g.names[id])
		}
	case opOpen:
		g.open(c, now)
	}
}

// guard is lua/guard.lua.
func (g *memGroup) guard(c *call, now int64, id string, closed bool) bool {
	m, h := g.marker, c.head
	if m == nil {
		c.status = stMissing
		return false
	}
	if m.name != h.name || m.route != h.route || m.groups != h.groups {
		c.status, c.said = stShape, m.name+";"+m.route+";"+strconv.Itoa(m.groups)
		return false
	}
	c.got = m.epoch
	switch {
	case m.id != id:
		c.status = stMoved
		return false
	case m.table != h.table:
		c.status, c.table = stSwapped, m.table
		return false
	case m.epoch < c.known:
		c.status = stEpoch
		return false
	case c.epoch != 0 && c.epoch != m.epoch:
		c.status = stEpoch
		return false
	}
	m.d, m.h, m.cutoff = max(m.d, h.d), max(m.h, h.h), max(m.cutoff, h.cutoff)
	c.d, c.cutoff, c.now = m.d, m.cutoff, now
	if closed && m.q != 0 {
		c.status, c.q = stQuarantine, m.q
		return false
	}
	c.verify = m.verify != 0 && now-m.verify <= m.h+h.slack
	return true
}

// raise is lua/raise.lua.
func (g *memGroup) raise(c *call, now int64, nowMicro uint64, id string) {
	m, h := g.marker, c.head
	old := marker{}
	if m != nil {
		old = *m
	}
	c.got, c.table = old.epoch, old.table
	switch {
	case old.epoch != c.epoch, m != nil && !c.swapped && old.id == id && old.epoch >= c.known:
		c.status = stEpoch
		return
	case c.swapped && old.table != c.seen:
		c.status = stSwapped
		return
	}
	next := old
	if m == nil {
		next = marker{name: h.name, route: h.route, groups: h.groups, slot: h.slot}
	}
	next.epoch, next.id = max(old.epoch+1, c.known+1, nowMicro), id
	if c.swapped || m == nil {
		next.table = h.table
	}
	next.d, next.h, next.cutoff = max(old.d, h.d), max(old.h, h.h), max(old.cutoff, h.cutoff)
	next.q, next.verify = now, now
	g.marker = &next
	clear(g.acked)
	c.got, c.verify, c.now, c.d = next.epoch, true, now, next.d
}

// open is lua/open.lua.
func (g *memGroup) open(c *call, now int64) {
	m := g.marker
	if m.q != 0 {
		if !c.endHold || now-m.q < m.d+m.cutoff {
			c.status, c.q, c.d, c.cutoff, c.now, c.got = stQuarantine, m.q, m.d, m.cutoff, now, m.epoch
			return
		}
		m.q = 0
	}
	if c.endVerify {
		m.verify, c.verify = 0, false
	}
}

func (g *memGroup) intern(text string) uint32 {
	id, ok := g.ids[text]
	if !ok {
		id = uint32(len(g.names) + 1)
		g.names[id], g.ids[text] = text, id
	}
	return id
}

func (g *memGroup) covered(id uint32, offset int64) bool {
	run := g.acked[id]
	return run.Known && offset >= run.Lo && offset < run.Hi
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// slots tells which arrival slots are asked, the newest of which takes entries.
func (g *memGroup) slots(now int64, writes bool) (from, cur int64) {
	m := g.marker
	cur = max(floorDiv(now, m.slot), m.max)
	from = min(cur, floorDiv(now-m.h, m.slot))
	if writes {
		m.max = cur
	}
	return from, cur
}

// walk calls visit for every row with its entry, if it has a living one, and
// with the place where it lies or would lie.
func (g *memGroup) walk(c *call, now int64, writes bool, visit func(r *row, at place, e *entry)) {
	var from, cur int64
	if c.head.arrival {
		from, cur = g.slots(now, writes)
	}
	for i := range c.rows {
		r := &c.rows[i]
		if !c.head.arrival {
			from, cur = r.slot, r.slot
		}
		at := place{[2]uint64{r.key.Hi, r.key.Lo}, from}
		var found *entry
		for ; at.slot <= cur; at.slot++ {
			if e, ok := g.claims[at]; ok && e.expires > now {
				found = &e.entry
				break
			}
		}
		at.slot = min(at.slot, cur)
		visit(r, at, found)
	}
}

// put writes an entry. It lives a horizon from now, or from the end of its
// slot. (In Redis the whole bucket does, so an entry may live longer there.)
func (g *memGroup) put(c *call, now int64, at place, e entry) {
	ends := max(now, (at.slot+1)*g.marker.slot) + g.marker.h + c.head.slack
	g.claims[at] = claim{e, max(ends, g.claims[at].expires)}
}

func (c *call) answer(code byte, e *entry) {
	c.verdicts = append(c.verdicts, code)
	if hasEntry(code) {
		c.entries = append(c.entries, *e)
	}
}

// claim is lua/claim.lua.
func (g *memGroup) claim(c *call, now int64) {
	id := g.intern(c.owner)
	g.walk(c, now, true, func(r *row, at place, e *entry) {
		if e == nil {
			g.put(c, now, at, entry{id: id, fresh: !c.verify, taken: c.late, offset: r.offset, fp: r.fp, nonce: c.nonce})
			c.answer(codeNew, nil)
			return
		}
		if e.released() {
			g.put(c, now, at, entry{id: id, fresh: !c.verify, taken: true, offset: r.offset, fp: r.fp, nonce: c.nonce})
			c.answer(codeNewAgain, nil)
			return
		}
		settled := e.nonce == doneNonce(c.head.table)
		self := e.id == id && e.offset == r.offset
		if self && e.fresh && e.nonce == c.nonce {
			c.answer(codeNewAgain, nil)
			return
		}
		if self || e.id == id && e.offset >= c.first && e.fp == r.fp {
			c.answer(codeMineMet, e)
			if !settled {
				next := *e
				next.fresh, next.taken, next.nonce = false, e.taken || c.late, c.nonce
				g.put(c, now, at, next)
			}
			return
		}
		switch {
		case e.fp != r.fp && e.fp != UnknownFingerprint:
			c.answer(codeConflict, e)
		case settled || !e.taken && g.covered(e.id, e.offset):
			c.answer(codeSettled, e)
		default:
			c.answer(codeDuplicate, e)
		}
	})
}

// renew is lua/renew.lua.
func (g *memGroup) renew(c *call, now int64) {
	id, known := g.ids[c.owner]
	g.walk(c, now, true, func(r *row, at place, e *entry) {
		switch {
		case e == nil || e.released():
			c.answer(codeAbsent, nil)
		case !known || e.id != id || e.offset < c.first && e.offset != r.offset || e.nonce != c.nonce && e.nonce != r.nonce:
			c.answer(codeChanged, e)
		default:
			code := byte(codeMine)
			if e.fresh {
				code = codeNew
			}
			c.answer(code, nil)
			next := *e
			next.nonce = c.nonce
			g.put(c, now, at, next)
		}
	})
}

// find is lua/find.lua.
func (g *memGroup) find(c *call, now int64) {
	g.walk(c, now, false, func(_ *row, _ place, e *entry) {
		switch {
		case e == nil || e.released():
			c.answer(codeAbsent, nil)
		case e.nonce == doneNonce(c.head.table) || !e.taken && g.covered(e.id, e.offset):
			c.answer(codeSettled, e)
		default:
			c.answer(codeDuplicate, e)
		}
	})
}

// take is lua/take.lua.
func (g *memGroup) take(c *call, now int64) {
	id := g.intern(c.owner)
	g.walk(c, now, true, func(r *row, at place, e *entry) {
		if e == nil || e.released() {
			c.answer(codeAbsent, nil)
			return
		}
		w := &c.wants[r.want]
		owner, known := g.ids[c.owners[w.owner]]
		ours := entry{id: id, taken: true, offset: r.offset, fp: r.fp, nonce: c.nonce}
		again := e.id == id && e.taken && !e.fresh && e.offset == r.offset && e.nonce == c.nonce
		same := known && e.id == owner && e.taken == w.taken && e.offset == w.offset && e.nonce == w.nonce
		if !again && !same {
			c.answer(codeChanged, e)
			return
		}
		c.answer(codeMine, nil)
		g.put(c, now, at, ours)
	})
}

// release is lua/release.lua.
func (g *memGroup) release(c *call, now int64) {
	id, known := g.ids[c.owner]
	g.walk(c, now, false, func(r *row, at place, e *entry) {
		switch {
		case e == nil || e.released():
			c.answer(codeAbsent, nil)
		case known && e.id == id && e.offset == r.offset && e.nonce == r.nonce:
			c.answer(codeMine, nil)
			next := entry{}
			if c.done {
				next = *e
				next.nonce = doneNonce(c.head.table)
			}
			g.claims[at] = claim{next, g.claims[at].expires}
		default:
			c.answer(codeChanged, e)
		}
	})
}
