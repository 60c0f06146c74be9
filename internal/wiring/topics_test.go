package wiring

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/config"
)

// records makes n records with ids of their own in a partition.
func records(topic string, partition int32, first, n int) []*kgo.Record {
	var out []*kgo.Record
	for i := range n {
		out = append(out, &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Appendf(nil, `{"id":%d,"amount":1}`, first+i)})
	}
	return out
}

func (r *rig) create(topic string, partitions int32, produced ...*kgo.Record) {
	r.t.Helper()
	if _, err := kadm.NewClient(r.client).CreateTopic(r.t.Context(), partitions, 1, nil, topic); err != nil {
		r.t.Fatal(err)
	}
	r.produceAnew(produced...)
}

// produceAnew produces over a client that knows nothing of what topics were.
func (r *rig) produceAnew(records ...*kgo.Record) {
	r.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		r.t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(r.t.Context(), records...).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}

// awaitCommitted waits until the group has committed a partition up to an offset.
func (r *rig) awaitCommitted(l *life, topic string, partition int32, offset int64) {
	r.t.Helper()
	l.await(fmt.Sprintf("committed %s/%d at %d", topic, partition, offset), func() (bool, string) {
		all, err := kadm.NewClient(r.client).FetchOffsets(r.t.Context(), "g")
		if err != nil {
			return false, err.Error()
		}
		o, ok := all.Lookup(topic, partition)
		return ok && o.At == offset, fmt.Sprintf("it is at %d (known: %t)", o.At, ok)
	})
}

func often(o *RunOptions) { o.Discover = 100 * time.Millisecond }

// A topic that a pattern promises, and a partition that a topic gains, must not
// wait for a restart, nor be read from where they were found (field case C11).
func TestTopicsAndPartitionsThatComeLaterAreReadFromTheirStart(t *testing.T) {
	r := newRig(t, 0)
	r.tables()
	cfg, err := config.Parse("sink.yaml", fmt.Appendf(nil, `
kafka: {brokers: [%q], group: g}
clickhouse: {addresses: [%q], database: %s, insert_deadline: 1s}
redis: {addresses: [%q]}
routes: [{topic_pattern: '^orders', table: orders, key: [id], dead_letter: orders.dlq}]
batch: {max_age: 50ms}
`, r.kafka, r.engine, r.database, r.redis), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	l := r.startWith(cfg, often)

	// Nothing matched at the start; the first topic brings a letter of a topic
	// that matches too and must not be read.
	bad := &kgo.Record{Topic: "orders.eu", Value: []byte(`{"id":"no number"}`)}
	r.create("orders.eu", 1, append(records("orders.eu", 0, 0, 10), bad)...)
	r.awaitCommitted(l, "orders.eu", 0, 11)
	r.create("other", 1, records("other", 0, 100, 1)...)
	r.create("orders.us", 2, append(records("orders.us", 0, 200, 3), records("orders.us", 1, 300, 4)...)...)
	r.awaitCommitted(l, "orders.us", 0, 3)
	r.awaitCommitted(l, "orders.us", 1, 4)

	if _, err := kadm.NewClient(r.client).CreatePartitions(t.Context(), 1, "orders.eu"); err != nil {
		t.Fatal(err)
	}
	r.produceAnew(records("orders.eu", 1, 400, 5)...)
	r.awaitCommitted(l, "orders.eu", 1, 5)

	report := l.end(true)
	if c := report.Counts; c.RecordsConsumed != 23 || c.Inserted != 22 || c.DeadLetters != 1 {
		t.Errorf("the account is %+v, want 23 records, 22 inserted and 1 letter", c)
	}
}

// A topic that is named is all that a route of names reads, and its new
// partitions are read too (field case C11).
func TestPartitionsAddedToANamedTopicAreReadFromTheirStart(t *testing.T) {
	r := newRig(t, 1)
	r.tables()
	r.produce(0, 10)
	l := r.start(often)
	r.awaitCommitted(l, r.topic, 0, 10)
	if _, err := kadm.NewClient(r.client).CreatePartitions(t.Context(), 1, r.topic); err != nil {
		t.Fatal(err)
	}
	r.produceAnew(records(r.topic, 1, 100, 5)...)
	r.awaitCommitted(l, r.topic, 1, 5)
	if c := l.end(true).Counts; c.Inserted != 15 {
		t.Errorf("the account is %+v, want 15 inserted", c)
	}
}

// A topic that is deleted and created again while the sink runs is another
// source: its first offsets are other records, and none may be skipped (field
// case C12).
func TestATopicCreatedAgainIsReadFromItsStart(t *testing.T) {
	r := newRig(t, 1)
	r.tables()
	r.produce(0, 10)
	l := r.start(often)
	r.awaitCommitted(l, r.topic, 0, 10)
	if _, err := kadm.NewClient(r.client).DeleteTopic(t.Context(), r.topic); err != nil {
		t.Fatal(err)
	}
	r.create(r.topic, 1, records(r.topic, 0, 100, 5)...)
	r.awaitCommitted(l, r.topic, 0, 5)
	if c := l.end(true).Counts; c.Inserted != 15 {
		t.Errorf("the account is %+v, want 15 inserted", c)
	}
}
