package dedup

import (
	"context"
	"fmt"
	"slices"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// A script keeps the server busy, so that many keys go in several; a section of
// a call is one slot, and their number is one byte.
const (
	maxRows  = 5000
	maxSlots = 200
)

// next cuts the rows of the group's next call.
func (sc *scratch) next(g int) []row {
	from, slots := sc.at[g], 1
	i := from
	for ; i < sc.end[g] && i-from < maxRows; i++ {
		if i > from && sc.rows[i].slot != sc.rows[i-1].slot {
			if slots++; slots > maxSlots {
				break
			}
		}
	}
	sc.at[g] = i
	return sc.rows[from:i]
}

// rounds sends the loaded rows, the next part of every group in each round, and
// hands every answered call to take. All parts of a group must meet the same
// epoch: the one in the ticket, when it names one, else that of the first part.
func (s *Store) rounds(ctx context.Context, sc *scratch, t *Ticket, prepare, take func(*call) error) error {
	h := s.head.Load()
	for {
		sc.list = sc.list[:0]
		for g := range s.groups {
			if sc.at[g] == sc.end[g] {
				continue
			}
			c := &sc.calls[g]
			c.reset(0, g, h)
			c.epoch = t.epochs[g]
			c.rows = sc.next(g)
			if err := prepare(c); err != nil {
				return err
			}
			sc.list = append(sc.list, c)
		}
		if len(sc.list) == 0 {
			return nil
		}
		if err := s.run(ctx, sc.list); err != nil {
			return err
		}
		for _, c := range sc.list {
			t.epochs[c.group] = c.got
			if len(c.verdicts) != len(c.rows) {
				return fmt.Errorf("dedup: group %d answered %d of %d keys", c.group, len(c.verdicts), len(c.rows))
			}
			if err := s.resolve(ctx, c); err != nil {
				return err
			}
			if err := take(c); err != nil {
				return err
			}
		}
	}
}

// resolve makes sure that the owners of the entries that were met are known.
func (s *Store) resolve(ctx context.Context, c *call) error {
	s.mu.Lock()
	var missing []uint32
	for i := range c.entries {
		id := c.entries[i].id
		if _, ok := s.state[c.group].names[id]; !ok && !slices.Contains(missing, id) {
			missing = append(missing, id)
		}
	}
	s.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	var q call
	q.reset(opNames, c.group, c.head)
	q.epoch, q.ids = c.got, missing
	if err := s.run(ctx, []*call{&q}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.state[c.group]
	if g.names == nil {
		g.names = map[uint32]named{}
	}
	for i, id := range missing {
		name, err := parseOwner(q.names[i])
		if err != nil {
			return &Unfit{Problem: fmt.Sprintf("group %d holds claims of owner number %d that has no readable name", c.group, id),
				Cure: "the store was edited or restored in parts: stop the sinks, delete the keys of the domain in Redis, start them again", Err: err}
		}
		g.names[id] = name
	}
	return nil
}

func (s *Store) ownerOf(group int, e *entry) Owner {
	s.mu.Lock()
	name := s.state[group].names[e.id]
	s.mu.Unlock()
	return Owner{Owner: batcher.Owner{Group: name.group, Source: name.source, Offset: e.offset}, Nonce: e.nonce, Fingerprint: e.fp, Taken: e.taken,
		Settled: e.nonce == doneNonce(s.head.Load().table)}
}

// answers copies what a call answered into the reply, in the caller's order.
func (s *Store) answers(c *call, r *Reply, nonce uint32) {
	r.Verify = r.Verify || c.verify
	at := 0
	for i, code := range c.verdicts {
		a := Answer{Owner: -1, Nonce: nonce}
		switch code {
		case codeNew, codeNewAgain:
			a.Verdict = New
		case codeMine, codeMineMet:
			a.Verdict = Mine
		case codeDuplicate:
			a.Verdict = Duplicate
		case codeSettled:
			a.Verdict = Settled
		case codeConflict:
			a.Verdict = Conflict
		default:
			a.Verdict, a.Nonce = Changed, 0
		}
		if hasEntry(code) {
			e := &c.entries[at]
			at++
			a.Owner = int32(len(r.Owners))
			r.Owners = append(r.Owners, s.ownerOf(c.group, e))
			a.Nonce = e.nonce
			if code == codeMineMet && !r.Owners[a.Owner].Settled {
				a.Nonce = nonce
			}
		}
		r.Answers[c.rows[i].index] = a
	}
}

func (r *Reply) reset(n int) {
	r.Ticket, r.Verify, r.Owners = Ticket{}, false, r.Owners[:0]
	r.Answers = slices.Grow(r.Answers[:0], n)[:n]
}

// Claim asks for every key of the batch and claims those that have no entry.
// After an error it is repeated with the same nonce; see the package comment.
func (s *Store) Claim(ctx context.Context, b *Batch, r *Reply) error {
	return s.batch(ctx, opClaim, Ticket{}, b, r)
}

// Renew gives claims of an earlier attempt a new nonce, and with it a new
// deadline. Batch.Nonce is the new one, Item.Nonce the old one. Entries that
// hold the old, or already the new one under our ownership answer New or Mine
// as before; any other answers Changed, and the batch is claimed afresh.
func (s *Store) Renew(ctx context.Context, t Ticket, b *Batch, r *Reply) error {
	return s.batch(ctx, opRenew, t, b, r)
}

func (s *Store) batch(ctx context.Context, o op, t Ticket, b *Batch, r *Reply) error {
	sc := s.pool.Get().(*scratch)
	defer s.pool.Put(sc)
	r.reset(len(b.Items))
	if err := sc.load(s, len(b.Items), func(i int) *Item { return &b.Items[i] }); err != nil {
		return err
	}
	src := s.of(b.Source)
	touched := t
	err := s.rounds(ctx, sc, &touched, func(c *call) error {
		c.op, c.owner, c.nonce, c.first, c.late = o, src.text, b.Nonce, b.First, b.Late
		return nil
	}, func(c *call) error {
		// A late claim begins no run: its rows lie below what is inserted already.
		if o == opClaim && !b.Late && src.epoch[c.group] != c.got {
			src.epoch[c.group], src.start[c.group] = c.got, b.First
		}
		s.answers(c, r, b.Nonce)
		return nil
	})
	r.Ticket = touched
	return err
}
