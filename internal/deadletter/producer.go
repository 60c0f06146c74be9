package deadletter

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// maxBatch lets a letter be as large as any record that could be fetched; what
// the topic takes is the broker's to say.
const maxBatch = 64 << 20

// Producer writes letters over a client of its own, idempotent and with acks
// of all in-sync replicas. It is safe for concurrent use.
type Producer struct{ cl *kgo.Client }

// New returns a producer; opts say how to reach Kafka (brokers, TLS, SASL).
func New(opts ...kgo.Opt) (*Producer, error) {
	cl, err := kgo.NewClient(append(append([]kgo.Opt{}, opts...),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchMaxBytes(maxBatch),
		kgo.ProducerLinger(0),
		// A letter goes to the partition of its original, modulo what there is:
		// letters of one partition stay in its order.
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
			return func(r *kgo.Record, n int) int { return int(r.Partition) % n }
		})),
	)...)
	if err != nil {
		return nil, fmt.Errorf("dead-letter producer: %w", err)
	}
	return &Producer{cl}, nil
}

// Close gives up what is not acknowledged.
func (p *Producer) Close() { p.cl.Close() }

// Produce writes the letters and returns when all are acknowledged, or one
// can't be, or ctx ends. After an error some may be in the topic; sending them
// all again is right.
//
// A letter that is too large for the topic is shortened, a step at a time until
// it fits, and says so in its headers: the value is cut to 256 KiB, then to
// 4 KiB, then the original headers go too and the key is cut to 1 KiB.
func (p *Producer) Produce(ctx context.Context, letters []Letter) error {
	results := make(chan result, len(letters))
	for i := range letters {
		p.send(ctx, &letters[i], i, results)
	}
	var tooLarge []int
	for range letters {
		r, err := wait(ctx, results)
		if err != nil {
			return fmt.Errorf("%d dead letters: given up, some may have been written: %w", len(letters), err)
		}
		switch {
		case errors.Is(r.err, kerr.MessageTooLarge):
			tooLarge = append(tooLarge, r.i)
		case r.err != nil:
			return p.explain(&letters[r.i], r.err)
		}
	}
	for _, i := range tooLarge {
		if err := p.fit(ctx, &letters[i]); err != nil {
			return err
		}
	}
	return nil
}

type result struct {
	i   int
	err error
}

func (p *Producer) send(ctx context.Context, l *Letter, i int, results chan<- result) {
	p.cl.Produce(ctx, l.record(), func(_ *kgo.Record, err error) { results <- result{i, err} })
}

// wait doesn't wait for kgo to be sure of a record that it has sent already.
func wait(ctx context.Context, results <-chan result) (result, error) {
	select {
	case r := <-results:
		return r, nil
	case <-ctx.Done():
		return result{}, context.Cause(ctx)
	}
}

// fit sends one letter alone: whole first, because it may only have been the
// company in its batch that was too large, then shorter and shorter.
func (p *Producer) fit(ctx context.Context, l *Letter) error {
	for _, shorten := range []func(Letter) (Letter, bool){
		func(l Letter) (Letter, bool) { return l, true },
		func(l Letter) (Letter, bool) { return cutValue(l, 256<<10) },
		func(l Letter) (Letter, bool) { return cutValue(l, 4<<10) },
		func(l Letter) (Letter, bool) { l, _ = cutValue(l, 4<<10); return strip(l, 1<<10) },
	} {
		short, changed := shorten(*l)
		if !changed {
			continue
		}
		results := make(chan result, 1)
		p.send(ctx, &short, 0, results)
		r, err := wait(ctx, results)
		switch {
		case err != nil:
			return fmt.Errorf("%s: given up, it may have been written: %w", l, err)
		case r.err == nil:
			return nil
		case !errors.Is(r.err, kerr.MessageTooLarge):
			return p.explain(l, r.err)
		}
	}
	return &offsets.ExplainedError{Doing: l.String(), Err: kerr.MessageTooLarge, Cure: "even the reason alone is larger than the topic takes: raise its max.message.bytes"}
}

func cutValue(l Letter, n int) (Letter, bool) {
	if len(l.Value) <= n {
		return l, false
	}
	if l.ValueSize == 0 {
		l.ValueSize = len(l.Value)
	}
	l.Value = l.Value[:n:n]
	return l, true
}

func strip(l Letter, n int) (Letter, bool) {
	changed := len(l.Headers) > 0
	l.StrippedHeaders, l.Headers = l.StrippedHeaders+len(l.Headers), nil
	if len(l.Key) > n {
		if l.KeySize == 0 {
			l.KeySize = len(l.Key)
		}
		l.Key, changed = l.Key[:n:n], true
	}
	return l, changed
}

func (p *Producer) explain(l *Letter, err error) error {
	return offsets.Explain(err, offsets.Subject{Doing: l.String(), Topic: l.Topic, Operation: "WRITE"})
}
