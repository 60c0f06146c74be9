package writer

import (
	"context"
	"errors"
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
)

// doer runs one statement. Those of a session all run on the same connection, hence on the same server, even behind a balancer, and see each other's temporary tables.
type doer func(ctx context.Context, q *request) (stage, error)

// on is the doer of a replica: each statement takes any of its connections.
func (s *Server) on(r *replicaState) doer {
	return func(ctx context.Context, q *request) (stage, error) { return s.run(ctx, r, q) }
}

// session calls f with a connection of its own that is known to be alive. keep: the connection may serve others afterwards; otherwise it is closed, and temporary
// tables with it.
func (s *Server) session(ctx context.Context, r *replicaState, keep bool, f func(doer) error) error {
	for {
		c, err := s.connect(ctx, r)
		if err != nil {
			return err
		}
		if c.reused {
			if err := c.ping(ctx); err != nil {
				c.broken = true
				s.release(r, c, nil)
				if ctx.Err() != nil {
					return fmt.Errorf("clickhouse %s: %w", r.addr, err)
				}
				continue
			}
		}
		err = f(func(ctx context.Context, q *request) (stage, error) {
			if c.broken {
				return stage{}, fmt.Errorf("clickhouse %s: the session has ended", r.addr)
			}
			st, err := c.exchange(ctx, q)
			var ex *Exception
			if err != nil && !errors.As(err, &ex) {
				err = fmt.Errorf("clickhouse %s: %w", r.addr, err)
			}
			return st, err
		})
		c.broken = c.broken || !keep
		s.release(r, c, nil)
		return err
	}
}

// ping asks for a sign of life.
func (c *conn) ping(ctx context.Context) error {
	stop, end := c.guard(ctx)
	defer end()
	c.buf.Reset()
	proto.ClientCodePing.Encode(&c.buf)
	err := c.flush()
	if err == nil {
		var code uint64
		if code, err = c.reader.UVarInt(); err == nil && proto.ServerCode(code) != proto.ServerCodePong {
			err = fmt.Errorf("unexpected packet %d instead of pong", code)
		}
	}
	if !stop() || err != nil {
		c.broken = true
	}
	return err
}
