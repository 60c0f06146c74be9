package dedup

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/oncesink/oncesink/internal/faultproxy"
)

// Step 3 of the protocol, line by line, on the real server. A claim of a life
// that died before its insert answers "mine" and blocks nothing (field case D1).
func TestEveryVerdictOfAClaim(t *testing.T) {
	srv := startRedis(t)
	a := openAt(t, srv.Addr, nil)
	b := openAt(t, srv.Addr, func(_ *Config, d *Domain) { d.Group = "replay" })
	batch := &Batch{Source: source0(0), First: 100, Nonce: 1, Items: someItems(0, 3, 100)}
	wantVerdicts(t, "absent keys", claimed(t, a, batch), "NNN")
	wantVerdicts(t, "the same attempt sent again", claimed(t, a, batch), "NNN")
	batch.Nonce = 2
	wantVerdicts(t, "another attempt of the same records", claimed(t, a, batch), "MMM")
	wantVerdicts(t, "that one sent again: its fresh mark is gone", claimed(t, a, batch), "MMM")

	other := testItem(1, 7)
	other.Fingerprint++
	for _, c := range []struct {
		name  string
		by    *Store
		batch Batch
		want  string
	}{
		{"a later record of the source, its owner before the batch", a, Batch{Source: source0(0), First: 102, Items: []Item{testItem(1, 105)}}, "D"},
		{"an earlier record of the source, its owner in the batch or behind it", a, Batch{Source: source0(0), First: 90, Items: []Item{testItem(1, 95)}}, "M"},
		{"the same with another fingerprint", a, Batch{Source: source0(0), First: 90, Items: []Item{other}}, "C"},
		{"another partition", a, Batch{Source: source0(1), First: 0, Items: []Item{testItem(1, 7)}}, "D"},
		{"another partition, other fields", a, Batch{Source: source0(1), First: 0, Items: []Item{other}}, "C"},
		{"the same record read by another group", b, Batch{Source: source0(0), First: 100, Items: []Item{testItem(1, 101)}}, "D"},
	} {
		c.batch.Nonce = 3
		r := claimed(t, c.by, &c.batch)
		wantVerdicts(t, c.name, r, c.want)
		o := r.Owners[r.Answers[0].Owner]
		if o.Group != "g" || o.Source != source0(0) || o.Offset != 101 || o.Taken {
			t.Errorf("%s: owner %v, want g at offset 101", c.name, o)
		}
	}
	must(t, a.StartRun(t.Context(), source0(0), 100))
	must(t, a.Publish(t.Context(), source0(0), 100, 102, claimed(t, a, batch).Ticket, false))
	wantVerdicts(t, "owners inside and outside the run", claimed(t, b, &Batch{Source: source0(5), Nonce: 4, Items: someItems(0, 3, 0)}), "SSD")
}

// The reply to a claim is lost and go-redis or the caller sends it again; an
// answer of "exists" would drop the rows (field case D3).
func TestLostRepliesDoNotTurnNewKeysIntoDuplicates(t *testing.T) {
	srv := startRedis(t)
	proxy, err := faultproxy.Listen(srv.Addr)
	must(t, err)
	defer proxy.Close()
	s := openAt(t, proxy.Addr(), nil)
	opened(t, s)
	cut := proxy.Add(faultproxy.RuleOptions{Fault: faultproxy.CutReply, Marker: "evalsha", Every: 2})
	for i := range 40 {
		b := &Batch{Source: source0(0), First: int64(100 * i), Nonce: uint32(10 + i), Items: someItems(100*i, 20, int64(100*i))}
		r := &Reply{}
		for s.Claim(t.Context(), b, r) != nil {
			continue // the reply was lost
		}
		wantVerdicts(t, fmt.Sprintf("batch %d", i), r, strings.Repeat("N", 20))
		// The same for a renewal and a take-over.
		b.Nonce += 1000
		for j := range b.Items {
			b.Items[j].Nonce = uint32(10 + i)
		}
		ticket := r.Ticket
		for s.Renew(t.Context(), ticket, b, r) != nil {
			continue
		}
		wantVerdicts(t, "renewed", r, strings.Repeat("N", 20))
	}
	if n := cut.Account(); n.Faults < 20 {
		t.Fatalf("only %+v replies were cut", n)
	}
}

// The same key in several partitions at the same moment, by several sinks (field
// case D15).
func TestOneKeyIsNewForOneSinkOnly(t *testing.T) {
	srv := startRedis(t)
	const sinks, keys = 6, 400
	replies := make([]*Reply, sinks)
	stores := make([]*Store, sinks)
	for i := range stores {
		stores[i] = openAt(t, srv.Addr, nil)
		opened(t, stores[i])
	}
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() {
			replies[i] = &Reply{}
			if err := s.Claim(t.Context(), &Batch{Source: source0(int32(i)), Nonce: 1, Items: someItems(0, keys, 0)}, replies[i]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for k := range keys {
		owners := 0
		for _, r := range replies {
			if r.Answers[k].Verdict == New {
				owners++
			} else if r.Answers[k].Verdict != Duplicate {
				t.Fatalf("key %d: %v", k, r.Answers[k].Verdict)
			}
		}
		if owners != 1 {
			t.Fatalf("key %d is new for %d sinks", k, owners)
		}
	}
}

// F6: two waiters take over the same dead claim.
func TestOneWaiterTakesAClaimOver(t *testing.T) {
	srv := startRedis(t)
	dead, a, b := openAt(t, srv.Addr, nil), openAt(t, srv.Addr, nil), openAt(t, srv.Addr, nil)
	claimed(t, dead, &Batch{Source: source0(0), First: 5, Nonce: 9, Items: []Item{testItem(1, 5)}})
	waits := func(s *Store, p int32) GateItem {
		r := claimed(t, s, &Batch{Source: source0(p), First: 50, Nonce: 2, Items: []Item{testItem(1, 50)}})
		wantVerdicts(t, "waiter", r, "D")
		return GateItem{testItem(1, 50), r.Owners[0]}
	}
	first, second := waits(a, 1), waits(b, 2)
	var r Reply
	must(t, a.TakeOver(t.Context(), source0(1), 77, []GateItem{first}, &r))
	wantVerdicts(t, "the faster", &r, "M")
	must(t, a.TakeOver(t.Context(), source0(1), 77, []GateItem{first}, &r))
	wantVerdicts(t, "its call sent again", &r, "M")
	must(t, b.TakeOver(t.Context(), source0(2), 78, []GateItem{second}, &r))
	wantVerdicts(t, "the slower", &r, "X")
	if o := r.Owners[r.Answers[0].Owner]; o.Source != source0(1) || o.Offset != 50 || !o.Taken || o.Nonce != 77 {
		t.Fatalf("the slower is told %v", o)
	}
	// acked never settles a taken claim: its row may have been skipped there.
	must(t, a.StartRun(t.Context(), source0(1), 0))
	must(t, a.Publish(t.Context(), source0(1), 0, 100, r.Ticket, true))
	out := make([]GateAnswer, 1)
	must(t, b.Gate(t.Context(), []GateItem{{testItem(1, 50), r.Owners[0]}}, out))
	if out[0].State != GateWaiting {
		t.Fatalf("a taken claim inside the run: %v", out[0].State)
	}
	must(t, b.Gate(t.Context(), []GateItem{second}, out))
	if out[0].State != GateChanged || out[0].Owner.Source != source0(1) {
		t.Fatalf("the old owner: %+v", out[0])
	}
	// The old owner comes back from the dead: it owns nothing any more.
	wantVerdicts(t, "the dead owner", claimed(t, dead, &Batch{Source: source0(0), First: 5, Nonce: 10, Items: []Item{testItem(1, 5)}}), "D")
	// And a renewal that changed the nonce defeats a take-over read before it.
	claimed(t, dead, &Batch{Source: source0(0), First: 5, Nonce: 9, Items: []Item{testItem(2, 6)}})
	late := claimed(t, a, &Batch{Source: source0(1), First: 60, Nonce: 3, Items: []Item{testItem(2, 60)}})
	renewed := testItem(2, 6)
	renewed.Nonce = 9
	must(t, dead.Renew(t.Context(), late.Ticket, &Batch{Source: source0(0), First: 5, Nonce: 11, Items: []Item{renewed}}, &Reply{}))
	must(t, a.TakeOver(t.Context(), source0(1), 79, []GateItem{{testItem(2, 60), late.Owners[0]}}, &r))
	wantVerdicts(t, "an owner that renewed since", &r, "X")
}

// Poison rows: a claim is deleted only while the dead-lettered record and the
// attempt hold it.
func TestReleaseLeavesOthersClaims(t *testing.T) {
	srv := startRedis(t)
	s := openAt(t, srv.Addr, nil)
	b := &Batch{Source: source0(0), Nonce: 5, Items: someItems(0, 4, 0)}
	r := claimed(t, s, b)
	held := append([]Item(nil), b.Items...)
	for i := range held {
		held[i].Nonce = 5
	}
	held[1].Nonce = 6    // another attempt's
	held[2].Offset = 100 // another record's
	must(t, s.Release(t.Context(), r.Ticket, source0(0), held[:3]))
	must(t, s.Release(t.Context(), r.Ticket, source0(0), held[:3])) // sent again
	wantVerdicts(t, "another partition", claimed(t, s, &Batch{Source: source0(1), Nonce: 1, Items: someItems(0, 4, 0)}), "NDDD")
}

func TestALateClaimIsTakenFromTheStart(t *testing.T) {
	srv := startRedis(t)
	s := openAt(t, srv.Addr, nil)
	claimed(t, s, &Batch{Source: source0(0), First: 10, Nonce: 1, Items: []Item{testItem(1, 10)}})
	r := claimed(t, s, &Batch{Source: source0(0), First: 10, Nonce: 2, Late: true, Items: []Item{testItem(1, 10), testItem(2, 11)}})
	wantVerdicts(t, "late", r, "MN")
	must(t, s.StartRun(t.Context(), source0(0), 0))
	must(t, s.Publish(t.Context(), source0(0), 0, 100, r.Ticket, false))
	r = claimed(t, s, &Batch{Source: source0(1), Nonce: 3, Items: []Item{testItem(1, 0), testItem(2, 1)}})
	wantVerdicts(t, "inside the run, yet not settled by it", r, "DD")
	for _, o := range r.Owners {
		if !o.Taken {
			t.Errorf("%v is not marked", o)
		}
	}
}

func TestARunGrowsOnlyWithinItself(t *testing.T) {
	srv := startRedis(t)
	s := openAt(t, srv.Addr, nil)
	src := source0(0)
	ticket := claimed(t, s, &Batch{Source: src, First: 10, Nonce: 1, Items: someItems(0, 5, 10)}).Ticket
	want := func(what string, lo, hi int64) {
		t.Helper()
		run, err := s.Acked(t.Context(), src)
		must(t, err)
		if run != (Run{lo, hi, true}) {
			t.Fatalf("%s: %+v, want [%d,%d)", what, run, lo, hi)
		}
	}
	if run, err := s.Acked(t.Context(), src); err != nil || run.Known {
		t.Fatalf("a source that published nothing: %+v %v", run, err)
	}
	must(t, s.StartRun(t.Context(), src, 10))
	want("new", 10, 10)
	must(t, s.Publish(t.Context(), src, 10, 20, ticket, false))
	must(t, s.Publish(t.Context(), src, 10, 15, ticket, false)) // late, from a retry
	want("hi never shrinks", 10, 20)
	must(t, s.Publish(t.Context(), src, 10, 30, ticket, false))
	want("hi grows", 10, 30)
	must(t, s.StartRun(t.Context(), src, 25))
	want("another lo is another run", 25, 25)
}

// A key twice in one call would be claimed twice; a caller's mistake must not
// become two rows.
func TestAKeyTwiceInOneCallIsRefused(t *testing.T) {
	s := openAt(t, startRedis(t).Addr, nil)
	opened(t, s)
	b := &Batch{Source: source0(0), Nonce: 1, Items: []Item{testItem(1, 1), testItem(2, 2), testItem(1, 3)}}
	if err := s.Claim(t.Context(), b, &Reply{}); err == nil || !strings.Contains(err.Error(), "same key") {
		t.Fatal(err)
	}
	b.Items = []Item{testItem(1, 1<<40)}
	var unfit *Unfit
	if err := s.Claim(t.Context(), b, &Reply{}); !errors.As(err, &unfit) {
		t.Fatal(err)
	}
}
