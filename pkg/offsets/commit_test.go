package offsets

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/testenv"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestCommitIsWhatTheNextOwnerReads(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, addr string) {
		name, id := topic(t, addr, 2)
		group := testenv.Name(t, "group")
		intent, err := golden[1].in.Encode()
		if err != nil {
			t.Fatal(err)
		}
		a := join(t, addr, group, name, id)
		a.held(2)
		if got, err := a.lease(0).Committed(deadline(t)); err != nil || got != (Committed{Offset: -1, LeaderEpoch: -1}) {
			t.Fatalf("before any commit: %+v, %v", got, err)
		}
		if err := a.commit(a.lease(0), 0, 17, intent); err != nil {
			t.Fatal(err)
		}
		a.group.Close()
		a.cl.Close()

		b := join(t, addr, group, name, id)
		b.held(2)
		got, err := b.lease(0).Committed(deadline(t))
		if err != nil || got.Offset != 17 || got.Metadata != intent {
			t.Fatalf("the next owner reads %+v, %v", got, err)
		}
		if got, err := b.lease(1).Committed(deadline(t)); err != nil || got.Offset != -1 {
			t.Fatalf("a partition without commit: %+v, %v", got, err)
		}
		c := NewCluster(client(t, addr))
		if got, err := c.Committed(deadline(t), group, id, 0); err != nil || got.Offset != 17 || got.Metadata != intent {
			t.Fatalf("a stranger who asks by topic id reads %+v, %v", got, err)
		}
	})
}

// TestLiveMemberMayNotCommitWhatItLost is F8: the broker would take the commit.
func TestLiveMemberMayNotCommitWhatItLost(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		name, id := topic(t, addr, 4)
		group := testenv.Name(t, "group")
		a := join(t, addr, group, name, id)
		old := map[int32]Lease{}
		for _, p := range a.held(4) {
			old[p] = a.lease(p)
		}
		b := join(t, addr, group, name, id)
		theirs := b.held(2)
		a.held(2)
		moved := theirs[0]
		if err := b.commit(b.lease(moved), moved, 50, "b's"); err != nil {
			t.Fatal(err)
		}
		if err := a.commit(old[moved], moved, 40, "a's"); !errors.Is(err, ErrFenced) {
			t.Fatalf("a committed what it had lost: %v", err)
		}
		if got := committedNow(t, addr, group, name, moved); got.Offset != 50 {
			t.Fatalf("committed is %+v", got)
		}
		// The same over the wire, without the lease: nothing else stops it.
		member, generation := a.cl.GroupMetadata()
		if code := rawCommit(t, a, member, generation, moved, 40); code != 0 {
			t.Fatalf("the broker refused with %v: then the lease would not be needed", kerr.ErrorForCode(code))
		}
		if got := committedNow(t, addr, group, name, moved); got.Offset != 40 {
			t.Fatalf("committed is %+v", got)
		}
	})
}

func rawCommit(t testing.TB, m *member, memberID string, generation, partition int32, offset int64) int16 {
	t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = m.group.group, memberID, generation
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic, rt.TopicID = m.topic, m.id
	rp := kmsg.NewOffsetCommitRequestTopicPartition()
	rp.Partition, rp.Offset = partition, offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(deadline(t), m.cl)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Topics[0].Partitions[0].ErrorCode
}

func TestLeaseFollowsItsPartitionThroughRebalances(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		name, id := topic(t, addr, 4)
		group := testenv.Name(t, "group")
		a := join(t, addr, group, name, id)
		before := map[int32]Lease{}
		for _, p := range a.held(4) {
			before[p] = a.lease(p)
		}
		was := before[0].Generation()

		// Commits of all partitions go on, through the rebalance.
		stop := make(chan struct{})
		var wg sync.WaitGroup
		outcome := make([]error, 4)
		for p := range int32(4) {
			wg.Go(func() {
				for offset := int64(1); ; offset++ {
					select {
					case <-stop:
						return
					default:
					}
					if outcome[p] = a.commit(before[p], p, offset, "x"); outcome[p] != nil {
						return
					}
				}
			})
		}
		b := join(t, addr, group, name, id)
		b.held(2)
		kept := a.held(2)
		for _, p := range kept {
			if !before[p].Held() || before[p] != a.lease(p) {
				t.Errorf("the lease of partition %d, which stayed, was replaced", p)
			}
		}
		a.until("renew", func() bool { return before[kept[0]].Generation() > was })
		close(stop)
		wg.Wait()
		for p, err := range outcome {
			if before[int32(p)].Held() && err != nil {
				t.Errorf("partition %d stayed, but a commit failed: %v", p, err)
			}
			if err != nil && !errors.Is(err, ErrFenced) {
				t.Errorf("partition %d: %v, want fenced", p, err)
			}
		}
		for _, p := range kept {
			if err := a.commit(before[p], p, 1<<40, "after"); err != nil {
				t.Errorf("partition %d after the rebalance: %v", p, err)
			}
		}
	})
}

// TestServerSideGroupCommitsUnderItsPresentEpoch: KIP-848 raises epochs in
// heartbeats, without a callback.
func TestServerSideGroupCommitsUnderItsPresentEpoch(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, addr string) {
		name, id := topic(t, addr, 2)
		group := testenv.Name(t, "group")
		next := []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}
		a := join(t, addr, group, name, id, next...)
		a.held(2)
		l := a.lease(0)
		if err := a.commit(l, 0, 1, ""); err != nil {
			t.Fatal(err)
		}
		b := join(t, addr, group, name, id, next...)
		theirs := b.held(1)
		kept := a.held(1)[0]
		if err := a.commit(a.lease(kept), kept, 2, "still a's"); err != nil {
			t.Fatal(err)
		}
		// As if a heartbeat had raised the epoch since the last callback.
		setGeneration(a, a.lease(kept), a.lease(kept).Generation()-1)
		if err := a.commit(a.lease(kept), kept, 3, "still a's"); err != nil {
			t.Fatal(err)
		}
		if err := b.commit(b.lease(theirs[0]), theirs[0], 3, "b's"); err != nil {
			t.Fatal(err)
		}
		if s, err := NewCluster(b.cl).GroupState(deadline(t), group); err != nil || !s.Live() || s.Type != "consumer" || s.Members != 2 {
			t.Fatalf("group state %+v, %v", s, err)
		}
	})
}

// TestOldGenerationWaitsForTheRebalance: ILLEGAL_GENERATION is what a member
// hears between the JoinGroup of the others and its own renewal.
func TestOldGenerationWaitsForTheRebalance(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		name, id := topic(t, addr, 1)
		a := join(t, addr, testenv.Name(t, "group"), name, id)
		a.held(1)
		l := a.lease(0)
		generation := l.Generation()
		setGeneration(a, l, generation-1)
		result := make(chan error, 1)
		go func() { result <- a.commit(l, 0, 5, "") }()
		a.until("wait", func() bool { return len(a.waited) == 1 && strings.Contains(a.waited[0], "ILLEGAL_GENERATION") })
		setGeneration(a, l, generation)
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		a.until("tell that it passed", func() bool { return a.passed == 1 })

		setGeneration(a, l, generation-1)
		go func() { result <- a.commit(l, 0, 6, "") }()
		a.until("wait again", func() bool { return len(a.waited) == 2 })
		a.leases.Revoked(map[string][]int32{name: {0}})
		if err := <-result; !errors.Is(err, ErrFenced) {
			t.Fatalf("the lease ended while it waited: %v", err)
		}
	})
}

func setGeneration(m *member, l Lease, generation int32) {
	m.leases.mu.Lock()
	defer m.leases.mu.Unlock()
	l.l.renew(generation)
}

// evict throws a member out as a session time-out would, at once.
func evict(t testing.TB, m *member, memberID string) {
	t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.group.group, memberID
	rm := kmsg.NewLeaveGroupRequestMember()
	rm.MemberID = memberID
	req.Members = append(req.Members, rm)
	resp, err := req.RequestWith(deadline(t), m.cl)
	if err != nil || resp.ErrorCode != 0 {
		t.Fatal(err, resp)
	}
}

// A member whose session ended while it was busy commits nothing more (field case
// C4).
func TestZombieIsFencedByTheBroker(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		name, id := topic(t, addr, 1)
		group := testenv.Name(t, "group")
		a := join(t, addr, group, name, id)
		a.held(1)
		l := a.lease(0)
		if err := a.commit(l, 0, 10, "alive"); err != nil {
			t.Fatal(err)
		}
		memberID, _ := a.cl.GroupMetadata()
		evict(t, a, memberID)
		if err := a.commit(l, 0, 11, "dead"); !errors.Is(err, ErrFenced) {
			t.Fatalf("a zombie committed: %v", err)
		}
		if err := a.commit(l, 0, 11, "dead"); !errors.Is(err, ErrFenced) {
			t.Fatalf("a zombie committed at the second try: %v", err)
		}
		if got := committedNow(t, addr, group, name, 0); got.Offset != 10 || got.Metadata != "alive" {
			t.Fatalf("committed is %+v", got)
		}
		// kgo hears of it, loses all and joins anew.
		a.until("a new lease", func() bool { now, ok := a.leases.Lease(name, 0); return ok && now != l })
		if l.Held() || !errors.Is(context.Cause(l.Context()), ErrFenced) {
			t.Fatal("the old lease is still held")
		}
		if err := a.commit(a.lease(0), 0, 12, "anew"); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSilentRejoinBreaksTheHold: a member that was thrown out during a
// rebalance joins again under another id, and kgo keeps its partitions and
// positions although another member may have owned them in between.
func TestSilentRejoinBreaksTheHold(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		name, id := topic(t, addr, 1)
		group := testenv.Name(t, "group")
		// Only the rejoin below may tell kgo of the eviction: no heartbeat but
		// the one that it sends early in every session.
		beats := heartbeats{first: make(chan struct{})}
		a := join(t, addr, group, name, id, kgo.HeartbeatInterval(time.Minute), kgo.SessionTimeout(5*time.Minute), kgo.WithHooks(&beats))
		a.held(1)
		<-beats.first
		l := a.lease(0)
		if err := a.commit(l, 0, 10, "before"); err != nil {
			t.Fatal(err)
		}
		memberID, _ := a.cl.GroupMetadata()
		evict(t, a, memberID)
		// Somebody else's time: an owner that came, committed and went.
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: name, Partition: 0, At: 30, LeaderEpoch: -1, Metadata: "another's"})
		if err := kadm.NewClient(client(t, addr)).CommitAllOffsets(deadline(t), group, offsets); err != nil {
			t.Fatal(err)
		}
		a.cl.ForceRebalance()
		a.until("notice the break", func() bool { return a.broken != nil })
		broken := a.takeBroken()
		if len(broken[name]) != 1 || l.Held() {
			t.Fatalf("broken %v, old lease held %v", broken, l.Held())
		}
		if err := a.commit(l, 0, 11, "stale"); !errors.Is(err, ErrFenced) {
			t.Fatalf("committed over another owner's work: %v", err)
		}
		positions, err := a.group.Refetch(deadline(t), a.leases, broken)
		if err != nil || positions[name][0].Offset != 30 {
			t.Fatalf("positions %v, %v", positions, err)
		}
		if got, err := a.lease(0).Committed(deadline(t)); err != nil || got.Offset != 30 || got.Metadata != "another's" {
			t.Fatalf("the new lease reads %+v, %v", got, err)
		}
		if err := a.commit(a.lease(0), 0, 31, "anew"); err != nil {
			t.Fatal(err)
		}
	})
}

type heartbeats struct {
	once  sync.Once
	first chan struct{} // closed when one was answered
}

func (h *heartbeats) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == kmsg.Heartbeat.Int16() {
		h.once.Do(func() { close(h.first) })
	}
}

func TestMetadataOverTheBrokersLimitIsRefusedInWords(t *testing.T) {
	addr := testenv.SharedKafka(t) // the fake server has no limit
	name, id := topic(t, addr, 1)
	a := join(t, addr, testenv.Name(t, "group"), name, id)
	a.held(1)
	limit, assumed := NewCluster(a.cl).MetadataLimit(deadline(t))
	if assumed != nil || limit != DefaultMetadataLimit {
		t.Fatalf("limit %d, %v", limit, assumed)
	}
	if err := a.commit(a.lease(0), 0, 1, strings.Repeat("x", limit)); err != nil {
		t.Fatalf("just at the limit: %v", err)
	}
	err := a.commit(a.lease(0), 0, 2, strings.Repeat("x", limit+1))
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "offset.metadata.max.bytes") {
		t.Fatalf("got %v", err)
	}
}

// A commit by name alone would skip the first records of the new topic (field
// case C12).
func TestCommitsOfTheDeletedTopicDoNotReachItsSuccessor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, addr string) {
		name, id := topic(t, addr, 1)
		group := testenv.Name(t, "group")
		a := join(t, addr, group, name, id)
		a.held(1)
		adm := kadm.NewClient(client(t, addr))
		if _, err := adm.DeleteTopic(deadline(t), name); err != nil {
			t.Fatal(err)
		}
		for { // deletion is asynchronous in the real broker
			resp, err := adm.CreateTopic(deadline(t), 1, 1, nil, name)
			if err == nil && resp.Err == nil {
				break
			}
			if !errors.Is(err, kerr.TopicAlreadyExists) {
				t.Fatal(err, resp.Err)
			}
		}
		err := a.commit(a.lease(0), 0, 100, "of the old topic")
		var refused *RefusedError
		if !errors.As(err, &refused) && !errors.Is(err, ErrFenced) {
			t.Fatalf("got %v", err)
		}
		if got := committedNow(t, addr, group, name, 0); got.Offset != -1 {
			t.Fatalf("the new topic's committed offset is %+v", got)
		}
		if _, err := NewCluster(a.cl).Committed(deadline(t), group, id, 0); !errors.Is(err, ErrTopicGone) {
			t.Fatalf("asking for the old id: %v", err)
		}
	})
}

// An offset goes backwards, and a client commits by itself, only by a mistake in
// the code around it (field cases C6, C22).
func TestMistakesOfTheCallerAreRefused(t *testing.T) {
	addr := testenv.KFake(t).Addr
	name, id := topic(t, addr, 2)
	a := join(t, addr, testenv.Name(t, "group"), name, id)
	a.held(2)
	l := a.lease(0)
	if err := a.commit(l, 0, 10, ""); err != nil {
		t.Fatal(err)
	}
	if err := a.commit(l, 0, 10, "the same offset again"); err != nil {
		t.Fatal(err)
	}
	var back *BackwardsError
	if err := a.commit(l, 0, 9, ""); !errors.As(err, &back) || back.Floor != 10 {
		t.Errorf("backwards: %v", err)
	}
	if err := a.commit(Lease{}, 0, 11, ""); !errors.Is(err, ErrFenced) {
		t.Errorf("no lease: %v", err)
	}
	if err := a.commit(l, 1, 11, ""); err == nil || errors.Is(err, ErrFenced) {
		t.Errorf("another partition's lease: %v", err)
	}
	if err := a.commit(a.lease(1), 1, -1, ""); err == nil {
		t.Error("a negative offset was committed")
	}
	auto := client(t, addr, kgo.ConsumerGroup("g"), kgo.ConsumeTopics(name))
	if _, err := NewGroup(auto, Events{}); err == nil {
		t.Error("a client that commits by itself was accepted")
	}
	if _, err := NewGroup(client(t, addr), Events{}); err == nil {
		t.Error("a client without a group was accepted")
	}
}
