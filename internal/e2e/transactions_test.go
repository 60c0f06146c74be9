package e2e

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// transact produces values in one transaction of partition 0, and commits it or takes it back.
func (w *world) transact(cl *kgo.Client, commit kgo.TransactionEndTry, values ...[]byte) {
	w.t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	for _, v := range values {
		if err := cl.ProduceSync(w.t.Context(), &kgo.Record{Topic: w.topic, Value: v}).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := cl.EndTransaction(w.t.Context(), commit); err != nil {
		w.t.Fatal(err)
	}
}

// The end of a transaction is an offset without a record: it must be committed
// past, count for nothing, and free what was set aside for it. Each of these
// takes a part of a small budget; one that kept it stopped the fetching for
// ever (field cases C14, C16).
func TestTransactionsLeaveNothingBehind(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.s.kafka), kgo.TransactionalID(w.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	w.transact(cl, kgo.TryCommit, numbered(0, 40)...)
	w.transact(cl, kgo.TryAbort, append(numbered(20, 5), numbered(5000, 30)...)...)
	p := w.start(settings{member: "-", rows: 20, memory: "8KiB", bytes: "2KiB"})
	for i := range 4 {
		for j := range 20 {
			w.transact(cl, kgo.TryCommit, numbered(100+20*i+j, 1)...)
		}
		w.transact(cl, kgo.TryAbort, numbered(6000, 3)...)
		w.awaitSettled(p)
	}
	p.stop()
	w.holds(120, 120)
	// Behind them nothing but ends: their offset is committed past too.
	w.transact(cl, kgo.TryAbort, numbered(7000, 3)...)
	w.accounted(w.mustDrain(settings{member: "-"}), 0, 0, 0, 0, 0)
	if o := w.offsets()[0]; o.committed != o.end {
		t.Errorf("committed %d, want the end %d", o.committed, o.end)
	}
}

// Compaction leaves gaps that nobody can fill: no record is missing (field case C14).
func TestGapsByCompactionAreNoLoss(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	set := func(key, value string) kadm.AlterConfig {
		return kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: &value}
	}
	adm := kadm.NewClient(w.kafka)
	r, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{
		set("cleanup.policy", "compact"), set("segment.ms", "50"), set("min.cleanable.dirty.ratio", "0.001"), set("max.compaction.lag.ms", "100"),
	}, w.topic)
	if err != nil || r[0].Err != nil {
		t.Fatal(err, r)
	}
	for i := range 6 { // all under one key: the last one stays
		w.send(numbered(i*50, 50)...)
		time.Sleep(60 * time.Millisecond) // a segment of its own
	}
	left := 300
	for deadline := time.Now().Add(2 * time.Minute); left > 150; time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatalf("Kafka has not compacted: %d records are left", left)
		}
		left = w.readable()
	}
	// What the cleaner takes from now on is not known: the account is of what was read.
	said := w.mustDrain(settings{member: "-", rows: 40})
	t.Logf("%d of 300 were left: %s", left, said)
	if o := w.offsets()[0]; o.committed != o.end || o.end != 300 {
		t.Errorf("the partition is at %+v, want the end 300", o)
	}
	table, err := w.inTable()
	if err != nil {
		t.Fatal(err)
	}
	if table.rows > int64(left) || table.rows < 1 || table.rows != table.keys {
		t.Errorf("the table holds %+v of at most %d rows", table, left)
	}
	w.holds(table.rows, table.rows)
	w.accounted(said, int(table.rows), int(table.rows), 0, 0, 0)
}

// readable counts the records that a reader from the start is given.
func (w *world) readable() int {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.s.kafka), kgo.ConsumeTopics(w.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	end, n := w.offsets()[0].end, 0
	for last := int64(-1); last < end-1; {
		cl.PollFetches(w.t.Context()).EachRecord(func(r *kgo.Record) {
			n++
			last = r.Offset
		})
	}
	return n
}
