package sim

import (
	"fmt"
	"sort"
	"strings"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

// checkCommit is I1: below a committed offset every record has its key's row
// in the table and in every view, or lies in the dead-letter topic, or was
// filtered. A row with other fields is no answer to a record (I3).
func (w *world) checkCommit(g *group, part int) {
	c, log := g.parts[part], w.kafka.parts[part]
	for i := range log.records {
		r := &log.records[i]
		if r.offset >= c.offset {
			break
		}
		if r.removed || c.skipped[r.offset] || r.filtered || w.letters[place{part, r.offset}] {
			continue
		}
		for _, t := range w.house.targets() {
			rows := t.rows[r.key]
			if len(rows) == 0 {
				if t != w.house.table && w.owed(r.key) {
					continue
				}
				w.fail("I1", "%s committed %s to %d, but %s has no row of key %d of record %d", g.name, log, c.offset, t.name, r.key, r.offset)
			}
			if rows[0].fp != r.fp && !w.forgot(r.key) {
				w.fail("I3", "%s committed %s to %d, but the fields of record %d (key %d) differ from the row in %s, and it was not dead-lettered", g.name, log, c.offset, r.offset, r.key, t.name)
			}
		}
	}
}

// forgot: the store does not know the key's fields, and the key alone was read
// in the table: a store that lost writes, a key older than the horizon.
func (w *world) forgot(key int) bool {
	return w.cold(key) || w.p.Faults[faultFailover]+w.p.Faults[faultFlush]+w.p.Faults[faultOldDump]+w.p.Faults[faultExchange] > 0
}

// owed: the table has the row, but a view hasn't, and the record that brought
// it is not committed past yet: its partition still has to complete the view,
// or stops. A duplicate elsewhere that read the key in the table goes on. An
// operator who skips a record leaves its views to himself; so does one who drops
// an intent by a reset when the store has lost the claims behind it as well, or
// when the record can't be decoded any more or is gone from the log; an intent
// that a delayed commit overwrites is as good as dropped then.
func (w *world) owed(key int) bool {
	for _, r := range w.house.table.rows[key] {
		for _, g := range w.kafka.groups {
			if c := g.parts[r.part]; g.name == r.group && (r.offset >= c.offset || c.skipped[r.offset] || c.dropped[r.offset] && (w.letters[place{r.part, r.offset}] || w.kafka.parts[r.part].gone(r.offset)) || w.forgot(key) && (c.dropped[r.offset] || w.p.Faults[faultLateCommit] > 0)) {
				return true
			}
		}
	}
	return false
}

// checkAccount is I5: each record below a committed offset has one class, and
// each offset is counted once in a life.
func (w *world) checkAccount(wk *worker, e pipeline.Account) {
	c := e.Counts
	if c.Total() != int(c.RecordsConsumed) || len(e.Batch.Records) != c.Total() {
		w.fail("I5", "%s: %d records of %s have %d classes: %+v", wk.name, c.RecordsConsumed, e.Batch.Range, c.Total(), c)
	}
	if c.FirstOffset != wk.counted {
		w.fail("I5", "%s accounts from %d on, but had accounted up to %d", wk.name, c.FirstOffset, wk.counted)
	}
	wk.counted = c.NextOffset
	if wk.counted > wk.proc.group.parts[wk.part].offset && !w.overwritten(wk) {
		w.fail("I5", "%s accounts up to %d, but %d is committed", wk.name, wk.counted, wk.proc.group.parts[wk.part].offset)
	}
	var letters, filtered int
	for _, r := range e.Batch.Records {
		if w.letters[place{wk.part, r.Offset}] {
			letters++
		}
		if r.Status == pipeline.Filtered {
			filtered++
		}
	}
	if c.Filtered != filtered {
		w.fail("I5", "%s: %s has %d filtered records, %d are accounted", wk.name, e.Batch.Range, filtered, c.Filtered)
	}
	if c.DeadLetters+c.Conflicts > letters {
		w.fail("I5", "%s: %s has %d records in the dead-letter topic, %d are accounted", wk.name, e.Batch.Range, letters, c.DeadLetters+c.Conflicts)
	}
}

// overwritten: the broker's offset may be lower than what a worker committed
// when an older commit landed late, or another generation began.
func (w *world) overwritten(wk *worker) bool {
	return w.p.Faults[faultLateCommit] > 0 || wk.lease.generation != wk.proc.group.generation
}

// settledWorker: nothing is left to do for it now.
func (w *world) settledWorker(wk *worker) bool {
	c := wk.proc.group.parts[wk.part]
	return c.offset >= w.kafka.parts[wk.part].end && !c.open()
}

// done: every group has committed everything, or the partition is stopped.
func (w *world) done() bool {
	for _, g := range w.kafka.groups {
		for i, c := range g.parts {
			if c.owner == nil || !c.owner.alive || c.owner.paused {
				return false
			}
			wk := c.owner.workers[i]
			if wk == nil {
				return false
			}
			if wk.halt != nil {
				continue
			}
			if c.offset < w.kafka.parts[i].last() || c.open() {
				return false
			}
		}
	}
	return true
}

func (w *world) halts() []string {
	var out []string
	for _, p := range w.procs {
		for _, wk := range p.workers {
			if wk != nil && wk.halt != nil {
				out = append(out, wk.name+": "+wk.halt.Reason)
			}
		}
	}
	sort.Strings(out)
	return out
}

// finalChecks: what was written is what the logs hold, each key once.
func (w *world) finalChecks() {
	for _, g := range w.kafka.groups {
		for i := range g.parts {
			w.checkCommit(g, i)
		}
	}
	for _, h := range w.halts() {
		w.justified(h)
	}
}

// justified: a stop must have a reason that I4 allows.
func (w *world) justified(h string) {
	_, reason, _ := strings.Cut(h, ": ")
	switch {
	case strings.Contains(reason, "may have been pushed to the table but not to its views"):
		// Without any fault no insert is cut and no window runs out. With inserts
		// that outlive their clients it takes more than crashes, pauses and a
		// window that others fill: the log knows how each of them ended.
		for f, n := range w.p.Faults {
			if n > 0 && w.p.Views > 0 && !harmless(fault(f), w.p.Finish) {
				return
			}
		}
	case strings.HasPrefix(reason, "conflict"):
		if w.p.Stop {
			return
		}
	case strings.Contains(reason, "offsets are gone"), strings.Contains(reason, "gone from the log"):
		if w.p.Faults[faultRetention] > 0 {
			return
		}
	}
	w.fail("I4", "stopped without a reason that the protocol allows: %s", h)
}

// stuck: without further faults everything has to settle.
func (w *world) stuck() {
	if len(w.halts()) > 0 {
		w.finalChecks() // others may wait for what is stopped
		return
	}
	w.fail("stuck", "no fault is left, but not everything settles:%s", w.unsettled())
}

// unsettled tells where every partition stands.
func (w *world) unsettled() string {
	var b strings.Builder
	for _, g := range w.kafka.groups {
		for i, c := range g.parts {
			fmt.Fprintf(&b, "\n    %s P%d committed %d of %d %s", g.name, i, c.offset, w.kafka.parts[i].last(), intentText(c.meta))
			if c.owner != nil && c.owner.alive {
				if wk := c.owner.workers[i]; wk != nil {
					committed, next, held := wk.m.Position()
					fmt.Fprintf(&b, ": %s at %s, committed %d, next %d, %d held, waits %q", wk.name, wk.at, committed, next, held, wk.waits)
					if r, o, owner, closed := wk.m.ClosedBy(); closed {
						fmt.Fprintf(&b, ", gate of %s closed at %d by %s", r, o, owner.Owner)
					}
				}
			}
		}
	}
	return b.String()
}

// calmDown ends all faults.
func (w *world) calmDown() {
	w.calm = true
	w.logf("no more faults from here on")
	w.house.busyTo, w.house.brokenTo, w.store.downTo = 0, 0, 0
	for _, p := range w.kafka.parts {
		p.end = p.last()
	}
	for _, p := range w.procs {
		if p.alive && p.paused {
			w.wake(p)
		}
	}
}

// build puts the world together.
func (w *world) build() {
	w.kafka = w.newKafka()
	w.house = w.newHouse()
	w.store = w.newStore()
	for i, g := range w.kafka.groups {
		n := w.p.Sinks
		if i > 0 {
			n = 1
		}
		for j := range n {
			p := &process{w: w, name: fmt.Sprintf("S%d", j+1), group: g}
			if i > 0 {
				p.name = "R1"
			}
			w.procs = append(w.procs, p)
			w.after(w.below(200), &task{run: p.start})
		}
	}
	for _, p := range w.kafka.parts {
		w.producer(p)
	}
}

// producer appends the rest of a log now and then.
func (w *world) producer(p *partition) {
	if p.end >= p.last() {
		return
	}
	w.after(w.below(600), &task{run: func() {
		p.grow(1 + w.pick(4))
		w.producer(p)
	}})
}

// harmless: with nothing but these the fate of every insert can be found out.
func harmless(f fault, finish bool) bool {
	switch f {
	case faultCompaction, faultRetention:
		return true
	case faultCrash, faultPause, faultRebalance, faultLostReply, faultLateLanding, faultLateInsert, faultLostAck, faultBusy, faultForeign, faultStoreDown:
		return finish
	}
	return false
}
