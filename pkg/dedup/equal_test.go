package dedup

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"
)

// pair is one sink of the test twice: over Redis and over Memory.
type pair struct {
	redis, memory *Store
	layout        *redisBackend
}

// world runs the same random calls against both and compares every answer.
type world struct {
	t       *testing.T
	rnd     *rand.Rand
	server  *server
	mem     *Memory
	other   *MemoryState
	pairs   []*pair
	groups  int
	arrival bool
	quiet   bool
	empty   bool
	batches []played
	met     []GateItem
	log     []string
	verdict map[Verdict]int
	errs    map[string]int
}

// played is a batch that was claimed, with what it was answered.
type played struct {
	by            int
	batch         Batch
	redis, memory Reply
}

func newWorld(t *testing.T, seed uint64, groups, most int, arrival bool) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), server: startRedis(t), groups: groups, arrival: arrival, quiet: true,
		verdict: map[Verdict]int{}, errs: map[string]int{}}
	w.mem = NewMemory(time.Now, groups)
	hooks := Hooks{
		Quiet:      func(context.Context, time.Duration) (bool, string, error) { return w.quiet, "an insert runs", nil },
		TableEmpty: func(context.Context) (bool, error) { return w.empty, nil },
	}
	for _, group := range []string{"g", "replay group"} {
		d := testDomain
		d.Group, d.InsertDeadline, d.EventTime = group, 0, !arrival
		cfg := Config{Horizon: time.Hour, Slack: time.Minute}
		h, err := newHead(cfg, d)
		if err != nil {
			t.Fatal(err)
		}
		h.groups = groups
		b := newRedisBackend(w.server.client(), "under test", h, uint(bits.TrailingZeros(uint(groups))), most)
		b.keys.keys.Store(1)
		r, err := newStore(b, h, d, hooks, Events{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		m, err := w.mem.Open(t.Context(), cfg, 0, d, hooks, Events{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.greet(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.pairs = append(w.pairs, &pair{r, m, b})
	}
	return w
}

func (w *world) item() Item {
	n := w.rnd.IntN(60)
	it := Item{Key: Hasher{}.Key([]byte(strconv.Itoa(n))), Fingerprint: uint32(w.rnd.IntN(8) / 7), Offset: int64(w.rnd.IntN(40)), Nonce: uint32(w.rnd.IntN(4))}
	it.EventMs = time.Now().Add(time.Hour).UnixMilli()/3600000*3600000 + int64(n%3-1)*3600000
	return it
}

func (w *world) items() []Item {
	seen := map[any]bool{}
	var list []Item
	for range 1 + w.rnd.IntN(12) {
		if it := w.item(); !seen[it.Key] {
			seen[it.Key] = true
			list = append(list, it)
		}
	}
	return list
}

// same compares errors; epochs are times and differ.
func (w *world) same(what string, r, m error) bool {
	w.t.Helper()
	name := func(err error) string {
		var hold *Quarantine
		var epoch *EpochChanged
		switch {
		case err == nil:
			return ""
		case errors.As(err, &hold):
			return "quarantine: " + hold.Reason
		case errors.As(err, &epoch):
			return fmt.Sprint("epoch changed in ", epoch.Groups)
		}
		return err.Error()
	}
	w.log = append(w.log, what)
	if name(r) != name(m) {
		w.fail("%s: redis says %v, memory %v", what, r, m)
	}
	w.errs[fmt.Sprintf("%T", m)]++
	return m == nil
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.log[max(0, len(w.log)-12):] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

func (w *world) replies(what string, r, m *Reply, items []Item) {
	w.t.Helper()
	if r.Verify != m.Verify || len(r.Answers) != len(m.Answers) {
		w.fail("%s: redis %+v, memory %+v", what, r, m)
	}
	for g := range w.groups {
		if (r.Ticket.epochs[g] == 0) != (m.Ticket.epochs[g] == 0) {
			w.fail("%s: tickets touch other groups", what)
		}
	}
	for i := range r.Answers {
		a, b := r.Answers[i], m.Answers[i]
		if a.Verdict != b.Verdict || a.Nonce != b.Nonce || (a.Owner < 0) != (b.Owner < 0) {
			w.fail("%s: item %d %+v: redis %+v, memory %+v", what, i, items[i], a, b)
		}
		w.verdict[a.Verdict]++
		if a.Owner >= 0 {
			if !reflect.DeepEqual(r.Owners[a.Owner], m.Owners[b.Owner]) {
				w.fail("%s: item %d: redis %+v, memory %+v", what, i, r.Owners[a.Owner], m.Owners[b.Owner])
			}
			w.met = append(w.met, GateItem{items[i], m.Owners[b.Owner]})
		}
	}
	if len(w.met) > 40 {
		w.met = w.met[len(w.met)-40:]
	}
}

func (w *world) past() *played {
	if len(w.batches) == 0 {
		return nil
	}
	return &w.batches[len(w.batches)-1-w.rnd.IntN(min(6, len(w.batches)))]
}

func (w *world) step(n int) {
	ctx := w.t.Context()
	by := w.rnd.IntN(len(w.pairs))
	p, src := w.pairs[by], source0(int32(w.rnd.IntN(2)))
	var r, m Reply
	switch k := w.rnd.IntN(100); {
	case k < 40:
		b := Batch{Source: src, First: int64(w.rnd.IntN(40)), Nonce: uint32(w.rnd.IntN(4)), Items: w.items(), Late: w.rnd.IntN(6) == 0}
		if old := w.past(); old != nil && w.rnd.IntN(4) == 0 { // sent again, or recovered
			b = old.batch
			p = w.pairs[old.by]
			by = old.by
		}
		what := fmt.Sprintf("%d: claim by %d %+v", n, by, b)
		if w.same(what, p.redis.Claim(ctx, &b, &r), p.memory.Claim(ctx, &b, &m)) {
			w.replies(what, &r, &m, b.Items)
			w.batches = append(w.batches, played{by, b, r, m})
		}
	case k < 52:
		old := w.past()
		if old == nil {
			return
		}
		p = w.pairs[old.by]
		b := old.batch
		b.Items = append([]Item(nil), b.Items...)
		for i := range b.Items {
			b.Items[i].Nonce = old.batch.Nonce
		}
		b.Nonce = uint32(w.rnd.IntN(4))
		what := fmt.Sprintf("%d: renew by %d %+v", n, old.by, b)
		if w.same(what, p.redis.Renew(ctx, old.redis.Ticket, &b, &r), p.memory.Renew(ctx, old.memory.Ticket, &b, &m)) {
			w.replies(what, &r, &m, b.Items)
		}
	case k < 62:
		items := w.gateItems()
		ra, ma := make([]GateAnswer, len(items)), make([]GateAnswer, len(items))
		what := fmt.Sprintf("%d: gate %+v", n, items)
		if w.same(what, p.redis.Gate(ctx, items, ra), p.memory.Gate(ctx, items, ma)) && !reflect.DeepEqual(ra, ma) {
			w.fail("%s: redis %+v, memory %+v", what, ra, ma)
		}
	case k < 70:
		items := w.gateItems()
		nonce := uint32(w.rnd.IntN(4))
		what := fmt.Sprintf("%d: take over by %d %s nonce %d %+v", n, by, src, nonce, items)
		if w.same(what, p.redis.TakeOver(ctx, src, nonce, items, &r), p.memory.TakeOver(ctx, src, nonce, items, &m)) {
			list := make([]Item, len(items))
			for i := range items {
				list[i] = items[i].Item
			}
			w.replies(what, &r, &m, list)
		}
	case k < 76:
		if old := w.past(); old != nil {
			p = w.pairs[old.by]
			items := append([]Item(nil), old.batch.Items[:1+w.rnd.IntN(len(old.batch.Items))]...)
			for i := range items {
				items[i].Nonce = old.batch.Nonce
			}
			if w.rnd.IntN(2) == 0 {
				w.same(fmt.Sprintf("%d: release %+v", n, items), p.redis.Release(ctx, old.redis.Ticket, old.batch.Source, items), p.memory.Release(ctx, old.memory.Ticket, old.batch.Source, items))
			} else {
				w.same(fmt.Sprintf("%d: settle %+v", n, items), p.redis.Settle(ctx, old.redis.Ticket, old.batch.Source, items), p.memory.Settle(ctx, old.memory.Ticket, old.batch.Source, items))
			}
		}
	case k < 80:
		at := int64(w.rnd.IntN(20))
		w.same(fmt.Sprintf("%d: start run %d", n, at), p.redis.StartRun(ctx, src, at), p.memory.StartRun(ctx, src, at))
	case k < 88:
		if old := w.past(); old != nil {
			lo, all := int64(w.rnd.IntN(20)), w.rnd.IntN(3) == 0
			hi := lo + int64(w.rnd.IntN(20))
			p = w.pairs[old.by]
			what := fmt.Sprintf("%d: publish [%d,%d) %v", n, lo, hi, all)
			w.same(what, p.redis.Publish(ctx, old.batch.Source, lo, hi, old.redis.Ticket, all), p.memory.Publish(ctx, old.batch.Source, lo, hi, old.memory.Ticket, all))
		}
	case k < 94:
		what := fmt.Sprintf("%d: acked %s", n, src)
		ra, err1 := p.redis.Acked(ctx, src)
		ma, err2 := p.memory.Acked(ctx, src)
		if w.same(what, err1, err2) && ra != ma {
			w.fail("%s: redis %+v, memory %+v", what, ra, ma)
		}
		rk, err1 := p.redis.Knows(ctx, src)
		mk, err2 := p.memory.Knows(ctx, src)
		if w.same(what+", known", err1, err2) && rk != mk {
			w.fail("%s: known: redis %v, memory %v", what, rk, mk)
		}
	default:
		w.incident(ctx, n, p)
	}
}

func (w *world) gateItems() []GateItem {
	var items []GateItem
	seen := map[any]bool{}
	for range min(5, len(w.met)) {
		it := w.met[w.rnd.IntN(len(w.met))]
		if !seen[it.Key] {
			seen[it.Key] = true
			items = append(items, it)
		}
	}
	return items
}

// incident is a loss, a swap, the end of warming, or another mood of ClickHouse.
func (w *world) incident(ctx context.Context, n int, p *pair) {
	group := w.rnd.IntN(w.groups)
	switch w.rnd.IntN(10) {
	case 0: // another process serves one group, with all its data
		w.log = append(w.log, fmt.Sprintf("%d: group %d moved", n, group))
		w.server.do("hset", p.layout.marker[group], "id", "another/server")
		w.mem.RestoreGroup(w.mem.Snapshot(), group)
	case 1:
		if w.rnd.IntN(3) == 0 {
			w.log = append(w.log, fmt.Sprintf("%d: everything lost", n))
			w.server.do("flushdb")
			w.mem.Flush()
		}
	case 2, 3:
		table := [16]byte{byte(1 + w.rnd.IntN(2))}
		what := fmt.Sprintf("%d: adopt %x", n, table)
		w.same(what, p.redis.Adopt(ctx, table), p.memory.Adopt(ctx, table))
	case 4:
		tr, err1 := p.redis.Epochs(ctx)
		tm, err2 := p.memory.Epochs(ctx)
		if w.same(fmt.Sprintf("%d: epochs", n), err1, err2) {
			w.same(fmt.Sprintf("%d: warmed", n), p.redis.WarmDone(ctx, tr), p.memory.WarmDone(ctx, tm))
		}
	case 5:
		w.server.do("script", "flush")
	case 8: // another store at the address, and the first one again
		w.log = append(w.log, fmt.Sprintf("%d: stores exchanged", n))
		w.server.do("swapdb", 0, 1)
		w.other = w.mem.Exchange(w.other)
	case 6:
		w.quiet = !w.quiet
	case 7:
		tr, err1 := p.redis.AwaitOpen(ctx)
		tm, err2 := p.memory.AwaitOpen(ctx)
		if !w.same(fmt.Sprintf("%d: await open", n), err1, err2) {
			return
		}
		var r, m Reply
		items := w.items()
		what := fmt.Sprintf("%d: warm %+v", n, items)
		a, err1 := p.redis.Warm(ctx, tr, append([]Item(nil), items...), &r)
		b, err2 := p.memory.Warm(ctx, tm, append([]Item(nil), items...), &m)
		if w.same(what, err1, err2) {
			if a != b {
				w.fail("%s: redis adds %d, memory %d", what, a, b)
			}
			w.replies(what, &r, &m, items)
		}
	default:
		w.quiet, w.empty = true, !w.empty
	}
}

// The scripts and the plain Go store must not differ in a single answer: the
// simulation that proves the protocol runs over the latter.
func TestScriptsEqualPlainGo(t *testing.T) {
	seeds, steps := 3, 1200
	if text := os.Getenv("ONCESINK_SEEDS"); text != "" {
		seeds, _ = strconv.Atoi(text)
	}
	for _, c := range []struct {
		name         string
		groups, most int
		arrival      bool
	}{{"one group", 1, 384, false}, {"layers grow", 1, 3, false}, {"arrival slots", 1, 4, true}, {"four groups", 4, 3, false}} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range seeds {
				w := newWorld(t, uint64(seed), c.groups, c.most, c.arrival)
				for n := range steps {
					w.step(n)
				}
				for v := New; v <= Changed; v++ {
					if w.verdict[v] == 0 {
						t.Errorf("seed %d: no answer was %v", seed, v)
					}
				}
				t.Logf("seed %d: %v, errors %v", seed, w.verdict, w.errs)
			}
		})
	}
}
