package faultproxy

import (
	"errors"
	"io"
	"net"
	"time"
)

// conn is one connection. Its two pumps are all that reads; what they share is under the proxy's lock.
type conn struct {
	p     *Proxy
	ends  [2]net.Conn // by the direction whose bytes are written to it
	limit [2]int64    // CutAfter at the time of connecting

	passed   [2]int64
	deaf     [2]bool // has lost bytes of this direction, so no later ones may pass
	ended    [2]bool
	wasCut   bool
	lastFrom Direction // who spoke last: ToServer is the client
	tail     []byte    // end of the client's bytes so far, for a marker that two reads divide
	req      *request  // the last request that a rule counted
}

const readSize = 64 << 10

// pump copies one direction until it ends.
func (c *conn) pump(d Direction) {
	buf := make([]byte, readSize)
	for {
		n, err := c.ends[1-d].Read(buf)
		if n > 0 {
			if out := c.pass(d, buf[:n]); len(out) > 0 {
				if _, werr := c.ends[d].Write(out); werr != nil && (d == ToServer || !c.isLate()) {
					c.abort()
				}
			}
		}
		if err != nil {
			c.end(d, errors.Is(err, io.EOF))
			return
		}
	}
}

// end passes the end of a direction on: an orderly one as such, a reset as a reset. A request that is held lands first.
func (c *conn) end(d Direction, orderly bool) {
	c.p.update(func() { c.ended[d] = true })
	if d == ToServer && c.isLate() {
		c.awaitLateReply()
		orderly = true
	}
	if !orderly {
		c.abort()
	} else if tcp, ok := c.ends[d].(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}

// pass decides which bytes go on, and blocks while they have to wait.
func (c *conn) pass(d Direction, b []byte) []byte {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	defer c.p.changed.Broadcast() // counters and requests change below
	c.p.stats.Bytes[d] += int64(len(b))
	for c.p.stalled[d] && !c.wasCut {
		c.p.changed.Wait()
	}
	c.deaf[d] = c.deaf[d] || c.p.silent[d]
	if delay := c.p.delay[d]; delay > 0 {
		c.p.mu.Unlock()
		time.Sleep(delay)
		c.p.mu.Lock()
	}
	if d == ToServer {
		b = c.fromClient(b)
	} else {
		b = c.fromServer(b)
	}
	if c.deaf[d] || c.wasCut {
		return nil
	}
	if limit := c.limit[d]; limit > 0 && c.passed[d]+int64(len(b)) >= limit {
		c.lastWords(d, b[:limit-c.passed[d]])
		return nil
	}
	c.passed[d] += int64(len(b))
	return b
}

// lastWords writes some bytes and cuts the connection. The bytes are given the time to arrive: a reset overtakes what is still in a buffer.
func (c *conn) lastWords(d Direction, b []byte) {
	c.wasCut = true // nothing else passes any more
	c.p.stats.Cuts++
	c.p.mu.Unlock()
	if len(b) > 0 {
		_, _ = c.ends[d].Write(b)
		if tcp, ok := c.ends[d].(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
		time.Sleep(lastWordsTime)
	}
	c.p.mu.Lock()
	c.resetEnds()
}

const lastWordsTime = 20 * time.Millisecond

// cut ends both sides by force; under the lock.
func (c *conn) cut() {
	if !c.wasCut {
		c.wasCut = true
		c.p.stats.Cuts++
	}
	c.resetEnds()
}

func (c *conn) resetEnds() {
	reset(c.ends[ToServer])
	reset(c.ends[ToClient])
	c.p.changed.Broadcast()
}

// abort tells both sides that the other one has broken off; that is no fault of ours.
func (c *conn) abort() {
	c.p.update(func() {
		c.wasCut = true
		c.resetEnds()
	})
}
