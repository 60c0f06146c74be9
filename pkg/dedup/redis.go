package dedup

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// redisBackend runs calls as scripts.
type redisBackend struct {
	client                redis.UniversalClient
	gbits                 uint
	groups                int
	prefix                string // of keys, up to the group's number
	most                  string // keys a bucket may hold before its slot gets a bigger layer
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
}

func newRedisBackend(client redis.UniversalClient, h *head, gbits uint, most int) *redisBackend {
	b := &redisBackend{client: client, groups: h.groups, gbits: gbits, most: strconv.Itoa(most), prefix: "osink:{" + domainID(h.name) + "."}
	for g := range h.groups {
		b.marker[g] = b.prefix + strconv.Itoa(g) + "}:m"
	}
	b.pool.New = func() any { return &packed{} }
	return b
}

func (b *redisBackend) close() error { return b.client.Close() }

// exec sends the calls together. A call that a script answers with another
// layout is packed anew and sent again; with the same nonce this is harmless
// also where the script had claimed some of its keys already.
func (b *redisBackend) exec(ctx context.Context, calls []*call) {
	left := calls
	for try := 0; len(left) > 0; try++ {
		replies := make([]reply, len(left))
		b.send(ctx, left, replies)
		var again []*call
		for i, c := range left {
			if replies[i].err != nil {
				c.err = replies[i].err
				continue
			}
			old, err := parseReply(c, replies[i].text)
			if err != nil {
				c.err = err
				continue
			}
			if old == nil {
				continue
			}
			b.layout[c.group].put(old)
			if try > 40 {
				c.err = fmt.Errorf("the layout of group %d keeps changing", c.group)
				continue
			}
			again = append(again, c)
		}
		left = again
	}
}

type reply struct {
	text string
	err  error
}

func (b *redisBackend) send(ctx context.Context, calls []*call, out []reply) {
	if len(calls) == 1 {
		p := b.pool.Get().(*packed)
		defer b.pool.Put(p)
		cmd := redis.NewCmd(ctx, b.pack(p, calls[0], false)...)
		_ = b.client.Process(ctx, cmd)
		out[0].text, out[0].err = cmd.Text()
		if redis.HasErrorPrefix(out[0].err, "NOSCRIPT") {
			cmd = redis.NewCmd(ctx, b.pack(p, calls[0], true)...)
			_ = b.client.Process(ctx, cmd)
			out[0].text, out[0].err = cmd.Text()
		}
		return
	}
	used := make([]*packed, len(calls))
	cmds := make([]*redis.Cmd, len(calls))
	pipe := b.client.Pipeline()
	for i, c := range calls {
		used[i] = b.pool.Get().(*packed)
		cmds[i] = redis.NewCmd(ctx, b.pack(used[i], c, false)...)
		_ = pipe.Process(ctx, cmds[i])
	}
	_, _ = pipe.Exec(ctx) // each reply is looked at
	for i := range calls {
		out[i].text, out[i].err = cmds[i].Text()
		if redis.HasErrorPrefix(out[i].err, "NOSCRIPT") {
			b.send(ctx, calls[i:i+1], out[i:i+1])
		}
		b.pool.Put(used[i])
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
	p.args = append(p.args, h.tableText(), epoch, h.name, h.route, h.groups, h.d, h.h, h.cutoff, h.slack)
	switch c.op {
	case opClaim:
		b.packBody(p, c)
		p.args = append(p.args, c.owner, nonceBytes(c.nonce), c.first, flag(c.late), b.most, p.body)
	case opRenew:
		b.packBody(p, c)
		p.args = append(p.args, c.owner, nonceBytes(c.nonce), c.first, p.body)
	case opFind:
		b.packBody(p, c)
		p.args = append(p.args, p.body)
	case opTake:
		b.packBody(p, c)
		p.args = append(p.args, c.owner, nonceBytes(c.nonce), p.body)
		for _, o := range c.owners {
			p.args = append(p.args, o)
		}
	case opRelease:
		b.packBody(p, c)
		p.args = append(p.args, c.owner, p.body)
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

func nonceBytes(n uint32) []byte {
	return []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// packBody finds the sections of the call's rows and packs them.
func (b *redisBackend) packBody(p *packed, c *call) {
	l := &b.layout[c.group]
	p.secs, p.slots, p.texts = p.secs[:0], p.slots[:0], p.texts[:0]
	if c.head.arrival {
		from, cur := l.arrival()
		for slot := from; slot <= cur; slot++ {
			p.slots = append(p.slots, slot)
			p.texts = append(p.texts, l.get(slot))
		}
		b.section(p, c, 0, len(c.rows), len(p.slots))
	} else {
		for at := 0; at < len(c.rows); {
			end := at + 1
			for end < len(c.rows) && c.rows[end].slot == c.rows[at].slot {
				end++
			}
			p.slots = append(p.slots, c.rows[at].slot)
			p.texts = append(p.texts, l.get(c.rows[at].slot))
			b.section(p, c, at, end, 1)
			at = end
		}
	}
	p.body = appendBody(p.body[:0], c, b.gbits, p.secs)
}

// section adds one of the last n slots; a last slot that is not known to exist
// gets the layout that this client would give it.
func (b *redisBackend) section(p *packed, c *call, from, to, n int) {
	slots, texts := p.slots[len(p.slots)-n:], p.texts[len(p.texts)-n:]
	last := slots[n-1]
	hint := b.keys.bits(last, b.groups, to-from)
	if texts[n-1] == "" {
		texts[n-1] = string([]byte{hint})
		b.layout[c.group].created(last, texts[n-1])
	}
	p.secs = append(p.secs, section{slots: slots, layers: texts, hint: hint, from: from, to: to})
}
