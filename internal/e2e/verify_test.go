package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/oncesink/oncesink/bench/load"
)

// ours leaves the foreign writer's rows out.
const ours = "tenant != 'foreign'"

// found is what a table or a view's target holds.
type found struct{ rows, keys, amount, qty int64 }

func (w *world) inTable() (found, error) {
	return w.count(fmt.Sprintf("SELECT count(), uniqExact(settle_ms, id, rev), toString(sum(amount)), sum(qty) FROM %s WHERE %s", w.table, ours))
}

func (w *world) inView(target string) (found, error) {
	return w.count(fmt.Sprintf("SELECT sum(events), sum(events), toString(sum(amount)), sum(qty) FROM %s WHERE %s", target, ours))
}

func (w *world) count(sql string) (f found, err error) {
	said, err := w.s.ask(sql)
	if err != nil {
		return f, err
	}
	var amount string
	if _, err := fmt.Sscan(said, &f.rows, &f.keys, &amount, &f.qty); err != nil {
		return f, fmt.Errorf("the engine said %q: %w", said, err)
	}
	f.amount, err = units(amount)
	return f, err
}

// verify holds the table, the views, the offsets and the dead letters against the truth.
func (w *world) verify(truth load.Truth) {
	w.t.Helper()
	want := found{rows: truth.Keys, keys: truth.Keys, amount: truth.Amount, qty: truth.Qty}
	if got, err := w.inTable(); err != nil || got != want {
		w.t.Errorf("table %s holds %+v, want %+v (%v)%s", w.table, got, want, err, w.doubles())
	}
	for _, v := range w.views {
		if got, err := w.inView(v); err != nil || got != want {
			w.t.Errorf("view target %s holds %+v, want %+v (%v)", v, got, want, err)
		}
	}
	w.verifyOffsets()
}

// verifyOffsets wants everything committed past and nothing in the dead letters.
func (w *world) verifyOffsets() {
	w.t.Helper()
	for p, o := range w.offsets() {
		if o.committed != o.end {
			w.t.Errorf("partition %d: committed %d, want the end %d", p, o.committed, o.end)
		}
	}
	if n := w.deadLetters(); n != 0 {
		w.t.Errorf("%d records in %s, want none", n, w.letters)
	}
}

// doubles names some keys that are there more than once, with the parts that hold them.
func (w *world) doubles() string {
	said, err := w.s.ask(fmt.Sprintf("SELECT id, count(), groupArray(_part) FROM %s WHERE %s GROUP BY settle_ms, id, rev HAVING count() > 1 LIMIT 5", w.table, ours))
	if err != nil || said == "" {
		return ""
	}
	return "\n" + said
}

// position is where a partition stands in Kafka.
type position struct{ committed, end int64 }

// offsets asks Kafka where the partitions stand, until it answers: a broker that has just come back can't at once.
func (w *world) offsets() map[int32]position {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		out, err := w.askOffsets(ctx)
		if err == nil {
			return out
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("ask Kafka for the offsets of %s in %s: %v", w.group, w.topic, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (w *world) askOffsets(ctx context.Context) (map[int32]position, error) {
	admin := kadm.NewClient(w.kafka)
	ends, err := admin.ListEndOffsets(ctx, w.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, err
	}
	committed, err := admin.FetchOffsets(ctx, w.group)
	if err != nil {
		return nil, err
	}
	out := map[int32]position{}
	ends.Each(func(l kadm.ListedOffset) {
		at := position{end: l.Offset}
		if c, ok := committed.Lookup(w.topic, l.Partition); ok {
			at.committed = c.At
		}
		out[l.Partition] = at
	})
	return out, nil
}

func (w *world) deadLetters() int64 {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	ends, err := kadm.NewClient(w.kafka).ListEndOffsets(ctx, w.letters)
	if err != nil {
		w.t.Fatalf("ask Kafka for the ends of %s: %v", w.letters, err)
	}
	n := int64(0)
	ends.Each(func(l kadm.ListedOffset) { n += max(l.Offset, 0) })
	return n
}

// stalls is how long nothing may move, on a machine whose cores others use too.
const stalls = 90 * time.Second

// awaitSettled waits until everything in Kafka is committed past, by a sink that runs.
func (w *world) awaitSettled(p *sink) {
	w.t.Helper()
	w.awaitMoving(p, "everything is committed", func() (moved int64, done bool) {
		open := int64(0)
		for _, o := range w.offsets() {
			open += o.end - o.committed
			moved += o.committed
		}
		return moved, open == 0
	})
}

// awaitInserted waits until more than n rows are in the table: the sink is in mid-load.
func (w *world) awaitInserted(p *sink, n int64) {
	w.t.Helper()
	w.awaitMoving(p, fmt.Sprintf("more than %d rows are in the table", n), func() (int64, bool) {
		table, err := w.inTable()
		if err != nil {
			w.t.Fatal(err)
		}
		return table.rows, table.rows > n
	})
}

// awaitMoving waits for look as long as what it counts moves. A sink that stands shows its goroutines.
func (w *world) awaitMoving(p *sink, until string, look func() (moved int64, done bool)) {
	w.t.Helper()
	before, since := int64(-1), time.Now()
	for ; ; time.Sleep(100 * time.Millisecond) {
		moved, done := look()
		switch {
		case done:
			return
		case !p.running():
			w.t.Fatalf("%s ended by itself with %d before %s", p.name, p.code, until)
		case moved != before:
			before, since = moved, time.Now()
		case time.Since(since) > stalls:
			w.t.Errorf("nothing moved for %s before %s; the offsets are %v; the sink said:\n%s", stalls, until, w.offsets(), p.said(60))
			p.wait(0)
		}
	}
}

// watch samples the table and the views until the returned function is called: no key twice, no view ahead of its table, no table ahead of what was
// produced, at any moment. It returns how many samples were taken.
func (w *world) watch(f *feed) (stop func() int) {
	quit := make(chan struct{})
	var running sync.WaitGroup
	n := 0
	running.Go(func() {
		for {
			select {
			case <-quit:
				return
			case <-time.After(300 * time.Millisecond):
			}
			if err := w.sample(f); err != nil {
				w.t.Errorf("during the run: %v", err)
			}
			n++
		}
	})
	return sync.OnceValue(func() int {
		close(quit)
		running.Wait()
		return n
	})
}

func (w *world) sample(f *feed) error {
	var views []found
	for _, v := range w.views {
		seen, err := w.inView(v)
		if err != nil {
			return err
		}
		views = append(views, seen)
	}
	table, err := w.inTable()
	if err != nil {
		return err
	}
	truth := f.truth()
	if table.rows != table.keys {
		return fmt.Errorf("%d rows for %d keys in %s%s", table.rows, table.keys, w.table, w.doubles())
	}
	if table.keys > truth.Keys || table.amount > truth.Amount {
		return fmt.Errorf("table %s holds %+v, produced were %+v", w.table, table, truth)
	}
	for i, v := range views {
		if v.rows > table.rows || v.amount > table.amount {
			return fmt.Errorf("view target %s holds %+v, its table %+v", w.views[i], v, table)
		}
	}
	return nil
}
