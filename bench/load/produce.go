package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CreateTopic makes a topic of n partitions, or is content with one that is
// there.
func CreateTopic(ctx context.Context, cl *kgo.Client, topic string, n int) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 15_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, int32(n), 1 //nolint:gosec // small
	req.Topics = append(req.Topics, t)
	for deadline := time.Now().Add(30 * time.Second); ; {
		resp, err := req.RequestWith(ctx, cl)
		if err == nil && len(resp.Topics) == 1 {
			if err = kerr.ErrorForCode(resp.Topics[0].ErrorCode); err == nil || resp.Topics[0].ErrorCode == kerr.TopicAlreadyExists.Code {
				return nil
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// Produce sends what the generator makes, at most perSecond records a second
// (0: as fast as it goes), and waits for every acknowledgement.
func Produce(ctx context.Context, cl *kgo.Client, topic string, g *Generator, perSecond int, progress func(sent int)) error {
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	start := time.Now()
	n := 0
	for {
		value, partition, ok := g.Next()
		if !ok || failed.Load() != nil || ctx.Err() != nil {
			break
		}
		wg.Add(1)
		cl.Produce(ctx, &kgo.Record{Topic: topic, Partition: partition, Value: append([]byte(nil), value...)}, func(_ *kgo.Record, err error) {
			defer wg.Done()
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
		n++
		if n%1000 == 0 {
			if progress != nil {
				progress(n)
			}
			if perSecond > 0 {
				if ahead := time.Duration(float64(n)/float64(perSecond)*float64(time.Second)) - time.Since(start); ahead > 0 {
					time.Sleep(ahead)
				}
			}
		}
	}
	if err := cl.Flush(ctx); err != nil {
		return fmt.Errorf("produce to %s: %w", topic, err)
	}
	wg.Wait()
	if e := failed.Load(); e != nil {
		return fmt.Errorf("produce to %s: %w", topic, *e)
	}
	return ctx.Err()
}

// ProducerOptions are those of a client that Produce uses.
func ProducerOptions(brokers ...string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.ProducerLinger(5 * time.Millisecond), kgo.MaxBufferedRecords(100_000), kgo.UnknownTopicRetries(20),
	}
}
