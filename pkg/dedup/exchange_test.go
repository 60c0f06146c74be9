package dedup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A store that is exchanged for another one and comes back has its marker and
// its process as they were. It has not got what was claimed meanwhile, so that
// a key of then was new to it, and its row written twice.
func TestAStoreThatComesBackIsNotTakenForTheOneItWas(t *testing.T) {
	srv := startRedis(t)
	s, raised := watched(t, srv)
	other, otherRaised := watched(t, srv)
	a := claimed(t, s, &Batch{Source: source0(0), First: 10, Nonce: 1, Items: someItems(0, 3, 10)})
	must(t, s.StartRun(t.Context(), source0(0), 10))
	must(t, s.Publish(t.Context(), source0(0), 10, 13, a.Ticket, true))

	srv.do("swapdb", 0, 1)
	meanwhile := &Batch{Source: source0(0), First: 13, Nonce: 2, Items: someItems(3, 2, 13)}
	b := claimed(t, s, meanwhile)
	wantVerdicts(t, "claimed in the other store", b, "NN")
	must(t, meets(other))

	srv.do("swapdb", 0, 1)
	var changed *EpochChanged
	if err := retried(func() error { return s.Publish(t.Context(), source0(0), 10, 20, b.Ticket, false) }); !errors.As(err, &changed) {
		t.Fatalf("a publish under the other store's epoch: %v", err)
	}
	if err := s.Publish(t.Context(), source0(0), 10, 20, a.Ticket, false); !errors.As(err, &changed) {
		t.Fatalf("a publish under an epoch of before: %v", err)
	}
	if run, err := other.Acked(t.Context(), source0(0)); err != nil || run.Known {
		t.Fatalf("what was published of old still vouches: %+v %v", run, err)
	}
	var hold *Quarantine
	if err := other.Claim(t.Context(), meanwhile, &Reply{}); !errors.As(err, &hold) {
		t.Fatalf("no quarantine: %v", err)
	}
	again := claimed(t, other, &Batch{Source: source0(1), First: 0, Nonce: 3, Items: someItems(2, 3, 0)})
	wantVerdicts(t, "the same keys again", again, "DNN")
	if !again.Verify || again.Ticket.epochs[0] <= b.Ticket.epochs[0] {
		t.Fatalf("not verified, or under epoch %d after %d", again.Ticket.epochs[0], b.Ticket.epochs[0])
	}
	all := append(*raised, *otherRaised...)
	if n := strings.Count(strings.Join(all, "\n"), reasonOlder); n != 1 {
		t.Fatalf("raised as an older store %d times: %q", n, all)
	}
}

// watched opens a store whose raises are told, over a table with rows.
func watched(t *testing.T, srv *server) (*Store, *[]string) {
	t.Helper()
	raised := new([]string)
	hooks := quietHooks()
	hooks.TableEmpty = func(context.Context) (bool, error) { return false, nil }
	s, err := Open(t.Context(), Config{Addresses: []string{srv.Addr}}, testDomain, hooks, Events{EpochRaised: func(_ int, _ uint64, why string) { *raised = append(*raised, why) }})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, raised
}

// meets makes a sink meet the present store.
func meets(s *Store) error {
	_, err := s.Epochs(context.Background())
	return err
}

func (s *Store) largest(group int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state[group].known
}

// tardy is a backend whose answer to a claim comes late: something happens
// between its being given and its being read.
type tardy struct {
	backend
	between func()
}

func (b *tardy) exec(ctx context.Context, calls []*call) {
	b.backend.exec(ctx, calls)
	if do := b.between; do != nil && calls[0].op == opClaim {
		b.between = nil
		do()
	}
}

// An answer of before a raise that is read after it has the lower epoch too. It
// is no other store's, and must not cost the domain another quarantine.
func TestALateAnswerRaisesNoEpoch(t *testing.T) {
	for name, byOther := range map[string]bool{"raised by another worker": false, "raised by another sink, and met by a worker": true} {
		t.Run(name, func(t *testing.T) {
			srv := startRedis(t)
			s, raised := watched(t, srv)
			other, otherRaised := watched(t, srv)
			opened(t, s)
			late := &tardy{backend: s.back}
			s.back = late
			late.between = func() {
				srv.do("hset", markerKey("db.events", 0), "id", "another/server")
				if byOther {
					must(t, meets(other))
				}
				must(t, meets(s))
			}
			b := &Batch{Source: source0(0), First: 10, Nonce: 1, Items: someItems(0, 3, 10)}
			r := claimed(t, s, b)
			wantVerdicts(t, "claimed again", r, "MMM")
			if !r.Verify {
				t.Error("the answer of before the raise was believed")
			}
			now, err := s.Epochs(t.Context())
			must(t, err)
			if n := len(*raised) + len(*otherRaised); n != 2 || !now.Equal(r.Ticket) {
				t.Fatalf("raised %d times, want at the start and once: %q %q", n, *raised, *otherRaised)
			}
		})
	}
}

// The clock of a server may be behind that of the one before it.
func TestAnEmptyStoreIsRaisedAboveTheOneBefore(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	mem := NewMemory(func() time.Time { return now }, 1)
	d := testDomain
	d.InsertDeadline = 0
	s, err := mem.Open(t.Context(), Config{}, 0, d, quietHooks(), Events{})
	must(t, err)
	first, err := s.Epochs(t.Context())
	must(t, err)
	now = now.Add(-time.Hour)
	was := mem.Exchange(nil)
	second, err := s.Epochs(t.Context())
	must(t, err)
	mem.Exchange(was)
	third, err := s.Epochs(t.Context())
	must(t, err)
	if first.epochs[0] >= second.epochs[0] || second.epochs[0] >= third.epochs[0] {
		t.Fatalf("epochs %d, %d, %d", first.epochs[0], second.epochs[0], third.epochs[0])
	}
}

// A sink that had nothing to claim while another store was there took the first
// one for the present one when it came back.
func TestAnIdleSinkDoesNotMissAStore(t *testing.T) {
	mem := NewMemory(time.Now, 1)
	d := testDomain
	d.InsertDeadline = 200 * time.Millisecond
	open := func() *Store {
		s, err := mem.Open(t.Context(), Config{}, 0, d, quietHooks(), Events{})
		must(t, err)
		return s
	}
	busy, idle := open(), open()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { idle.Watch(ctx); close(over) }()
	opened(t, busy)
	was := mem.Exchange(nil)
	b := claimed(t, busy, &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 1, 0)})
	for end := time.Now().Add(time.Minute); idle.largest(0) < b.Ticket.epochs[0]; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the other store was never met")
		}
	}
	stop()
	<-over
	mem.Exchange(was)
	var hold *Quarantine
	if err := idle.Claim(t.Context(), &Batch{Source: source0(1), Nonce: 2, Items: someItems(0, 1, 0)}, &Reply{}); !errors.As(err, &hold) {
		t.Fatalf("claimed again: %v", err)
	}
}

// The call itself may be what was under way for so long.
func TestACallThatWasLongUnderWayIsASilence(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	mem := NewMemory(func() time.Time { return now }, 1)
	d := testDomain
	d.InsertDeadline = time.Second
	var committed []uint64
	hooks := quietHooks()
	hooks.Known = func(context.Context) ([]uint64, error) { return committed, nil }
	s, err := mem.Open(t.Context(), Config{}, 0, d, hooks, Events{})
	must(t, err)
	now = now.Add(2 * time.Second)
	opened(t, s)
	s.back = &tardy{s.back, func() {
		now = now.Add(2 * time.Second)
		committed = []uint64{uint64(now.UnixMicro())}
	}}
	var hold *Quarantine
	if err := s.Claim(t.Context(), &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 1, 0)}, &Reply{}); !errors.As(err, &hold) {
		t.Fatalf("%v", err)
	}
}

// A process that was not there, or not answered, while another store gave out
// claims learned nothing of them from the first store, when that came back.
func TestWhoMissedAStoreLearnsOfItBeforeItClaims(t *testing.T) {
	for name, restarted := range map[string]bool{"started later": true, "stopped and continued": false} {
		t.Run(name, func(t *testing.T) {
			now := time.UnixMilli(1_700_000_000_000)
			mem := NewMemory(func() time.Time { return now }, 2)
			d := testDomain
			d.InsertDeadline = time.Second
			var committed []uint64
			var away error
			asked := 0
			hooks := quietHooks()
			hooks.Known = func(context.Context) ([]uint64, error) { asked++; return committed, away }
			open := func() *Store {
				s, err := mem.Open(t.Context(), Config{}, 0, d, hooks, Events{})
				must(t, err)
				return s
			}
			busy, late := open(), open()
			now = now.Add(2 * time.Second)
			b := &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 8, 0)}
			must(t, busy.Claim(t.Context(), b, &Reply{}))
			must(t, late.Claim(t.Context(), b, &Reply{}))
			asked = 0
			must(t, late.Claim(t.Context(), b, &Reply{}))
			if asked != 0 {
				t.Fatal("asked without a silence")
			}

			first := mem.Exchange(nil)
			must(t, meets(busy))
			now = now.Add(2 * time.Second)
			b = &Batch{Source: source0(0), Nonce: 2, Items: someItems(8, 8, 8)}
			must(t, busy.Claim(t.Context(), b, &Reply{}))
			committed = busy.Known()
			mem.Exchange(first)
			if restarted {
				late = open()
			}
			away = errors.New("no coordinator")
			now = now.Add(600 * time.Millisecond)
			var waiting *Waiting
			if err := late.Claim(t.Context(), b, &Reply{}); !errors.As(err, &waiting) && !restarted {
				t.Fatalf("claimed without having been told: %v", err)
			}
			away = nil
			var hold *Quarantine
			if err := late.Claim(t.Context(), b, &Reply{}); !errors.As(err, &hold) {
				t.Fatalf("the first store passed for the present one: %v", err)
			}
			for g, epoch := range late.Known() {
				if epoch <= committed[g] {
					t.Errorf("group %d: epoch %d after %d", g, epoch, committed[g])
				}
			}
		})
	}
}
