package offsets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	errStanding = errors.New("the standing changed before the request left")
	errClosed   = errors.New("the committer is closed")
)

// maxRequest bounds the metadata of one request: the coordinator appends all
// partitions of a request as one record batch to __consumer_offsets.
const maxRequest = 256 << 10

// Group commits for one group member. A commit that arrives while none is in
// flight leaves at once; those that arrive meanwhile leave together in the next
// request. One goroutine sends, so that a partition's commits reach the
// coordinator in their order.
type Group struct {
	cl       *kgo.Client
	group    string
	instance *string
	events   Events

	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}
	wake chan struct{}

	mu    sync.Mutex
	queue []*attempt
}

// NewGroup starts the committer of a client that consumes in a group. The
// client's own commits must be off (kgo.DisableAutoCommit): they would
// overwrite the intents. Close it after the last commit, before the client.
func NewGroup(cl *kgo.Client, events Events) (*Group, error) {
	group, _ := cl.OptValue(kgo.ConsumerGroup).(string)
	if group == "" {
		return nil, errors.New("the client has no consumer group")
	}
	if off, _ := cl.OptValue(kgo.DisableAutoCommit).(bool); !off {
		return nil, errors.New("the client commits by itself: its commits would overwrite intents; use kgo.DisableAutoCommit")
	}
	g := &Group{cl: cl, group: group, events: events, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	if id, _ := cl.OptValue(kgo.InstanceID).(string); id != "" {
		g.instance = &id
	}
	g.ctx, g.stop = context.WithCancel(context.Background())
	go g.run()
	return g, nil
}

// Close ends what still waits and stops the committer.
func (g *Group) Close() {
	g.stop()
	<-g.done
}

// attempt is one try of a commit on its way through a request.
type attempt struct {
	*Commit
	standing
	result  chan error // capacity 1
	dropped bool       // guarded by Group.mu: nobody waits any more
	request *request   // guarded by Group.mu: set when it left
}

// request is what several attempts travel in.
type request struct {
	attempts []*attempt
	waiting  int // attempts somebody waits for; at 0 it is cancelled
	cancel   context.CancelFunc
}

// try sends the commit once under that standing and returns the broker's answer.
func (g *Group) try(ctx context.Context, c *Commit, s standing) error {
	a := &attempt{Commit: c, standing: s, result: make(chan error, 1)}
	g.mu.Lock()
	g.queue = append(g.queue, a)
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
	select {
	case err := <-a.result:
		return err
	case <-g.done:
		return errClosed
	case <-c.Lease.l.ctx.Done():
		g.drop(a)
		return context.Cause(c.Lease.l.ctx)
	case <-ctx.Done():
		g.drop(a)
		return context.Cause(ctx)
	}
}

// drop gives an attempt up. A request that nobody waits for any more is
// cancelled, so that it doesn't hold up the next; kgo keeps the connection, so
// the coordinator still sees both in their order.
func (g *Group) drop(a *attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a.dropped = true
	if r := a.request; r != nil {
		if r.waiting--; r.waiting == 0 {
			r.cancel()
		}
	}
}

func (g *Group) run() {
	defer close(g.done)
	for {
		select {
		case <-g.wake:
		case <-g.ctx.Done():
			return
		}
		for r, ctx := g.next(); r != nil; r, ctx = g.next() {
			g.send(ctx, r)
		}
	}
}

// next takes the attempts that can share one request: of one member and
// generation, each partition once. The others keep their places.
func (g *Group) next() (*request, context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := &request{}
	var rest []*attempt
	size := 0
	seen := map[place]bool{}
	for _, a := range g.queue {
		if a.dropped {
			continue
		}
		p := a.Lease.l.place
		if n := len(r.attempts); seen[p] || n > 0 && (size+len(a.Metadata) > maxRequest ||
			a.member != r.attempts[0].member || a.generation != r.attempts[0].generation) {
			seen[p] = true
			rest = append(rest, a)
			continue
		}
		// F8: the last look before it leaves. Checked per attempt, because a
		// partition may have been revoked while it queued.
		if now, err := a.Lease.l.standing(); err != nil || now.generation != a.generation || now.member != a.member {
			a.result <- errStanding
			continue
		}
		seen[p] = true
		size += len(a.Metadata) + 64
		r.attempts = append(r.attempts, a)
	}
	g.queue = rest
	if len(r.attempts) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(g.ctx)
	r.cancel, r.waiting = cancel, len(r.attempts)
	for _, a := range r.attempts {
		a.request = r
	}
	return r, ctx
}

// send makes one OffsetCommit of the attempts. kgo finds the coordinator, and
// finds it again when it has moved.
func (g *Group) send(ctx context.Context, r *request) {
	defer r.cancel()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = g.group
	req.MemberID = r.attempts[0].member
	req.Generation = r.attempts[0].generation
	req.InstanceID = g.instance
	for _, a := range r.attempts {
		i := slices.IndexFunc(req.Topics, func(t kmsg.OffsetCommitRequestTopic) bool { return t.Topic == a.Topic && t.TopicID == a.TopicID })
		if i < 0 {
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic, t.TopicID = a.Topic, a.TopicID // the name up to v9, the id from v10
			req.Topics = append(req.Topics, t)
			i = len(req.Topics) - 1
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch = a.Partition, a.Offset, a.LeaderEpoch
		p.Metadata = &a.Metadata
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	resp, err := req.RequestWith(ctx, g.cl)
	if err != nil {
		for _, a := range r.attempts {
			a.result <- err
		}
		return
	}
	for _, a := range r.attempts {
		a.result <- answer(resp, a)
	}
}

// answer finds what the coordinator said to one attempt.
func answer(resp *kmsg.OffsetCommitResponse, a *attempt) error {
	for _, t := range resp.Topics {
		if t.Topic != a.Topic && (t.TopicID == [16]byte{} || batcher.TopicID(t.TopicID) != a.TopicID) {
			continue
		}
		for _, p := range t.Partitions {
			if p.Partition == a.Partition {
				return kerr.ErrorForCode(p.ErrorCode)
			}
		}
	}
	return fmt.Errorf("the coordinator's answer leaves %s/%d out", a.Topic, a.Partition)
}
