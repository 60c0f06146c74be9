package e2e

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/deadletter"
)

// row is a settlement by hand: everything of it follows from its number.
type row struct {
	n      int
	qty    int    // 0: 1
	tenant string // "": t
}

var settled = time.Now().Add(-time.Hour).UnixMilli()

func (r row) json() []byte {
	if r.qty == 0 {
		r.qty = 1
	}
	if r.tenant == "" {
		r.tenant = "t"
	}
	return fmt.Appendf(nil, `{"settle_ms":%d,"id":"row-%d","rev":1,"tenant":%q,"amount":0.5,"qty":%d,"currency":"EUR","create_time":%d}`,
		settled+int64(r.n), r.n, r.tenant, r.qty, time.Now().UnixMilli())
}

// numbered makes good rows [first, first+n).
func numbered(first, n int) [][]byte {
	var out [][]byte
	for i := range n {
		out = append(out, row{n: first + i}.json())
	}
	return out
}

// send puts values into partition 0, in their order; nil is a tombstone.
func (w *world) send(values ...[]byte) {
	w.t.Helper()
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Topic: w.topic, Key: []byte("k"), Value: v})
	}
	if err := w.kafka.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// holds compares the table and every view with what they should have: rows of 0.5 each.
func (w *world) holds(rows, qty int64) {
	w.t.Helper()
	want := found{rows: rows, keys: rows, amount: rows * 5000, qty: qty}
	if got, err := w.inTable(); err != nil || got != want {
		w.t.Errorf("table %s holds %+v, want %+v (%v)%s", w.table, got, want, err, w.doubles())
	}
	for _, v := range w.views {
		if got, err := w.inView(v); err != nil || got != want {
			w.t.Errorf("view target %s holds %+v, want %+v (%v)", v, got, want, err)
		}
	}
}

// accounted holds what a drain said against the account that it should give.
func (w *world) accounted(said string, consumed, inserted, duplicates, conflicts, letters int) {
	w.t.Helper()
	want := fmt.Sprintf("consumed %d = inserted %d + duplicates %d + conflicts %d + dead letters %d + filtered 0\n", consumed, inserted, duplicates, conflicts, letters)
	if said != want {
		w.t.Errorf("the drain said %q, want %q", said, want)
	}
}

// reasons counts the letters by their reason.
func (w *world) reasons() map[string]int {
	w.t.Helper()
	left := w.deadLetters()
	out := map[string]int{}
	if left == 0 {
		return out
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.s.kafka), kgo.ConsumeTopics(w.letters), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for left > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			w.t.Fatalf("%d letters can't be read: %v", left, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			left--
			for _, h := range r.Headers {
				if h.Key == deadletter.HeaderReason {
					out[string(h.Value)]++
				}
			}
		})
	}
	return out
}

func (w *world) lettered(want map[string]int) {
	w.t.Helper()
	if got := w.reasons(); !maps.Equal(got, want) {
		w.t.Errorf("the letters are %v, want %v", got, want)
	}
}

// deleteRecords removes what lies below an offset of partition 0.
func (w *world) deleteRecords(below int64) {
	w.t.Helper()
	var at kadm.Offsets
	at.Add(kadm.Offset{Topic: w.topic, Partition: 0, At: below})
	r, err := kadm.NewClient(w.kafka).DeleteRecords(w.t.Context(), at)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// forget deletes the group, as the expiry of its offsets does.
func (w *world) forget() {
	w.t.Helper()
	r, err := kadm.NewClient(w.kafka).DeleteGroups(w.t.Context(), w.group)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
