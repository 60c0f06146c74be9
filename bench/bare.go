package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/fetchpool"
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/decode"
	"github.com/oncesink/oncesink/pkg/writer"
)

// bare is the least that leads a topic into a table: no dedup, no protocol, no
// commit. Batches, block encoding, compression and client are those of the sink.
type bare struct {
	brokers, topic, clickhouse, table string
	partitions                        int
	rows                              int64 // in the topic
	batch                             int
}

func runBare(ctx context.Context, args []string, stderr io.Writer) error {
	var b bare
	f := flag.NewFlagSet("bench bare", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&b.brokers, "brokers", "", "host:port of Kafka")
	f.StringVar(&b.topic, "topic", "", "to be read from its start")
	f.StringVar(&b.clickhouse, "clickhouse", "", "host:port, native")
	f.StringVar(&b.table, "table", "", "the target")
	f.IntVar(&b.partitions, "partitions", 8, "of the topic")
	f.Int64Var(&b.rows, "rows", 0, "in the topic: it ends when so many are inserted")
	f.IntVar(&b.batch, "batch", 46_000, "rows of a block; the sink comes to as many by batch.max_bytes")
	if err := f.Parse(args); err != nil {
		return err
	}
	return b.run(ctx)
}

// unhashed leaves keys and fingerprints out: nobody looks at them here.
type unhashed struct{}

func (unhashed) Key([]byte) batcher.Key       { return batcher.Key{} }
func (unhashed) Field(string, []byte) uint64  { return 0 }
func (unhashed) Seed(string) uint64           { return 0 }
func (unhashed) Seeded(uint64, []byte) uint64 { return 0 }

func (b *bare) run(ctx context.Context) error {
	server, err := writer.Open(writer.Config{
		Addresses: []string{b.clickhouse}, Database: database, Compression: "lz4", InsertDeadline: time.Minute, InsertTimeout: time.Minute, MaxConns: 16,
	}, writer.Events{})
	if err != nil {
		return err
	}
	defer server.Close()
	table, err := server.Describe(ctx, b.table)
	if err != nil {
		return err
	}
	columns := make([]decode.Column, 0, len(table.Columns))
	for _, c := range table.Columns {
		columns = append(columns, decode.Column{Name: c.Name, Type: c.Type, DefaultKind: c.DefaultKind, DefaultExpr: c.DefaultExpr})
	}
	decoder, err := decode.NewJSON(decode.Options{
		Columns: columns, Key: []string{"settle_ms", "id", "rev"}, EventTime: "settle_ms", Ignore: []string{"create_time"}, Hasher: unhashed{},
	})
	if err != nil {
		return err
	}
	offsets := map[int32]kgo.Offset{}
	for p := range b.partitions {
		offsets[int32(p)] = kgo.NewOffset().AtStart() //nolint:gosec // small
	}
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(b.brokers), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{b.topic: offsets}),
		kgo.FetchMaxBytes(8<<20), kgo.FetchMaxPartitionBytes(1<<20), kgo.FetchMaxWait(500*time.Millisecond), kgo.MaxConcurrentFetches(2),
		kgo.WithPools(fetchpool.New()),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	lanes := make([]*lane, b.partitions)
	var running sync.WaitGroup
	failed := make(chan error, b.partitions)
	for p := range lanes {
		l := &lane{bare: b, server: server, table: table, decoder: decoder, block: decoder.NewBlock(), partition: int32(p), in: make(chan []*kgo.Record, 4)} //nolint:gosec // small
		lanes[p] = l
		running.Go(func() {
			if err := l.run(ctx); err != nil {
				failed <- err
				for range l.in { //nolint:revive // what still comes is dropped
				}
			}
		})
	}
	end := func() error {
		for _, l := range lanes {
			close(l.in)
		}
		running.Wait()
		select {
		case err := <-failed:
			return err
		default:
			return nil
		}
	}
	for left := b.rows; left > 0; {
		fetches := cl.PollFetches(ctx)
		if err := errors.Join(ctx.Err(), fetches.Err()); err != nil {
			return errors.Join(err, end())
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) > 0 {
				left -= int64(len(p.Records))
				lanes[p.Partition].in <- p.Records
			}
		})
	}
	return end()
}

// lane is one partition's share.
type lane struct {
	*bare
	server    *writer.Server
	table     *writer.Table
	decoder   *decode.JSON
	block     *decode.Block
	partition int32
	in        chan []*kgo.Record
	sent      int
}

func (l *lane) run(ctx context.Context) error {
	for records := range l.in {
		for _, r := range records {
			rec := decode.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, TimestampMs: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
			if _, reject := l.decoder.Append(l.block, &rec); reject != nil {
				return fmt.Errorf("record %d@%d: %w", l.partition, r.Offset, reject)
			}
			r.Recycle()
			if l.block.Rows() == l.batch {
				if err := l.insert(ctx); err != nil {
					return err
				}
			}
		}
	}
	return l.insert(ctx)
}

func (l *lane) insert(ctx context.Context) error {
	if l.block.Rows() == 0 {
		return nil
	}
	l.sent++
	id := fmt.Sprintf("bare/%s/%d/%d", l.bare.table, l.partition, l.sent)
	r := l.server.Insert(ctx, "", &writer.Statement{
		Table: l.table, Input: l.block.Input(), Rows: l.block.Rows(), Token: id, QueryID: id, Deadline: time.Now().Add(time.Minute),
	})
	l.block.Reset()
	if r.Outcome != writer.Written {
		return fmt.Errorf("insert %s: %w", id, r.Err())
	}
	return nil
}
