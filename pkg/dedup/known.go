package dedup

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Known answers the largest epoch of each hash-tag group that this client has
// met or was told: no claim of its was made under a larger one.
func (s *Store) Known() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]uint64, s.groups)
	for g := range out {
		out[g] = s.state[g].known
	}
	return out
}

// Learn tells of epochs under which another process claimed, or this one in an
// earlier life: a store with lower ones was exchanged for another in between.
func (s *Store) Learn(epochs []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for g := range min(s.groups, len(epochs)) {
		s.state[g].known = max(s.state[g].known, epochs[g])
	}
}

// ready makes calls ready to leave, which they do now.
func (s *Store) ready(calls []*call) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range calls {
		c.answerless()
		c.known = s.state[c.group].known
	}
	return s.clock()
}

// older tells that an answer comes from another store than the one that has
// given the largest epoch, or from before that; it keeps the largest.
func (s *Store) older(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.state[c.group]
	if c.got == 0 || c.got < g.known {
		return c.got != 0
	}
	g.known = c.got
	return false
}

// Watch asks the store again and again until ctx ends. Claims are refused for D
// where a store is met that has none of the present ones, and a sink that asks
// more often knows the epoch there before any claim is made under it: it can't
// miss that store, and take the one before for the present one when that comes
// back. What keeps an answer away is told by who needs one.
func (s *Store) Watch(ctx context.Context) {
	tick := time.NewTicker(max(s.domain.InsertDeadline/4, 50*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		asking, cancel := context.WithTimeout(ctx, s.domain.InsertDeadline)
		_, _ = s.Epochs(asking)
		cancel()
	}
}

// silence tells that a store may have been missed: another one gives out no
// claims before it was there for D.
func (s *Store) silence(calls []*call) bool {
	if s.hooks.Known == nil {
		return false
	}
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(calls, func(c *call) bool {
		return c.err == nil && now.Sub(s.state[c.group].asked) > s.domain.InsertDeadline/2
	})
}

// catchUp makes up for a silence: who has not been answered for that long (it
// has just started, was stopped or cut off) may have missed a store, and what
// was claimed there. The silence lasts until now, since these calls, which left
// at `at`, may have been long under way; and what is told must not be older than
// their answers.
func (s *Store) catchUp(ctx context.Context, calls []*call, at time.Time) error {
	if s.silence(calls) {
		epochs, err := s.hooks.Known(ctx)
		if err != nil {
			return &Waiting{Reason: fmt.Sprintf("under which epochs the group has claimed can't be read: %v", err), Err: err}
		}
		s.Learn(epochs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range calls {
		if g := &s.state[c.group]; c.err == nil && at.After(g.asked) {
			g.asked = at
		}
	}
	return nil
}
