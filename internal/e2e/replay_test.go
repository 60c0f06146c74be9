package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/oncesink/oncesink/internal/testenv"
)

// resetTo moves the group's offset of partition 0 as Kafka's own tools do: without metadata, behind the sink's back.
func (w *world) resetTo(offset int64) {
	w.t.Helper()
	var os kadm.Offsets
	os.Add(kadm.Offset{Topic: w.topic, Partition: 0, At: offset, LeaderEpoch: -1})
	answers, err := kadm.NewClient(w.kafka).CommitOffsets(w.t.Context(), w.group, os)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// A group that is reset by hand must neither write again what is there, nor pass over what is not, nor refuse for ever (field case J4). The same for an
// offset that the log doesn't have: it stops and names the way on (field case J5).
func TestAGroupThatIsResetByHandReadsAgainAndDoublesNothing(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1})
	w.send(numbered(0, 1500)...)
	w.mustDrain(settings{member: "-", rows: 400})
	w.holds(1500, 1500)
	before := w.inserts()
	for n, to := range []int64{0, 777, 400} {
		w.resetTo(to)
		w.accounted(w.mustDrain(settings{member: "-", rows: 300 + 100*n}), int(1500-to), int(1500-to), 0, 0, 0)
	}
	if after := w.inserts(); after != before {
		t.Errorf("rows that are there were sent again: %s inserts after %s", after, before)
	}
	// Into rows that are there, and on to rows that are not.
	w.send(numbered(1500, 200)...)
	w.resetTo(1200)
	w.accounted(w.mustDrain(settings{member: "-"}), 500, 500, 0, 0, 0)
	w.holds(1700, 1700)
	w.send(numbered(1700, 100)...)
	w.deleteRecords(1750)
	for _, to := range []int64{1650, 1900} {
		w.resetTo(to)
		code, said, stderr := w.drain(settings{member: "-"})
		if stop := stopLine(stderr); code != 3 || !strings.Contains(stop, "sink offsets ") {
			t.Errorf("reset to %d of [1750..1800]: the drain ended with %d, said %q and named no way on:\n%s", to, code, said, stderr)
		}
		// And the command of the product refuses what the log doesn't have.
		code, _, stderr = w.command("offsets", "resolve", "-c", w.config(settings{}), "--topic", w.topic, "--partition", "0", "--to", fmt.Sprint(to), "--apply")
		if code != 2 || !strings.Contains(stderr, "outside the log [1750..1800]") {
			t.Errorf("resolve --to %d ended with %d: %s", to, code, stderr)
		}
	}
	w.resetTo(1750)
	w.accounted(w.mustDrain(settings{member: "-"}), 50, 50, 0, 0, 0)
	w.holds(1750, 1750)
}

// With a view, a reset by hand behind what the store knows to be done leaves open whether the view has the rows: that stops once, with a command that
// resolves it, and not again (field case J4). Kafka's tools drop what `sink offsets resolve --to` keeps.
func TestAGroupResetByHandBehindAViewGoesOnAsTheStopSays(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	w.send(numbered(0, 900)...)
	w.mustDrain(settings{member: "-", rows: 400})
	for _, to := range []int64{0, 500} {
		w.resetTo(to)
		w.accounted(w.mustDrain(settings{member: "-", rows: 300}), int(900-to), int(900-to), 0, 0, 0)
	}
	w.resetTo(200) // what was read last began at 500
	code, _, stderr := w.drain(settings{member: "-"})
	stop := stopLine(stderr)
	if code != 3 || !strings.Contains(stop, w.views[0]+"_mv") || !strings.Contains(stop, "--views-recomputed --range 200-899") {
		t.Fatalf("the drain ended with %d:\n%s", code, stderr)
	}
	w.holds(900, 900)
	w.recompute()
	w.cure(stop, 0)
	w.accounted(w.mustDrain(settings{member: "-"}), 700, 700, 0, 0, 0)
	w.holds(900, 900)
}

// A second group that reads a topic again while the first one is in the midst of it gives each key once, whoever comes first, and leaves the first
// one's offsets alone (field cases J2, J3).
func TestAnotherGroupReadsAgainBesideTheLiveOne(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 4, report: true})
	f := w.produce(12_000, 14)
	samples := w.watch(f)
	defer samples()
	live := w.start(settings{member: "-", rows: 300, age: 50 * time.Millisecond})
	f.allow(6000)
	w.awaitInserted(live, 2000)
	other := []string{"group: " + w.group, "group: " + w.group + "_again"}
	again := w.start(settings{member: "-", rows: 700, edits: other}, "--drain")
	truth := f.all()
	committed := w.offsets()
	if code := again.wait(drainPatience); code != 0 {
		t.Fatalf("the other group's drain ended with %d:\n%s", code, again.said(40))
	}
	for p, o := range w.offsets() {
		if o.committed < committed[p].committed {
			t.Errorf("partition %d: the live group's offset went back from %d to %d", p, committed[p].committed, o.committed)
		}
	}
	w.awaitSettled(live)
	live.stop()
	w.verify(truth)
	before := w.offsets()
	w.mustDrain(settings{member: "-", edits: other}) // what was produced since, and batches that it had begun
	w.verify(truth)
	for p, o := range w.offsets() {
		if o != before[p] {
			t.Errorf("partition %d: the live group was moved from %+v to %+v", p, before[p], o)
		}
	}
}

// Rows that an operator deleted, or that a restored backup lacks, are missing though the store has their keys as done (field case J1). Reading their
// records again takes its word, and the plan must say so; with a store that was emptied each key is looked up, and what is missing comes back, once.
func TestRowsThatWereDeletedComeBackOnlyWhereTheTableIsAsked(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1})
	srv := testenv.Redis(t)
	set := settings{member: "-", rows: 500, redis: fmt.Sprintf("addresses: [%q]", srv.Addr)}
	w.send(numbered(0, 1000)...)
	w.mustDrain(set)
	w.s.sql(t, "ALTER TABLE %s DELETE WHERE settle_ms >= %d AND settle_ms < %d SETTINGS mutations_sync = 2", w.table, settled+100, settled+200)
	w.holds(900, 900)
	back := []string{"offsets", "resolve", "-c", w.config(set), "--topic", w.topic, "--partition", "0", "--to", "50", "--apply"}
	code, stdout, stderr := w.command(back...)
	if code != 0 || !strings.Contains(stdout, "deleted from the table since stays deleted") {
		t.Fatalf("offsets resolve ended with %d and doesn't say what becomes of deleted rows:\n%s%s", code, stdout, stderr)
	}
	w.mustDrain(set)
	w.holds(900, 900)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr})
	defer func() { _ = rdb.Close() }()
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr = w.command(back...); code != 0 {
		t.Fatalf("offsets resolve ended with %d:\n%s%s", code, stdout, stderr)
	}
	w.send(numbered(1000, 100)...) // live records behind them
	w.accounted(w.mustDrain(set), 1050, 200, 850, 0, 0)
	w.holds(1100, 1100)
}
