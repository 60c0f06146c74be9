package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ClickHouse/ch-go"

	"github.com/oncesink/oncesink/internal/embedded"
)

// shared are the servers of this test binary, each started when it is first asked for and stopped by Main.
var shared sharedServers

type sharedServers struct {
	enabled bool
	engine  sharedServer[*embedded.Engine]
	redis   sharedServer[*embedded.Redis]
	kafka   sharedServer[process]
	broker  *broker
	names   atomic.Int64
}

type sharedServer[S process] struct {
	once   sync.Once
	server S
	err    error
}

func (s *sharedServer[S]) get(t testing.TB, start func(ctx context.Context) (S, error)) S {
	t.Helper()
	if !shared.enabled {
		t.Fatal("a shared server needs `func TestMain(m *testing.M) { testenv.Main(m) }` in this package, which stops it")
	}
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
		defer cancel()
		s.server, s.err = start(ctx)
	})
	if s.err != nil {
		t.Fatalf("%v (%s)", s.err, setupHint)
	}
	return s.server
}

func (s *sharedServer[S]) stop() {
	s.once.Do(func() { s.err = errors.New("never started") })
	if s.err == nil {
		s.server.Kill() // nothing of it is needed any more
	}
}

func (s *sharedServers) stopAll() {
	s.engine.stop()
	s.redis.stop()
	s.kafka.stop()
	if s.broker != nil {
		_ = os.RemoveAll(s.broker.dir)
	}
}

// Name is a name for a topic, group, table or database that no other test of this binary uses.
func Name(t testing.TB, prefix string) string {
	t.Helper()
	return fmt.Sprintf("%s_%d_%d", prefix, os.Getpid(), shared.names.Add(1))
}

// EngineDatabase is a database of one test on the shared engine.
type EngineDatabase struct {
	Addr, HTTPAddr string
	Database       string
}

// SharedEngine gives a new Atomic database on the engine that all tests of this binary share. It is dropped when the test ends.
func SharedEngine(t testing.TB) *EngineDatabase {
	t.Helper()
	e := shared.engine.get(t, func(ctx context.Context) (*embedded.Engine, error) {
		return embedded.StartEngine(ctx, embedded.EngineOptions{Stderr: os.Stderr})
	})
	db := &EngineDatabase{Addr: e.TCPAddr, HTTPAddr: e.HTTPAddr, Database: strings.ToLower(Name(t, "test"))}
	run := func(sql string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
		defer cancel()
		conn, err := ch.Dial(ctx, ch.Options{Address: db.Addr})
		if err != nil {
			t.Fatalf("connect to the shared engine: %v", err)
		}
		defer func() { _ = conn.Close() }()
		if err := conn.Do(ctx, ch.Query{Body: sql}); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run("CREATE DATABASE " + db.Database + " ENGINE = Atomic")
	t.Cleanup(func() { run("DROP DATABASE " + db.Database + " SYNC") })
	return db
}

// SharedRedis is the address of a redis-server that all tests of this binary share: keep to key names of your own, and never FLUSHALL.
func SharedRedis(t testing.TB) string {
	t.Helper()
	return shared.redis.get(t, func(ctx context.Context) (*embedded.Redis, error) {
		if embedded.FindRedis() == "" {
			return nil, errors.New("no redis-server was found in .cache or on PATH")
		}
		return embedded.StartRedis(ctx, embedded.RedisOptions{})
	}).Addr
}

// SharedKafka is the address of an Apache Kafka broker that all tests of this binary share. Topics and groups take a [Name].
func SharedKafka(t testing.TB) string {
	t.Helper()
	shared.kafka.get(t, func(ctx context.Context) (process, error) {
		removeAbandoned()
		dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", kafkaDirPrefix, os.Getpid()))
		if err != nil {
			return nil, err
		}
		if shared.broker, err = newBroker(dir, freePort(t), freePort(t), nil); err != nil {
			return nil, err
		}
		shared.broker.output = os.Stderr
		return shared.broker.start(ctx)
	})
	return shared.broker.addr
}

const kafkaDirPrefix = "oncesink-kafka-"

// removeAbandoned removes the data of shared brokers whose test binaries were killed before they could: the process id is in the folder's name.
func removeAbandoned() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), kafkaDirPrefix+"*"))
	if err != nil {
		return // the pattern is ours and right
	}
	for _, dir := range dirs {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(dir), kafkaDirPrefix+"%d-", &pid); err != nil {
			continue
		}
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}
