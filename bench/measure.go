package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/bench/load"
)

type bench struct {
	options
	tell  func(format string, args ...any)
	log   io.Writer // of the processes that are measured
	stack *stack
	ask   *asker
	kafka *kgo.Client
	dir   string
	self  string
	truth load.Truth
	first load.Truth // of the records that open a domain
}

// measure does everything and returns the figures.
func measure(ctx context.Context, o options, tell func(string, ...any)) (_ *results, err error) {
	b := &bench{options: o, tell: tell, log: io.Discard}
	if o.verbose {
		b.log = os.Stderr
	}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "oncesink-bench-"); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	tell("starting Kafka, Redis and ClickHouse")
	if b.stack, err = startStack(ctx, o.sink); err != nil {
		return nil, err
	}
	defer b.stack.stop()
	if b.ask, err = newAsker(ctx, b.stack); err != nil {
		return nil, err
	}
	defer b.ask.close()
	if b.kafka, err = kgo.NewClient(load.ProducerOptions(b.stack.Kafka)...); err != nil {
		return nil, err
	}
	defer b.kafka.Close()

	// A new dedup domain waits for one insert deadline before its first claims. A
	// few records of their own topic take that wait before a run is measured.
	if b.first, err = b.produce(ctx, openers, 100, b.seed+1_000_000); err != nil {
		return nil, err
	}
	const topic = "settlements"
	tell("producing %d records, %.0f %% of them duplicates, to %d partitions", o.rows, 100*o.duplicates, o.partitions)
	if b.truth, err = b.produce(ctx, topic, o.rows, b.seed); err != nil {
		return nil, err
	}
	r := newResults(o, b.truth)
	for i := range o.fulls {
		if i > 0 {
			bare, err := b.bareRun(ctx, topic, i)
			if err != nil {
				return nil, err
			}
			r.Bare = append(r.Bare, bare)
		}
		full, err := b.fullRun(ctx, topic, i+1)
		if err != nil {
			return nil, err
		}
		r.Full = append(r.Full, full)
	}
	r.judge()
	if o.rate > 0 {
		if r.Latency, err = b.latency(ctx); err != nil {
			return nil, err
		}
	}
	if o.profile != "" {
		if r.Profile, err = topTen(ctx, o.sink, o.profile); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// openers is the topic of the records that open a domain.
const openers = "settlements-openers"

func (b *bench) produce(ctx context.Context, topic string, rows int, seed uint64) (load.Truth, error) {
	if err := load.CreateTopic(ctx, b.kafka, topic, b.partitions); err != nil {
		return load.Truth{}, err
	}
	g := load.New(load.Options{Seed: seed, Rows: rows, Duplicates: b.duplicates, Elsewhere: b.elsewhere, Partitions: b.partitions})
	err := load.Produce(ctx, b.kafka, topic, g, 0, nil)
	return g.Truth(), err
}

// window of a table's own deduplication, in blocks.
const window = 10_000

// fullRun is `sink run --drain`, with the defaults of its configuration, into
// an empty table and an empty store.
func (b *bench) fullRun(ctx context.Context, topic string, n int) (figures, error) {
	name := fmt.Sprintf("full%d", n)
	b.tell("%s: sink run --drain", name)
	if err := b.ask.exec(ctx, load.Table(name, window)); err != nil {
		return figures{}, err
	}
	before, err := b.ask.emptyStore(ctx)
	if err != nil {
		return figures{}, err
	}
	if err := b.open(ctx, name); err != nil {
		return figures{}, err
	}
	config, err := configure(b.dir, b.stack, route{group: name, topic: topic, table: name, age: time.Second, inserts: 20})
	if err != nil {
		return figures{}, err
	}
	var env []string
	if b.profile != "" && n == b.fulls {
		path, err := filepath.Abs(b.profile)
		if err != nil {
			return figures{}, err
		}
		env = append(env, "ONCESINK_CPUPROFILE="+path)
	}
	idle, err := b.ask.busy(ctx)
	if err != nil {
		return figures{}, err
	}
	c, err := costOf(ctx, b.log, env, b.sink, "run", "--drain", "--fail-on-dead-letters", "-c", config)
	if err != nil {
		return figures{}, err
	}
	time.Sleep(200 * time.Millisecond) // see emptyStore
	after, err := b.ask.memory(ctx)
	if err != nil {
		return figures{}, err
	}
	busy, err := b.ask.busy(ctx)
	if err != nil {
		return figures{}, err
	}
	f := b.figures(c)
	f.RedisPerRow = (busy - idle) / time.Duration(b.rows)
	f.BytesPerKey = float64(after-before) / float64(b.truth.Keys)
	if err := b.ask.once(ctx, name, sum(b.truth, b.first)); err != nil {
		return figures{}, err
	}
	return f, b.drop(ctx, name)
}

// open makes the dedup domain of a table and waits until it takes claims.
func (b *bench) open(ctx context.Context, table string) error {
	config, err := configure(b.dir, b.stack, route{group: table + "-open", topic: openers, table: table, age: 100 * time.Millisecond, inserts: 20})
	if err == nil {
		_, err = costOf(ctx, b.log, nil, b.sink, "run", "--drain", "-c", config)
	}
	return err
}

func sum(a, b load.Truth) load.Truth {
	return load.Truth{Keys: a.Keys + b.Keys, Amount: a.Amount + b.Amount, Qty: a.Qty + b.Qty}
}

func (b *bench) bareRun(ctx context.Context, topic string, n int) (figures, error) {
	name := fmt.Sprintf("bare%d", n)
	b.tell("%s: consume, decode, insert", name)
	if err := b.ask.exec(ctx, load.Table(name, window)); err != nil {
		return figures{}, err
	}
	c, err := costOf(ctx, b.log, nil, b.self, "bare", "--brokers", b.stack.Kafka, "--topic", topic, "--clickhouse", b.stack.ClickHouse, "--table", name,
		"--partitions", fmt.Sprint(b.partitions), "--rows", fmt.Sprint(b.rows))
	if err != nil {
		return figures{}, err
	}
	if err := b.ask.all(ctx, name, b.rows, b.truth); err != nil {
		return figures{}, err
	}
	return b.figures(c), b.drop(ctx, name)
}

// drop leaves the servers as the next run should find them.
func (b *bench) drop(ctx context.Context, table string) error {
	return b.ask.exec(ctx, "DROP TABLE "+table+" SYNC")
}

func (b *bench) figures(c cost) figures {
	return figures{cost: c, Rows: b.rows, RowsPerCPUSecond: float64(b.rows) / c.CPU.Seconds()}
}
