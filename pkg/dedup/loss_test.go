package dedup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// F7: whatever loses writes voids tickets, closes the store for D, and leaves
// it in verify mode.
func TestALossRaisesTheEpoch(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		lose func(*server)
		kept bool
	}{
		{"FLUSHALL", nil, func(s *server) { s.do("flushall") }, false},
		{"restart with an append-only file", nil, func(s *server) { s.Kill(); s.Start() }, true},
		{"restart without", []string{"--appendonly", "no"}, func(s *server) { s.Kill(); s.Start() }, false},
		{"the marker alone", nil, func(s *server) { s.do("del", markerKey("db.events", 0)) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := startRedis(t, c.args...)
			var raised []string
			empty := true
			hooks := quietHooks()
			hooks.TableEmpty = func(context.Context) (bool, error) { return empty, nil }
			s, err := Open(t.Context(), Config{Addresses: []string{srv.Addr}}, testDomain, hooks, Events{EpochRaised: func(_ int, _ uint64, why string) { raised = append(raised, why) }})
			must(t, err)
			defer func() { _ = s.Close() }()
			b := &Batch{Source: source0(0), First: 10, Nonce: 1, Items: someItems(0, 3, 10)}
			before := claimed(t, s, b)
			must(t, s.StartRun(t.Context(), source0(0), 10))
			must(t, s.Publish(t.Context(), source0(0), 10, 13, before.Ticket, true))
			if before.Verify {
				t.Fatal("an empty table needs no verify mode")
			}
			empty = false
			c.lose(srv)

			renew := *b
			renew.Nonce = 2
			err = retried(func() error { return s.Renew(t.Context(), before.Ticket, &renew, &Reply{}) })
			var changed *EpochChanged
			var hold *Quarantine
			if !errors.As(err, &changed) && !errors.As(err, &hold) {
				t.Fatalf("a renewal under the old epoch: %v", err)
			}
			if err = s.Publish(t.Context(), source0(0), 10, 20, before.Ticket, false); !errors.As(err, &changed) {
				t.Fatalf("a publish under the old epoch: %v", err)
			}
			if run, err := s.Acked(t.Context(), source0(0)); err != nil || run.Known {
				t.Fatalf("acked survived the epoch: %+v %v", run, err)
			}
			b.Nonce = 3
			after := claimed(t, s, b)
			if after.Ticket.Equal(before.Ticket) || !after.Verify {
				t.Fatalf("after the loss: same epoch or no verify mode: %+v", after)
			}
			want := "NNN"
			if c.kept {
				want = "MMM"
			}
			wantVerdicts(t, "after the loss", after, want)
			if len(raised) != 2 {
				t.Fatalf("epochs were raised %d times: %q", len(raised), raised)
			}
		})
	}
}

// retried repeats a call over errors of the connection.
func retried(f func() error) error {
	for i := 0; ; i++ {
		err := f()
		if err == nil || rank(err) > 2 || i > 100 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The table at the end of warming: WarmDone of the present epoch ends verify
// mode, of an older one it must not.
func TestWarmingOfAnOldEpochDoesNotEndVerifyMode(t *testing.T) {
	srv := startRedis(t)
	hooks := quietHooks()
	hooks.TableEmpty = nil
	s, err := Open(t.Context(), Config{Addresses: []string{srv.Addr}}, testDomain, hooks, Events{})
	must(t, err)
	defer func() { _ = s.Close() }()
	b := &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 1, 0)}
	if !claimed(t, s, b).Verify {
		t.Fatal("a store that may have lost keys of a table with rows must be verified")
	}
	old, err := s.Epochs(t.Context())
	must(t, err)
	srv.do("del", markerKey("db.events", 0))
	claimed(t, s, b)
	var changed *EpochChanged
	if err := s.WarmDone(t.Context(), old); !errors.As(err, &changed) {
		t.Fatalf("warmed under the old epoch: %v", err)
	}
	if !claimed(t, s, b).Verify {
		t.Fatal("verify mode ended by a warm of the old epoch")
	}
	now, err := s.Epochs(t.Context())
	must(t, err)
	must(t, s.WarmDone(t.Context(), now))
	if claimed(t, s, b).Verify {
		t.Fatal("verify mode goes on after the horizon was rebuilt")
	}
}

// The quarantine lasts the largest D ever announced plus the cut-off time, and
// as long as ClickHouse runs an insert from before. On the plain Go store, whose
// clock the test holds.
func TestQuarantineLastsAsLongAsOldInsertsMayStart(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	mem := NewMemory(func() time.Time { return now }, 1)
	quiet := false
	asked := 0
	var since time.Duration
	hooks := Hooks{Quiet: func(_ context.Context, s time.Duration) (bool, string, error) {
		asked++
		since = s
		return quiet, "insert x still runs", nil
	}}
	slow := testDomain
	slow.InsertDeadline = 30 * time.Second
	open := func(d Domain) *Store {
		s, err := mem.Open(t.Context(), Config{}, 10*time.Second, d, hooks, Events{})
		must(t, err)
		return s
	}
	a := open(testDomain)
	open(slow) // announces its D and leaves
	b := &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 1, 0)}
	held := func(after time.Duration, reason string) {
		t.Helper()
		now = time.UnixMilli(1_700_000_000_000).Add(after)
		var hold *Quarantine
		if err := a.Claim(t.Context(), b, &Reply{}); !errors.As(err, &hold) || !strings.Contains(hold.Reason, reason) {
			t.Fatalf("after %v: %v", after, err)
		} else if hold.Until.UnixMilli() != 1_700_000_040_000 {
			t.Fatalf("until %v", hold.Until)
		}
	}
	held(0, "may start until then")
	held(39_999*time.Millisecond, "may start until then")
	if asked != 0 {
		t.Fatal("ClickHouse was asked before it was due")
	}
	held(40*time.Second, "insert x still runs")
	held(90*time.Second, "insert x still runs")
	if since != 90*time.Second {
		t.Fatalf("asked for inserts older than %v", since)
	}
	quiet = true
	r := &Reply{}
	must(t, a.Claim(t.Context(), b, r))
	if !r.Verify {
		t.Fatal("no verify mode after a loss")
	}
	// It ends by itself when a horizon has passed since the raise.
	now = now.Add(defaultHorizon + defaultSlack)
	must(t, a.Claim(t.Context(), b, r))
	if r.Verify {
		t.Fatal("verify mode outlives the horizon")
	}
}

// A batch of several chunks during which the store changes: half of its claims
// are void, so none may be used.
func TestEpochChangeBetweenChunksVoidsTheBatch(t *testing.T) {
	mem := NewMemory(time.Now, 1)
	d := testDomain
	d.InsertDeadline = 0
	s, err := mem.Open(t.Context(), Config{}, 0, d, quietHooks(), Events{})
	must(t, err)
	r := &Reply{}
	b := &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 2*maxRows+1, 0)}
	must(t, s.Claim(t.Context(), b, r))
	wantVerdicts(t, "three chunks", r, strings.Repeat("N", 2*maxRows+1))
	for at := 1; at <= 2; at++ {
		n := 0
		mem.Fate = func(call string, _ int) Fate {
			if call == "claim" {
				if n++; n == at+1 {
					mem.Restart()
				}
			}
			return Answered
		}
		var changed *EpochChanged
		if err := s.Claim(t.Context(), b, r); !errors.As(err, &changed) {
			t.Fatalf("the server was replaced before chunk %d: %v", at, err)
		}
		mem.Fate = nil
		must(t, s.Claim(t.Context(), b, r))
	}
	// Lost requests and replies anywhere do no harm.
	for at := range 6 {
		n := 0
		mem.Fate = func(string, int) Fate {
			n++
			if n-1 == at/2 {
				return []Fate{RequestLost, ReplyLost}[at%2]
			}
			return Answered
		}
		b := &Batch{Source: source0(1), Nonce: uint32(10 + at), Items: someItems(100_000*(at+1), 2*maxRows+1, 0)}
		if err := s.Claim(t.Context(), b, r); !errors.Is(err, ErrLost) {
			t.Fatalf("%d: %v", at, err)
		}
		mem.Fate = nil
		must(t, s.Claim(t.Context(), b, r))
		wantVerdicts(t, fmt.Sprint("after loss ", at), r, strings.Repeat("N", 2*maxRows+1))
	}
}

// The table was dropped and created again: a sink that believes in the old one
// must not put claims of the new one to use, nor flip the marker back.
func TestAStaleSinkCannotFlipTheTableBack(t *testing.T) {
	srv := startRedis(t)
	stale, fresh := openAt(t, srv.Addr, nil), openAt(t, srv.Addr, nil)
	b := &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 1, 0)}
	old := claimed(t, stale, b)
	u1, u2 := testDomain.TableUUID, [16]byte{2}
	var swapped *Swapped
	// fresh meets a marker of u1 after it has read u2.
	if err := fresh.Adopt(t.Context(), u2); !errors.As(err, &swapped) {
		t.Fatalf("the marker was not yet seen when the UUID was read: %v", err)
	}
	must(t, fresh.Adopt(t.Context(), u2))
	if r := claimed(t, fresh, b); r.Ticket.Equal(old.Ticket) {
		t.Fatal("another table under the same epoch")
	}
	err := stale.Claim(t.Context(), b, &Reply{})
	if !errors.As(err, &swapped) || swapped.Marker != u2 || swapped.Ours != u1 {
		t.Fatalf("a claim for the old table: %v", err)
	}
	// A third sink adopts u3 while stale reads ClickHouse: what stale read is old.
	third := openAt(t, srv.Addr, func(_ *Config, d *Domain) { d.TableUUID = [16]byte{3} })
	_ = third.Claim(t.Context(), b, &Reply{})
	must(t, third.Adopt(t.Context(), [16]byte{3}))
	if err := stale.Adopt(t.Context(), u2); !errors.As(err, &swapped) {
		t.Fatalf("an adoption by what was read before the last swap: %v", err)
	}
}

// A sink that starts after the table was created anew takes the domain over
// when ClickHouse still says so after the marker was seen, and not otherwise.
func TestOpenAdoptsOnlyWhatClickHouseConfirms(t *testing.T) {
	srv := startRedis(t)
	openAt(t, srv.Addr, nil)
	d := testDomain
	d.TableUUID = [16]byte{2}
	hooks := quietHooks()
	hooks.TableUUID = func(context.Context) ([16]byte, error) { return [16]byte{3}, nil }
	var swapped *Swapped
	if _, err := Open(t.Context(), Config{Addresses: []string{srv.Addr}}, d, hooks, Events{}); !errors.As(err, &swapped) {
		t.Fatalf("swapped again while the sink started: %v", err)
	}
	hooks.TableUUID = func(context.Context) ([16]byte, error) { return [16]byte{2}, nil }
	s, err := Open(t.Context(), Config{Addresses: []string{srv.Addr}}, d, hooks, Events{})
	must(t, err)
	defer func() { _ = s.Close() }()
	opened(t, s)
}

func TestAnotherKeyDefinitionIsRefused(t *testing.T) {
	srv := startRedis(t)
	openAt(t, srv.Addr, nil)
	d := testDomain
	d.Route = "key=tenant,id event_time=at ignore="
	var route *RouteChanged
	if _, err := Open(t.Context(), Config{Addresses: []string{srv.Addr}}, d, quietHooks(), Events{}); !errors.As(err, &route) {
		t.Fatal(err)
	}
	d = testDomain
	d.EventTime = false
	if _, err := Open(t.Context(), Config{Addresses: []string{srv.Addr}}, d, quietHooks(), Events{}); !errors.As(err, &route) {
		t.Fatal(err)
	}
}
