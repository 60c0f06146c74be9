package dedup

import "testing"

// Owners of an earlier epoch lost their claims with it: a run published under
// the next one must not reach below the first offset claimed in it, however far
// down the worker's own run goes.
func TestARunReachesNoLowerThanTheFirstClaimOfItsEpoch(t *testing.T) {
	srv := startRedis(t)
	s := openAt(t, srv.Addr, nil)
	src := source0(0)
	before := claimed(t, s, &Batch{Source: src, First: 10, Nonce: 1, Items: someItems(0, 5, 10)})
	must(t, s.StartRun(t.Context(), src, 10))
	must(t, s.Publish(t.Context(), src, 10, 15, before.Ticket, false))
	srv.do("flushall")

	after := claimed(t, s, &Batch{Source: src, First: 15, Nonce: 2, Items: someItems(5, 5, 15)})
	if after.Ticket.Equal(before.Ticket) {
		t.Fatal("the flush raised no epoch")
	}
	must(t, s.Publish(t.Context(), src, 10, 20, after.Ticket, false))
	run, err := s.Acked(t.Context(), src)
	must(t, err)
	if run != (Run{15, 20, true}) {
		t.Fatalf("the run under the new epoch is %+v, want [15,20)", run)
	}
}
