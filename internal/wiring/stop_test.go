package wiring

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// behindProxy puts a fault proxy before ClickHouse, for the sink alone.
func (r *rig) behindProxy() (p *faultproxy.Proxy, direct string) {
	r.t.Helper()
	p, err := faultproxy.Listen(r.engine)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(p.Close)
	direct, r.engine = r.engine, p.Addr()
	return p, direct
}

// A stop that waits for an insert without a bound is ended by SIGKILL in the midst of whatever else it had to do (field case K4). What it left is the
// next start's.
func TestAStopEndsThoughAnInsertIsNotAnswered(t *testing.T) {
	r := newRig(t, 1)
	r.tables()
	proxy, direct := r.behindProxy()
	rule := proxy.Add(faultproxy.ClickHouseInsert(faultproxy.RuleOptions{Fault: faultproxy.HoldReply, Marker: "INSERT INTO `" + r.database + "`.`orders`", Every: 3, Limit: 1}))
	l := r.start(func(o *RunOptions) { o.Patience = 200 * time.Millisecond })
	for first := 0; rule.Account().Holding == 0; first += 10 {
		if first > 1000 {
			t.Fatalf("no insert is held: %+v\n%s", rule.Account(), l.log)
		}
		r.produce(first, 10)
		time.Sleep(50 * time.Millisecond)
	}
	l.end(true) // the insert itself may take a minute
	proxy.Close()
	r.engine = direct
	report := r.start(func(o *RunOptions) { o.Drain = true }).end(false)
	if len(report.Halted) > 0 || report.Counts.Inserted == 0 || !report.Drained {
		t.Errorf("the next start: %+v", report)
	}
}

// A worker that dies in a process that lives is a partition that stalls for ever (field case K9): the run ends with the place and the stack, and the next
// one loses nothing.
func TestAWorkerThatDiesEndsTheRunLoudly(t *testing.T) {
	for _, step := range []pipeline.Step{pipeline.StepClaimed, pipeline.StepWritten, pipeline.StepCommitted} {
		t.Run(string(step), func(t *testing.T) {
			r := newRig(t, 1)
			r.tables()
			r.produce(0, 10)
			l := r.start(func(o *RunOptions) {
				o.Patience = 200 * time.Millisecond // for the goroutines that live
				o.Steps = func(_ string, _ int32, s pipeline.Step) {
					if s == step {
						panic("a defect of the test's own")
					}
				}
			})
			select {
			case <-l.done:
			case <-time.After(30 * time.Second):
				t.Fatalf("the run goes on without its worker:\n%s", l.log)
			}
			var defect *pipeline.Defect
			if !errors.As(l.err, &defect) || defect.Where != "orders/0" || !strings.Contains(defect.What, "of the test's own") || len(defect.Stack) == 0 {
				t.Fatalf("the run ended with %v", l.err)
			}
			r.produce(10, 10)
			report := r.start(func(o *RunOptions) { o.Drain = true }).end(false)
			if c := report.Counts; c.Inserted < 10 || c.Duplicates()+c.DeadLetters+c.Conflicts > 0 {
				t.Errorf("the account of the next run is %+v", c)
			}
			if n := r.count("SELECT toInt64(count() * 1000 + uniqExact(id)) AS n FROM orders"); n != 20*1000+20 {
				t.Errorf("rows and keys are %d, want 20 and 20", n)
			}
		})
	}
}
