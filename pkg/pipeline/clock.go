package pipeline

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/oncesink/oncesink/pkg/writer"
)

// ServerClock is the time of ClickHouse's replicas as the machine needs it:
// without asking anybody, and never later than any replica's own clock may
// show. A deadline made of it is never later than meant; a wait for a deadline
// never ends too soon.
type ServerClock struct {
	base   time.Time // with our monotonic reading
	offset atomic.Int64
}

// NewServerClock reads the clocks once; Keep reads them again now and then.
func NewServerClock(ctx context.Context, s *writer.Server) (*ServerClock, error) {
	c := &ServerClock{base: time.Now()}
	return c, c.measure(ctx, s)
}

func (c *ServerClock) measure(ctx context.Context, s *writer.Server) error {
	now, _, err := s.Now(ctx)
	if err != nil {
		return err
	}
	c.offset.Store(int64(now.Sub(c.base.Add(time.Since(c.base)))))
	return nil
}

// Now is the earliest time that a replica's clock may show.
func (c *ServerClock) Now() time.Time {
	return c.base.Add(time.Since(c.base) + time.Duration(c.offset.Load()))
}

// Keep measures again every interval until ctx ends. A server that is away
// keeps the offset it had.
func (c *ServerClock) Keep(ctx context.Context, s *writer.Server, interval time.Duration) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = c.measure(ctx, s) // away: the statement that comes next will tell
		}
	}
}
