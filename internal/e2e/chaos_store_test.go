//go:build chaos

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/internal/testenv"
)

type storeKind int

const (
	standalone storeKind = iota
	sentinel
	cluster
)

// store is the Redis of an arena.
type store struct {
	t         testing.TB
	kind      storeKind
	nodes     []*testenv.RedisServer
	sentinels *testenv.Sentinels
	link      *faultproxy.Proxy // of a standalone one
}

func startStore(t testing.TB, kind storeKind) *store {
	t.Helper()
	s := &store{t: t, kind: kind}
	switch kind {
	case standalone:
		s.nodes = []*testenv.RedisServer{testenv.Redis(t)}
	case sentinel:
		s.sentinels = testenv.RedisSentinel(t)
		s.nodes = s.sentinels.Nodes
	case cluster:
		s.nodes = testenv.RedisCluster(t).Nodes
	}
	return s
}

// node is the only server of a standalone one.
func (s *store) node() *testenv.RedisServer { return s.nodes[0] }

// settings are those of sink.yaml.
func (s *store) settings() string {
	var addresses []string
	for _, n := range s.nodes {
		addresses = append(addresses, fmt.Sprintf("%q", n.Addr))
	}
	list := strings.Join(addresses, ", ")
	switch s.kind {
	case sentinel:
		addresses = nil
		for _, addr := range s.sentinels.Addrs {
			addresses = append(addresses, fmt.Sprintf("%q", addr))
		}
		return fmt.Sprintf("mode: sentinel, master: %s, addresses: [%s]", s.sentinels.Name, strings.Join(addresses, ", "))
	case cluster:
		return fmt.Sprintf("mode: cluster, addresses: [%s]", list)
	default:
		return fmt.Sprintf("addresses: [%q]", s.link.Addr())
	}
}

// ask runs a command on a server, not through the proxy.
func (s *store) ask(node *testenv.RedisServer, args ...any) (any, error) {
	cl := redis.NewClient(&redis.Options{Addr: node.Addr, MaxRetries: -1, DisableIdentity: true})
	defer func() { _ = cl.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return cl.Do(ctx, args...).Result()
}

// do is ask, or the end of the schedule.
func (s *store) do(node *testenv.RedisServer, args ...any) any {
	s.t.Helper()
	said, err := s.ask(node, args...)
	for end := time.Now().Add(time.Minute); err != nil && strings.HasPrefix(err.Error(), "LOADING") && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		said, err = s.ask(node, args...)
	}
	if err != nil {
		s.t.Fatalf("%v on %s: %v", args, node.Addr, err)
	}
	return said
}
