package testenv

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMain(m *testing.M) { Main(m) }

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestEngineKeepsAddressAndDataOverKill(t *testing.T) {
	ctx := within(t, time.Minute)
	e := Engine(t)
	do := func(sql string) {
		t.Helper()
		conn, err := ch.Dial(ctx, ch.Options{Address: e.Addr, Database: e.Database})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if err := conn.Do(ctx, ch.Query{Body: sql}); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	do("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a")
	do("INSERT INTO t SELECT number FROM numbers(10)")
	e.Kill()
	e.Start()
	do("INSERT INTO FUNCTION null('c UInt8') SELECT throwIf(count() != 10) FROM t")
	e.Stop()
	e.Start()
	do("INSERT INTO FUNCTION null('c UInt8') SELECT throwIf(count() != 10) FROM t")
	e.Pause()
	paused, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if conn, err := ch.Dial(paused, ch.Options{Address: e.Addr}); err == nil {
		_ = conn.Close()
		t.Fatal("a paused engine answered")
	}
	e.Resume()
	do("TRUNCATE TABLE t")
}

func TestSharedEngineGivesEachTestItsDatabase(t *testing.T) {
	one, two := SharedEngine(t), SharedEngine(t)
	if one.Addr != two.Addr || one.Database == two.Database {
		t.Fatalf("%+v and %+v", one, two)
	}
}

func TestRedisKeepsKeysOverRestart(t *testing.T) {
	ctx := within(t, time.Minute)
	r := Redis(t)
	client := redis.NewClient(&redis.Options{Addr: r.Addr, MaxRetries: 20})
	defer func() { _ = client.Close() }()
	if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	r.Start()
	if got, err := client.Get(ctx, "k").Result(); err != nil || got != "v" {
		t.Fatalf("got %q, %v", got, err)
	}
	if policy, err := client.ConfigGet(ctx, "maxmemory-policy").Result(); err != nil || policy["maxmemory-policy"] != "noeviction" {
		t.Fatalf("policy %v, %v", policy, err)
	}
}

func TestSentinelsPromoteTheReplica(t *testing.T) {
	s := RedisSentinel(t)
	ctx := within(t, 2*time.Minute)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Name, SentinelAddrs: s.Addrs, MaxRetries: 100})
	defer func() { _ = client.Close() }()
	if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	old := s.Master()
	old.Kill()
	await(t, ctx, "another master", func() (string, bool) {
		now := s.Master()
		return now.Addr, now != old
	})
	await(t, ctx, "the key on the promoted replica", func() (string, bool) {
		got, err := client.Get(ctx, "k").Result()
		return got, err == nil && got == "v"
	})
	old.Start()
	// It comes back as the replica of the new master; where the machine is so busy that the new one is late for the sentinels, the two have changed places once more.
	await(t, ctx, "one replica beside one master", func() (string, bool) {
		roles := map[string]int{}
		for _, node := range s.Nodes {
			c := redis.NewClient(&redis.Options{Addr: node.Addr, MaxRetries: -1})
			said, _ := c.Info(ctx, "replication").Result()
			_ = c.Close()
			for role := range strings.FieldsSeq(said) {
				roles[role]++
			}
		}
		return fmt.Sprint(roles), roles["role:master"] == 1 && roles["role:slave"] == 1 && roles["master_link_status:up"] == 1
	})
}

func TestClusterSpreadsKeys(t *testing.T) {
	ctx := within(t, time.Minute)
	c := RedisCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs[:1]})
	defer func() { _ = client.Close() }()
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := client.Set(ctx, key, key, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, addr := range c.Addrs {
		node := redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = node.Close() }()
		if n, err := node.DBSize(ctx).Result(); err != nil || n == 0 || n == 6 {
			t.Errorf("%s holds %d of 6 keys, %v", addr, n, err)
		}
	}
}

// checkGroup produces, consumes in a group and commits with metadata, then reads all of it back.
func checkGroup(t *testing.T, ctx context.Context, addr, topic, group string, want int) {
	t.Helper()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group), kgo.DisableAutoCommit(),
		kgo.AllowAutoTopicCreation(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseAllowingRebalance()
	for range want {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for got := 0; got < want; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		got += fetches.NumRecords()
	}
	admin := kadm.NewClient(client)
	const intent = "our intent"
	withIntent := kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		req.Topics[0].Partitions[0].Metadata = kmsg.StringPtr(intent)
		return nil
	})
	var commitErr error
	client.CommitOffsetsSync(withIntent, client.UncommittedOffsets(), func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if commitErr = err; err == nil {
			commitErr = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
		}
	})
	if commitErr != nil {
		t.Fatal(commitErr)
	}
	fetched, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := fetched.Lookup(topic, 0); !ok || at.At != int64(want) || at.Metadata != intent {
		t.Fatalf("committed %+v, want %d", at, want)
	}
	topics, err := admin.ListTopics(ctx, topic)
	if err != nil || topics[topic].ID == (kadm.TopicID{}) {
		t.Fatalf("topic %s has no id: %v", topic, err)
	}
}

func TestKafkaKeepsTopicsOverKillAndStop(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	k := Kafka(t)
	checkGroup(t, ctx, k.Addr, "t", "g", 3)
	k.Kill()
	k.Start()
	k.Stop()
	k.Start()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, "t")
	if at, ok := ends.Lookup("t", 0); err != nil || !ok || at.Offset != 3 {
		t.Fatalf("end offset %+v, %v", at, err)
	}
}

func TestSharedKafkaServesGroups(t *testing.T) {
	checkGroup(t, within(t, time.Minute), SharedKafka(t), Name(t, "topic"), Name(t, "group"), 2)
}

func TestKFakeServesGroups(t *testing.T) {
	checkGroup(t, within(t, time.Minute), KFake(t).Addr, "t", "g", 2)
}
