package dedup

import (
	"context"
	"fmt"
	"time"
)

// ReasonNew is why an epoch is raised in a store that holds nothing of the
// domain. Where the table is empty as well, it is a first start.
const ReasonNew = "the store holds no marker of this domain: it is new, or it was emptied"

// reasonOlder is why an epoch is raised in a store that seems to have lost nothing.
const reasonOlder = "this store was exchanged for another one and has come back: it has not got what was claimed there"

// raise gives the group of a call another epoch and starts its quarantine. That
// another client was faster is no error: the call is sent again either way.
func (s *Store) raise(ctx context.Context, c *call, seen uint64, swapped bool, reason string) error {
	s.mu.Lock()
	g := s.state[c.group]
	s.mu.Unlock()
	// It is compared in the server with what the marker says then: an answer that
	// comes late, of before another worker's raise, changes nothing.
	// The marker's largest D may be lost with it: every D this client has seen
	// there counts.
	h := *c.head
	for i := range s.groups {
		h.d = max(h.d, s.seenD(i))
	}
	var r call
	r.reset(opRaise, c.group, &h)
	r.epoch, r.known, r.swapped, r.seen = seen, g.known, swapped, g.swapTable
	s.back.exec(ctx, []*call{&r})
	if r.err != nil {
		return fmt.Errorf("raise the epoch of group %d: %w", c.group, explain(r.err))
	}
	if r.status == stOK {
		s.older(&r)
		s.note(&r)
		if s.events.EpochRaised != nil {
			s.events.EpochRaised(c.group, r.got, reason)
		}
	}
	return nil
}

func (s *Store) seenD(group int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state[group].d
}

// drive ends the quarantine that refused a call, when it is due: inserts that
// lost claims allowed can neither start (D), nor be allowed by a master that
// was cut off (cutoff), nor still run (Quiet).
func (s *Store) drive(ctx context.Context, c *call) (opened bool, err error) {
	hold := &Quarantine{Since: time.UnixMilli(c.q), Until: time.UnixMilli(c.q + c.d + c.cutoff)}
	refuse := func(reason string) (bool, error) {
		hold.Reason = reason
		s.tellHold(c.group, hold)
		return false, hold
	}
	if c.now < c.q+c.d+c.cutoff {
		return refuse("claims may have been lost, and inserts that they allowed may start until then")
	}
	if !s.driving[c.group].CompareAndSwap(false, true) {
		return refuse("another worker is asking whether it can end")
	}
	defer s.driving[c.group].Store(false)
	if ok, why, err := s.back.settled(ctx, c.group); err != nil {
		return refuse("the cluster can't be asked: " + err.Error())
	} else if !ok {
		return refuse(why)
	}
	quiet, why, err := s.hooks.Quiet(ctx, time.Duration(c.now-c.q)*time.Millisecond)
	if err != nil {
		return refuse("ClickHouse can't be asked for running inserts: " + err.Error())
	}
	if !quiet {
		return refuse(why)
	}
	// Asked last, when nothing that was allowed before can still write.
	empty := false
	if s.hooks.TableEmpty != nil {
		empty, err = s.hooks.TableEmpty(ctx)
		empty = empty && err == nil
	}
	var o call
	o.reset(opOpen, c.group, c.head)
	o.epoch, o.known, o.endHold, o.endVerify = c.got, c.known, true, empty
	s.back.exec(ctx, []*call{&o})
	if o.err != nil {
		return false, fmt.Errorf("end the quarantine of group %d: %w", c.group, explain(o.err))
	}
	if o.status == stOK {
		s.mu.Lock()
		s.state[c.group].told = ""
		s.mu.Unlock()
		if s.events.Opened != nil {
			s.events.Opened(c.group, o.got, o.verify)
		}
	}
	return true, nil // whatever stood in the way answers the call itself
}

func (s *Store) tellHold(group int, hold *Quarantine) {
	s.mu.Lock()
	changed := s.state[group].told != hold.Reason
	s.state[group].told = hold.Reason
	s.mu.Unlock()
	if changed && s.events.Quarantined != nil {
		s.events.Quarantined(group, hold.Until, hold.Reason)
	}
}

// Adopt makes the table with this UUID the domain's, after *Swapped. The caller
// has read the UUID from ClickHouse just now, after the error: a marker that
// changed since answers *Swapped again, and the UUID is to be read once more.
func (s *Store) Adopt(ctx context.Context, table [16]byte) error {
	h := *s.head.Load()
	h.table = table
	var failed error
	for g := range s.groups {
		if err := s.adopt(ctx, g, &h); err != nil {
			failed = worse(failed, err)
		}
	}
	if failed == nil {
		s.head.Store(&h)
	}
	return failed
}

func (s *Store) adopt(ctx context.Context, group int, h *head) error {
	s.mu.Lock()
	seenEpoch, seenTable := s.state[group].swapEpoch, s.state[group].swapTable
	s.mu.Unlock()
	var c call
	c.reset(opAcked, group, h) // any guarded call tells what the marker names
	err := s.run(ctx, []*call{&c})
	if err == nil {
		return nil
	}
	if c.status != stSwapped || c.err != nil || seenEpoch == 0 || c.got != seenEpoch || c.table != seenTable {
		return err
	}
	return s.raise(ctx, &c, c.got, true, "the table was dropped and created again, or exchanged")
}

// Epochs answers the present epoch of every group.
func (s *Store) Epochs(ctx context.Context) (Ticket, error) {
	var t Ticket
	calls := make([]call, s.groups)
	list := make([]*call, s.groups)
	for g := range calls {
		calls[g].reset(opAcked, g, s.head.Load())
		list[g] = &calls[g]
	}
	if err := s.run(ctx, list); err != nil {
		return t, err
	}
	for g := range calls {
		t.epochs[g] = calls[g].got
	}
	return t, nil
}

// WarmDone ends verify mode in the ticket's groups: the horizon has been
// rebuilt under these epochs. A group whose epoch changed since stays in it.
func (s *Store) WarmDone(ctx context.Context, t Ticket) error {
	var list []*call
	for g := range s.groups {
		if t.epochs[g] == 0 {
			continue
		}
		c := &call{}
		c.reset(opOpen, g, s.head.Load())
		c.epoch, c.endVerify = t.epochs[g], true
		list = append(list, c)
	}
	return s.run(ctx, list)
}
