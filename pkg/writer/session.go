package writer

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// doer runs one statement. Those of a session all run on the same connection, hence on the same server, even behind a balancer, and see each other's temporary tables.
type doer func(ctx context.Context, q *request) (stage, error)

// on is the doer of a replica: each statement takes any of its connections.
func (s *Server) on(r *replicaState) doer {
	return func(ctx context.Context, q *request) (stage, error) { return s.run(ctx, r, q) }
}

// session calls f with a connection of its own. keep: the connection may serve others afterwards; otherwise it is closed, and temporary tables with it.
func (s *Server) session(ctx context.Context, r *replicaState, keep bool, f func(doer) error) error {
	c, err := s.alive(ctx, r)
	if err != nil {
		return err
	}
	err = f(s.with(r, c))
	c.broken = c.broken || !keep
	s.release(r, c)
	return err
}

// openSession is a session that ends when its second result is called. Its connection serves nobody else.
func (s *Server) openSession(ctx context.Context, r *replicaState) (doer, func(), error) {
	c, err := s.alive(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	return s.with(r, c), func() {
		c.broken = true
		s.release(r, c)
	}, nil
}

// alive takes a connection that has given a sign of life.
func (s *Server) alive(ctx context.Context, r *replicaState) (*conn, error) {
	for {
		c, err := s.connect(ctx, r)
		if err != nil || !c.reused {
			return c, err
		}
		if err = c.ping(ctx); err == nil {
			return c, nil
		}
		c.broken = true
		s.release(r, c)
		r.closeIdle() // the others have probably met the same fate
		if ctx.Err() != nil {
			return nil, fmt.Errorf("clickhouse %s: %w", r.addr, err)
		}
	}
}

func (s *Server) with(r *replicaState, c *conn) doer {
	return func(ctx context.Context, q *request) (stage, error) {
		if c.broken {
			return stage{}, fmt.Errorf("clickhouse %s: the session has ended", c.addr)
		}
		return s.exchange(ctx, r, c, q)
	}
}

// pongWithin is how long a server may take for a pong: it does nothing for it. A connection that was busy with a statement is never asked.
const pongWithin = 5 * time.Second

// ping asks for a sign of life.
func (c *conn) ping(ctx context.Context) error {
	stop, end := c.guard(ctx)
	defer end()
	c.expect(ctx, min(c.silence, pongWithin))
	c.buf.Reset()
	proto.ClientCodePing.Encode(&c.buf)
	err := c.push()
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
