package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// record is a record of the log as its producer made it.
type record struct {
	offset    int64
	key       int
	fp        uint32
	undecoded bool // the sink can't decode it (any more)
	filtered  bool
	removed   bool // compacted away
}

// partition is one partition's log.
type partition struct {
	id      int
	source  batcher.Source
	records []record
	end     int64 // high watermark: records below it can be read
	start   int64
}

// committed is what a group's coordinator keeps for a partition.
type committed struct {
	offset  int64 // -1: none
	meta    string
	owner   *process
	skipped map[int64]bool // by an operator's reset: never this group's to bring
	dropped map[int64]bool // listed by an intent that an operator's reset dropped

	read   string // the metadata that was looked at last,
	listed bool   // and whether it lists anything
}

// open: the metadata tells of more than epochs.
func (c *committed) open() bool {
	if c.read != c.meta {
		in, err := offsets.Decode(c.meta)
		c.read, c.listed = c.meta, err != nil || in != nil && !in.Empty()
	}
	return c.listed
}

// known answers the largest epochs that a group's partitions have committed.
func (k *kafka) known(groupName string) []uint64 {
	out := make([]uint64, k.w.p.Groups)
	for _, g := range k.groups {
		for _, c := range g.parts {
			if in, err := offsets.Decode(c.meta); g.name == groupName && err == nil && in != nil {
				for i, e := range in.Epochs {
					out[i] = max(out[i], e)
				}
			}
		}
	}
	return out
}

// group is a consumer group. Commits are fenced by member and generation, not
// by partition.
type group struct {
	name       string
	generation int32
	members    []*process
	parts      []*committed
	nextMember int
}

type kafka struct {
	w      *world
	parts  []*partition
	groups []*group
}

// lease is what a worker commits under.
type lease struct {
	member     int
	generation int32
}

func keyOf(k int) batcher.Key {
	return batcher.Key{Hi: uint64(k+1) * 0x9e3779b97f4a7c15, Lo: uint64(k)}
}

func (w *world) fpOf(k int) uint32 { return uint32(100 + k*10) }

// poisonous: the server refuses these fields, always.
func (w *world) poisonous(fp uint32) bool {
	return int((uint64(fp)*2654435761+w.p.World*97)>>4%100) < w.p.Poison
}

// eventMs is the event time of a key's records. Some were produced long after
// their event.
func (w *world) eventMs(k int) int64 {
	if int((uint64(k)*40503+w.p.World*31)>>3%100) < w.p.Cold {
		return day0 - 2*horizon
	}
	return day0 + int64(k)
}

func (w *world) cold(k int) bool { return w.now > w.eventMs(k)+horizon }

func (w *world) newKafka() *kafka {
	r := rand.New(rand.NewPCG(w.p.World, 0x10c5))
	k := &kafka{w: w}
	if w.small != nil {
		k.parts = w.small.partitions()
	}
	for id := len(k.parts); id < w.p.Partitions; id++ {
		p := &partition{id: id, source: sourceOf(id)}
		offset := int64(r.IntN(3))
		p.start = 0
		for range w.p.Records {
			for r.IntN(100) < w.p.Gaps {
				offset++
			}
			rec := record{offset: offset, key: r.IntN(w.p.Keys)}
			rec.fp = w.fpOf(rec.key)
			if r.IntN(100) < w.p.Conflicts {
				rec.fp += uint32(1 + r.IntN(2))
			}
			rec.undecoded = r.IntN(100) < w.p.Undecoded
			rec.filtered = r.IntN(100) < w.p.Filtered
			p.records = append(p.records, rec)
			offset++
		}
		p.end = offset
		if r.IntN(3) == 0 {
			p.end = p.records[r.IntN(len(p.records))].offset
		}
		k.parts = append(k.parts, p)
	}
	names := []string{"main"}
	if w.p.Replay {
		names = append(names, "replay")
	}
	for _, n := range names {
		g := &group{name: n}
		for range w.p.Partitions {
			g.parts = append(g.parts, &committed{offset: -1, skipped: map[int64]bool{}, dropped: map[int64]bool{}})
		}
		k.groups = append(k.groups, g)
	}
	return k
}

func sourceOf(part int) batcher.Source {
	return batcher.Source{Cluster: "c", Topic: batcher.TopicID{15: 7}, Partition: int32(part)}
}

// last is the offset behind the last record.
func (p *partition) last() int64 { return p.records[len(p.records)-1].offset + 1 }

// grow lets the producer go on.
func (p *partition) grow(n int) {
	for i := range p.records {
		if p.records[i].offset >= p.end {
			p.end = p.records[i].offset + 1
			if n--; n <= 0 {
				return
			}
		}
	}
	p.end = p.last()
}

func (g *group) member(id int) bool {
	for _, m := range g.members {
		if m.member == id {
			return true
		}
	}
	return false
}

// join brings a process into its group.
func (k *kafka) join(p *process) {
	g := p.group
	g.nextMember++
	p.member = g.nextMember
	g.members = append(g.members, p)
	k.w.logf("%s joins group %s", p.name, g.name)
	k.rebalance(g)
}

// leave takes a process out: it crashed, left, or did not answer in time.
func (k *kafka) leave(p *process) {
	g := p.group
	for i, m := range g.members {
		if m == p {
			g.members = append(g.members[:i], g.members[i+1:]...)
			p.member = 0
			k.rebalance(g)
			return
		}
	}
}

// rebalance: workers of partitions that move end before the new generation
// begins; those that stay get its lease. A paused member is thrown out: it
// does not answer.
func (k *kafka) rebalance(g *group) {
	w := k.w
	live := g.members[:0]
	for _, m := range g.members {
		if m.paused {
			w.logf("%s does not answer and is thrown out of the group (zombie)", m.name)
			m.member = 0
			continue
		}
		live = append(live, m)
	}
	g.members = live
	owners := make([]*process, len(g.parts))
	for i, c := range g.parts {
		if len(live) == 0 {
			break
		}
		owners[i] = w.assignee(i, c, live)
	}
	for i, c := range g.parts {
		if c.owner != nil && c.owner != owners[i] && c.owner.member != 0 {
			if wk := c.owner.workers[i]; wk != nil && !w.p.Break.NoDrain {
				wk.drop("revoked")
			}
		}
	}
	g.generation++
	for i, c := range g.parts {
		old := c.owner
		c.owner = owners[i]
		if c.owner == nil {
			continue
		}
		if wk := c.owner.workers[i]; wk != nil && !wk.gone && old == c.owner {
			wk.lease = lease{c.owner.member, g.generation}
			continue
		}
		c.owner.assign(i)
	}
	for _, m := range g.members {
		m.generation = g.generation
	}
}

// assignee picks who gets a partition. Where all schedules are explored a group
// that changes gives each partition to the process it began with, if that lives,
// and a rebalance for its own sake to anyone.
func (w *world) assignee(part int, c *committed, live []*process) *process {
	if w.small != nil && !w.shuffles {
		home := w.procs[part%w.p.Sinks]
		switch {
		case slices.Contains(live, home):
			return home
		case c.owner != nil && slices.Contains(live, c.owner):
			return c.owner
		}
		return live[0]
	}
	p := live[w.pick(len(live))]
	if w.small == nil && c.owner != nil && c.owner.member != 0 && w.chance(60) {
		return c.owner
	}
	return p
}

// commit applies a commit at the broker; false: fenced.
func (k *kafka) commit(g *group, l lease, part int, offset int64, meta string, who string) bool {
	if !g.member(l.member) || l.generation != g.generation {
		k.w.logf("broker fences the commit of %s: member %d generation %d, now %d", who, l.member, l.generation, g.generation)
		return false
	}
	c := g.parts[part]
	k.w.logf("broker: %s P%d committed %d -> %d by %s %s", g.name, part, c.offset, offset, who, intentText(meta))
	if offset > c.offset {
		k.w.moved++
	}
	c.offset, c.meta = offset, meta
	if k.w.small != nil && c.owner != nil {
		if wk := c.owner.workers[part]; wk != nil && c.owner.alive {
			k.w.local(0, &task{worker: wk, kind: "feeds", run: wk.plan}) // whoever it was, it may be behind now
		}
	}
	k.w.checkCommit(g, part)
	return true
}

// fate answers F6: what became of an owner of this group.
func (k *kafka) fate(groupName string, source batcher.Source, offset int64) pipeline.Fate {
	for _, g := range k.groups {
		if g.name != groupName {
			continue
		}
		c := g.parts[source.Partition]
		passed := offset < c.offset
		in, _ := offsets.Decode(c.meta)
		return pipeline.Fate{Gone: passed || len(g.members) == 0, Passed: passed, Listed: in.Lists(offset)}
	}
	k.w.fail("I4", "an owner of an unknown group %q", groupName)
	return pipeline.Fate{}
}

// cut puts the next batch together, as the shell does. Nil: not now.
func (k *kafka) cut(wk *worker, want batcher.Want, most int) *pipeline.Batch {
	p := k.parts[wk.part]
	limits := batcher.Limits{MaxRows: most, MaxAgeMs: 0}
	f := batcher.Filling{Next: want.First}
	b := &pipeline.Batch{Rejects: map[int32]pipeline.Reject{}}
	for i := range p.records {
		r := &p.records[i]
		if r.offset < want.First || r.removed || r.offset >= p.end {
			continue
		}
		if limits.Decide(want, f, k.w.now, false).Full {
			break
		}
		if !want.Takes(r.offset) {
			f.Beyond = true
			break
		}
		rec := pipeline.Record{Offset: r.offset, Key: keyOf(r.key), Fingerprint: r.fp, EventMs: k.w.eventMs(r.key), Cold: k.w.cold(r.key)}
		switch {
		case r.filtered:
			rec.Status = pipeline.Filtered
		case r.undecoded:
			rec.Status = pipeline.Rejected
			b.Rejects[int32(len(b.Records))] = pipeline.Reject{Class: "decode", Detail: "can't be decoded"}
		}
		b.Records = append(b.Records, rec)
		f.Rows++
		f.Next = r.offset + 1
	}
	if d := limits.Decide(want, f, k.w.now, false); !d.Cut {
		return nil
	}
	b.Range = want.Range(f)
	return b
}

func (p *partition) String() string { return fmt.Sprintf("P%d", p.id) }

// gone tells whether compaction or retention has taken a record.
func (p *partition) gone(offset int64) bool {
	for i := range p.records {
		if p.records[i].offset == offset {
			return p.records[i].removed
		}
	}
	return false
}
