package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/oncesink/oncesink/bench/load"
)

// Seen is the worst that was seen while the run was under way.
type Seen struct {
	Samples int    `json:"samples"`
	Twice   int64  `json:"twice"` // rows beyond one a key
	Ahead   Totals `json:"ahead"` // the report beyond what was produced, or beyond the table's keys
}

const (
	sampleEvery = 200 * time.Millisecond
	settleTime  = 100 * time.Millisecond
)

// watch looks at table and report all the time.
func (r *run) watch(ctx context.Context) error {
	db, err := connect(ctx, r.stack.Engine.TCPAddr)
	if err != nil {
		return err
	}
	defer db.close()
	for {
		start := time.Now()
		t, err := r.look(ctx, db)
		if err != nil {
			return err
		}
		r.bar.Set(t.Rows)
		r.bar.Note(r.note())
		// Never more than half of the time: a look at a big table is work for the engine too.
		if err := pause(ctx, max(sampleEvery, time.Since(start))); err != nil {
			return err
		}
	}
}

// look takes one sample. The order makes it fair: what the report shows was made before, and is in the table by now.
func (r *run) look(ctx context.Context, db *asker) (Table, error) {
	shown, err := db.report(ctx)
	if err != nil {
		return Table{}, err
	}
	t, err := db.table(ctx)
	if err == nil && shown.Events > t.Keys {
		// One insert's parts become visible one after another, the report's perhaps first.
		if err = pause(ctx, settleTime); err == nil {
			t, err = db.table(ctx)
		}
	}
	if err != nil {
		return Table{}, err
	}
	truth, _ := r.feed.made()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.add(shown, t, truth)
	return t, nil
}

func (s *Seen) add(shown Totals, t Table, truth load.Truth) {
	s.Samples++
	s.Twice = max(s.Twice, t.Rows-t.Keys)
	s.Ahead.Events = max(s.Ahead.Events, shown.Events-truth.Keys, shown.Events-t.Keys)
	s.Ahead.Amount = max(s.Ahead.Amount, shown.Amount-Amount(truth.Amount))
	s.Ahead.Qty = max(s.Ahead.Qty, shown.Qty-truth.Qty)
}

// note is what the progress shows beside the rows.
func (r *run) note() string {
	_, made := r.feed.made()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := ""
	if r.door != "" {
		now = "; now: " + r.door
	}
	// What is told last is cut off first on a narrow terminal.
	return fmt.Sprintf("(%s, %s%s; %s produced)", count(int64(len(r.crashes)), "crash"), count(int64(r.cuts), "cut"), now, count(int64(made), "record"))
}

// Resend is a slice that was sent again by hand.
type Resend struct {
	Records int `json:"records"`
	Written int `json:"written"` // of these, in the table at that moment
}

const (
	resends     = 3
	resendShare = 50 // one of so many records
)

// resendByHand sends slices of settlements again that are written in part: first to their own partitions, then to others.
func (r *run) resendByHand(ctx context.Context) error {
	db, err := connect(ctx, r.stack.Engine.TCPAddr)
	if err != nil {
		return err
	}
	defer db.close()
	for i := range resends {
		if err := r.awaitMade(ctx, r.o.Rows*(3*i+2)/(4*resends)); err != nil {
			return err
		}
		list, written, err := r.partlyWritten(ctx, db)
		if err != nil {
			return err
		}
		if err := r.feed.again(ctx, list, i); err != nil {
			return err
		}
		r.mu.Lock()
		r.byHand = append(r.byHand, Resend{len(list), written})
		r.mu.Unlock()
	}
	return nil
}

// partlyWritten seeks a slice of which the table has some settlements and not all. When the load is over and all of it is written, it is too late, and any
// slice is taken.
func (r *run) partlyWritten(ctx context.Context, db *asker) (slice []load.Settlement, written int, err error) {
	size := r.o.Rows / resendShare
	for {
		over := r.feed.over()
		latest := r.feed.newest()
		missing := 0
		for ; len(latest) >= size; latest = latest[:len(latest)-size] {
			slice = latest[len(latest)-size:]
			if written, err = db.present(ctx, slice); err != nil {
				return nil, 0, err
			}
			if written > 0 && written < size {
				return slice, written, nil
			}
			missing += size - written
		}
		if over && missing == 0 {
			return slice, written, nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, 0, err
		}
	}
}

func (r *run) awaitMade(ctx context.Context, n int) error {
	for {
		if _, made := r.feed.made(); made >= n {
			return nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
