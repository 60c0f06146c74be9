package sim

import (
	"fmt"
	"strings"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/dedup"
)

// Small is a world that is small enough for all of its schedules.
type Small struct {
	Name   string
	Logs   []string // the records of each partition, a letter for each key
	Sinks  int
	Views  int
	Cut    int  // records of a batch
	Cuts   bool // or fewer: each number is tried
	Window int  // blocks; 0: plenty
	Finish bool // inserts outlive their clients
	Faults []fault
	Most   int // how many of the faults, each of them as often as that, in one run
	Break  Break
	Strict bool // nothing is left out of a state, and each step is taken by itself
}

func (s *Small) String() string {
	var names []string
	for _, f := range s.Faults {
		names = append(names, faultNames[f])
	}
	text := fmt.Sprintf("world %s: logs %s, %d sinks, %d views, batches of %d", s.Name, strings.Join(s.Logs, "|"), s.Sinks, s.Views, s.Cut)
	if s.Cuts {
		text += " or fewer"
	}
	return text + fmt.Sprintf("; at most %d of: %s", s.Most, strings.Join(names, ", "))
}

func (s *Small) params() Params {
	p := Params{Partitions: len(s.Logs), Sinks: s.Sinks, Views: s.Views, Split: 1, Window: s.Window, WindowMs: 600_000,
		Groups: 1, MaxCut: s.Cut, Metadata: 4096, Finish: s.Finish, Break: s.Break}
	if p.Window == 0 {
		p.Window = 1000
	}
	for _, l := range s.Logs {
		for _, k := range l {
			p.Keys = max(p.Keys, int(k-'a')+1)
		}
		p.Records = max(p.Records, len(l))
	}
	return p
}

func (s *Small) partitions() []*partition {
	var out []*partition
	for id, l := range s.Logs {
		p := &partition{id: id, source: sourceOf(id), end: int64(len(l))}
		for o, k := range l {
			key := int(k - 'a')
			p.records = append(p.records, record{offset: int64(o), key: key, fp: uint32(100 + key*10)})
		}
		out = append(out, p)
	}
	return out
}

// begin builds the world of all schedules: the store's first quarantine is over,
// and the group has its members.
func (w *world) begin() {
	w.left = w.small.Most
	if w.left > 0 {
		for _, f := range w.small.Faults {
			w.budget[f] = 1
		}
	}
	w.kafka, w.house, w.store = w.newKafka(), w.newHouse(), w.newStore()
	g := w.kafka.groups[0]
	w.openStore(g.name)
	for j := range w.p.Sinks {
		p := &process{w: w, name: fmt.Sprintf("S%d", j+1), group: g, alive: true, born: 1, workers: make([]*worker, w.p.Partitions)}
		p.client = w.store.client(p)
		g.nextMember++
		p.member = g.nextMember
		w.procs, g.members = append(w.procs, p), append(g.members, p)
	}
	w.kafka.rebalance(g)
}

// openStore ends the quarantine of a new store, by a claim of no record of this world.
func (w *world) openStore(group string) {
	s, err := w.store.open(group)
	if err != nil {
		panic(err)
	}
	w.now += deadline + 1
	b := dedup.Batch{Source: sourceOf(99), Nonce: w.nonce(), Items: []dedup.Item{{Key: batcher.Key{Hi: 1, Lo: 1}, EventMs: day0}}}
	if err := s.Claim(forever, &b, &dedup.Reply{}); err != nil {
		panic(err)
	}
}

// move is what can happen next.
type move struct {
	task  *task
	fault fault
	to    int64 // time passes up to here
}

// moves lists what can happen next. Time passes when nothing else has to happen
// now; what may happen at any time may go before it.
func (w *world) moves() []move {
	kept := w.tasks[:0]
	for _, t := range w.tasks {
		if !t.idle() && (w.small.Strict || !t.vain()) {
			kept = append(kept, t)
		}
	}
	clear(w.tasks[len(kept):])
	w.tasks = kept
	var out []move
	var loose []move
	next := int64(never)
	for _, t := range w.tasks {
		if p, ok := t.what.(*progress); ok && !t.loose && !w.house.attended(p.s) {
			t.loose, t.last = true, w.now+loosely // nobody waits for it any more
		}
		switch {
		case t.asleep():
		case t.loose && t.last > w.now:
			loose = append(loose, move{task: t})
			next = min(next, t.last)
		case t.due > w.now:
			next = min(next, t.due)
		default:
			out = append(out, move{task: t})
		}
	}
	pass := len(out) == 0 && next < never
	out = append(out, loose...)
	if pass {
		out = append(out, move{to: next})
	}
	for _, f := range w.small.Faults {
		if w.budget[f] > 0 && !metByRequests(f) {
			out = append(out, move{fault: f, to: -1})
		}
	}
	return out
}

func (w *world) make(m move) {
	w.step++
	defer func(moved int) {
		if w.moved != moved {
			w.movedAt = w.now
		}
	}(w.moved)
	switch {
	case m.task != nil:
		for i, t := range w.tasks {
			if t == m.task {
				w.tasks = append(w.tasks[:i], w.tasks[i+1:]...)
				break
			}
		}
		if m.task.kind != "arrives" && m.task.kind != "writes" {
			w.logf("%s %s", nameOf(m.task), m.task.kind)
		}
		m.task.run()
	case m.to >= 0:
		w.now = m.to
	case w.strike(m.fault):
		w.use(m.fault)
	}
}

func nameOf(t *task) string {
	switch {
	case t.worker != nil:
		return t.worker.name
	case t.proc != nil:
		return t.proc.name
	}
	if p, ok := t.what.(*process); ok {
		return p.name
	}
	if s, ok := t.what.(string); ok {
		return s
	}
	return ""
}
