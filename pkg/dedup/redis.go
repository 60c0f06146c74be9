package dedup

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// redisBackend runs calls as scripts.
type redisBackend struct {
	client                redis.UniversalClient
	servers               string // for messages
	gbits                 uint
	groups                int
	most                  int // keys a bucket may hold before its slot gets a bigger layer
	keys                  estimate
	assumePolicy, cluster bool
	layout                [MaxGroups]layers
	marker                [MaxGroups]any
	pool                  sync.Pool
}

// packed is a call on its way to Redis, with its buffers.
type packed struct {
	body  []byte
	args  []any
	secs  []section
	slots []int64
	texts []string
	nonce [4]byte
	text  string // the answer
	err   error
}

func newRedisBackend(client redis.UniversalClient, servers string, h *head, gbits uint, most int) *redisBackend {
	b := &redisBackend{client: client, servers: servers, groups: h.groups, gbits: gbits, most: most}
	for g := range h.groups {
		b.marker[g] = markerKey(h.name, g)
	}
	b.pool.New = func() any { return &packed{} }
	return b
}

func markerKey(name string, group int) string {
	return "osink:{" + domainID(name) + "." + strconv.Itoa(group) + "}:m"
}

func (b *redisBackend) close() error { return b.client.Close() }

// exec sends the calls together. A call that a script answers with another
// layout is packed anew and sent again; with the same nonce this is harmless
// also where the script had claimed some of its keys already.
func (b *redisBackend) exec(ctx context.Context, calls []*call) {
	var buffer [MaxGroups]*packed
	for try := 0; len(calls) > 0; try++ {
		sent := buffer[:0]
		for range calls {
			sent = append(sent, b.pool.Get().(*packed))
		}
		b.send(ctx, calls, sent)
		var again []*call
		for i, c := range calls {
			if b.take(c, sent[i], try) {
				again = append(again, c)
			}
			b.pool.Put(sent[i])
		}
		calls = again
	}
}

// take reads the answer to a call, and tells whether to send it again.
func (b *redisBackend) take(c *call, p *packed, try int) bool {
	var old *retry
	if c.err = away(b.servers, p.err); c.err == nil {
		old, c.err = parseReply(c, p.text)
	}
	p.text = ""
	switch {
	case c.err != nil:
		return false
	case old == nil:
		if c.status == stOK {
			b.noteBuckets(p, c)
		}
		return false
	case try > 40:
		c.err = fmt.Errorf("the layout of group %d keeps changing", c.group)
		return false
	}
	b.layout[c.group].put(old)
	return true
}

func (b *redisBackend) send(ctx context.Context, calls []*call, out []*packed) {
	if len(calls) == 1 {
		cmd := redis.NewCmd(ctx, b.pack(out[0], calls[0], false)...)
		_ = b.client.Process(ctx, cmd)
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			cmd = redis.NewCmd(ctx, b.pack(out[0], calls[0], true)...)
			_ = b.client.Process(ctx, cmd)
		}
		out[0].text, out[0].err = cmd.Text()
		return
	}
	cmds := make([]*redis.Cmd, len(calls))
	pipe := b.client.Pipeline()
	for i, c := range calls {
		cmds[i] = redis.NewCmd(ctx, b.pack(out[i], c, false)...)
		_ = pipe.Process(ctx, cmds[i])
	}
	_, _ = pipe.Exec(ctx) // each reply is looked at
	for i := range calls {
		out[i].text, out[i].err = cmds[i].Text()
		if redis.HasErrorPrefix(out[i].err, "NOSCRIPT") {
			b.send(ctx, calls[i:i+1], out[i:i+1])
		}
	}
}

// pack builds the arguments of the call's script.
func (b *redisBackend) pack(p *packed, c *call, whole bool) []any {
	s := &scripts[c.op]
	p.args = append(p.args[:0], "evalsha", s.sha, "1", b.marker[c.group])
	if whole {
		p.args[0], p.args[1] = "eval", s.text
	}
	epoch := ""
	if c.epoch != 0 {
		epoch = strconv.FormatUint(c.epoch, 10)
	}
	h := c.head
	p.args = append(p.args, h.tableText(), epoch, h.name, h.route, h.groups, h.d, h.h, h.cutoff, h.slack, c.known)
	p.nonce = [4]byte{byte(c.nonce >> 24), byte(c.nonce >> 16), byte(c.nonce >> 8), byte(c.nonce)}
	switch c.op {
	case opClaim:
		trust := b.packBody(p, c)
		p.args = append(p.args, c.owner, p.nonce[:], c.first, flag(c.late), b.most, p.body, trust)
	case opRenew:
		b.packBody(p, c)
		p.args = append(p.args, c.owner, p.nonce[:], c.first, p.body)
	case opFind:
		b.packBody(p, c)
		p.args = append(p.args, p.body)
	case opTake:
		b.packBody(p, c)
		p.args = append(p.args, c.owner, p.nonce[:], p.body)
		for _, o := range c.owners {
			p.args = append(p.args, o)
		}
	case opRelease:
		b.packBody(p, c)
		becomes := "r"
		if c.done {
			becomes = "s"
		}
		p.args = append(p.args, c.owner, p.body, becomes)
	case opAcked:
		p.args = append(p.args, c.owner)
	case opPublish:
		p.args = append(p.args, c.owner, c.lo, c.hi)
	case opNames:
		for _, id := range c.ids {
			p.args = append(p.args, id)
		}
	case opRaise:
		seen := ""
		if c.swapped {
			seen = uuidText(c.seen)
		}
		p.args = append(p.args, seen, h.slot)
	case opOpen:
		p.args = append(p.args, flag(c.endHold), flag(c.endVerify))
	}
	return p.args
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// packBody finds the sections of the call's rows and packs them. It answers the
// trust under which buckets are marked as known.
func (b *redisBackend) packBody(p *packed, c *call) (trust string) {
	l := &b.layout[c.group]
	if c.op == opClaim {
		trust = l.trusts()
	}
	p.secs, p.slots, p.texts = p.secs[:0], p.slots[:0], p.texts[:0]
	add := func(slot int64) *bitmap {
		text, known := l.view(slot, trust)
		p.slots, p.texts = append(p.slots, slot), append(p.texts, text)
		return known
	}
	if c.head.arrival {
		var known *bitmap
		from, cur := l.arrival()
		for slot := from; slot <= cur; slot++ {
			known = add(slot)
		}
		b.section(p, c, known, 0, len(c.rows), len(p.slots))
	} else {
		for at := 0; at < len(c.rows); {
			end := at + 1
			for end < len(c.rows) && c.rows[end].slot == c.rows[at].slot {
				end++
			}
			b.section(p, c, add(c.rows[at].slot), at, end, 1)
			at = end
		}
	}
	p.body = appendBody(p.body[:0], c, b.gbits, p.secs)
	return trust
}

// section adds one of the last n slots; a last slot that is not known to exist
// gets the layout that this client would give it.
func (b *redisBackend) section(p *packed, c *call, known *bitmap, from, to, n int) {
	slots, texts := p.slots[len(p.slots)-n:], p.texts[len(p.texts)-n:]
	last := slots[n-1]
	hint := b.keys.bits(last, b.groups, to-from)
	if text := texts[n-1]; text == "" {
		texts[n-1] = string([]byte{hint})
		b.layout[c.group].propose(last, texts[n-1])
	} else if c.op == opClaim {
		// More keys in one call than the buckets have room for: a bigger layer
		// first, since a script does not turn back once it has claimed.
		newest := text[len(text)-1]
		if need := byte(bits.Len(uint((to - from) / max(1, b.most/3)))); need > newest && newest < maxBits {
			hint = growFirst | min(maxBits, max(hint, newest+3, need))
		}
	}
	p.secs = append(p.secs, section{slots: slots, layers: texts, hint: hint, known: known, from: from, to: to})
}
