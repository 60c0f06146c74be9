package embedded

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func startStack(t *testing.T, dir string) *Stack {
	t.Helper()
	s, err := Start(t.Context(), StackOptions{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

func kafkaClient(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.AllowAutoTopicCreation()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseAllowingRebalance)
	return client
}

// consume reads n records of topic t in group g and commits the next offset with metadata, fenced by the group's generation.
func consume(t *testing.T, addr, metadata string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client := kafkaClient(t, addr, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for got := 0; got < n; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d of %d records, then %v", got, n, err)
		}
		got += fetches.NumRecords()
	}
	withMetadata := kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		req.Topics[0].Partitions[0].Metadata = kmsg.StringPtr(metadata)
		return nil
	})
	if err := client.CommitUncommittedOffsets(withMetadata); err != nil {
		t.Fatal(err)
	}
	client.CloseAllowingRebalance()
}

func produce(t *testing.T, addr string, n int) {
	t.Helper()
	client := kafkaClient(t, addr)
	for i := range n {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// kafkaState is everything of Kafka that a sink builds on.
func kafkaState(t *testing.T, addr string) string {
	t.Helper()
	client := kafkaClient(t, addr)
	admin := kadm.NewClient(client)
	meta, err := admin.Metadata(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	ends, err := admin.ListEndOffsets(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup("t", 0)
	committed, err := admin.FetchOffsets(t.Context(), "g")
	if err != nil {
		t.Fatal(err)
	}
	at, _ := committed.Lookup("t", 0)
	return fmt.Sprintf("cluster %s topic %v end %d committed %d %q", meta.Cluster, meta.Topics["t"].ID, end.Offset, at.At, at.Metadata)
}

func TestStackKeepsAllStateOverStopAndKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := startStack(t, dir)
	produce(t, s.Kafka.Addr, 5)
	consume(t, s.Kafka.Addr, "intent", 5)
	before := kafkaState(t, s.Kafka.Addr)
	if !strings.HasSuffix(before, `end 5 committed 5 "intent"`) || strings.Contains(before, "AAAAAAAAAAAAAAAAAAAAAA") {
		t.Fatalf("state %s", before)
	}
	conn := dial(t, s.Engine.TCPAddr, ch.Options{Database: DefaultDatabase})
	exec1(t, conn, "CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 100")
	insert(t, conn, "token", 1, 2)
	_ = conn.Close()
	store := redis.NewClient(&redis.Options{Addr: s.Redis.Addr})
	if err := store.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	_ = store.Close()
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	s = startStack(t, dir)
	if after := kafkaState(t, s.Kafka.Addr); after != before {
		t.Errorf("Kafka was\n%s, is\n%s", before, after)
	}
	conn = dial(t, s.Engine.TCPAddr, ch.Options{Database: DefaultDatabase})
	insert(t, conn, "token", 1, 2)
	if n := count(t, conn, "SELECT count() AS n FROM t"); n != 2 {
		t.Errorf("%d rows, want 2: the dedup log was lost", n)
	}
	store = redis.NewClient(&redis.Options{Addr: s.Redis.Addr})
	defer func() { _ = store.Close() }()
	if got, err := store.Get(t.Context(), "k").Result(); err != nil || got != "v" {
		t.Errorf("redis: %q, %v", got, err)
	}
	// The group goes on where it was, on the restarted broker.
	produce(t, s.Kafka.Addr, 2)
	consume(t, s.Kafka.Addr, "next", 2)
	if got := kafkaState(t, s.Kafka.Addr); !strings.HasSuffix(got, `end 7 committed 7 "next"`) {
		t.Errorf("after the restart: %s", got)
	}
}

// kfake writes some of its state only when it closes: a first run that is killed must not be forgotten.
func TestKafkaKeepsTopicsWhenItsProcessIsKilled(t *testing.T) {
	dir := t.TempDir()
	k, err := StartKafka(t.Context(), KafkaOptions{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	produce(t, k.Addr, 3)
	consume(t, k.Addr, "intent", 3)
	before := kafkaState(t, k.Addr)
	// What a kill leaves is what is in the folder now.
	killed := filepath.Join(t.TempDir(), "kafka")
	if out, err := exec.CommandContext(t.Context(), "cp", "-r", dir, killed).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	k.Stop()
	k, err = StartKafka(t.Context(), KafkaOptions{DataDir: killed})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Stop()
	if after := kafkaState(t, k.Addr); after != before {
		t.Errorf("Kafka was\n%s, is\n%s", before, after)
	}
}

func TestKafkaServesTransactions(t *testing.T) {
	k, err := StartKafka(t.Context(), KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Stop()
	producer := kafkaClient(t, k.Addr, kgo.TransactionalID("tx"))
	for i, commit := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := producer.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
	reader := kafkaClient(t, k.Addr, kgo.ConsumeTopics("t"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	fetches := reader.PollFetches(t.Context())
	records := fetches.Records()
	if err := fetches.Err(); err != nil || len(records) != 1 || string(records[0].Value) != "1" {
		t.Fatalf("read %v, %v; want the committed record only", records, err)
	}
}

// kcat shares no code with franz-go: it would notice where kfake only speaks its author's dialect.
func TestKcatProducesAndConsumes(t *testing.T) {
	kcat := inCache("kcat/bin/kcat")
	if kcat == "" {
		var err error
		if kcat, err = exec.LookPath("kcat"); err != nil {
			t.Fatal("no kcat was found in .cache or on PATH: run `make setup` first")
		}
	}
	k, err := StartKafka(t.Context(), KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var lines bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&lines, "key-%d:value %d\n", i, i)
	}
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, kcat, append([]string{"-b", k.Addr, "-q"}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("kcat %v: %v: %s", args, err, errs.String())
		}
		return out.String()
	}
	run(lines.String(), "-P", "-t", "t", "-K", ":", "-z", "lz4")
	if got := run("", "-C", "-t", "t", "-e", "-o", "beginning", "-K", ":"); got != lines.String() {
		t.Fatalf("kcat read back %d bytes, wrote %d", len(got), lines.Len())
	}
	if got := run("", "-G", "readers", "-e", "-X", "auto.offset.reset=earliest", "-K", ":", "t"); got != lines.String() {
		t.Fatalf("kcat's group read back %d bytes, wrote %d", len(got), lines.Len())
	}
}

func TestStandInRedisTellsWhatItLacks(t *testing.T) {
	var said bytes.Buffer
	r, err := StartRedis(t.Context(), RedisOptions{InProcess: true, Output: &said})
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: r.Addr})
	defer func() { _ = client.Close() }()
	if got, err := client.Eval(t.Context(), "return redis.call('SET', KEYS[1], ARGV[1])", []string{"k"}, "v").Text(); err != nil || got != "OK" {
		t.Errorf("%q, %v", got, err)
	}
	// A sink asks these before it claims anything.
	if got, err := client.ConfigGet(t.Context(), "maxmemory-policy").Result(); err != nil || got["maxmemory-policy"] != "noeviction" {
		t.Errorf("memory policy: %v, %v", got, err)
	}
	if got, err := client.Info(t.Context(), "server").Result(); err != nil || !strings.Contains(got, "run_id:") {
		t.Errorf("identity: %q, %v", got, err)
	}
	if !strings.Contains(said.String(), "keeps nothing over a restart") {
		t.Errorf("said %q", said.String())
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}
