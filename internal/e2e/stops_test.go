package e2e

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// askToStop is what an orchestrator sends first.
func (p *sink) askToStop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// A stop that cancels what it has begun, or that commits over a connection which is closed already, leaves rows in the table that no offset tells of
// (field cases K1, K3). Wherever it meets a batch, the batch is finished and committed, and the next life finds nothing to recover.
func TestAStopAtEachStepCommitsWhatIsInTheTable(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	steps := []pipeline.Step{pipeline.StepClaimed, pipeline.StepIntent, pipeline.StepInserting, pipeline.StepWritten, pipeline.StepPublished}
	const share = 400
	for n, step := range steps {
		w.send(numbered(n*share, share)...)
		p := w.start(settings{member: "-", rows: 90 + 40*n, age: 50 * time.Millisecond})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := p.trace.awaitStep(ctx, step, 1)
		cancel()
		if err != nil {
			t.Fatalf("%v; the sink said:\n%s", err, p.said(20))
		}
		p.stop()
		table, err := w.inTable()
		if err != nil {
			t.Fatal(err)
		}
		if o := w.offsets()[0]; o.committed != table.rows || table.rows == 0 {
			t.Errorf("stopped at %q: %d rows are in the table, and %d offsets are committed", step, table.rows, o.committed)
		}
		w.holds(table.rows, table.rows)
	}
	w.mustDrain(settings{member: "-"})
	w.holds(int64(len(steps))*share, int64(len(steps))*share)
}

// An insert that lasts longer than the grace period ends with SIGKILL. From SIGTERM on nothing more may be begun, and what was under way is the next
// life's to settle, whatever its bounds (field case K4).
func TestAKillBehindAStopThatTookTooLongDoublesNothing(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 2, report: true})
	proxy := w.proxy()
	rule := w.insertRule(proxy, faultproxy.RuleOptions{Fault: faultproxy.HoldReply, Every: 3, Limit: 1})
	truth := w.produce(6000, 12).all()
	p := w.start(settings{member: "-", rows: 500, clickhouse: proxy.Addr()})
	w.await(p, rule, func(a faultproxy.Account) bool { return a.Holding > 0 })
	p.askToStop()
	w.awaitMoving(p, "the inserts that had begun have ended but for the one that is held", func() (int64, bool) {
		before := w.inserts()
		time.Sleep(300 * time.Millisecond)
		return 0, w.inserts() == before
	})
	if at := w.offsets(); at[0].committed+at[1].committed == at[0].end+at[1].end {
		t.Fatalf("all is committed before the kill: %+v", at)
	}
	p.kill()
	proxy.Close()
	w.mustDrain(settings{member: "-", rows: 700})
	w.verify(truth)
}

// Two processes of one instance id take the group from each other for ever, unless the one that lost it ends and says why (field case K5).
func TestATwinOfTheInstanceIDEndsTheOlderOneWithTheReason(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 2, report: true})
	first := w.start(settings{member: "pod-0"})
	w.send(numbered(0, 100)...)
	w.awaitSettled(first)
	second := w.start(settings{member: "pod-0"})
	code := first.wait(time.Minute)
	if said := first.said(1000); code != 1 || !strings.Contains(said, "another process has joined the group under this instance id") || !strings.Contains(said, "kafka.instance_id") {
		t.Errorf("the older one ended with %d, want 1 and the reason:\n%s", code, said)
	}
	w.send(numbered(100, 100)...)
	w.awaitSettled(second)
	second.stop()
	w.holds(200, 200)
}
