package dedup

import (
	"context"
	"errors"

	"github.com/oncesink/oncesink/pkg/batcher"
)

func (s *Store) everyGroup(o op, owner string) ([]call, []*call) {
	calls := make([]call, s.groups)
	list := make([]*call, s.groups)
	h := s.head.Load()
	for g := range calls {
		calls[g].reset(o, g, h)
		calls[g].owner = owner
		list[g] = &calls[g]
	}
	return calls, list
}

// Acked reads the run of the source under the present epochs: what every
// hash-tag group agrees on. It is asked at an assignment, before StartRun.
func (s *Store) Acked(ctx context.Context, src batcher.Source) (Run, error) {
	us := s.of(src)
	calls, list := s.everyGroup(opAcked, us.text)
	if err := s.run(ctx, list); err != nil {
		return Run{}, err
	}
	all := Run{Known: true}
	for g := range calls {
		r := calls[g].run
		if !r.Known {
			all.Known = false
			continue
		}
		us.epoch[g], us.start[g] = calls[g].got, r.Lo
		if g == 0 {
			all.Lo, all.Hi = r.Lo, r.Hi
		}
		all.Lo, all.Hi = max(all.Lo, r.Lo), min(all.Hi, r.Hi)
	}
	if !all.Known {
		return Run{}, nil
	}
	all.Hi = max(all.Hi, all.Lo)
	return all, nil
}

// Knows tells whether the source was ever read into this domain, as far as the
// store remembers. A table that took another's place by name changes nothing
// of it; a domain of another name has to be told from that by it.
func (s *Store) Knows(ctx context.Context, src batcher.Source) (bool, error) {
	calls, list := s.everyGroup(opAcked, s.of(src).text)
	if err := s.run(ctx, list); err != nil {
		return false, err
	}
	for g := range calls {
		if calls[g].met {
			return true, nil
		}
	}
	return false, nil
}

// StartRun begins an empty run at an offset in every group (F3): after an
// assignment whose committed offset isn't the run's end, after a skip and after
// a dead-lettered record.
func (s *Store) StartRun(ctx context.Context, src batcher.Source, at int64) error {
	us := s.of(src)
	calls, list := s.everyGroup(opPublish, us.text)
	for g := range calls {
		calls[g].lo, calls[g].hi = at, at
	}
	if err := s.run(ctx, list); err != nil {
		return err
	}
	for g := range calls {
		us.epoch[g], us.start[g] = calls[g].got, at
	}
	return nil
}

// Publish tells that rows of owners at [lo, hi) are in ClickHouse. It writes to
// the groups of the ticket, each under its epoch there; all: to every group, as
// at idle and at stop. Groups whose epoch changed answer *EpochChanged, the
// others are written nevertheless.
func (s *Store) Publish(ctx context.Context, src batcher.Source, lo, hi int64, t Ticket, all bool) error {
	us := s.of(src)
	var list []*call
	for g := range s.groups {
		epoch := t.epochs[g]
		if epoch == 0 && !all {
			continue
		}
		c := &call{}
		c.reset(opPublish, g, s.head.Load())
		c.owner = us.text
		s.publishIn(c, us, lo, hi, epoch)
		list = append(list, c)
	}
	failed := s.run(ctx, list)
	var changed *EpochChanged
	if !all || !errors.As(failed, &changed) {
		return failed
	}
	// Groups outside the ticket hold no claim of this batch; under an epoch in
	// which this source has claimed nothing their run is empty.
	var left []int
	var again []*call
	for _, g := range changed.Groups {
		if t.epochs[g] != 0 {
			left = append(left, g)
			continue
		}
		c := &call{}
		c.reset(opPublish, g, s.head.Load())
		c.owner, c.lo, c.hi = us.text, hi, hi
		again = append(again, c)
	}
	if err := s.run(ctx, again); err != nil {
		return err
	}
	for _, c := range again {
		us.epoch[c.group], us.start[c.group] = c.got, hi
	}
	if len(left) > 0 {
		changed.Groups = left
		return changed
	}
	return nil
}

// publishIn fills in a publish to one group: the run begins no lower than the
// first offset that was claimed under the epoch.
func (s *Store) publishIn(c *call, us *source, lo, hi int64, epoch uint64) {
	g := c.group
	if epoch == 0 {
		epoch = us.epoch[g]
	}
	start := hi
	if us.epoch[g] == epoch && epoch != 0 {
		start = us.start[g]
	}
	c.epoch, c.lo = epoch, max(lo, start)
	c.hi = max(hi, c.lo)
}
