package dedup

import "testing"

func TestClaimBasics(t *testing.T) {
	srv := startRedis(t)
	s := openAt(t, srv.Addr, nil)
	src := source0(0)
	b := &Batch{Source: src, First: 10, Nonce: 1}
	for i := range 5 {
		b.Items = append(b.Items, testItem(i, int64(10+i)))
	}
	r := claimed(t, s, b)
	t.Logf("%+v", r)
	r = claimed(t, s, b)
	t.Logf("%+v", r.Answers)
	b.Nonce = 2
	r = claimed(t, s, b)
	t.Logf("%+v", r.Answers)
	if err := s.StartRun(t.Context(), src, 10); err != nil {
		t.Fatal(err)
	}
	d := &Batch{Source: src, First: 20, Nonce: 3, Items: []Item{testItem(1, 20), testItem(7, 21)}}
	r = claimed(t, s, d)
	t.Logf("%+v", r)
	if err := s.Publish(t.Context(), src, 10, 20, r.Ticket, false); err != nil {
		t.Fatal(err)
	}
	out := make([]GateAnswer, 1)
	if err := s.Gate(t.Context(), []GateItem{{Item: d.Items[0], Owner: r.Owners[0]}}, out); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", out)
	r = claimed(t, s, d)
	t.Logf("%+v", r)
	n := &Batch{Source: src, First: 20, Nonce: 9, Items: d.Items}
	n.Items[1].Nonce = 3
	if err := s.Renew(t.Context(), r.Ticket, n, r); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	run, err := s.Acked(t.Context(), src)
	t.Log(run, err)
}
