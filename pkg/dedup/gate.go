package dedup

import (
	"context"
	"slices"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// Gate asks whether the owners of duplicates have their rows in ClickHouse by
// now. Owner and taken mark decide whether a claim is still the one that was
// met. out must be as long as items.
func (s *Store) Gate(ctx context.Context, items []GateItem, out []GateAnswer) error {
	sc := s.pool.Get().(*scratch)
	defer s.pool.Put(sc)
	if err := sc.load(s, len(items), func(i int) *Item { return &items[i].Item }); err != nil {
		return err
	}
	var t Ticket
	return s.rounds(ctx, sc, &t, func(c *call) error {
		c.op = opFind
		return nil
	}, func(c *call) error {
		at := 0
		for i, code := range c.verdicts {
			item := &items[c.rows[i].index]
			a := &out[c.rows[i].index]
			*a = GateAnswer{State: GateAbsent}
			if !hasEntry(code) {
				continue
			}
			a.Owner = s.ownerOf(c.group, &c.entries[at])
			at++
			switch {
			case a.Owner.Owner != item.Owner.Owner || a.Owner.Taken != item.Owner.Taken:
				a.State = GateChanged
			case code == codeSettled:
				a.State = GateSettled
			default:
				a.State = GateWaiting
			}
		}
		return nil
	})
}

// TakeOver gives claims of owners that will never write to records of src, by
// compare with the owner and the nonce that were met (GateItem.Owner). Taken
// claims answer Mine and are marked: only reading the key settles them. Changed
// tells the present owner, or none when the entry is gone.
//
// When Reply.Verify is set the key must be read in ClickHouse after this call,
// even if it was read before: the epoch may have changed in between.
func (s *Store) TakeOver(ctx context.Context, src batcher.Source, nonce uint32, items []GateItem, r *Reply) error {
	sc := s.pool.Get().(*scratch)
	defer s.pool.Put(sc)
	r.reset(len(items))
	if err := sc.load(s, len(items), func(i int) *Item { return &items[i].Item }); err != nil {
		return err
	}
	us := s.of(src)
	return s.rounds(ctx, sc, &r.Ticket, func(c *call) error {
		c.op, c.owner, c.nonce = opTake, us.text, nonce
		for i := range c.rows {
			o := &items[c.rows[i].index].Owner
			text := ownerText(o.Group, o.Source)
			at := slices.Index(c.owners, text)
			if at < 0 {
				at = len(c.owners)
				c.owners = append(c.owners, text)
			}
			c.rows[i].want = int32(len(c.wants))
			c.wants = append(c.wants, want{owner: int32(at), taken: o.Taken, offset: o.Offset, nonce: o.Nonce})
		}
		return nil
	}, func(c *call) error {
		s.answers(c, r, nonce)
		return nil
	})
}

// Release gives claims of dead-lettered records up, by compare with their owner
// (the item's record) and nonce. A mark stays: the next claim of the key is
// taken, so that no run published before can vouch for it. What another holds
// by now is left alone.
func (s *Store) Release(ctx context.Context, t Ticket, src batcher.Source, items []Item) error {
	return s.mark(ctx, t, src, items, false)
}

// Settle marks claims of this source whose rows are in the table for good,
// their views included, by compare with owner and nonce. It is for rows that no
// run vouches for: taken claims, and rows below the start of the run.
func (s *Store) Settle(ctx context.Context, t Ticket, src batcher.Source, items []Item) error {
	return s.mark(ctx, t, src, items, true)
}

func (s *Store) mark(ctx context.Context, t Ticket, src batcher.Source, items []Item, done bool) error {
	sc := s.pool.Get().(*scratch)
	defer s.pool.Put(sc)
	if err := sc.load(s, len(items), func(i int) *Item { return &items[i] }); err != nil {
		return err
	}
	us := s.of(src)
	return s.rounds(ctx, sc, &t, func(c *call) error {
		c.op, c.owner, c.done = opRelease, us.text, done
		return nil
	}, func(*call) error { return nil })
}
