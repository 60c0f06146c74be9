package dedup

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncesink/oncesink/internal/testenv"
	"github.com/oncesink/oncesink/pkg/batcher"
)

// server is a real redis-server of one test.
type server struct {
	*testenv.RedisServer
	t testing.TB
}

func startRedis(t testing.TB, args ...string) *server {
	t.Helper()
	return &server{testenv.Redis(t, args...), t}
}

func (s *server) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
}

func (s *server) do(args ...any) any {
	s.t.Helper()
	c := s.client()
	defer func() { _ = c.Close() }()
	v, err := c.Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

var testDomain = Domain{Database: "db", Table: "events", TableUUID: [16]byte{1}, Route: "key=id event_time=at ignore=", EventTime: true, InsertDeadline: 50 * time.Millisecond, Group: "g"}

func quietHooks() Hooks {
	return Hooks{Quiet: func(context.Context, time.Duration) (bool, string, error) { return true, "", nil },
		TableEmpty: func(context.Context) (bool, error) { return true, nil }}
}

func source0(p int32) batcher.Source {
	return batcher.Source{Cluster: "c", Topic: batcher.TopicID{7}, Partition: p}
}

func openAt(t testing.TB, addr string, change func(*Config, *Domain)) *Store {
	t.Helper()
	cfg, d := Config{Addresses: []string{addr}, Horizon: time.Hour, Slack: time.Minute}, testDomain
	if change != nil {
		change(&cfg, &d)
	}
	s, err := Open(t.Context(), cfg, d, quietHooks(), Events{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// claimed repeats a claim through a quarantine.
func claimed(t testing.TB, s *Store, b *Batch) *Reply {
	t.Helper()
	r := &Reply{}
	for end := time.Now().Add(30 * time.Second); ; {
		err := s.Claim(t.Context(), b, r)
		if err == nil {
			return r
		}
		var hold *Quarantine
		if !errors.As(err, &hold) || time.Now().After(end) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// testEvent is an event time whose slot does not end during a test.
var testEvent = time.Now().Add(2 * time.Hour).UnixMilli()

func testItem(n int, offset int64) Item {
	key := Hasher{}.Key([]byte("key" + strconv.Itoa(n)))
	return Item{Key: key, Fingerprint: uint32(n), Offset: offset, EventMs: testEvent}
}

// opened waits for the end of the first quarantine.
func opened(t testing.TB, s *Store) {
	t.Helper()
	claimed(t, s, &Batch{Source: source0(999), Nonce: 1, Items: []Item{testItem(-1, 0)}})
}

// letters spells the verdicts of a reply: N, M, D, S, C, X.
func letters(r *Reply) string {
	text := make([]byte, len(r.Answers))
	for i, a := range r.Answers {
		text[i] = "NMDSCX"[a.Verdict]
	}
	return string(text)
}

func wantVerdicts(t testing.TB, what string, r *Reply, want string) {
	t.Helper()
	if got := letters(r); got != want {
		t.Fatalf("%s: verdicts %s, want %s", what, got, want)
	}
}

// someItems are n records with keys from..from+n-1 at offsets from first on.
func someItems(from, n int, first int64) []Item {
	list := make([]Item, n)
	for i := range list {
		list[i] = testItem(from+i, first+int64(i))
	}
	return list
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
