package sim

import (
	"encoding/binary"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// A stateHash writes down everything that the future of a world hangs on, so
// that two worlds which differ in nothing else are explored once. What a field
// means is told by meanings; one that is not listed there is written as it is:
// then two worlds may be taken for different, but never for the same.
//
// Times are written relative to now. Nonces, epochs, members and generations are
// never given twice, so only which of them are the same matters: they are named
// by their order of appearance.
type stateHash struct {
	w       *world
	buf     []byte
	nonces  map[uint64]uint64
	epochs  map[uint64]uint64
	seen    map[uintptr]uint64
	worker  *worker // whose request is being written
	intents map[string]*offsets.Intent
	plans   map[reflect.Type][]fieldPlan
	groups  int
	times   []int64 // what the log may be asked with
	strict  bool    // nothing is left out, times and numbers are written as they are
}

type fieldPlan struct {
	index int
	means meaning
	name  string
}

func newStateHash() *stateHash {
	return &stateHash{intents: map[string]*offsets.Intent{}, plans: map[reflect.Type][]fieldPlan{}}
}

// of hashes the state of a world.
func (h *stateHash) of(w *world) uint64 {
	h.w, h.buf, h.groups, h.strict = w, h.buf[:0], w.p.Groups, w.small.Strict
	h.nonces, h.epochs, h.seen = map[uint64]uint64{}, map[uint64]uint64{}, map[uintptr]uint64{}
	h.times = append(h.times[:0], w.now)
	h.world()
	// Which epoch is the larger one decides whose store is the older one.
	for _, e := range slices.Sorted(maps.Keys(h.epochs)) {
		h.num(h.epochs[e])
	}
	return xxhash.Sum64(h.buf)
}

func (h *stateHash) num(n uint64)  { h.buf = binary.AppendUvarint(h.buf, n) }
func (h *stateHash) text(s string) { h.num(uint64(len(s))); h.buf = append(h.buf, s...) }

func (h *stateHash) time(ms int64, means meaning) {
	if h.strict {
		h.num(uint64(ms))
		return
	}
	ago := h.w.now - ms
	switch {
	case ms == 0 || ms >= never:
		h.num(uint64(ms))
	case means == until && ago > 0:
		h.num(1)
	case means == moment && ago > deadline+1:
		h.num(3)
		h.since(ms)
	case ago > longAgo:
		h.num(5)
	default:
		h.num(uint64(ago)<<2 | 2)
		if means == moment {
			h.since(ms)
		}
	}
}

// longAgo: no wait is longer.
const longAgo = 7 * deadline

// since writes what the query log has of the time since then.
func (h *stateHash) since(ms int64) {
	h.times = append(h.times, ms)
	n := 0
	for _, l := range h.w.house.log {
		if l.started >= ms {
			n++
		}
	}
	h.num(uint64(n))
}

func (h *stateHash) flag(b bool) {
	if b {
		h.buf = append(h.buf, 1)
	} else {
		h.buf = append(h.buf, 0)
	}
}

// named writes a number that is never given twice. Small ones only: the nonce of
// a claim that is settled for good is a constant.
func (h *stateHash) named(names map[uint64]uint64, n uint64) {
	if h.strict || n == 0 || n > 1<<30 && n < 1<<40 {
		h.num(n)
		return
	}
	name, ok := names[n]
	if !ok {
		name = uint64(len(names) + 1)
		names[n] = name
	}
	h.num(name << 1)
}

func (h *stateHash) world() {
	w := h.w
	h.num(uint64(w.left))
	if h.strict {
		h.strictly()
	}
	// What the checks ask of the faults that were.
	f := &w.p.Faults
	h.flag(f[faultFailover]+f[faultFlush]+f[faultOldDump] > 0)
	h.flag(f[faultLateCommit] > 0)
	h.flag(f[faultRetention] > 0)
	harmful := false
	for i, n := range f {
		harmful = harmful || n > 0 && !harmless(fault(i), w.p.Finish)
	}
	h.flag(harmful)
	h.store()
	for _, g := range w.kafka.groups {
		h.group(g)
	}
	h.letters()
	for _, p := range w.kafka.parts {
		h.walk(reflect.ValueOf(p), plain)
	}
	h.house()
	for _, p := range w.procs {
		h.process(p)
	}
	h.tasks()
	h.log()
}

// strictly writes what else there is of counters that only ever grow.
func (h *stateHash) strictly() {
	w := h.w
	h.num(uint64(w.now))
	h.num(uint64(w.nonces))
	h.walk(reflect.ValueOf(w.p.Faults), plain)
	for _, p := range w.procs {
		for _, n := range []int{p.member, int(p.generation), p.born, int(p.group.generation), p.group.nextMember} {
			h.num(uint64(n))
		}
	}
}

func (h *stateHash) letters() {
	var list []int
	for p := range h.w.letters {
		list = append(list, p.part<<20|int(p.offset))
	}
	sort.Ints(list)
	h.num(uint64(len(list)))
	for _, n := range list {
		h.num(uint64(n))
	}
}

func (h *stateHash) group(g *group) {
	for _, p := range h.w.procs {
		h.flag(p.group == g && g.member(p.member))
	}
	for _, c := range g.parts {
		h.num(uint64(c.offset))
		h.intent(c.meta)
		h.processRef(c.owner)
		h.walk(reflect.ValueOf(c.skipped), plain)
		h.walk(reflect.ValueOf(c.dropped), plain)
	}
}

func (h *stateHash) intent(meta string) {
	in, ok := h.intents[meta]
	if !ok {
		if len(h.intents) > 1000 {
			clear(h.intents) // each deadline makes another
		}
		in, _ = offsets.Decode(meta)
		h.intents[meta] = in
	}
	h.walk(reflect.ValueOf(in), plain)
}

func (h *stateHash) processRef(p *process) {
	for i, q := range h.w.procs {
		if p == q {
			h.num(uint64(i + 1))
			return
		}
	}
	h.num(0)
}

func (h *stateHash) lease(l lease, wk *worker) {
	g := wk.proc.group
	if h.strict {
		h.num(uint64(l.member))
		h.num(uint64(l.generation))
	}
	h.flag(g.member(l.member) && l.generation == g.generation)
	h.flag(l == wk.lease)
}

func (h *stateHash) process(p *process) {
	h.flag(p.alive)
	h.flag(p.paused)
	h.flag(p.member != 0)
	h.flag(p.generation == p.group.generation)
	if p.client.s != nil && p.alive {
		h.walk(reflect.ValueOf(p.client.s), plain)
	}
	for _, wk := range p.workers {
		if wk == nil {
			h.num(0)
			continue
		}
		h.num(1)
		h.lease(wk.lease, wk)
		h.num(uint64(wk.counted))
		h.num(uint64(wk.floor))
		h.flag(wk.fed)
		h.walk(reflect.ValueOf(wk.halt), plain)
		h.worker = wk
		h.walk(reflect.ValueOf(wk.m), plain)
		h.worker = nil
	}
}

// workerRef names a worker. One that is gone has nothing but its name and lease.
func (h *stateHash) workerRef(wk *worker) {
	if wk == nil {
		h.num(0)
		return
	}
	h.processRef(wk.proc)
	h.num(uint64(wk.part))
	h.flag(wk.gone)
	if wk.gone {
		h.lease(wk.lease, wk)
	}
}

func (h *stateHash) house() {
	s := h.w.house
	h.flag(s.up)
	for _, t := range s.targets() {
		for _, rows := range t.rows {
			h.walk(reflect.ValueOf(rows), plain)
		}
		h.window(t)
	}
	h.walk(reflect.ValueOf(s.running), plain)
	h.time(s.lostLog, instant)
	h.time(s.brokenTo, instant)
	h.time(s.busyTo, instant)
}

// log writes what the query log holds. It is asked for what began at or after a
// time that is in the state, or one that is yet to come: only an entry's place
// among these matters.
func (h *stateHash) log() {
	slices.Sort(h.times)
	h.times = slices.Compact(h.times)
	if h.strict {
		h.walk(reflect.ValueOf(h.w.house.log), plain)
		return
	}
	h.sorted(len(h.w.house.log), func(i int) {
		l := h.w.house.log[i]
		h.text(l.id[:strings.LastIndexByte(l.id, '/')])
		h.num(uint64(l.state))
		at, _ := slices.BinarySearch(h.times, l.started+1)
		h.num(uint64(len(h.times) - at))
	})
}

// window: as long as nothing falls out of it, its order does not matter.
func (h *stateHash) window(t *target) {
	if h.w.p.Window >= 100 && !h.strict {
		h.sorted(len(t.window), func(i int) { h.text(t.window[i].token) })
		return
	}
	h.num(uint64(len(t.window)))
	for _, b := range t.window {
		h.text(b.token)
		h.time(b.at, instant)
	}
}

// sorted writes a set whose elements hold no nonces or epochs, each once.
func (h *stateHash) sorted(n int, write func(i int)) {
	start := len(h.buf)
	list := make([]string, 0, n)
	for i := range n {
		write(i)
		list = append(list, string(h.buf[start:]))
		h.buf = h.buf[:start]
	}
	sort.Strings(list)
	last := ""
	for _, s := range list {
		if s != last {
			h.text(s)
			last = s
		}
	}
	h.buf = append(h.buf, 0)
}

// tasks: which of them comes first in the list does not matter.
func (h *stateHash) tasks() {
	type item struct {
		key string
		t   *task
	}
	var list []item
	start := len(h.buf)
	for _, t := range h.w.tasks {
		if t.idle() || t.vain() && !h.strict {
			continue
		}
		h.taskHead(t)
		list = append(list, item{string(h.buf[start:]), t})
		h.buf = h.buf[:start]
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].key < list[j].key })
	for _, it := range list {
		h.buf = append(h.buf, it.key...)
		h.worker = requester(it.t)
		h.walk(reflect.ValueOf(it.t.what), plain)
		h.worker = nil
	}
	h.num(uint64(len(list)))
}

// requester is the worker whose request a task is about.
func requester(t *task) *worker {
	switch x := t.what.(type) {
	case *request:
		return x.wk
	case *delivery:
		return x.rq.wk
	case *commission:
		return x.rq.wk
	}
	if t.worker != nil {
		return t.worker
	}
	return t.from
}

// taskHead writes what tells tasks apart, without what is named by order.
func (h *stateHash) taskHead(t *task) {
	h.text(t.kind)
	h.workerRef(t.worker)
	h.processRef(t.proc)
	h.workerRef(requester(t))
	h.flag(t.loose)
	if t.loose {
		h.time(t.last, instant)
	} else {
		h.time(max(t.due, h.w.now), instant)
	}
	switch x := t.what.(type) {
	case *request:
		h.text(x.name)
	case *commission:
		h.text("Commit")
	case *sent:
		h.text(fmt.Sprintf("%T", x.e))
	case *statement:
		h.text(x.token)
	case *progress:
		h.text(x.s.token)
		h.num(uint64(x.steps))
	case *process:
		h.processRef(x)
	}
}

func refSeq(m *pipeline.Machine, lane pipeline.Lane) uint64 {
	v := reflect.ValueOf(m).Elem()
	if lane == pipeline.LaneMain {
		return v.FieldByName("mainRef").Uint()
	}
	return v.FieldByName("gateRef").Uint()
}
