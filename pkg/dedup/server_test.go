package dedup

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// server is a real redis-server of one test.
type server struct {
	t    testing.TB
	addr string
	dir  string
	args []string
	cmd  *exec.Cmd
}

func redisBinary(t testing.TB) string {
	t.Helper()
	if path, err := filepath.Abs("../../.cache/redis/bin/redis-server"); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("no redis-server: run scripts/get-redis.sh")
	}
	return path
}

func startRedis(t testing.TB, args ...string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	s := &server{t: t, addr: addr, dir: t.TempDir(), args: args}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) start() {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	s.cmd = exec.Command(redisBinary(s.t), append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", s.dir}, s.args...)...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	c := s.client()
	defer func() { _ = c.Close() }()
	for i := 0; ; i++ {
		if err := c.Ping(context.Background()).Err(); err == nil || i > 0 && redis.HasErrorPrefix(err, "NOAUTH") {
			return
		} else if i > 200 {
			s.t.Fatal(err)
		}
		time.Sleep(25 * time.Millisecond)
	}
}

func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
}

func (s *server) do(args ...any) any {
	s.t.Helper()
	c := s.client()
	defer func() { _ = c.Close() }()
	v, err := c.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

var testDomain = Domain{Database: "db", Table: "events", TableUUID: [16]byte{1}, Route: "v1|id", EventTime: true, InsertDeadline: 50 * time.Millisecond, Group: "g"}

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
	for i := 0; ; i++ {
		err := s.Claim(t.Context(), b, r)
		if err == nil {
			return r
		}
		if _, hold := err.(*Quarantine); !hold || i > 400 {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func testItem(n int, offset int64) Item {
	key := Hasher{}.Key([]byte("key" + strconv.Itoa(n)))
	return Item{Key: key, Fingerprint: uint32(n), Offset: offset, EventMs: time.Now().UnixMilli()}
}
