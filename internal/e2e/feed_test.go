package e2e

import (
	"context"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/bench/load"
)

// feed produces a load in the background, as far as it is allowed to.
type feed struct {
	t    testing.TB
	mu   sync.Mutex
	more sync.Cond
	gen  *load.Generator
	upTo int // how many records may be made by now
	rows int
	// place, if set, moves a record to another partition; under the lock.
	place func(partition int32) int32
	kafka *kgo.Client
	done  chan struct{}
	err   error
}

// produce starts a load with 5 % duplicates, a third of them in other partitions. Nothing is sent before allow.
func (w *world) produce(rows int, seed uint64) *feed {
	w.t.Helper()
	return w.produceLoad(load.Options{Seed: seed, Rows: rows, Duplicates: 0.05, Elsewhere: 0.3})
}

// produceLoad is produce of a load of another shape.
func (w *world) produceLoad(o load.Options) *feed {
	w.t.Helper()
	o.Partitions = w.partitions
	rows := o.Rows
	f := &feed{t: w.t, rows: rows, gen: load.New(o), kafka: w.kafka, done: make(chan struct{})}
	f.more.L = &f.mu
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(f.done)
		f.err = f.send(ctx, w.topic)
	}()
	w.t.Cleanup(func() {
		cancel()
		f.allow(rows)
		<-f.done
	})
	return f
}

func (f *feed) send(ctx context.Context, topic string) error {
	var failed error
	var once sync.Once
	for ctx.Err() == nil {
		r := f.next(topic)
		if r == nil {
			break
		}
		f.via().Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	if err := f.via().Flush(ctx); err != nil {
		return fmt.Errorf("produce to %s: %w", topic, err)
	}
	return failed
}

func (f *feed) via() *kgo.Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kafka
}

// next is the next record, once it is allowed; nil at the end.
func (f *feed) next(topic string) *kgo.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.gen.Made() >= f.upTo && f.upTo < f.rows {
		f.more.Wait()
	}
	if f.gen.Made() >= f.rows {
		return nil // the load was cut short
	}
	value, partition, ok := f.gen.Next()
	if !ok {
		return nil
	}
	if f.place != nil {
		partition = f.place(partition)
	}
	return &kgo.Record{Topic: topic, Partition: partition, Value: append([]byte(nil), value...)}
}

// allow lets the load go on up to n records.
func (f *feed) allow(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.upTo = max(f.upTo, min(n, f.rows))
	f.more.Broadcast()
}

// truth is what everything made so far adds up to.
func (f *feed) truth() load.Truth {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gen.Truth()
}

// all lets the load run to its end, waits until Kafka has all of it, and returns what it adds up to.
func (f *feed) all() load.Truth {
	f.t.Helper()
	f.allow(f.rows)
	select {
	case <-f.done:
	case <-time.After(5 * time.Minute):
		f.t.Fatal("the load was not produced within 5 minutes")
	}
	if f.err != nil {
		f.t.Fatal(f.err)
	}
	return f.truth()
}

// units reads a Decimal with four places as a number of 0.0001.
func units(text string) (int64, error) {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, fmt.Errorf("%q is no decimal", text)
	}
	if r.Mul(r, big.NewRat(10_000, 1)); !r.IsInt() {
		return 0, fmt.Errorf("%q has more than four places", text)
	}
	return r.Num().Int64(), nil
}
