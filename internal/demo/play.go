package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// act is one life of the sink: how it cuts batches, how many acknowledgements it loses, and what it dies of.
type act struct {
	door   string
	bounds bounds
	cuts   int
	kill   kill
}

// kill says at what moment the process gets its SIGKILL; the zero value: never.
type kill struct {
	at    pipeline.Step
	after time.Duration // behind the step
	held  bool          // instead of a step: the engine has an insert, and its acknowledgement is on the way
}

func (k kill) String() string {
	switch {
	case k.held:
		return "the engine had the insert, the sink had no answer"
	case k.at != "":
		return string(k.at)
	}
	return ""
}

// play is the order of the lives. Bounds change from one to the next, so that what a killed life sent in one batch would be sent in others by the next one
// if it didn't know. They follow the load, as long as a batch is quick to insert. They don't shrink by much at once: rows that a killed life had claimed
// and not listed cost each batch of the next one a wait for the deadline.
func play(rows int) []act {
	const lives = 7
	share := min(shareOf(rows, lives)/partitions, 4000)
	of := func(percent int) int { return share * percent / 100 }
	return []act{
		{"kill -9 in mid-insert", bounds{of(50), 300 * time.Millisecond}, 0, kill{at: pipeline.StepInserting}},
		{"acknowledgements are cut, then kill -9 behind a claim", bounds{of(35), 200 * time.Millisecond}, 3, kill{at: pipeline.StepClaimed}},
		{"kill -9 while an acknowledgement is on its way", bounds{of(80), 500 * time.Millisecond}, 0, kill{held: true}},
		{"kill -9 in mid-insert", bounds{of(55), 200 * time.Millisecond}, 0, kill{at: pipeline.StepInserting, after: 5 * time.Millisecond}},
		{"acknowledgements are cut, then kill -9 while an acknowledgement is on its way", bounds{of(100), 300 * time.Millisecond}, 2, kill{held: true}},
		{"kill -9 before an insert is committed", bounds{of(65), 200 * time.Millisecond}, 0, kill{at: pipeline.StepWritten}},
		{"acknowledgements are cut", bounds{of(120), 400 * time.Millisecond}, 2, kill{}},
	}
}

// insertMarker is in every INSERT into the table, and neither in the sink's trials in scratch tables nor where it asks for the right to insert.
const insertMarker = "FROM input('`settle_ms` Int64"

// perform plays all acts. What a sink process does wrong is no error here: the account shall say what came of it.
func (r *run) perform(ctx context.Context) error {
	for n, a := range r.acts {
		r.setDoor(fmt.Sprintf("sink process %d starts", n+1))
		l, err := r.startLife(a.bounds)
		if err != nil {
			return err
		}
		r.feed.release()
		living, forget := l.watch(ctx)
		err = r.live(living, l, a)
		forget()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return errors.Join(context.Cause(ctx), l.end(ctx))
		default: // the next life may mend it; if not, the account will tell
			r.trouble(fmt.Sprintf("sink process %d (%s): %s", n+1, a.door, err))
		}
		if err := l.end(ctx); err != nil {
			r.trouble(err.Error())
		}
	}
	return nil
}

// live is one life, up to its kill or until everything is committed.
func (r *run) live(ctx context.Context, l *life, a act) error {
	first, then, _ := strings.Cut(a.door, ", then ")
	r.setDoor(first)
	if a.kill == (kill{}) {
		if a.cuts > 0 {
			rule := r.proxy.Add(faultproxy.ClickHouseInsert(faultproxy.RuleOptions{Fault: faultproxy.CutReply, Marker: insertMarker, Limit: a.cuts}))
			defer r.countCuts(rule)
			watching, stop := context.WithCancel(ctx)
			defer stop()
			go func() {
				if rule.Await(watching, func(f faultproxy.Account) bool { return f.Faults >= a.cuts }) == nil {
					r.setDoor("what is left is written")
				}
			}()
		}
		return r.awaitCommitted(ctx)
	}
	if a.cuts > 0 {
		if err := r.cut(ctx, l, a.cuts); err != nil {
			return err
		}
		r.setDoor(then)
	}
	return r.killAt(ctx, l, a.kill)
}

// patient bounds the wait of one fault for something to hit.
func (r *run) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.o.Stall, fmt.Errorf("in %s there was no insert for the fault to hit", r.o.Stall))
}

// cut loses the acknowledgements of n inserts and waits until the sink has got over it.
func (r *run) cut(ctx context.Context, l *life, n int) error {
	ctx, cancel := r.patient(ctx)
	defer cancel()
	rule := r.proxy.Add(faultproxy.ClickHouseInsert(faultproxy.RuleOptions{Fault: faultproxy.CutReply, Marker: insertMarker, Limit: n}))
	defer r.countCuts(rule)
	if err := rule.Await(ctx, func(a faultproxy.Account) bool { return a.Faults >= n }); err != nil {
		return context.Cause(ctx)
	}
	// The partitions that lost one wait until the attempt is over, the others go on: the sink is back when all have got on.
	return l.trace.awaitAnswers(ctx)
}

func (r *run) countCuts(rule *faultproxy.Rule) {
	n := rule.Account().Faults
	rule.Remove()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cuts += n
}

// killAt kills the process at its moment.
func (r *run) killAt(ctx context.Context, l *life, k kill) error {
	ctx, cancel := r.patient(ctx)
	defer cancel()
	if k.held {
		rule := r.proxy.Add(faultproxy.ClickHouseInsert(faultproxy.RuleOptions{Fault: faultproxy.HoldReply, Marker: insertMarker, Limit: 1}))
		defer rule.Remove()
		if err := rule.Await(ctx, func(a faultproxy.Account) bool { return a.Holding > 0 }); err != nil {
			return context.Cause(ctx)
		}
	} else {
		if err := l.trace.await(ctx, k.at, 1); err != nil {
			return err
		}
		if err := pause(ctx, k.after); err != nil {
			return context.Cause(ctx)
		}
	}
	l.proc.Kill()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.crashes = append(r.crashes, Crash{At: k.String(), Inserting: l.trace.inserting()})
	return nil
}

// awaitCommitted waits until everything is produced and committed. It gives up when nothing has moved for long.
func (r *run) awaitCommitted(ctx context.Context) error {
	var moved time.Time
	var before int64
	for {
		list, _, err := r.feed.offsets(ctx)
		if err != nil {
			return err
		}
		open, sum := int64(0), int64(0)
		for _, p := range list {
			open += p.End - p.Committed
			sum += p.Committed + p.End
		}
		if open == 0 && r.feed.over() && r.resent() {
			return nil
		}
		if now := time.Now(); sum != before || moved.IsZero() {
			before, moved = sum, now
		} else if now.Sub(moved) > r.o.Stall {
			return fmt.Errorf("nothing moved for %s", r.o.Stall)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return context.Cause(ctx)
		}
	}
}

func (r *run) resent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byHand) == resends
}

func (r *run) setDoor(door string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.door = door
}

func (r *run) trouble(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.troubles = append(r.troubles, what)
}
