package offsets

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/testenv"
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// onBoth runs a test against the fake server and the real broker: where they
// differ, the real one is right, and the fast tests must not lie.
func onBoth(t *testing.T, test func(t *testing.T, addr string)) {
	t.Run("kfake", func(t *testing.T) { t.Parallel(); test(t, testenv.KFake(t).Addr) })
	t.Run("kafka", func(t *testing.T) { t.Parallel(); test(t, testenv.SharedKafka(t)) })
}

func deadline(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func client(t testing.TB, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// topic creates one under a name of its own.
func topic(t testing.TB, addr string, partitions int32) (string, batcher.TopicID) {
	t.Helper()
	name := testenv.Name(t, "topic")
	cl := client(t, addr)
	resp, err := kadm.NewClient(cl).CreateTopic(deadline(t), partitions, 1, nil, name)
	if err != nil || resp.Err != nil {
		t.Fatal(err, resp.Err)
	}
	return name, batcher.TopicID(resp.ID)
}

// member is a group member with its leases and committer, as the shell of the
// pipeline has it.
type member struct {
	t      testing.TB
	cl     *kgo.Client
	leases *Leases
	group  *Group
	topic  string
	id     batcher.TopicID

	mu       sync.Mutex
	sessions int
	broken   map[string][]int32
	waited   []string
	passed   int
	changed  chan struct{} // closed and replaced when anything above changes
}

func join(t testing.TB, addr, group, topicName string, id batcher.TopicID, opts ...kgo.Opt) *member {
	t.Helper()
	m := &member{t: t, leases: NewLeases(), topic: topicName, id: id, changed: make(chan struct{})}
	m.cl = client(t, addr, append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topicName), kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(200 * time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(func(_ context.Context, cl *kgo.Client, added map[string][]int32) {
			broken := m.leases.Assigned(cl, added)
			m.note(func() {
				m.sessions++
				if broken != nil {
					m.broken = broken
				}
			})
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
			m.leases.Revoked(gone)
			m.note(func() {})
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
			m.leases.Lost(lost)
			m.note(func() {})
		}),
		kgo.OnOffsetsFetched(m.leases.OffsetsFetched),
	}, opts...)...)
	g, err := NewGroup(m.cl, Events{
		Waiting: func(_ string, _ int32, why error) { m.note(func() { m.waited = append(m.waited, why.Error()) }) },
		Passed:  func(string, int32) { m.note(func() { m.passed++ }) },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.group = g
	t.Cleanup(g.Close)
	return m
}

func (m *member) note(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}

// until waits for a state of the member.
func (m *member) until(what string, ok func() bool) {
	m.t.Helper()
	ctx := deadline(m.t)
	for {
		m.mu.Lock()
		done, changed := ok(), m.changed
		m.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			m.t.Fatalf("%s: didn't happen; held %v", what, m.leases.Held())
		}
	}
}

// held waits until the member holds that many partitions, and lists them.
func (m *member) held(n int) []int32 {
	m.t.Helper()
	m.until("hold partitions", func() bool { return len(m.leases.Held()[m.topic]) == n })
	return slices.Sorted(slices.Values(m.leases.Held()[m.topic]))
}

func (m *member) lease(partition int32) Lease {
	m.t.Helper()
	l, ok := m.leases.Lease(m.topic, partition)
	if !ok {
		m.t.Fatalf("partition %d is not held, only %v", partition, m.leases.Held())
	}
	return l
}

func (m *member) commit(l Lease, partition int32, offset int64, metadata string) error {
	return m.group.Commit(deadline(m.t), Commit{Topic: m.topic, TopicID: m.id, Partition: partition, Lease: l, Offset: offset, LeaderEpoch: -1, Metadata: metadata})
}

// committedNow reads a partition's commit over a client of its own.
func committedNow(t testing.TB, addr, group, topicName string, partition int32) Committed {
	t.Helper()
	all, err := NewCluster(client(t, addr)).CommittedAll(deadline(t), group)
	if err != nil {
		t.Fatal(err)
	}
	c, ok := all[topicName][partition]
	if !ok {
		return Committed{Offset: -1, LeaderEpoch: -1}
	}
	return c
}

func (m *member) takeBroken() map[string][]int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.broken)
}
