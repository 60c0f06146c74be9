package offsets

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrFenced says that a commit under this lease can never succeed: the
// partition was taken away, or the member is no longer of the group. The
// worker stops; what it had in flight is settled by the next owner. A commit
// that was under way when the lease ended may have been applied.
var ErrFenced = errors.New("fenced")

// Membership is what a group client knows of itself; *kgo.Client has it.
type Membership interface {
	GroupMetadata() (memberID string, generation int32)
}

type place struct {
	topic     string
	partition int32
}

func (p place) String() string { return fmt.Sprintf("%s/%d", p.topic, p.partition) }

// Leases keeps under which member and generation each partition is held.
// The consuming shell reports the group callbacks of kgo to it:
//
//	OnPartitionsAssigned -> Assigned, also with an empty map
//	OnPartitionsRevoked  -> Revoked, before it waits for the workers
//	OnPartitionsLost     -> Lost, before it waits for the workers
//	OnOffsetsFetched     -> OffsetsFetched
//
// The generation is read in OnPartitionsAssigned and nowhere earlier: kgo
// already tells the new one when JoinGroup has answered, while a partition
// that the assignment to come takes away still looks held. kgo calls
// OnPartitionsAssigned once in every session, after the revocations of that
// session, and starts no other join until it has returned.
type Leases struct {
	mu     sync.Mutex
	member Membership
	held   map[place]*lease
}

// NewLeases returns an empty table.
func NewLeases() *Leases { return &Leases{held: map[place]*lease{}} }

// Lease is the right to commit one partition. The zero value holds nothing.
// It stays the same through rebalances that leave the partition where it is.
type Lease struct{ l *lease }

type lease struct {
	place
	in     *Leases
	ctx    context.Context // ends when the partition is lost, its cause says why
	cancel context.CancelCauseFunc

	// guarded by in.mu
	member     string
	generation int32
	renewed    chan struct{} // closed at each renewal, and replaced
	refused    bool          // the broker doesn't know this member any more
	floor      int64         // no commit goes below

	fetched   chan struct{} // closed once the next two are set
	once      sync.Once
	committed Committed
	fetchErr  error
}

// Context ends when the lease does; context.Cause tells why, wrapping ErrFenced.
func (l Lease) Context() context.Context {
	if l.l == nil {
		return ended
	}
	return l.l.ctx
}

var ended = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fmt.Errorf("no lease: %w", ErrFenced))
	return ctx
}()

// Held tells whether the partition is still ours, as far as this member knows.
func (l Lease) Held() bool { return l.l != nil && l.l.ctx.Err() == nil }

// Generation is the generation of the last renewal.
func (l Lease) Generation() int32 {
	if l.l == nil {
		return -1
	}
	l.l.in.mu.Lock()
	defer l.l.in.mu.Unlock()
	return l.l.generation
}

// Committed waits for what the group had committed when the partition was
// assigned; kgo reads it before the first fetch.
func (l Lease) Committed(ctx context.Context) (Committed, error) {
	if l.l == nil {
		return Committed{}, context.Cause(ended)
	}
	select {
	case <-l.l.fetched:
		return l.l.committed, l.l.fetchErr
	default:
	}
	select {
	case <-l.l.fetched:
		return l.l.committed, l.l.fetchErr
	case <-l.l.ctx.Done():
		return Committed{}, context.Cause(l.l.ctx)
	case <-ctx.Done():
		return Committed{}, fmt.Errorf("wait for the committed offset of %s: %w", l.l.place, context.Cause(ctx))
	}
}

// Lease returns the lease of a partition, if it is held.
func (ls *Leases) Lease(topic string, partition int32) (Lease, bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.held[place{topic, partition}]
	return Lease{l}, l != nil
}

// Held lists what is held.
func (ls *Leases) Held() map[string][]int32 {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	all := map[string][]int32{}
	for p := range ls.held {
		all[p.topic] = append(all[p.topic], p.partition)
	}
	return all
}

// Assigned gives out leases for what was added and renews the others.
//
// It returns the partitions whose hold was broken although kgo counts them as
// kept: the member was thrown out of the group and joined again under another
// id without a word to the callbacks. (A pause during a rebalance does it:
// JoinGroup answers UNKNOWN_MEMBER_ID, kgo joins anew at once and claims what
// it had. Another member may have owned, inserted and committed meanwhile.)
// Their old leases have ended and new ones are given out, but kgo neither
// fetches their offsets again nor moves its position. The shell must stop
// their workers, hand what Group.Refetch returns to the client's SetOffsets
// between a poll and AllowRebalance, and start them again.
func (ls *Leases) Assigned(m Membership, added map[string][]int32) (broken map[string][]int32) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.member = m
	member, generation := m.GroupMetadata()
	for topic, partitions := range added {
		for _, n := range partitions {
			p := place{topic, n}
			if old := ls.held[p]; old != nil {
				old.end("it was assigned again")
			}
			ls.held[p] = ls.newLease(p, member, generation)
		}
	}
	for p, l := range ls.held {
		switch {
		case l.member == member && !l.refused:
			l.renew(generation)
		default:
			l.end("the group had thrown this member out")
			ls.held[p] = ls.newLease(p, member, generation)
			if broken == nil {
				broken = map[string][]int32{}
			}
			broken[p.topic] = append(broken[p.topic], p.partition)
		}
	}
	return broken
}

func (ls *Leases) newLease(p place, member string, generation int32) *lease {
	l := &lease{place: p, in: ls, member: member, generation: generation, renewed: make(chan struct{}), fetched: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// renew is called with in.mu held.
func (l *lease) renew(generation int32) {
	if l.generation == generation {
		return
	}
	l.generation = generation
	close(l.renewed)
	l.renewed = make(chan struct{})
}

func (l *lease) end(why string) { l.cancel(fmt.Errorf("%s: %s: %w", l.place, why, ErrFenced)) }

// Revoked ends the leases of partitions that go to another member.
func (ls *Leases) Revoked(gone map[string][]int32) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for topic, partitions := range gone {
		for _, n := range partitions {
			p := place{topic, n}
			if l := ls.held[p]; l != nil {
				l.end("revoked")
				delete(ls.held, p)
			}
		}
	}
}

// Lost ends every lease: this member's session is over. The map that kgo
// passes is the whole assignment; what it should ever leave out is no less lost.
func (ls *Leases) Lost(map[string][]int32) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.held {
		l.end("lost, the member's session is over")
	}
	clear(ls.held)
}

// OffsetsFetched is the hook for kgo.OnOffsetsFetched. kgo calls it for every
// assignment that added partitions, after Assigned and before their first
// fetch. (When a rebalance cuts the read short, kgo reads those partitions
// again in the next session, where they are no longer "added".)
func (ls *Leases) OffsetsFetched(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	for i := range resp.Groups {
		for _, t := range resp.Groups[i].Topics {
			if t.Topic == "" {
				return fmt.Errorf("the committed offsets of topic id %x came without a topic name", t.TopicID)
			}
			for _, p := range t.Partitions {
				ls.deliver(t.Topic, p)
			}
		}
	}
	return nil
}

func (ls *Leases) deliver(topic string, p kmsg.OffsetFetchResponseGroupTopicPartition) {
	ls.mu.Lock()
	l := ls.held[place{topic, p.Partition}]
	ls.mu.Unlock()
	if l == nil {
		return
	}
	l.once.Do(func() {
		l.committed, l.fetchErr = fetchedOffset(topic, p)
		close(l.fetched)
	})
}

// standing is what a commit goes out under.
type standing struct {
	member     string
	generation int32
	renewed    <-chan struct{}
}

// standing returns the present one, or why there is none.
func (l *lease) standing() (standing, error) {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if err := l.ctx.Err(); err != nil {
		return standing{}, context.Cause(l.ctx)
	}
	if l.refused {
		return standing{}, fmt.Errorf("%s: the group doesn't know this member any more: %w", l.place, ErrFenced)
	}
	return standing{l.member, l.generation, l.renewed}, nil
}

// refuse notes the broker's final word on the member. The lease itself ends
// when kgo has heard it too (its next heartbeat), and doesn't survive a session
// that starts without that.
func (l *lease) refuse() {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	l.refused = true
}

// follow takes the member's present epoch for the lease: under the server-side
// protocol (KIP-848) epochs move in heartbeats, without callbacks. It is safe
// because kgo reports a loss before it takes another epoch: the epoch read
// *before* the lease is found held belongs to the time of that hold.
func (ls *Leases) follow(l *lease) {
	ls.mu.Lock()
	m := ls.member
	ls.mu.Unlock()
	if m == nil {
		return
	}
	member, epoch := m.GroupMetadata()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.ctx.Err() == nil && l.member == member && epoch > l.generation {
		l.renew(epoch)
	}
}
