// Package faultproxy is a TCP proxy that loses, holds back and cuts what passes through it, on order and at an exact place of the conversation.
//
// Faults of the whole proxy (Cut, Refuse, Stall, BlackHole, Delay, CutAfter) hit every connection. A [Rule] hits the n-th request that contains a marker:
// it can cut the acknowledgement of every 5th INSERT once the server has given it, or hold a request back until its sender has given up.
// The proxy knows no protocol: it knows who spoke last, so a reply is what the server says after the client has spoken.
//
// Not promised: faults below TCP (reordering, lost segments), and more than one request at a time on a connection (pipelining) under a Rule.
package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Direction of bytes.
type Direction int

// The two directions of a connection.
const (
	ToServer Direction = iota
	ToClient
)

// Proxy forwards connections to a target. Its methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	changed  sync.Cond // broadcast whenever anything below changes, rules' state included
	target   string
	closed   bool
	refuse   bool
	stalled  [2]bool
	silent   [2]bool
	delay    [2]time.Duration
	cutAfter [2]int64
	conns    map[*conn]struct{}
	rules    []*Rule
	stats    Stats
}

// Stats are counters since the start.
type Stats struct {
	Connections int
	Cuts        int      // connections cut by any fault
	Bytes       [2]int64 // received, by direction
}

// Listen starts a proxy on a free loopback port.
func Listen(target string) (*Proxy, error) { return ListenOn("127.0.0.1:0", target) }

// ListenOn starts a proxy on an address of your choice.
func ListenOn(addr, target string) (*Proxy, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("fault proxy on %s: %w", addr, err)
	}
	p := &Proxy{listener: l, target: target, conns: map[*conn]struct{}{}}
	p.changed.L = &p.mu
	p.running.Go(p.accept)
	return p, nil
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close cuts everything and waits until nothing of the proxy runs any more.
func (p *Proxy) Close() {
	p.update(func() { p.closed = true })
	_ = p.listener.Close()
	p.Cut()
	p.running.Wait()
}

// SetTarget sends connections from now on to another server.
func (p *Proxy) SetTarget(addr string) { p.update(func() { p.target = addr }) }

// Cut resets all open connections (RST on both sides).
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.cut()
	}
}

// Refuse makes new connections end at once; open ones go on.
func (p *Proxy) Refuse(on bool) { p.update(func() { p.refuse = on }) }

// Stall holds the bytes of a direction back, on all connections, and lets them through when it is switched off: a network that hangs for a while.
func (p *Proxy) Stall(d Direction, on bool) { p.update(func() { p.stalled[d] = on }) }

// BlackHole swallows the bytes of a direction, on all connections, without an error to anybody: a network that has lost its way.
// A connection that has lost bytes stays silent in this direction for good.
func (p *Proxy) BlackHole(d Direction, on bool) { p.update(func() { p.silent[d] = on }) }

// Delay adds a time to every read of a direction.
func (p *Proxy) Delay(d Direction, by time.Duration) { p.update(func() { p.delay[d] = by }) }

// CutAfter cuts every connection made from now on after it has passed n bytes of a direction; 0 switches it off.
func (p *Proxy) CutAfter(d Direction, n int64) { p.update(func() { p.cutAfter[d] = n }) }

// Stats reads the counters.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// longestMarker is how much of a request has to be remembered between two reads; under the lock.
func (p *Proxy) longestMarker() int {
	longest := 1
	for _, r := range p.rules {
		longest = max(longest, len(r.o.Marker))
	}
	return longest
}

func (p *Proxy) update(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.changed.Broadcast()
}

// await blocks until cond, which is called under the lock, or until ctx is done.
func (p *Proxy) await(ctx context.Context, cond func() bool) error {
	stop := context.AfterFunc(ctx, func() { p.update(func() {}) })
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !cond() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.changed.Wait()
	}
	return nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // a client that was gone before it was accepted
		}
		p.mu.Lock()
		refuse, target := p.refuse || p.closed, p.target
		p.stats.Connections++
		p.mu.Unlock()
		if refuse {
			reset(client)
			continue
		}
		p.running.Go(func() { p.serve(client, target) })
	}
}

func (p *Proxy) serve(client net.Conn, target string) {
	const dialTimeout = 10 * time.Second
	server, err := net.DialTimeout("tcp", target, dialTimeout)
	if err != nil {
		reset(client) // what the client would have met without a proxy
		return
	}
	c := &conn{p: p, ends: [2]net.Conn{ToServer: server, ToClient: client}}
	p.mu.Lock()
	c.limit = p.cutAfter
	p.conns[c] = struct{}{}
	if p.closed {
		c.cut()
	}
	p.mu.Unlock()

	var pumps sync.WaitGroup
	pumps.Go(func() { c.pump(ToServer) })
	pumps.Go(func() { c.pump(ToClient) })
	pumps.Wait()
	p.update(func() { delete(p.conns, c) })
	_ = client.Close()
	_ = server.Close()
}

// reset closes with RST, so that the other side can't take it for an orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
