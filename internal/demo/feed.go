package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/bench/load"
)

// feed produces the settlements, a share for each life of the sink, so that every fault finds records to hit. Lives that are killed get a small one, since
// most of it is left to their successors; the last life gets the rest.
type feed struct {
	client *kgo.Client
	admin  *kadm.Client
	rows   int

	mu        sync.Mutex // the generator, and what is counted with it
	changed   sync.Cond
	gen       *load.Generator
	latest    []load.Settlement // the newest ones, a ring
	next      int
	elsewhere int // duplicates that went to another partition
	lives     int // to come, and how many have begun
	begun     int
	done      bool

	failed atomic.Pointer[error]
}

// latestMost bounds what is remembered of a big load.
const latestMost = 500_000

func openFeed(ctx context.Context, addr string, lives int, o load.Options) (*feed, error) {
	client, err := kgo.NewClient(load.ProducerOptions(addr)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	f := &feed{client: client, admin: kadm.NewClient(client), rows: o.Rows, lives: lives, gen: load.New(o)}
	f.changed.L = &f.mu
	f.latest = make([]load.Settlement, 0, min(o.Rows/3, latestMost))
	if err := load.CreateTopic(ctx, client, topic, partitions); err != nil {
		client.Close()
		return nil, err
	}
	return f, nil
}

func (f *feed) close() { f.client.Close() }

// release lets the share of the next life go.
func (f *feed) release() {
	f.mu.Lock()
	f.begun++
	f.mu.Unlock()
	f.wake()
}

const (
	shareTime = time.Second // in which a share is produced: long enough for several batches of each partition
	lastShare = 8           // shares of a killed life that the last one gets
)

// shareOf is what a killed life gets.
func shareOf(rows, lives int) int { return rows / (lives - 1 + lastShare) }

// produce sends everything, each share when it is released, and returns when all is acknowledged.
func (f *feed) produce(ctx context.Context) error {
	const slice = 20 * time.Millisecond
	stop := context.AfterFunc(ctx, f.wake)
	defer func() { stop() }()
	tick := time.NewTicker(slice)
	defer tick.Stop()
	most := max(int(int64(shareOf(f.rows, f.lives))*int64(slice)/int64(shareTime)), 1)
	for {
		over := f.slice(ctx, most)
		switch {
		case f.failed.Load() != nil || over:
			err := f.flush(ctx)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.done = err == nil
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// slice sends at most that many records of the shares that are released, once there are any, and tells whether the load is over.
func (f *feed) slice(ctx context.Context, most int) (over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ctx.Err() == nil && f.gen.Made() >= f.released() && f.gen.Made() < f.rows {
		f.changed.Wait()
	}
	for i := 0; i < most && ctx.Err() == nil && f.gen.Made() < f.released(); i++ {
		f.one(ctx)
	}
	return f.gen.Made() >= f.rows
}

func (f *feed) released() int {
	if f.begun >= f.lives {
		return f.rows
	}
	return f.begun * shareOf(f.rows, f.lives)
}

func (f *feed) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed.Broadcast()
}

// one sends the generator's next record; under the lock.
func (f *feed) one(ctx context.Context) {
	value, partition, ok := f.gen.Next()
	if !ok {
		return
	}
	s, repeat := f.gen.Last()
	switch {
	case repeat && partition != f.gen.Home(&s):
		f.elsewhere++
	case repeat:
	case len(f.latest) < cap(f.latest):
		f.latest = append(f.latest, s)
	default:
		f.latest[f.next] = s
		f.next = (f.next + 1) % len(f.latest)
	}
	f.send(ctx, value, partition)
}

// send encodes nothing and waits for nobody, but for room in the client's buffer.
func (f *feed) send(ctx context.Context, value []byte, partition int32) {
	f.client.Produce(ctx, &kgo.Record{Topic: topic, Partition: partition, Value: append([]byte(nil), value...)}, func(_ *kgo.Record, err error) {
		if err != nil {
			f.failed.CompareAndSwap(nil, &err)
		}
	})
}

// flush waits until everything sent so far is acknowledged.
func (f *feed) flush(ctx context.Context) error {
	err := f.client.Flush(ctx)
	if failed := f.failed.Load(); failed != nil {
		err = *failed
	}
	if err != nil {
		return fmt.Errorf("produce to %s: %w", topic, err)
	}
	return nil
}

// over tells whether the producer has sent everything, and all of it is acknowledged.
func (f *feed) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done
}

// made is what the records so far add up to, and how many there are.
func (f *feed) made() (load.Truth, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gen.Truth(), f.gen.Made()
}

// newest is a copy of the newest settlements, oldest first.
func (f *feed) newest() []load.Settlement {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append(append([]load.Settlement(nil), f.latest[f.next:]...), f.latest[:f.next]...)
}

// again sends settlements once more, shifted by some partitions, and waits for the acknowledgements.
func (f *feed) again(ctx context.Context, list []load.Settlement, shift int) error {
	f.mu.Lock()
	for i := range list {
		to := (int(f.gen.Home(&list[i])) + shift) % partitions
		f.send(ctx, f.gen.Encode(&list[i], time.Now().UnixMilli()), int32(to)) //nolint:gosec // small
	}
	f.mu.Unlock()
	return f.flush(ctx)
}

// offsets are the ends of all partitions and what the sink's group has committed; letters is the end of the dead-letter topic.
func (f *feed) offsets(ctx context.Context) (list []Partition, letters int64, err error) {
	ends, err := f.admin.ListEndOffsets(ctx, topic, deadLetters)
	if err != nil {
		return nil, 0, fmt.Errorf("kafka: end offsets: %w", err)
	}
	committed, err := f.admin.FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) { // a group that never committed
		return nil, 0, fmt.Errorf("kafka: committed offsets of %s: %w", group, err)
	}
	for p := range int32(partitions) {
		end, ok := ends.Lookup(topic, p)
		if !ok || end.Err != nil {
			return nil, 0, fmt.Errorf("kafka: end offset of %s/%d: %w", topic, p, end.Err)
		}
		at := Partition{Partition: p, End: end.Offset}
		if c, ok := committed.Lookup(topic, p); ok {
			at.Committed = c.At
		}
		list = append(list, at)
	}
	for _, end := range ends[deadLetters] { // the sink makes it when it is missing
		letters += max(end.Offset, 0)
	}
	return list, letters, nil
}
