package wiring

import (
	"context"
	"time"
)

// headroomEvery is how often the deduplication windows are looked at.
const headroomEvery = 10 * time.Second

// watchHeadroom shows from time to time what is left of each table's deduplication window for the oldest insert that may still be repeated.
func (s *session) watchHeadroom(ctx context.Context) {
	tick := time.NewTicker(headroomEvery)
	defer tick.Stop()
	back := s.cfg.ClickHouse.InsertDeadline + s.cfg.ClickHouse.InsertTimeout
	for {
		seen := map[string]bool{}
		for _, t := range s.targets {
			table := t.Table.String()
			if seen[table] {
				continue
			}
			seen[table] = true
			asking, cancel := context.WithTimeout(ctx, headroomEvery)
			left, err := s.server.Headroom(asking, t.Table, back)
			cancel()
			switch {
			case err == nil:
				s.o.Status.Headroom(table, left)
			case ctx.Err() == nil: // a figure to look at: its want stops nothing
				s.log.Debug("the deduplication window can't be looked at now", "table", table, "error", err.Error())
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// beside runs f until the session closes.
func (s *session) beside(ctx context.Context, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	go func() {
		defer close(over)
		f(ctx)
	}()
	s.onClose(func() { cancel(); <-over })
}
