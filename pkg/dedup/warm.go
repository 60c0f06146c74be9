package dedup

import (
	"context"
	"math"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// WarmGroup is the consumer group of the owner under which keys are remembered
// that were read from the table. Its store is opened with it as Domain.Group.
const WarmGroup = "(table)"

// AwaitOpen ends the quarantines that are due and answers the present epochs, or
// *Quarantine while one lasts. What is read from the table from then on has all
// that was written under earlier epochs.
func (s *Store) AwaitOpen(ctx context.Context) (Ticket, error) {
	var t Ticket
	var list []*call
	for g := range s.groups {
		c := &call{}
		c.reset(opOpen, g, s.head.Load())
		list = append(list, c)
	}
	if err := s.run(ctx, list); err != nil {
		return t, err
	}
	for _, c := range list {
		t.epochs[c.group] = c.got
	}
	return t, nil
}

// Warm remembers keys of rows that the table has: only Key and EventMs of the
// items count, and no key may come twice. They are settled from the start, in
// one atomic step, and whoever brings such a key has a duplicate: the record
// behind the row is not known, so its other fields are not compared. Keys that
// have an entry keep it. Answers how many were not remembered before; an epoch
// other than the ticket's is *EpochChanged: begin again.
func (s *Store) Warm(ctx context.Context, t Ticket, items []Item, r *Reply) (added int, err error) {
	for i := range items {
		items[i].Offset, items[i].Fingerprint = 0, UnknownFingerprint
	}
	b := &Batch{Source: batcher.Source{Cluster: WarmGroup}, First: math.MaxInt64, Nonce: doneNonce(s.head.Load().table), Items: items}
	if err := s.batch(ctx, opClaim, t, b, r); err != nil {
		return 0, err
	}
	for i := range r.Answers {
		if r.Answers[i].Verdict == New {
			added++
		}
	}
	return added, nil
}
