package dedup

import (
	"context"
	"errors"
	"testing"
	"time"
)

// After a loss the table is what is left: its keys are warmed, and from then on
// the store's word counts again.
func TestWarmingMakesTheStoresWordCountAgain(t *testing.T) {
	srv := startRedis(t)
	empty := true
	hooks := quietHooks()
	hooks.TableEmpty = func(context.Context) (bool, error) { return empty, nil }
	open := func(group string, deadline time.Duration) *Store {
		d := testDomain
		d.Group, d.InsertDeadline = group, deadline
		s, err := Open(t.Context(), Config{Addresses: []string{srv.Addr}, Horizon: time.Hour, Slack: time.Minute}, d, hooks, Events{})
		must(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open("g", 0)
	src := source0(0)
	items := someItems(0, 4, 10)
	claimed(t, s, &Batch{Source: src, First: 10, Nonce: 1, Items: items})
	empty = false
	srv.do("flushall")

	w := open(WarmGroup, 0)
	ticket, err := w.AwaitOpen(t.Context())
	must(t, err)
	var r Reply
	added, err := w.Warm(t.Context(), ticket, append([]Item(nil), items[:3]...), &r)
	must(t, err)
	if added != 3 {
		t.Errorf("%d keys were added, want 3", added)
	}
	if added, err = w.Warm(t.Context(), ticket, append([]Item(nil), items[:3]...), &r); err != nil || added != 0 {
		t.Errorf("a second time %d keys were added: %v", added, err)
	}
	if got := claimed(t, s, &Batch{Source: src, First: 10, Nonce: 2, Items: items[3:]}); !got.Verify || got.Answers[0].Verdict != New {
		t.Errorf("before warming ends: %+v, want a new key that has to be verified", got)
	}
	must(t, w.WarmDone(t.Context(), ticket))

	again := append([]Item(nil), items[:3]...)
	again[2].Fingerprint++ // what the record said else is not known: no conflict
	got := claimed(t, s, &Batch{Source: src, First: 10, Nonce: 3, Items: append(again, someItems(9, 1, 20)...)})
	if got.Verify {
		t.Error("verify mode goes on after warming")
	}
	wantVerdicts(t, "after warming", got, "SSSN")
	if o := got.Owners[got.Answers[0].Owner]; o.Group != WarmGroup || !o.Settled {
		t.Errorf("the owner of a warmed key is %+v", o)
	}
}

// Inserts that a lost store allowed may land while a quarantine lasts: what was
// read before its end is not all.
func TestAQuarantineCantBeWarmedAway(t *testing.T) {
	srv := startRedis(t)
	d := testDomain
	d.InsertDeadline = time.Hour
	hooks := quietHooks()
	hooks.TableEmpty = func(context.Context) (bool, error) { return false, nil }
	s, err := Open(t.Context(), Config{Addresses: []string{srv.Addr}}, d, hooks, Events{})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	ticket, err := s.Epochs(t.Context())
	must(t, err)
	var hold *Quarantine
	if _, err := s.AwaitOpen(t.Context()); !errors.As(err, &hold) {
		t.Errorf("AwaitOpen in a quarantine: %v", err)
	}
	if err := s.WarmDone(t.Context(), ticket); !errors.As(err, &hold) {
		t.Errorf("WarmDone in a quarantine: %v", err)
	}
}
