package faultproxy

import (
	"context"
	"slices"
	"time"
)

// Fault is what a Rule does to a request.
type Fault int

const (
	// CutReply lets the request through, keeps the reply and cuts the connection once the reply is complete: done, but the client can't know.
	CutReply Fault = iota
	// HoldReply lets the request through and keeps the reply until it is released.
	HoldReply
	// HoldRequest keeps the request until it is released and then lets it through, also when its sender has given up and gone: a late landing.
	HoldRequest
	// CutRequest cuts the connection After bytes behind the start of the marker.
	CutRequest
	// Swallow loses the request and all that follows on its connection, in both directions, without an error to anybody.
	Swallow
)

// Verdict is what a Rule's Done says of a reply so far.
type Verdict int

const (
	// Wait for more of the reply.
	Wait Verdict = iota
	// Complete replies are cut or held.
	Complete
	// Spare this one: the reply is passed on and the fault doesn't happen.
	Spare
)

// RuleOptions say which requests a rule hits and how.
type RuleOptions struct {
	Fault  Fault
	Marker string // requests whose bytes contain it are counted; "": all
	Every  int    // every how many counted requests are hit; 0 and 1: each
	Limit  int    // how many are hit at most; 0: no limit

	// Turn tells which reply the fault is about: 1 (or 0), what the server says after the marker; 2, what it says after the client has spoken again, …
	// A HoldRequest of turn 2 or later plays the server in the turns before, with the replies that an earlier request of this rule got; that earlier
	// request is always let through.
	Turn int
	// Done looks at the reply of that turn as it grows; nil: its first bytes are enough. It is asked about the replies of earlier turns too, where only
	// Spare counts: the conversation ends there.
	Done func(reply []byte) Verdict
	// After is for CutRequest.
	After int
	// For releases what is held after this time; 0: only Release does.
	For time.Duration
}

// Rule is a rule in force, and its account.
type Rule struct {
	o RuleOptions
	p *Proxy

	// Below: under the proxy's lock.
	matches, hits, faults, holding int
	generation                     int    // Release lets go what was held in an earlier one
	script                         []byte // replies before Turn, as once recorded
	lateReplies                    [][]byte
	removed                        bool
}

// Add puts a rule into force. Of several rules that match a request, the first one that hits wins.
func (p *Proxy) Add(o RuleOptions) *Rule {
	o.Every = max(o.Every, 1)
	o.Turn = max(o.Turn, 1)
	if o.Done == nil {
		o.Done = func([]byte) Verdict { return Complete }
	}
	r := &Rule{o: o, p: p}
	p.update(func() { p.rules = append(p.rules, r) })
	return r
}

// Remove ends the rule: what it holds is released, nothing more is hit.
func (r *Rule) Remove() {
	r.Release()
	r.p.update(func() {
		r.removed = true
		r.p.rules = slices.DeleteFunc(r.p.rules, func(other *Rule) bool { return other == r })
	})
}

// Release lets everything through that the rule holds now.
func (r *Rule) Release() { r.p.update(func() { r.generation++ }) }

// Account is what a rule has done so far.
type Account struct {
	Matches int // requests with the marker
	Hits    int // of these, chosen for the fault
	Faults  int // replies cut, requests held, … : faults that happened. A reply that was spared is a hit without a fault
	Holding int // requests or replies held at the moment
}

// Account reads the counters.
func (r *Rule) Account() Account {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	return Account{Matches: r.matches, Hits: r.hits, Faults: r.faults, Holding: r.holding}
}

// LateReplies are the server's answers to requests of HoldRequest that came through after their release.
func (r *Rule) LateReplies() [][]byte {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	return slices.Clone(r.lateReplies)
}

// AwaitLateReply waits until the server has answered n requests of HoldRequest that came through late.
func (r *Rule) AwaitLateReply(ctx context.Context, n int) error {
	return r.p.await(ctx, func() bool { return len(r.lateReplies) >= n })
}

// Await waits until the account satisfies a condition.
func (r *Rule) Await(ctx context.Context, cond func(Account) bool) error {
	return r.p.await(ctx, func() bool {
		return cond(Account{Matches: r.matches, Hits: r.hits, Faults: r.faults, Holding: r.holding})
	})
}

// choose counts a request and tells whether it is hit; under the lock.
func (r *Rule) choose() bool {
	r.matches++
	if r.o.Fault == HoldRequest && r.o.Turn > 1 && r.script == nil {
		return false // this one shows what the server says
	}
	if r.matches%r.o.Every != 0 || (r.o.Limit > 0 && r.hits >= r.o.Limit) {
		return false
	}
	r.hits++
	return true
}

// hold blocks until the rule is released, its time is over or gone says so.
func (r *Rule) hold(gone func() bool) {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.holding++
	r.faults++
	r.p.changed.Broadcast()
	generation, over := r.generation, false
	if r.o.For > 0 {
		t := time.AfterFunc(r.o.For, func() { r.p.update(func() { over = true }) })
		defer t.Stop()
	}
	for !over && !r.removed && generation == r.generation && !r.p.closed && !gone() {
		r.p.changed.Wait()
	}
	r.holding--
	r.p.changed.Broadcast()
}
