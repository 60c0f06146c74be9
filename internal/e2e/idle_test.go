package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A life that settles nothing, however short, leaves no committed offset lower than it was: the whole log would be read again behind it (field case C6).
func TestALifeThatSettlesNothingRewindsNothing(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 3})
	w.send(numbered(0, 60)...)
	w.mustDrain(settings{})
	before := w.offsets()
	same := func(when string) {
		t.Helper()
		for p, o := range w.offsets() {
			if o.committed != before[p].committed {
				t.Errorf("%s: partition %d is committed at %d, was at %d", when, p, o.committed, before[p].committed)
			}
		}
	}
	for _, c := range []struct {
		when string
		wait string // for this in the log
		sig  syscall.Signal
	}{
		{"ended at once", "", syscall.SIGTERM}, {"killed when it had joined", "msg=consuming", syscall.SIGKILL}, {"stopped when it had joined", "msg=consuming", syscall.SIGTERM},
	} {
		p := w.start(settings{})
		w.awaitMoving(p, "the sink says "+c.wait, func() (int64, bool) { return 0, strings.Contains(p.said(1000), c.wait) })
		_ = p.cmd.Process.Signal(c.sig)
		p.wait(40 * time.Second)
		same(c.when)
	}
	w.mustDrain(settings{})
	same("drained")
	w.holds(60, 60)
}

// Batches of nothing but duplicates and tombstones send no insert, and their offsets are committed past (field case C21).
func TestABatchWithNothingToInsertIsCommittedPast(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	w.send(numbered(0, 100)...)
	w.mustDrain(settings{})
	before := w.inserts()
	for range 5 {
		w.send(numbered(0, 100)...)
	}
	w.send(make([][]byte, 300)...) // tombstones
	w.accounted(w.mustDrain(settings{rows: 60}), 800, 0, 500, 0, 300)
	if o := w.offsets()[0]; o.committed != 900 {
		t.Errorf("committed %d, want 900", o.committed)
	}
	if after := w.inserts(); after != before {
		t.Errorf("%s inserts after %s: one had no rows", after, before)
	}
	w.holds(100, 100)
}

// A broker that lost its tail has other records below the committed offset, or will have: neither the end nor the start of the log is where to go on
// (field case C9).
func TestACommittedOffsetBeyondTheEndStopsThePartition(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1})
	w.send(numbered(0, 100)...)
	w.mustDrain(settings{member: "-"})
	at := kadm.Offsets{}
	at.Add(kadm.Offset{Topic: w.topic, Partition: 0, At: 140, LeaderEpoch: -1})
	if err := kadm.NewClient(w.kafka).CommitAllOffsets(t.Context(), w.group, at); err != nil {
		t.Fatal(err)
	}
	w.send(numbered(100, 20)...)
	code, said, stderr := w.drain(settings{member: "-"})
	stop := stopLine(stderr)
	if code != 3 || !strings.Contains(stop, "committed offset 140") || !strings.Contains(stop, "lost its tail") || !strings.Contains(stop, "sink offsets resolve") {
		t.Errorf("the drain ended with %d and said %q, want 3 and a stop that names 140, what happened and a way on: %q", code, said, stop)
	}
	if _, stdout, stderr := w.command("offsets", "show", "-c", w.config(settings{})); !strings.Contains(stdout, "lies 20 beyond the end of the log") {
		t.Errorf("offsets show doesn't say where the log ends:\n%s%s", stdout, stderr)
	}
	if o := w.offsets()[0]; o.committed != 140 {
		t.Errorf("committed %d by nobody's decision", o.committed)
	}
	w.holds(100, 100)
}

// A transaction that its producer never ends holds the partition at its first record, and `sink offsets show` says where (field case C17). What was
// committed behind it comes when it ends, and what it holds doesn't if it is aborted (field case C16).
func TestAnOpenTransactionIsWaitedForAndTold(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1})
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.s.kafka), kgo.TransactionalID(w.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	w.send(numbered(0, 10)...)
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: w.topic, Value: row{n: 5000}.json()}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.send(numbered(10, 50)...)
	p := w.start(settings{})
	w.awaitMoving(p, "what is before the transaction is committed", func() (int64, bool) { at := w.offsets()[0].committed; return at, at >= 10 })
	code, stdout, stderr := w.command("offsets", "show", "-c", w.config(settings{}))
	if code != 0 || !strings.Contains(stdout, "an open transaction holds read_committed readers at 10") {
		t.Errorf("offsets show ended with %d:\n%s%s", code, stdout, stderr)
	}
	if at := w.offsets()[0].committed; at != 10 {
		t.Errorf("committed %d, past an open transaction", at)
	}
	w.holds(10, 10)
	if err := cl.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	w.awaitSettled(p)
	p.stop()
	w.holds(60, 60)
}
