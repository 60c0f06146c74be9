package deadletter

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/oncesink/oncesink/internal/testenv"
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func TestMain(m *testing.M) { testenv.Main(m) }

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

func producer(t testing.TB, addr string, opts ...kgo.Opt) *Producer {
	t.Helper()
	p, err := New(append([]kgo.Opt{kgo.SeedBrokers(addr)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func create(t testing.TB, addr string, partitions int32, configs map[string]*string) string {
	t.Helper()
	name := testenv.Name(t, "topic")
	resp, err := kadm.NewClient(producer(t, addr).cl).CreateTopic(deadline(t), partitions, 1, configs, name)
	if err != nil || resp.Err != nil {
		t.Fatal(err, resp.Err)
	}
	return name
}

// read takes n records off a topic, in order of partition and offset.
func read(t testing.TB, addr, topic string, n int) []*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx := deadline(t)
	var records []*kgo.Record
	for len(records) < n {
		f := cl.PollFetches(ctx)
		if err := f.Err0(); err != nil {
			t.Fatalf("%d of %d records: %v", len(records), n, err)
		}
		records = append(records, f.Records()...)
	}
	slices.SortFunc(records, func(a, b *kgo.Record) int {
		if a.Partition != b.Partition {
			return int(a.Partition - b.Partition)
		}
		return int(a.Offset - b.Offset)
	})
	return records
}

func source(partition int32) batcher.Source {
	return batcher.Source{Cluster: "a cluster/1", Topic: batcher.TopicID{1, 2, 3}, Partition: partition}
}

// sample letters cover what Kafka tells apart: null, empty, binary, repeated
// headers, and a dead letter that died again.
func sample(topic string) []Letter {
	base := Letter{Topic: topic, Reason: "undecodable", Detail: "column amount: 1e999 is out of range", From: "settlements", Source: source(0),
		Offset: 41, Timestamp: time.UnixMilli(1790000000123).UTC(), Group: "settlements-sink", Version: "1.0"}
	var out []Letter
	with := func(change func(*Letter)) {
		l := base
		change(&l)
		out = append(out, l)
	}
	with(func(l *Letter) {
		l.Key, l.Value = []byte("k"), []byte(`{"amount":1e999}`)
		l.Headers = []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "h", Value: []byte{}}, {Key: "", Value: []byte{0, 0xff}}}
	})
	with(func(l *Letter) { l.Offset++; l.Value = nil; l.Key = nil })
	with(func(l *Letter) { l.Offset += 2; l.Value = []byte{}; l.Key = []byte{0xff, 0}; l.Detail = "" })
	with(func(l *Letter) {
		l.Offset += 3
		l.Reason, l.Detail = "conflict", "key (1, 2) has other content"
		l.Conflict = &Conflict{Owner: batcher.Owner{Group: "g/1 é", Source: source(7), Offset: 1 << 40}, Fingerprint: 0xdeadbeef, OwnerFingerprint: 1}
	})
	with(func(l *Letter) {
		l.Offset += 4
		l.Headers = out[3].record().Headers // it was a letter before
		l.Value = []byte("again")
	})
	return out
}

func TestLetterComesBackAsItWas(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		topic := create(t, addr, 1, nil)
		letters := sample(topic)
		if err := producer(t, addr).Produce(deadline(t), letters); err != nil {
			t.Fatal(err)
		}
		for i, r := range read(t, addr, topic, len(letters)) {
			got, err := Parse(r)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, letters[i]) {
				t.Errorf("letter %d\n got %+v\nwant %+v", i, got, letters[i])
			}
		}
	})
}

func TestLettersOfAPartitionKeepTheirOrder(t *testing.T) {
	t.Parallel()
	addr := testenv.KFake(t).Addr
	topic := create(t, addr, 3, nil)
	var letters []Letter
	for i := range 300 {
		l := sample(topic)[0]
		l.Source, l.Offset = source(int32(i%6)), int64(i)
		letters = append(letters, l)
	}
	if err := producer(t, addr).Produce(deadline(t), letters); err != nil {
		t.Fatal(err)
	}
	last := map[int32]int64{}
	for _, r := range read(t, addr, topic, len(letters)) {
		l, err := Parse(r)
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := last[l.Source.Partition]; ok && l.Offset <= before || r.Partition != l.Source.Partition%3 {
			t.Errorf("offset %d of partition %d came after %d, in partition %d", l.Offset, l.Source.Partition, before, r.Partition)
		}
		last[l.Source.Partition] = l.Offset
	}
}

func TestLetterTooLargeForTheTopicIsShortenedNotLost(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		noise := make([]byte, 3<<20) // compression must not save it
		state := uint32(1)
		for i := range noise {
			state = state*1664525 + 1013904223
			noise[i] = byte(state >> 24)
		}
		for _, c := range []struct {
			name, limit                       string
			value, key                        int
			headers                           int
			wantValue, wantKey, wantHeaders   int
			valueSize, keySize, lostedHeaders int
		}{
			{"fits", "4000000", 3 << 20, 10, 1, 3 << 20, 10, 1, 0, 0, 0},
			{"cut", "1000000", 2 << 20, 10, 1, 256 << 10, 10, 1, 2 << 20, 0, 0},
			{"cut short", "10000", 200 << 10, 10, 1, 4 << 10, 10, 1, 200 << 10, 0, 0},
			{"key and headers", "10000", 100, 20 << 10, 3, 100, 1 << 10, 0, 0, 20 << 10, 3},
		} {
			topic := create(t, addr, 1, map[string]*string{"max.message.bytes": &c.limit})
			l := sample(topic)[0]
			l.Value, l.Key, l.Headers = noise[:c.value], noise[:c.key], nil
			for range c.headers {
				l.Headers = append(l.Headers, kgo.RecordHeader{Key: "h", Value: []byte("v")})
			}
			small := sample(topic)[1]
			if err := producer(t, addr, kgo.ProducerBatchCompression(kgo.NoCompression())).Produce(deadline(t), []Letter{small, l, small}); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			found := false
			for _, r := range read(t, addr, topic, 3) {
				got, err := Parse(r)
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				if got.Offset == small.Offset {
					continue
				}
				found = true
				if len(got.Value) != c.wantValue || !bytes.HasPrefix(noise, got.Value) || len(got.Key) != c.wantKey || len(got.Headers) != c.wantHeaders ||
					got.ValueSize != c.valueSize || got.KeySize != c.keySize || got.StrippedHeaders != c.lostedHeaders || got.Reason != l.Reason {
					t.Errorf("%s: value %d of %d, key %d of %d, %d headers and %d left out", c.name, len(got.Value), got.ValueSize, len(got.Key), got.KeySize, len(got.Headers), got.StrippedHeaders)
				}
			}
			if !found {
				t.Errorf("%s: the large letter is not there", c.name)
			}
		}
	})
}

func TestUnacknowledgedLetterIsAnError(t *testing.T) {
	t.Parallel()
	k := testenv.KFake(t)
	topic := create(t, k.Addr, 1, nil)
	p := producer(t, k.Addr)
	k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed, Count: 1})
	if err := p.Produce(deadline(t), sample(topic)); err == nil || !strings.Contains(err.Error(), "lacks the ACL WRITE on topic "+topic) {
		t.Errorf("forbidden: %v", err)
	}
	k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	ctx, cancel := context.WithCancel(deadline(t))
	done := make(chan error, 1)
	go func() { done <- p.Produce(ctx, sample(topic)) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("never acknowledged: %v", err)
	}
}

func TestDetailIsBoundedAndValidText(t *testing.T) {
	for _, text := range []string{strings.Repeat("é", 2000), strings.Repeat("x", 1025), "a\xff\xfeb", strings.Repeat("\xff", 3000), strings.Repeat("x", 1022) + "é", ""} {
		got := clip(text)
		if len(got) > MaxDetail || !utf8.ValidString(got) || text != "" && got == "" {
			t.Errorf("%d bytes became %d: %q", len(text), len(got), got)
		}
	}
	if whole := strings.Repeat("é", 512); clip(whole) != whole {
		t.Error("a detail that fits was changed")
	}
}

func TestForeignAndDamagedRecordsAreNoLetters(t *testing.T) {
	good := sample("dlq")[3].record()
	if _, err := Parse(good); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(&kgo.Record{Topic: "dlq", Value: []byte("x"), Headers: []kgo.RecordHeader{{Key: "h"}}}); err == nil {
		t.Error("a record without a reason was parsed")
	}
	for i := len(good.Headers) - 1; i >= 0; i-- {
		name := good.Headers[i].Key
		without := *good
		without.Headers = slices.Delete(slices.Clone(good.Headers), i, i+1)
		if l, err := Parse(&without); err == nil && name != HeaderOwnerSource {
			t.Errorf("without %s: %+v", name, l)
		}
		if slices.Contains([]string{HeaderReason, HeaderDetail, HeaderTopic, HeaderGroup, HeaderVersion, HeaderOwnerGroup}, name) {
			continue // free text
		}
		spoilt := *good
		spoilt.Headers = slices.Clone(good.Headers)
		spoilt.Headers[i].Value = []byte("-x")
		if l, err := Parse(&spoilt); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("with a spoilt %s: %+v, %v", name, l, err)
		}
	}
	later := *good
	later.Headers = append(slices.Clone(good.Headers), kgo.RecordHeader{Key: headerPrefix + "of-a-later-version", Value: []byte("1")})
	if _, err := Parse(&later); err != nil {
		t.Errorf("a header of a later version: %v", err)
	}
}

func TestTopicIsCreatedLikeItsSource(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		size := "2000000"
		from := create(t, addr, 5, map[string]*string{"max.message.bytes": &size})
		p := producer(t, addr)
		dlq := from + ".dlq"
		if created, err := p.EnsureTopic(deadline(t), dlq, from); err != nil || !created {
			t.Fatal(created, err)
		}
		if created, err := p.EnsureTopic(deadline(t), dlq, from); err != nil || created {
			t.Fatal("again:", created, err)
		}
		adm := kadm.NewClient(p.cl)
		topics, err := adm.ListTopics(deadline(t), dlq)
		if err != nil || len(topics[dlq].Partitions) != 5 {
			t.Errorf("%d partitions, %v", len(topics[dlq].Partitions), err)
		}
		if got := p.sizeOf(deadline(t), adm, dlq); got["max.message.bytes"] == nil || *got["max.message.bytes"] != size {
			t.Errorf("its size limit: %v", got)
		}
		if err := p.Produce(deadline(t), sample(dlq)); err != nil {
			t.Error(err)
		}
		if _, err := p.EnsureTopic(deadline(t), from, from); err == nil {
			t.Error("the source topic was taken for its own dead letters")
		}
		if _, err := p.EnsureTopic(deadline(t), "x.dlq", "no-such-topic"); err == nil || !strings.Contains(err.Error(), "no-such-topic") {
			t.Errorf("no source: %v", err)
		}
	})
}

func TestTopicThatMayNotBeMadeOrWrittenIsToldInWords(t *testing.T) {
	t.Parallel()
	allow := func(topic string, ops ...kmsg.ACLOperation) (acls []kfake.ACL) {
		for _, op := range ops {
			acls = append(acls, kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true})
		}
		return acls
	}
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(4, "src", "readonly"),
		kfake.Superuser("SCRAM-SHA-256", "admin", "admin"),
		kfake.User("SCRAM-SHA-256", "sink", "pw", append(allow("src", kmsg.ACLOperationRead), allow("readonly", kmsg.ACLOperationRead)...)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	p := producer(t, k.ListenAddrs()[0], kgo.SASL(scram.Auth{User: "sink", Pass: "pw"}.AsSha256Mechanism()))
	_, err = p.EnsureTopic(deadline(t), "readonly", "src")
	if err == nil || !strings.Contains(err.Error(), "lacks the ACL WRITE on topic readonly") {
		t.Errorf("not writable: %v", err)
	}
	_, err = p.EnsureTopic(deadline(t), "missing", "src")
	if err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("missing: %v", err)
	}
}
