package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	backoffFirst = 250 * time.Millisecond
	backoffMax   = 10 * time.Second
	idleMax      = 5 * time.Minute // an idle connection older than this is not trusted
)

// replicaState is one address with its idle connections and what is known about it.
type replicaState struct {
	addr  string
	slots chan struct{}

	mu       sync.Mutex
	idle     []*conn
	failed   error // why it is left aside; nil: it isn't
	failures int
	retryAt  time.Time
	clock    clock
	facts    map[string]*facts // by what a server says of itself in its handshake: behind a balancer there may be several
}

func newReplica(addr string, maxConns int) *replicaState {
	return &replicaState{addr: addr, slots: make(chan struct{}, maxConns)}
}

// connect takes an idle connection or dials.
func (s *Server) connect(ctx context.Context, r *replicaState) (*conn, error) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("clickhouse %s: all %d connections are in use: %w", r.addr, cap(r.slots), ctx.Err())
	}
	if c := r.takeIdle(); c != nil {
		return c, nil
	}
	c, err := dial(ctx, &s.cfg, r.addr)
	if err != nil {
		<-r.slots
		if ctx.Err() == nil {
			s.markDown(r, err)
		}
		return nil, err
	}
	s.markUp(r)
	return c, nil
}

func (r *replicaState) takeIdle() *conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.idle) > 0 {
		c := r.idle[len(r.idle)-1]
		r.idle = r.idle[:len(r.idle)-1]
		if time.Since(c.idle) < idleMax {
			return c
		}
		c.close()
	}
	return nil
}

func (s *Server) release(r *replicaState, c *conn) {
	if c.broken {
		c.close()
	} else {
		c.idle = time.Now()
		r.mu.Lock()
		r.idle = append(r.idle, c)
		r.mu.Unlock()
	}
	<-r.slots
}

func (r *replicaState) closeIdle() {
	r.mu.Lock()
	idle := r.idle
	r.idle = nil
	r.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}

// markDown leaves the replica aside for a while that grows.
func (s *Server) markDown(r *replicaState, err error) {
	r.mu.Lock()
	first := r.failed == nil
	r.failed = err
	wait := min(backoffMax, backoffFirst<<min(r.failures, 10))
	r.failures++
	r.retryAt = time.Now().Add(wait/2 + rand.N(wait/2+1))
	r.mu.Unlock()
	if first && s.events.ReplicaDown != nil {
		s.events.ReplicaDown(r.addr, err)
	}
}

func (s *Server) markUp(r *replicaState) {
	r.mu.Lock()
	was := r.failed
	r.failed, r.failures = nil, 0
	if was != nil {
		r.clock, r.facts = clock{}, nil // it may be another process, or another host
	}
	r.mu.Unlock()
	if was != nil && s.events.ReplicaUp != nil {
		s.events.ReplicaUp(r.addr)
	}
}

// waiting tells how long the replica is still left aside.
func (r *replicaState) waiting() (time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		return 0, nil
	}
	return time.Until(r.retryAt), r.failed
}

type rotor struct{ next atomic.Uint32 }

// order lists the replicas: those that answer, starting with another one each time, then those left aside, the soonest first.
func (s *Server) order() []*replicaState {
	n := len(s.replicas)
	start := 0
	if n > 1 {
		start = int(s.rotor.next.Add(1)) % n
	}
	up := make([]*replicaState, 0, n)
	var down []*replicaState
	for i := range n {
		r := s.replicas[(start+i)%n]
		if wait, _ := r.waiting(); wait > 0 {
			down = append(down, r)
		} else {
			up = append(up, r)
		}
	}
	return append(up, down...)
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
