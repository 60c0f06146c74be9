package dedup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncesink/oncesink/internal/testenv"
)

// A failover to a replica, and claims that only the old master had (field case
// D4).
func TestSentinelFailoverRaisesTheEpoch(t *testing.T) {
	env := testenv.RedisSentinel(t)
	cfg := Config{Mode: "sentinel", Master: env.Name, Addresses: env.Addrs}
	if list := codes(Check(t.Context(), cfg), SeverityError); list != nil {
		t.Fatal(list)
	}
	s, err := Open(t.Context(), cfg, testDomain, quietHooks(), Events{})
	must(t, err)
	defer func() { _ = s.Close() }()
	if got := s.head.Load().cutoff; got != 1000+cronSlack {
		t.Fatalf("cut-off time %d ms, want min-replicas-max-lag and the cron's slack", got)
	}
	b := &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 20, 0)}
	before := claimed(t, s, b)
	must(t, s.StartRun(t.Context(), source0(0), 0))
	must(t, s.Publish(t.Context(), source0(0), 0, 20, before.Ticket, true))
	env.Master().Kill()
	b.Nonce = 2
	r := &Reply{}
	sawHold := false
	for end := time.Now().Add(40 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := s.Claim(t.Context(), b, r)
		if err == nil {
			break
		}
		var hold *Quarantine
		sawHold = sawHold || errors.As(err, &hold)
		var unfit *Unfit
		if errors.As(err, &unfit) || time.Now().After(end) {
			t.Fatal(err)
		}
		var wait *Waiting
		if errors.As(err, &wait) && strings.Contains(wait.Reason, "min-replicas-to-write") {
			free(t, env) // the new master has no replica in this test
		}
	}
	if !sawHold || r.Ticket.Equal(before.Ticket) {
		t.Fatal("the replica took over without a quarantine and another epoch")
	}
	if run, err := s.Acked(t.Context(), source0(0)); err != nil || run.Known {
		t.Fatalf("acked outlived the failover: %+v %v", run, err)
	}
}

// free lets a master without replicas write.
func free(t *testing.T, env *testenv.Sentinels) {
	c := redis.NewClient(&redis.Options{Addr: env.Master().Addr, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	must(t, c.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
}

func TestSentinelWithoutMinReplicasIsUnfit(t *testing.T) {
	env := testenv.RedisSentinel(t)
	free(t, env)
	cfg := Config{Mode: "sentinel", Master: env.Name, Addresses: env.Addrs}
	if list := codes(Check(t.Context(), cfg), SeverityError); !slices.Equal(list, []string{"redis_min_replicas"}) {
		t.Fatal(list)
	}
	var unfit *Unfit
	if _, err := Open(t.Context(), cfg, testDomain, quietHooks(), Events{}); !errors.As(err, &unfit) || !strings.Contains(unfit.Cure, "min-replicas-to-write") {
		t.Fatal(err)
	}
}

// A cluster: every hash-tag group for itself. One node lost answers nothing of
// the batch (field case D7) and voids the claims of its groups and no others; a
// call over all slots is no CROSSSLOT, and no node has most of them (field case
// D11).
func TestClusterGroupsStandForThemselves(t *testing.T) {
	env := testenv.RedisCluster(t)
	cfg := Config{Mode: "cluster", Addresses: env.Addrs}
	if list := codes(Check(t.Context(), cfg), SeverityError); list != nil {
		t.Fatal(list)
	}
	if list := codes(Check(t.Context(), Config{Addresses: env.Addrs[:1]}), SeverityError); !slices.Contains(list, "redis_mode") {
		t.Fatalf("a cluster node as a standalone server: %v", list)
	}
	open := func(change func(*Config)) *Store {
		c := cfg
		if change != nil {
			change(&c)
		}
		s, err := Open(t.Context(), c, testDomain, quietHooks(), Events{})
		must(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open(nil)
	if s.Groups() != clusterGroups || s.head.Load().cutoff != 2000+cronSlack {
		t.Fatalf("%d groups, cut-off %d ms", s.Groups(), s.head.Load().cutoff)
	}
	if other := open(func(c *Config) { c.Groups = 4 }); other.Groups() != clusterGroups {
		t.Fatal("another sink works with another number of groups")
	}
	var sizes []int64
	const keys = 12_000
	src := source0(0)
	all := &Batch{Source: src, Nonce: 1, Items: numbered(0, keys)}
	before := claimed(t, s, all)
	wantVerdicts(t, "over all nodes", before, strings.Repeat("N", keys))
	must(t, s.StartRun(t.Context(), src, 0))
	must(t, s.Publish(t.Context(), src, 0, keys, before.Ticket, false))
	wantVerdicts(t, "another partition", claimed(t, s, &Batch{Source: source0(1), Nonce: 1, Items: numbered(0, keys)}), strings.Repeat("S", keys))

	for _, node := range env.Nodes {
		c := redis.NewClient(&redis.Options{Addr: node.Addr})
		n, err := c.DBSize(t.Context()).Result()
		_ = c.Close()
		sizes = append(sizes, n)
		must(t, err)
	}
	if all := sizes[0] + sizes[1] + sizes[2]; slices.Max(sizes) > all*2/3 || slices.Min(sizes) < all/8 {
		t.Errorf("the nodes hold %d of %d stored keys", sizes, all)
	}
	// One key touches one group; its ticket says so.
	one := claimed(t, s, &Batch{Source: src, First: keys, Nonce: 2, Items: numbered(keys, 1)})
	touched := 0
	for _, epoch := range one.Ticket.epochs {
		if epoch != 0 {
			touched++
		}
	}
	if touched != 1 || !before.Ticket.Holds(one.Ticket) || one.Ticket.Holds(before.Ticket) {
		t.Fatalf("ticket of one key touches %d groups", touched)
	}
	must(t, s.Publish(t.Context(), src, 0, keys+1, one.Ticket, false))
	if run, err := s.Acked(t.Context(), src); err != nil || run != (Run{0, keys, true}) {
		t.Fatalf("what all groups agree on: %+v %v", run, err)
	}
	must(t, s.Publish(t.Context(), src, 0, keys+1, one.Ticket, true))
	if run, err := s.Acked(t.Context(), src); err != nil || run != (Run{0, keys + 1, true}) {
		t.Fatalf("at idle: %+v %v", run, err)
	}

	env.Nodes[1].Kill()
	all.Nonce = 3
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	if err := s.Claim(ctx, all, &Reply{}); err == nil {
		t.Fatal("a shard is down and the batch was answered")
	}
	cancel()
	env.Nodes[1].Start()
	after := &Reply{}
	var err error
	for range 400 {
		if err = s.Claim(t.Context(), all, after); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	must(t, err)
	same, changed := 0, 0
	for g := range s.Groups() {
		if after.Ticket.epochs[g] == before.Ticket.epochs[g] {
			same++
		} else {
			changed++
		}
	}
	if same == 0 || changed == 0 {
		t.Fatalf("%d groups kept their epoch, %d changed it", same, changed)
	}
	for i, a := range after.Answers {
		if a.Verdict != Mine {
			t.Fatalf("key %d after the node came back with its data: %v", i, a.Verdict)
		}
	}
	var epoch *EpochChanged
	if err := s.Publish(t.Context(), src, 0, keys+5, before.Ticket, false); !errors.As(err, &epoch) || len(epoch.Groups) != changed {
		t.Fatalf("groups that changed must answer so, and only they: %v", err)
	}
	// In the groups that kept their epoch the run holds; in the others it begins
	// with the first claim under the new one.
	must(t, s.Publish(t.Context(), src, 0, keys+6, after.Ticket, true))
	r := claimed(t, s, &Batch{Source: source0(1), Nonce: 9, Items: numbered(0, keys)})
	wantVerdicts(t, "claimed afresh from offset 0 on", r, strings.Repeat("S", keys))
}

// A slot on its way to another node: no claim is answered as new while its
// bucket may lie on the other side.
func TestAMigratingSlotAnswersNothingNew(t *testing.T) {
	env := testenv.RedisCluster(t)
	s, err := Open(t.Context(), Config{Mode: "cluster", Addresses: env.Addrs, Groups: 1}, testDomain, quietHooks(), Events{})
	must(t, err)
	defer func() { _ = s.Close() }()
	s.Expect(1)
	b := &Batch{Source: source0(0), Nonce: 1, Items: numbered(0, 50)}
	before := claimed(t, s, b)
	wantVerdicts(t, "before", before, strings.Repeat("N", 50))

	ctx := context.Background()
	clients := make([]*redis.Client, len(env.Addrs))
	ids := make([]string, len(env.Addrs))
	for i, addr := range env.Addrs {
		clients[i] = redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = clients[i].Close() }()
		ids[i] = clients[i].Do(ctx, "cluster", "myid").Val().(string)
	}
	marker := markerKey("db.events", 0)
	slot := clients[0].ClusterKeySlot(ctx, marker).Val()
	from := int(slot) * 3 / 16384
	to := (from + 1) % 3
	must(t, clients[to].Do(ctx, "cluster", "setslot", slot, "importing", ids[from]).Err())
	must(t, clients[from].Do(ctx, "cluster", "setslot", slot, "migrating", ids[to]).Err())
	host, port, _ := strings.Cut(env.Addrs[to], ":")
	keys := clients[from].Do(ctx, "cluster", "getkeysinslot", slot, 1000).Val().([]any)
	ask := &Batch{Source: source0(1), Nonce: 1, Items: b.Items}
	never := func(when string) {
		t.Helper()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		r := &Reply{}
		if s.Claim(short, ask, r) == nil && strings.Trim(letters(r), "D") != "" {
			t.Fatalf("%s: %s", when, letters(r))
		}
	}
	never("migrating, nothing moved")
	slices.SortFunc(keys, func(a, b any) int { // the marker first: the other node is asked then
		return strings.Compare(fmt.Sprint(b == any(marker)), fmt.Sprint(a == any(marker)))
	})
	for _, key := range keys {
		must(t, clients[from].Do(ctx, "migrate", host, port, key, 0, 5000).Err())
		never(fmt.Sprintf("%s moved", key))
	}
	for _, i := range []int{to, from} {
		must(t, clients[i].Do(ctx, "cluster", "setslot", slot, "node", ids[to]).Err())
	}
	r := claimed(t, s, ask)
	wantVerdicts(t, "after the move", r, strings.Repeat("D", 50))
	if r.Ticket.Equal(before.Ticket) {
		t.Fatal("another node under the same epoch")
	}
}
