package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Commit is one commit of one partition.
type Commit struct {
	Topic       string
	TopicID     batcher.TopicID // the id that was consumed; zero where brokers have none
	Partition   int32
	Lease       Lease
	Offset      int64 // the next record to be read
	LeaderEpoch int32 // of the last record before Offset; -1: unknown
	Metadata    string
}

func (c *Commit) String() string {
	return fmt.Sprintf("commit %s/%d at %d", c.Topic, c.Partition, c.Offset)
}

// RefusedError is the broker's final no to the commit itself.
type RefusedError struct {
	Err  error
	Cure string
}

func (e *RefusedError) Error() string { return e.Err.Error() + ": " + e.Cure }
func (e *RefusedError) Unwrap() error { return e.Err }

// BackwardsError is a bug of the caller: a commit below an earlier one of the
// same lease would have settled records read again.
type BackwardsError struct {
	Topic         string
	Partition     int32
	Offset, Floor int64
}

func (e *BackwardsError) Error() string {
	return fmt.Sprintf("commit %s/%d at %d: this lease has already committed %d", e.Topic, e.Partition, e.Offset, e.Floor)
}

// Events tells of commits that don't pass at once. Both may be nil, and are
// called from the committing goroutine.
type Events struct {
	// Waiting is called when a commit begins to wait, and when the reason changes.
	Waiting func(topic string, partition int32, why error)
	// Passed is called when a commit that waited was applied.
	Passed func(topic string, partition int32)
}

const (
	firstPause = 20 * time.Millisecond
	longPause  = 2 * time.Second
	// A topic just created may be unknown to the coordinator for a moment.
	unknownTopicTries = 9
)

// Commit returns nil when the broker has confirmed the commit, an error that
// wraps ErrFenced when it can't succeed any more, *RefusedError or
// *BackwardsError when it is at fault itself. Everything else is repeated until
// ctx ends; then the commit may or may not have been applied.
//
// One goroutine commits a partition at a time.
func (g *Group) Commit(ctx context.Context, c Commit) error {
	l := c.Lease.l
	switch {
	case l == nil:
		return fmt.Errorf("%s: no lease: %w", &c, ErrFenced)
	case l.place != place{c.Topic, c.Partition}:
		return fmt.Errorf("%s: the lease is for %s", &c, l.place)
	case c.Offset < 0:
		return fmt.Errorf("%s: not an offset", &c)
	}
	if err := l.admit(&c); err != nil {
		return err
	}
	w := waiter{g: g, c: &c}
	for {
		s, err := l.standing()
		if err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
		err = g.try(ctx, &c, s)
		switch {
		case err == nil:
			w.passed()
			return nil
		case errors.Is(err, errStanding): // renewed or ended while it queued
			continue
		case l.ctx.Err() != nil:
			return fmt.Errorf("%s: %w", &c, context.Cause(l.ctx))
		case ctx.Err() != nil:
			return fmt.Errorf("%s: given up, it may have been applied: %w", &c, context.Cause(ctx))
		}
		if final := w.judge(l, err); final != nil {
			return fmt.Errorf("%s: %w", &c, final)
		}
		if err := w.pause(ctx, l, s, err); err != nil {
			return err
		}
	}
}

// admit checks and raises the floor. A commit that is only refused or given up
// raises it too: it may have been applied.
func (l *lease) admit(c *Commit) error {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if c.Offset < l.floor {
		return &BackwardsError{c.Topic, c.Partition, c.Offset, l.floor}
	}
	l.floor = c.Offset
	return nil
}

// waiter is the state of one commit that has to be repeated.
type waiter struct {
	g       *Group
	c       *Commit
	tries   int
	unknown int // answers that the topic isn't known
	told    string
}

// judge returns the error that ends the commit, or nil to repeat it.
func (w *waiter) judge(l *lease, err error) error {
	switch {
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.FencedInstanceID), errors.Is(err, kerr.FencedMemberEpoch):
		l.refuse()
		return fmt.Errorf("%w: %w", ErrFenced, err)
	case errors.Is(err, kerr.StaleMemberEpoch):
		l.in.follow(l)
	case errors.Is(err, kerr.OffsetMetadataTooLarge):
		return &RefusedError{err, fmt.Sprintf("the metadata has %d bytes; raise the brokers' offset.metadata.max.bytes", len(w.c.Metadata))}
	case errors.Is(err, kerr.InvalidCommitOffsetSize):
		return &RefusedError{err, "the commit is larger than a record of __consumer_offsets may be; raise its max.message.bytes"}
	case errors.Is(err, kerr.InvalidGroupID):
		return &RefusedError{err, "give the group another name"}
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.InconsistentTopicID):
		if w.unknown++; w.unknown >= unknownTopicTries {
			return &RefusedError{err, "the topic that was consumed exists no more; one created again under its name is another source"}
		}
	case errors.Is(err, errClosed):
		return err
	}
	return nil
}

// pause waits before the next try: for the renewal of the lease where only
// that can help, else a growing while.
func (w *waiter) pause(ctx context.Context, l *lease, s standing, why error) error {
	w.tell(why)
	d := min(firstPause<<min(w.tries, 10), longPause)
	w.tries++
	timer := time.NewTimer(d)
	defer timer.Stop()
	tick := timer.C
	if errors.Is(why, kerr.IllegalGeneration) {
		// The group has moved on. Generations only grow, so the same request
		// can't pass any more; either a rebalance is under way that renews the
		// lease or ends it, or kgo hears at its next heartbeat that the member
		// was thrown out, which ends it.
		tick = nil
	}
	select {
	case <-tick:
	case <-s.renewed:
	case <-w.g.done:
		return fmt.Errorf("%s: given up after %w: %w", w.c, why, errClosed)
	case <-l.ctx.Done():
		return fmt.Errorf("%s: %w", w.c, context.Cause(l.ctx))
	case <-ctx.Done():
		return fmt.Errorf("%s: given up after %w: %w", w.c, why, context.Cause(ctx))
	}
	return nil
}

func (w *waiter) tell(why error) {
	why = Explain(why, Subject{Doing: w.c.String(), Group: w.g.group, Topic: w.c.Topic})
	if w.told == why.Error() || w.g.events.Waiting == nil {
		return
	}
	w.told = why.Error()
	w.g.events.Waiting(w.c.Topic, w.c.Partition, why)
}

func (w *waiter) passed() {
	if w.told != "" && w.g.events.Passed != nil {
		w.g.events.Passed(w.c.Topic, w.c.Partition)
	}
}
