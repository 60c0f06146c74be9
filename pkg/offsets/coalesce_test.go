package offsets

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/testenv"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

// gate holds the first OffsetCommit back in the server and counts them all.
type gate struct {
	arrived, open chan struct{}
	mu            sync.Mutex
	partitions    [][]int32
}

func newGate(k *kfake.Cluster) *gate {
	g := &gate{arrived: make(chan struct{}), open: make(chan struct{})}
	k.ControlKey(kmsg.OffsetCommit.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		g.mu.Lock()
		var ps []int32
		for _, t := range r.(*kmsg.OffsetCommitRequest).Topics {
			for _, p := range t.Partitions {
				ps = append(ps, p.Partition)
			}
		}
		g.partitions = append(g.partitions, ps)
		first := len(g.partitions) == 1
		g.mu.Unlock()
		if first {
			close(g.arrived)
			k.SleepControl(func() { <-g.open })
		}
		return nil, nil, false
	})
	return g
}

func (g *gate) seen() [][]int32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.partitions)
}

// queued waits until that many commits wait for the request in flight.
func (m *member) queued(n int) {
	m.t.Helper()
	ctx := deadline(m.t)
	for {
		m.group.mu.Lock()
		have := len(m.group.queue)
		m.group.mu.Unlock()
		if have == n {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			m.t.Fatalf("%d commits queue, want %d", have, n)
		}
	}
}

func TestCommitsThatArriveTogetherTravelTogether(t *testing.T) {
	t.Parallel()
	k := testenv.KFake(t)
	name, id := topic(t, k.Addr, 8)
	a := join(t, k.Addr, testenv.Name(t, "group"), name, id)
	a.held(8)
	g := newGate(k.Cluster)
	results := make(chan error, 8)
	send := func(p int32) {
		l := a.lease(p)
		go func() { results <- a.commit(l, p, 100+int64(p), "m") }()
	}
	send(0)
	<-g.arrived // left at once, alone
	for p := int32(1); p < 8; p++ {
		send(p)
	}
	a.queued(7)
	close(g.open)
	for range 8 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	seen := g.seen()
	if len(seen) != 2 || len(seen[0]) != 1 || len(seen[1]) != 7 {
		t.Errorf("requests %v, want one with 1 partition and one with 7", seen)
	}
	all, err := NewCluster(a.cl).CommittedAll(deadline(t), a.group.group)
	if err != nil {
		t.Fatal(err)
	}
	for p := range int32(8) {
		if all[name][p].Offset != 100+int64(p) {
			t.Errorf("partition %d: %+v", p, all[name][p])
		}
	}
}

// TestRevokedWhileQueuedDoesNotLeave: between the call and the request lies
// time in which the partition may go (field case C3).
func TestRevokedWhileQueuedDoesNotLeave(t *testing.T) {
	t.Parallel()
	k := testenv.KFake(t)
	name, id := topic(t, k.Addr, 3)
	a := join(t, k.Addr, testenv.Name(t, "group"), name, id)
	a.held(3)
	g := newGate(k.Cluster)
	results := [3]chan error{}
	for p := range int32(3) {
		results[p] = make(chan error, 1)
		l := a.lease(p)
		go func() { results[p] <- a.commit(l, p, 7, "") }()
		if p == 0 {
			<-g.arrived
		}
	}
	a.queued(2)
	a.leases.Revoked(map[string][]int32{name: {1}})
	if err := <-results[1]; !errors.Is(err, ErrFenced) {
		t.Errorf("revoked while queued: %v", err)
	}
	close(g.open)
	for _, p := range []int{0, 2} {
		if err := <-results[p]; err != nil {
			t.Errorf("partition %d: %v", p, err)
		}
	}
	for _, ps := range g.seen() {
		if slices.Contains(ps, 1) {
			t.Error("the commit of the revoked partition left")
		}
	}
}

// commitsWritten hears of every OffsetCommit that goes out.
type commitsWritten chan struct{}

func (c commitsWritten) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == kmsg.OffsetCommit.Int16() {
		c <- struct{}{}
	}
}

// TestGivenUpCommitDoesNotHoldUpTheNext: nobody waits for the request any more.
func TestGivenUpCommitDoesNotHoldUpTheNext(t *testing.T) {
	t.Parallel()
	k := testenv.KFake(t)
	name, id := topic(t, k.Addr, 1)
	written := make(commitsWritten, 10)
	a := join(t, k.Addr, testenv.Name(t, "group"), name, id, kgo.HeartbeatInterval(time.Minute), kgo.SessionTimeout(5*time.Minute), kgo.WithHooks(written), kgo.RequestTimeoutOverhead(5*time.Minute))
	a.held(1)
	l := a.lease(0)
	g := newGate(k.Cluster)
	ctx, cancel := context.WithCancel(deadline(t))
	first := make(chan error, 1)
	go func() {
		first <- a.group.Commit(ctx, Commit{Topic: name, TopicID: id, Lease: l, Offset: 1, LeaderEpoch: -1})
	}()
	<-g.arrived
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) || errors.Is(err, ErrFenced) {
		t.Fatalf("given up: %v", err)
	}
	second := make(chan error, 1)
	go func() { second <- a.commit(l, 0, 2, "") }()
	for range 2 { // the second leaves although the first is never answered
		select {
		case <-written:
		case <-deadline(t).Done():
			t.Fatal("the second commit waits for the first")
		}
	}
	close(g.open)
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	if got := committedNow(t, k.Addr, a.group.group, name, 0); got.Offset != 2 {
		t.Fatalf("committed is %+v", got)
	}
}

// TestCommitOutlastsEveryPassingTrouble: none of these says that the commit
// can't be made; each is told, and the same commit goes out again (field case
// C18).
func TestCommitOutlastsEveryPassingTrouble(t *testing.T) {
	t.Parallel()
	for _, trouble := range []struct {
		err  *kerr.Error
		told string // part of what the operator reads; empty: kgo repeats by itself
	}{
		{kerr.RebalanceInProgress, "REBALANCE_IN_PROGRESS"},
		{kerr.RequestTimedOut, "REQUEST_TIMED_OUT"},
		{kerr.UnknownServerError, "UNKNOWN_SERVER_ERROR"},
		{kerr.GroupAuthorizationFailed, "lacks the ACL READ on group"},
		{kerr.TopicAuthorizationFailed, "lacks the ACL READ on topic"},
		{kerr.NotCoordinator, ""},
		{kerr.CoordinatorLoadInProgress, ""},
		{kerr.CoordinatorNotAvailable, ""},
		{kerr.UnknownTopicID, "UNKNOWN_TOPIC_ID"},
	} {
		t.Run(trouble.err.Message, func(t *testing.T) {
			t.Parallel()
			k := testenv.KFake(t)
			name, id := topic(t, k.Addr, 1)
			a := join(t, k.Addr, testenv.Name(t, "group"), name, id)
			a.held(1)
			k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: trouble.err, Count: 2})
			if err := a.commit(a.lease(0), 0, 3, "m"); err != nil {
				t.Fatal(err)
			}
			if got := committedNow(t, k.Addr, a.group.group, name, 0); got.Offset != 3 || got.Metadata != "m" {
				t.Errorf("committed is %+v", got)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if trouble.told != "" && (len(a.waited) != 1 || !strings.Contains(a.waited[0], trouble.told) || a.passed != 1) {
				t.Errorf("told %q and %d times that it passed, want %q once", a.waited, a.passed, trouble.told)
			}
		})
	}
}

func TestFencingAnswersAreFinal(t *testing.T) {
	t.Parallel()
	for _, answer := range []*kerr.Error{kerr.UnknownMemberID, kerr.FencedInstanceID, kerr.FencedMemberEpoch} {
		t.Run(answer.Message, func(t *testing.T) {
			t.Parallel()
			k := testenv.KFake(t)
			name, id := topic(t, k.Addr, 1)
			a := join(t, k.Addr, testenv.Name(t, "group"), name, id)
			a.held(1)
			k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: answer, Count: 1})
			for range 2 { // the server would take the second
				if err := a.commit(a.lease(0), 0, 3, ""); !errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), name+"/0") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// TestLostAnswerIsAskedForAgain: the server applied it and the connection died.
func TestLostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	k := testenv.KFake(t)
	name, id := topic(t, k.Addr, 1)
	a := join(t, k.Addr, testenv.Name(t, "group"), name, id)
	a.held(1)
	var mu sync.Mutex
	var metadata []string
	k.Cluster.ControlKey(kmsg.OffsetCommit.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		k.Cluster.KeepControl()
		metadata = append(metadata, *r.(*kmsg.OffsetCommitRequest).Topics[0].Partitions[0].Metadata)
		if len(metadata) == 1 {
			return nil, errors.New("cut"), true
		}
		return nil, nil, false
	})
	if err := a.commit(a.lease(0), 0, 3, "same"); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(metadata, []string{"same", "same"}) {
		t.Errorf("sent %q", metadata)
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	k := testenv.KFake(t)
	name, id := topic(t, k.Addr, 1)
	before := goleak.IgnoreCurrent()
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.Addr), kgo.ConsumerGroup("g"), kgo.ConsumeTopics(name), kgo.DisableAutoCommit())
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGroup(cl, Events{})
	if err != nil {
		t.Fatal(err)
	}
	leases := NewLeases()
	leases.Assigned(fixed{"m", 1}, map[string][]int32{name: {0}})
	l, _ := leases.Lease(name, 0)
	// Nothing renews this lease: the commit would wait for ever.
	k.Cluster.ControlKey(kmsg.OffsetCommit.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster.KeepControl()
		resp := r.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, rt := range r.(*kmsg.OffsetCommitRequest).Topics {
			t := kmsg.NewOffsetCommitResponseTopic()
			t.Topic, t.TopicID = rt.Topic, rt.TopicID
			p := kmsg.NewOffsetCommitResponseTopicPartition()
			p.ErrorCode = kerr.IllegalGeneration.Code
			t.Partitions = append(t.Partitions, p)
			resp.Topics = append(resp.Topics, t)
		}
		return resp, nil, true
	})
	waiting := make(chan struct{}, 100)
	g.events.Waiting = func(string, int32, error) { waiting <- struct{}{} }
	result := make(chan error, 1)
	go func() {
		result <- g.Commit(deadline(t), Commit{Topic: name, TopicID: id, Lease: l, Offset: 1, LeaderEpoch: -1})
	}()
	<-waiting
	g.Close()
	if err := <-result; err == nil || errors.Is(err, ErrFenced) {
		t.Errorf("a commit under way at Close: %v", err)
	}
	cl.Close()
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).write"))
}

// fixed is a membership as kgo would tell it.
type fixed struct {
	member     string
	generation int32
}

func (f fixed) GroupMetadata() (string, int32) { return f.member, f.generation }

func TestLeaseTable(t *testing.T) {
	two := map[string][]int32{"t": {0, 1}}
	cases := []struct {
		name    string
		then    func(*Leases) map[string][]int32
		held    bool  // whether the lease of t/0 given out at first is still held
		now     bool  // whether t/0 is held under any
		gen     int32 // of the present lease
		whether string
	}{
		{"an empty assignment renews", func(l *Leases) map[string][]int32 { return l.Assigned(fixed{"m", 8}, nil) }, true, true, 8, ""},
		{"others come, this stays", func(l *Leases) map[string][]int32 { return l.Assigned(fixed{"m", 8}, map[string][]int32{"u": {0}}) }, true, true, 8, ""},
		{"revoked", func(l *Leases) map[string][]int32 { l.Revoked(map[string][]int32{"t": {0}}); return nil }, false, false, 0, ""},
		{"another is revoked", func(l *Leases) map[string][]int32 { l.Revoked(map[string][]int32{"t": {1}, "u": {0}}); return nil }, true, true, 7, ""},
		{"lost, and the map leaves it out", func(l *Leases) map[string][]int32 { l.Lost(nil); return nil }, false, false, 0, ""},
		{"eager: all revoked, all assigned", func(l *Leases) map[string][]int32 { l.Revoked(two); return l.Assigned(fixed{"m", 8}, two) }, false, true, 8, ""},
		{"another member id without a word", func(l *Leases) map[string][]int32 { return l.Assigned(fixed{"n", 9}, nil) }, false, true, 9, "broken"},
		{"assigned twice", func(l *Leases) map[string][]int32 { return l.Assigned(fixed{"m", 8}, two) }, false, true, 8, ""},
		{"refused by the broker, and no loss told", func(l *Leases) map[string][]int32 {
			lease, _ := l.Lease("t", 0)
			lease.l.refuse()
			return l.Assigned(fixed{"m", 8}, nil)
		}, false, true, 8, "broken"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ls := NewLeases()
			if broken := ls.Assigned(fixed{"m", 7}, two); broken != nil {
				t.Fatalf("broken at first: %v", broken)
			}
			first, _ := ls.Lease("t", 0)
			broken := c.then(ls)
			now, ok := ls.Lease("t", 0)
			if first.Held() != c.held || ok != c.now || ok && now.Generation() != c.gen || (c.held && now != first) {
				t.Errorf("held %v, now %v under %d", first.Held(), ok, now.Generation())
			}
			if (len(broken["t"]) > 0) != (c.whether == "broken") {
				t.Errorf("broken: %v", broken)
			}
			if !first.Held() && !errors.Is(context.Cause(first.Context()), ErrFenced) {
				t.Errorf("the cause is %v", context.Cause(first.Context()))
			}
		})
	}
}
