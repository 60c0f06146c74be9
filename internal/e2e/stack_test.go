package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/testenv"
)

// stack is the three servers that a test runs against.
type stack struct {
	kafka, redis, engine, engineHTTP string
	database                         string
	// dial, if set, is how the test itself reaches Kafka when the broker names a fault proxy as its address.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// sharedStack is servers that all tests of this binary share; topics, groups and the database are the test's own.
func sharedStack(t testing.TB) *stack {
	t.Helper()
	e := testenv.SharedEngine(t)
	return &stack{kafka: testenv.SharedKafka(t), redis: testenv.SharedRedis(t), engine: e.Addr, engineHTTP: e.HTTPAddr, database: e.Database}
}

// stackWithEngine has an engine of its own: for tests that meddle with its logs.
func stackWithEngine(t testing.TB) *stack {
	t.Helper()
	e := testenv.Engine(t)
	return &stack{kafka: testenv.SharedKafka(t), redis: testenv.SharedRedis(t), engine: e.Addr, engineHTTP: e.HTTPAddr, database: e.Database}
}

// servers are a stack's, when the test stops and starts them.
type servers struct {
	kafka  *testenv.KafkaServer
	redis  *testenv.RedisServer
	engine *testenv.EngineServer
}

// ownStack is servers of this test alone.
func ownStack(t testing.TB) (*stack, *servers) {
	t.Helper()
	s := &servers{kafka: testenv.Kafka(t), redis: testenv.Redis(t), engine: testenv.Engine(t)}
	return &stack{kafka: s.kafka.Addr, redis: s.redis.Addr, engine: s.engine.Addr, engineHTTP: s.engine.HTTPAddr, database: s.engine.Database}, s
}

// ask runs a statement on the engine and returns what it says, as tabs and lines.
func (s *stack) ask(sql string) (string, error) {
	client := http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post("http://"+s.engineHTTP+"/?database="+s.database, "text/plain", strings.NewReader(sql))
	if err != nil {
		return "", fmt.Errorf("ask the engine: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("ask the engine: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the engine refused %q: %s", sql, said)
	}
	return strings.TrimRight(string(said), "\n"), nil
}

// sql is ask, or the end of the test.
func (s *stack) sql(t testing.TB, format string, args ...any) string {
	t.Helper()
	said, err := s.ask(fmt.Sprintf(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// rows splits what the engine said; none for nothing.
func rows(said string) [][]string {
	if said == "" {
		return nil
	}
	var out [][]string
	for line := range strings.SplitSeq(said, "\n") {
		out = append(out, strings.Split(line, "\t"))
	}
	return out
}
