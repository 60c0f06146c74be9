package faultproxy

import (
	"bytes"
	"slices"
)

// request is a request that a rule counted, on its connection. It is under the proxy's lock.
type request struct {
	rule *Rule
	hit  bool // the fault is for this one
	over bool // the fault has happened or was spared
	turn int  // of the conversation since the marker: in turn 1 the client speaks first and the server answers first

	held   []byte // what was kept so far, of the request or of the reply
	left   int    // CutRequest: bytes that still pass
	script []byte // replies of the turns before the rule's, recorded when it is no hit

	landed   bool   // HoldRequest: all that was held has gone to the server
	reply    []byte // HoldRequest: what the server said after that
	answered bool
}

func (q *request) suffers(f Fault) bool { return q != nil && q.hit && !q.over && q.rule.o.Fault == f }

// fromClient handles bytes of the client; under the lock.
func (c *conn) fromClient(b []byte) []byte {
	if c.lastFrom == ToClient {
		c.lastFrom = ToServer
		c.tail = c.tail[:0]
		c.req.nextTurn()
	}
	c.look(b)
	q := c.req
	switch {
	case q.suffers(HoldRequest):
		if q.landed {
			return b
		}
		q.held = append(q.held, b...)
		return nil
	case q.suffers(CutRequest):
		if len(b) < q.left {
			q.left -= len(b)
			return b
		}
		q.over = true
		q.rule.faults++
		c.lastWords(ToServer, b[:max(q.left, 0)])
		return nil
	}
	return b
}

// nextTurn notes that the client speaks again after the server did.
func (q *request) nextTurn() {
	if q == nil {
		return
	}
	q.turn++
	if !q.hit && q.turn >= q.rule.o.Turn {
		if q.script != nil && q.rule.script == nil {
			q.rule.script = q.script
		}
		q.over = q.turn > q.rule.o.Turn
	}
}

// look seeks the markers of all rules in the client's bytes, unless a request that was found is still under way.
func (c *conn) look(b []byte) {
	if c.req != nil && !c.req.over {
		return
	}
	text := slices.Concat(c.tail, b)
	for _, r := range c.p.rules {
		at := bytes.Index(text, []byte(r.o.Marker))
		if at < 0 {
			continue
		}
		q := &request{rule: r, turn: 1, left: at - len(c.tail) + r.o.After}
		q.hit = r.choose()
		if c.req == nil || c.req.over || q.hit || r.o.Fault == HoldRequest {
			c.req = q
		}
		if q.hit {
			c.strike(q)
			break
		}
	}
	c.p.changed.Broadcast()
	c.tail = append(c.tail[:0], text[max(0, len(text)-c.p.longestMarker()+1):]...)
}

// strike begins a fault that begins with the request.
func (c *conn) strike(q *request) {
	switch q.rule.o.Fault {
	case Swallow:
		q.over = true
		q.rule.faults++
		c.deaf = [2]bool{true, true}
	case HoldRequest:
		if len(q.rule.script) > 0 {
			_, _ = c.ends[ToClient].Write(q.rule.script)
		}
		c.p.running.Go(func() { c.land(q) })
	}
}

// land lets a held request through once it is released, also when nobody waits for it any more.
func (c *conn) land(q *request) {
	q.rule.hold(func() bool { return c.wasCut })
	for {
		var part []byte
		c.p.update(func() {
			part, q.held = q.held, nil
			q.landed = len(part) == 0 || c.wasCut
		})
		if q.landed {
			return
		}
		if _, err := c.ends[ToServer].Write(part); err != nil {
			c.abort()
		}
	}
}

// isLate tells whether a held request has to land, or has landed and its answer isn't complete.
func (c *conn) isLate() bool {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return c.req.suffers(HoldRequest) && !c.wasCut
}

// awaitLateReply keeps the way to the server open for a client that has gone, until the server has answered.
func (c *conn) awaitLateReply() {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	for !c.req.answered && !c.ended[ToClient] && !c.wasCut {
		c.p.changed.Wait()
	}
}

// fromServer handles bytes of the server; under the lock.
func (c *conn) fromServer(b []byte) []byte {
	c.lastFrom = ToClient
	q := c.req
	switch {
	case q.suffers(HoldRequest):
		return c.lateReply(q, b)
	case q.suffers(CutReply) && q.turn >= q.rule.o.Turn:
		q.held = append(q.held, b...)
		switch q.rule.o.Done(q.held) {
		case Complete:
			q.over = true
			q.rule.faults++
			c.cut()
		case Spare:
			q.over = true
			return q.held
		}
		return nil
	case q.suffers(HoldReply) && q.turn >= q.rule.o.Turn:
		q.held = append(q.held, b...)
		switch q.rule.o.Done(q.held) {
		case Wait:
			return nil
		case Complete:
			c.p.mu.Unlock()
			q.rule.hold(func() bool { return c.wasCut || c.ended[ToServer] })
			c.p.mu.Lock()
		}
		q.over = true
		return q.held
	case q != nil && !q.over && q.turn < q.rule.o.Turn:
		if q.rule.o.Done(b) == Spare {
			q.over = true // the conversation ends before the turn that matters
		} else if !q.hit {
			q.script = append(q.script, b...)
		}
	}
	return b
}

// lateReply takes what the server says to a request that landed late. The client has had the replies of the script already.
func (c *conn) lateReply(q *request, b []byte) []byte {
	said := len(q.reply)
	q.reply = append(q.reply, b...)
	script := q.rule.script
	switch {
	case bytes.HasPrefix(q.reply, script):
		q.answered = len(q.reply) > len(script) && q.rule.o.Done(q.reply[len(script):]) != Wait
		b = q.reply[max(said, len(script)):]
	case bytes.HasPrefix(script, q.reply):
		b = nil
	default: // something else than it said to others: a refusal
		q.answered = q.rule.o.Done(q.reply) != Wait
	}
	if q.answered {
		q.over = true
		q.rule.lateReplies = append(q.rule.lateReplies, q.reply)
	}
	return b
}
