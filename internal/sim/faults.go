package sim

import (
	"slices"

	"github.com/oncesink/oncesink/pkg/offsets"
)

// fault is something that goes wrong.
type fault int

const (
	faultCrash fault = iota
	faultPause       // longer than the session timeout, or not
	faultRebalance
	faultLostReply
	faultLateLanding
	faultLateCommit
	faultLateInsert
	faultLostAck
	faultServerCrash
	faultBusy
	faultViewBroken
	faultForeign
	faultNoLog
	faultFailover
	faultFlush
	faultOldDump
	faultStoreRestart
	faultStoreDown
	faultPartStore
	faultResetBack
	faultResetForward
	faultCompaction
	faultRetention
	faultUndecodable
	faultExchange // of the store for another one, and back
	faults        // how many there are
)

var faultNames = [faults]string{"crash", "pause", "rebalance", "lost reply", "late landing", "late commit", "late insert", "lost ack", "server crash",
	"busy", "view broken", "foreign writer", "no query log", "store failover", "store flush", "old dump", "store restart", "store down", "store call in part",
	"reset back", "reset forward", "compaction", "retention", "undecodable", "store exchanged"}

// spend tells whether this request meets that fault.
func (w *world) spend(f fault, step at) bool {
	if w.calm || w.budget[f] == 0 {
		return false
	}
	if a := w.p.Aim; a.On && a.Fault == f && w.budget[f] > 1 {
		if a.Step != step || w.pick(4) > 0 {
			return false
		}
	} else if !w.choose.meets() {
		return false
	}
	w.use(f)
	w.seen.Met[f][step]++
	return true
}

// metByRequests: the fault doesn't stand by itself.
func metByRequests(f fault) bool {
	switch f {
	case faultLostReply, faultLateLanding, faultLateCommit, faultLateInsert, faultLostAck, faultNoLog, faultPartStore:
		return true
	}
	return false
}

// use takes a fault from what is left.
func (w *world) use(f fault) {
	if w.small == nil {
		w.budget[f]--
		return
	}
	w.p.Faults[f]++ // the checks ask what has happened
	if w.left--; w.left == 0 {
		w.budget = [faults]int{}
	}
}

// fault picks one that stands by itself; false: none is left, or none fits now.
func (w *world) fault() bool {
	var left []fault
	for f := range faults {
		if w.budget[f] > 0 && !metByRequests(f) {
			left = append(left, f)
		}
	}
	if len(left) == 0 {
		return false
	}
	f := left[w.pick(len(left))]
	if !w.strike(f) {
		return false
	}
	w.use(f)
	return true
}

// struck notes where a fault met the workers of a process, or of all.
func (w *world) struck(f fault, p *process) {
	for _, q := range w.procs {
		if p != nil && q != p {
			continue
		}
		for _, wk := range q.workers {
			if wk == nil || wk.halt != nil {
				continue
			}
			for _, s := range wk.steps() {
				w.seen.Met[f][s]++
			}
		}
	}
}

func (w *world) anyProcess(ok func(*process) bool) *process {
	var list []*process
	for _, p := range w.procs {
		if p.alive && ok(p) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[w.pick(len(list))]
}

func (w *world) strike(f fault) bool {
	switch f {
	case faultCrash:
		p := w.anyProcess(func(*process) bool { return true })
		if p == nil {
			return false
		}
		w.struck(f, p)
		w.crash(p)
	case faultPause:
		p := w.anyProcess(func(p *process) bool { return !p.paused && p.member != 0 })
		if p == nil {
			return false
		}
		w.struck(f, p)
		w.pause(p)
	case faultRebalance:
		g := w.kafka.groups[w.pick(len(w.kafka.groups))]
		if len(g.members) == 0 {
			return false
		}
		w.struck(f, nil)
		w.logf("fault: group %s rebalances", g.name)
		w.shuffles = true
		w.kafka.rebalance(g)
		w.shuffles = false
	case faultServerCrash:
		if !w.house.up {
			return false
		}
		w.struck(f, nil)
		w.logf("fault: ClickHouse crashes")
		w.house.crash()
	case faultBusy:
		w.house.busyTo = w.lasting("busy", w.below(10*deadline), &w.house.busyTo)
		w.struck(f, nil)
		w.logf("fault: ClickHouse refuses inserts until %dms", w.house.busyTo-day0)
	case faultViewBroken:
		if w.p.Views == 0 {
			return false
		}
		w.house.brokenTo = w.lasting("views fail", w.below(4*deadline), &w.house.brokenTo)
		w.struck(f, nil)
		w.logf("fault: views fail until %dms", w.house.brokenTo-day0)
	case faultForeign:
		w.struck(f, nil)
		w.logf("fault: another writer begins")
		w.foreignWriter(2*w.p.Window + w.pick(w.p.Window))
	case faultFailover, faultOldDump, faultFlush, faultStoreRestart, faultStoreDown, faultExchange:
		return w.strikeStore(f)
	case faultResetBack, faultResetForward:
		g := w.kafka.groups[w.pick(len(w.kafka.groups))]
		return w.reset(g, f)
	case faultCompaction, faultRetention, faultUndecodable:
		return w.strikeLog(f)
	}
	return true
}

func (w *world) crash(p *process) {
	w.logf("fault: %s crashes", p.name)
	p.crash()
	back := w.below(500)
	if w.chance(30) {
		back = w.below(6 * deadline)
	}
	// Where all schedules are explored, another takes its place while there is one.
	again := w.small == nil || !slices.ContainsFunc(w.procs, func(q *process) bool { return q.alive })
	switch {
	case w.small != nil && again:
	case w.chance(50):
		w.kafka.leave(p) // noticed at once
	default:
		w.within(w.below(2*deadline), loosely, &task{kind: "is missed", what: p, void: func() bool { return p.alive || p.member == 0 }, run: func() {
			if !p.alive {
				w.kafka.leave(p)
			}
		}})
	}
	if !again {
		return
	}
	w.within(back, loosely, &task{kind: "starts again", what: p, void: func() bool { return p.alive }, run: func() {
		if !p.alive {
			w.kafka.leave(p)
			w.logf("%s starts again", p.name)
			p.start()
		}
	}})
}

// pause stops a process with what it holds. When it wakes it goes on with it
// until it notices that it has been thrown out.
func (w *world) pause(p *process) {
	w.logf("fault: %s is paused", p.name)
	p.paused = true
	if w.small != nil && w.pick(2) == 1 {
		w.holds(p)
	}
	born := p.born
	if w.chance(75) {
		w.within(w.below(deadline), loosely, &task{kind: "is missed", what: p, void: func() bool { return !p.paused || p.born != born || p.member == 0 }, run: func() {
			if p.paused && p.born == born && p.member != 0 {
				w.logf("%s is thrown out of its group", p.name)
				w.kafka.leave(p)
			}
		}})
	}
	wake := w.below(4 * deadline)
	w.within(wake, loosely, &task{kind: "wakes", what: p, void: func() bool { return !p.paused || p.born != born }, run: func() {
		if p.paused && p.born == born && p.alive {
			w.wake(p)
		}
	}})
}

// holds: what the process was about to send is still in its hands.
func (w *world) holds(p *process) {
	for _, t := range w.tasks {
		if t.from != nil && t.from.proc == p && t.kind == "arrives" {
			w.logf("it has not sent %s of %s yet", t.kind, t.from.name)
			t.worker, t.run, t.kind = t.from, t.leave, "leaves"
		}
	}
}

func (w *world) wake(p *process) {
	w.logf("%s wakes", p.name)
	p.paused = false
	if p.member != 0 {
		return
	}
	born := p.born
	notice := w.below(60)
	if w.chance(20) {
		notice = w.below(2 * deadline)
	}
	w.within(notice, loosely, &task{proc: p, kind: "notices", what: p, void: func() bool { return p.born != born || p.member != 0 }, run: func() {
		if p.born != born || p.member != 0 {
			return
		}
		w.logf("%s notices that it was thrown out", p.name)
		for _, wk := range p.workers {
			if wk != nil {
				wk.drop("lost")
			}
		}
		w.kafka.join(p)
	}})
}

// foreignWriter fills the windows, an eighth of one within two deadlines: faster
// writers leave no part of a window that is safe.
func (w *world) foreignWriter(blocks int) {
	each := max(w.p.Window/8, 1)
	n := min(each, blocks)
	for _, t := range w.house.targets() {
		for range n {
			w.house.foreign++
			t.window = append(t.window, block{"foreign", w.now})
		}
		t.trim(w)
	}
	if blocks -= n; blocks > 0 {
		w.after(2*deadline, &task{kind: "another writer goes on", what: blocks, run: func() { w.foreignWriter(blocks) }})
	}
}

func (w *world) strikeStore(f fault) bool {
	s := w.store
	switch f {
	case faultFailover:
		if len(s.past) == 0 {
			return false
		}
		back := 1 + w.pick(len(s.past))
		g := w.pick(w.p.Groups)
		w.struck(f, nil)
		w.logf("fault: the store fails over, group %d loses the last %d calls", g, back)
		snap := s.past[len(s.past)-back]
		if w.p.Groups > 1 {
			s.mem.RestoreGroup(snap, g)
		} else {
			s.mem.Restore(snap)
		}
		s.past = nil
	case faultOldDump:
		if s.dump == nil {
			return false
		}
		w.struck(f, nil)
		w.logf("fault: the store restarts from an old dump")
		s.mem.Restore(s.dump)
		s.past = nil
	case faultFlush:
		w.struck(f, nil)
		w.logf("fault: the store is flushed")
		s.mem.Flush()
		s.past = nil
	case faultStoreRestart:
		w.struck(f, nil)
		w.logf("fault: the store restarts, losing nothing")
		s.mem.Restart()
		s.past = nil
	case faultExchange:
		if s.first != nil {
			return false
		}
		w.struck(f, nil)
		w.logf("fault: another store is at the address, an empty one")
		s.exchange()
	case faultStoreDown:
		w.struck(f, nil)
		s.downTo = w.lasting("store away", w.below(3*deadline), &s.downTo)
		w.logf("fault: the store is away until %dms", s.downTo-day0)
	}
	return true
}

// reset is an operator's: the group is stopped, its offset moved, its intent
// dropped, the group started again.
func (w *world) reset(g *group, f fault) bool {
	part := w.pick(w.p.Partitions)
	c, log := g.parts[part], w.kafka.parts[part]
	if c.offset < 0 {
		return false
	}
	var to int64
	if f == faultResetBack {
		if c.offset <= log.start {
			return false
		}
		to = log.start + w.below(c.offset-log.start)
	} else {
		if c.offset >= log.end {
			return false
		}
		to = c.offset + 1 + w.below(log.end-c.offset)
	}
	w.struck(f, nil)
	w.logf("fault: group %s is stopped, P%d reset from %d to %d", g.name, part, c.offset, to)
	for _, p := range w.procs {
		if p.group == g && p.alive {
			p.crash()
		}
	}
	for _, p := range g.members {
		p.member = 0
	}
	g.members = nil
	w.kafka.rebalance(g)
	for o := c.offset; o < to; o++ {
		c.skipped[o] = true
	}
	was, err := offsets.Decode(c.meta)
	if err != nil || was == nil {
		was = &offsets.Intent{}
	}
	if f == faultResetBack && w.chance(60) {
		// By `sink offsets resolve`: what was under way stays listed.
		was.Passed = max(was.Passed, c.offset)
		c.meta, _ = was.Encode()
	} else { // by Kafka's own tool, or its entries dropped
		c.meta = ""
		if w.p.Faults[faultExchange] > 0 && len(was.Epochs) > 0 { // which the tool would drop as well
			c.meta, _ = (&offsets.Intent{Epochs: was.Epochs}).Encode()
		}
		for _, e := range was.Entries {
			for o := e.Range.First; o <= e.Range.Last; o++ {
				c.dropped[o] = true
			}
		}
	}
	c.offset = to
	w.within(w.below(2*deadline), loosely, &task{kind: "the group starts", what: g, run: func() {
		for _, p := range w.procs {
			if p.group == g && !p.alive {
				p.start()
			}
		}
	}})
	return true
}

func (w *world) strikeLog(f fault) bool {
	log := w.kafka.parts[w.pick(w.p.Partitions)]
	i := w.pick(len(log.records))
	r := &log.records[i]
	switch f {
	case faultUndecodable:
		r.undecoded = true
		w.logf("fault: %s@%d no longer decodes", log, r.offset)
	case faultCompaction:
		if i == len(log.records)-1 || r.removed {
			return false
		}
		r.removed = true
		w.logf("fault: compaction removes %s@%d", log, r.offset)
	case faultRetention:
		if r.offset >= log.end {
			return false
		}
		log.start = max(log.start, r.offset)
		for j := range i {
			log.records[j].removed = true
		}
		w.logf("fault: retention, %s begins at %d", log, log.start)
	}
	w.struck(f, nil)
	return true
}
