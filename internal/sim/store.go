package sim

import (
	"context"
	"errors"
	"time"

	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// store is the dedup store's server: the real semantics in memory, and what it
// held at earlier moments, to lose the last of it.
type store struct {
	w      *world
	mem    *dedup.Memory
	past   []*dedup.MemoryState // the last moments, oldest first
	dump   *dedup.MemoryState   // an old one
	first  *dedup.MemoryState   // the store that was exchanged for another one
	downTo int64
	fate   func() dedup.Fate
}

// moments is how many writes a failover may lose.
const moments = 12

func (w *world) newStore() *store {
	s := &store{w: w}
	s.mem = dedup.NewMemory(func() time.Time { return time.UnixMilli(w.now) }, w.p.Groups)
	s.mem.Fate = func(string, int) dedup.Fate {
		if s.fate != nil {
			return s.fate()
		}
		return dedup.Answered
	}
	return s
}

// remember keeps the moment before a write.
func (s *store) remember() {
	if s.w.budget[faultFailover] == 0 && s.w.budget[faultOldDump] == 0 {
		return
	}
	snap := s.mem.Snapshot()
	most := moments
	if s.w.small != nil {
		most = 2
	}
	if s.past = append(s.past, snap); len(s.past) > most {
		s.past = s.past[1:]
	}
	if s.dump == nil && s.w.chance(2) {
		s.dump = snap
	}
}

// exchange puts an empty store at the address, and some time later the first one
// again, which knows nothing of it.
func (s *store) exchange() {
	w := s.w
	s.first, s.past, s.dump = s.mem.Exchange(nil), nil, nil
	w.after(w.below(6*deadline), &task{kind: "the store comes back", run: func() {
		w.logf("the first store is at the address again")
		s.mem.Exchange(s.first)
		s.first, s.past, s.dump = nil, nil, nil
	}})
}

// storeClient is a process's client: the real one.
type storeClient struct {
	p *process
	s *dedup.Store
}

func (s *store) client(p *process) *storeClient { return &storeClient{p: p} }

var forever = context.Background()

func (s *store) open(groupName string) (*dedup.Store, error) {
	w := s.w
	known := func(context.Context) ([]uint64, error) { return w.kafka.known(groupName), nil }
	if w.small != nil {
		known = nil // no store is exchanged there, and no epoch committed
	}
	return s.mem.Open(forever, dedup.Config{Horizon: horizon * time.Millisecond, Slack: time.Minute}, 0, dedup.Domain{
		Database: "db", Table: "t", TableUUID: tableID, Route: "v1 key", EventTime: true,
		InsertDeadline: deadline * time.Millisecond, Group: groupName,
	}, dedup.Hooks{
		Quiet: func(_ context.Context, since time.Duration) (bool, string, error) {
			if !w.house.up {
				return false, "", errors.New("ClickHouse is away")
			}
			for _, st := range w.house.running {
				if st.started <= w.now-since.Milliseconds() {
					return false, "an insert runs", nil
				}
			}
			return true, "", nil
		},
		TableEmpty: func(context.Context) (bool, error) {
			for _, rows := range w.house.table.rows {
				if len(rows) > 0 {
					return false, nil
				}
			}
			return w.house.up, nil
		},
		Known: known,
	}, dedup.Events{
		EpochRaised: func(g int, epoch uint64, reason string) { w.logf("store: group %d: epoch %d: %s", g, epoch, reason) },
		Opened: func(g int, epoch uint64, verify bool) {
			w.logf("store: group %d: quarantine over, verify mode %v", g, verify)
		},
	})
}

// sent is what a call to the store goes by.
type sent struct {
	e      pipeline.Effect
	lives  int  // of the process
	before bool // it has arrived before
}

// do sends an effect to the store, as the shell does.
func (c *storeClient) do(wk *worker, e pipeline.Effect) {
	w := wk.w
	lives := wk.proc.born
	call := &sent{e: e, lives: lives}
	_, step := stepOf(e)
	wk.request(wk.at, call, func() bool { return w.now >= w.store.downTo }, func() (pipeline.Event, answer) {
		store := c.s
		if wk.gone && call.before || wk.proc.born != lives || !wk.proc.alive {
			// The client is gone; what it sent lands all the same.
			if _, ok := e.(pipeline.Publish); ok {
				return nil, silent // its bytes hang on what the client knew
			}
			store = nil
		}
		call.before = true
		if store == nil {
			var err error
			if store, err = w.store.open(wk.proc.group.name); err != nil {
				return nil, again
			}
			if wk.proc.alive && wk.proc.born == lives {
				c.s = store
			}
		}
		w.store.remember()
		w.store.fate = func() dedup.Fate {
			if w.p.Groups > 1 && w.spend(faultPartStore, step) {
				w.logf("fault: one hash-tag group does not get the call of %s", wk.name)
				return dedup.RequestLost
			}
			return dedup.Answered
		}
		defer func() { w.store.fate = nil }()
		return storeCall(wk, store, e)
	})
}

// storeCall does one call and turns its end into an event.
func storeCall(wk *worker, s *dedup.Store, e pipeline.Effect) (pipeline.Event, answer) {
	w, src := wk.w, wk.source
	finish := func(ref pipeline.Ref, err error, ok pipeline.Event) (pipeline.Event, answer) {
		var changed *dedup.EpochChanged
		switch {
		case err == nil:
			return ok, answered
		case errors.As(err, &changed):
			w.logf("store refuses %s of %s: %v", wk.at, wk.name, err)
			return pipeline.Refused{Ref: ref}, answered
		}
		var held *dedup.Quarantine
		if !errors.As(err, &held) || wk.told != held.Reason {
			w.logf("store can't answer %s of %s: %v", wk.at, wk.name, err)
		}
		if held != nil {
			wk.told = held.Reason
		}
		var unfit *dedup.Unfit
		if errors.As(err, &unfit) {
			w.fail("panic", "the store refuses a call as unfit: %v", err)
		}
		return nil, again
	}
	reply := &dedup.Reply{}
	switch e := e.(type) {
	case pipeline.ReadAcked:
		ticket, err := s.Epochs(forever)
		var run dedup.Run
		if err == nil {
			run, err = s.Acked(forever, src)
		}
		return finish(e.Ref, err, pipeline.AckedRun{Ref: e.Ref, Run: run, Ticket: ticket})
	case pipeline.StartRun:
		return finish(e.Ref, s.StartRun(forever, src, e.At), pipeline.Done{Ref: e.Ref})
	case pipeline.Claim:
		b := dedup.Batch{Source: src, First: e.First, Nonce: e.Nonce, Late: e.Late, Items: items(e.Set, 0)}
		err := s.Claim(forever, &b, reply)
		return finish(e.Ref, err, pipeline.Claimed{Ref: e.Ref, Reply: reply})
	case pipeline.Renew:
		b := dedup.Batch{Source: src, First: e.First, Nonce: e.Nonce, Late: e.Late, Items: items(e.Set, e.Old)}
		err := s.Renew(forever, e.Ticket, &b, reply)
		return finish(e.Ref, err, pipeline.Claimed{Ref: e.Ref, Reply: reply})
	case pipeline.TakeOver:
		err := s.TakeOver(forever, src, e.Nonce, gateItems(e.Set, e.Owners), reply)
		return finish(e.Ref, err, pipeline.Claimed{Ref: e.Ref, Reply: reply})
	case pipeline.Settle:
		list := items(e.Set, 0)
		for i := range list {
			list[i].Nonce = e.Nonces[i]
		}
		return finish(e.Ref, s.Settle(forever, e.Ticket, src, list), pipeline.Done{Ref: e.Ref})
	case pipeline.Release:
		return finish(e.Ref, s.Release(forever, e.Ticket, src, items(e.Set, e.Nonce)), pipeline.Done{Ref: e.Ref})
	case pipeline.Publish:
		return finish(e.Ref, s.Publish(forever, src, e.Lo, e.Hi, e.Ticket, e.All), pipeline.Done{Ref: e.Ref})
	case pipeline.AskGate:
		out := make([]dedup.GateAnswer, len(e.Owners))
		err := s.Gate(forever, gateItems(e.Set, e.Owners), out)
		return finish(e.Ref, err, pipeline.GateAnswers{Ref: e.Ref, Answers: out})
	}
	panic("not a store call")
}

func items(s pipeline.Set, nonce uint32) []dedup.Item {
	out := make([]dedup.Item, 0, s.Len())
	s.Each(func(_ int, b *pipeline.Batch, i int32) { out = append(out, item(&b.Records[i], nonce)) })
	return out
}

func item(r *pipeline.Record, nonce uint32) dedup.Item {
	return dedup.Item{Key: r.Key, Fingerprint: r.Fingerprint, Offset: r.Offset, EventMs: r.EventMs, Nonce: nonce}
}

func gateItems(s pipeline.Set, owners []dedup.Owner) []dedup.GateItem {
	out := make([]dedup.GateItem, 0, len(owners))
	s.Each(func(i int, b *pipeline.Batch, row int32) {
		out = append(out, dedup.GateItem{Item: item(&b.Records[row], owners[i].Nonce), Owner: owners[i]})
	})
	return out
}
