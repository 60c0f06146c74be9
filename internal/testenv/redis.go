package testenv

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncesink/oncesink/internal/embedded"
)

// RedisServer is one redis-server of a test, with an append-only file.
type RedisServer struct {
	Server
}

// Redis starts a redis-server for this test alone. Further arguments are redis-server's.
func Redis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	s := newRedis(t, freePort(t), args)
	s.launch()
	return s
}

func newRedis(t testing.TB, port int, args []string) *RedisServer {
	t.Helper()
	if embedded.FindRedis() == "" {
		t.Fatalf("no redis-server was found in .cache or on PATH: %s", setupHint)
	}
	o := embedded.RedisOptions{
		Port: port, DataDir: filepath.Join(t.TempDir(), "redis"), Args: args, Output: newOutput(t, "redis-server"),
	}
	s := &RedisServer{Server{Addr: loopback(port), name: "redis-server", t: t}}
	s.start = func(ctx context.Context) (process, error) { return started(embedded.StartRedis(ctx, o)) }
	return s
}

// Sentinels is a Redis master with one replica, watched by three sentinels.
type Sentinels struct {
	Name  string   // of the master, for clients
	Addrs []string // of the sentinels
	Nodes []*RedisServer
	t     testing.TB
}

// RedisSentinel starts them. The master refuses writes when it has no replica that answered within one second, so a cut-off master falls silent.
func RedisSentinel(t testing.TB) *Sentinels {
	t.Helper()
	s := &Sentinels{Name: "oncesink", t: t}
	safe := []string{"--min-replicas-to-write", "1", "--min-replicas-max-lag", "1", "--repl-ping-replica-period", "1", "--repl-diskless-sync-delay", "0"}
	master := Redis(t, safe...)
	_, masterPort, err := net.SplitHostPort(master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := Redis(t, append([]string{"--replicaof", "127.0.0.1 " + masterPort}, safe...)...)
	s.Nodes = []*RedisServer{master, replica}
	awaitRedis(t, replica.Addr, "replication", "master_link_status:up")

	for range 3 {
		port := freePort(t)
		// A sentinel writes what it learns into its configuration, so it has to have a file.
		config := filepath.Join(t.TempDir(), "sentinel.conf")
		writeFile(t, config, fmt.Sprintf("port %d\nbind 127.0.0.1\nsentinel monitor %s 127.0.0.1 %s 2\nsentinel down-after-milliseconds %s 2000\nsentinel failover-timeout %s 5000\n",
			port, s.Name, masterPort, s.Name, s.Name))
		startSentinel(t, port, config)
		s.Addrs = append(s.Addrs, loopback(port))
	}
	for _, addr := range s.Addrs {
		awaitRedis(t, addr, "sentinel", "slaves=1,sentinels=3")
	}
	return s
}

// Master is the node that the sentinels hold for the master now.
func (s *Sentinels) Master() *RedisServer {
	s.t.Helper()
	client := redis.NewSentinelClient(&redis.Options{Addr: s.Addrs[0]})
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	at, err := client.GetMasterAddrByName(ctx, s.Name).Result()
	if err != nil {
		s.t.Fatalf("ask sentinel %s for the master: %v", s.Addrs[0], err)
	}
	addr := net.JoinHostPort(at[0], at[1])
	for _, node := range s.Nodes {
		if node.Addr == addr {
			return node
		}
	}
	s.t.Fatalf("sentinel %s names a master %s that is no node of this test", s.Addrs[0], addr)
	return nil
}

// Cluster is a Redis cluster of three masters without replicas.
type Cluster struct {
	Addrs []string
	Nodes []*RedisServer
}

// RedisCluster starts it.
func RedisCluster(t testing.TB) *Cluster {
	t.Helper()
	const masters, slots = 3, 16384
	c := &Cluster{}
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	var buses []string
	for range masters {
		bus := strconv.Itoa(freePort(t))
		node := Redis(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", bus, "--cluster-node-timeout", "2000")
		c.Nodes, c.Addrs, buses = append(c.Nodes, node), append(c.Addrs, node.Addr), append(buses, bus)
	}
	for i, addr := range c.Addrs {
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = client.Close() }()
		if err := client.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err(); err != nil {
			t.Fatalf("give slots to %s: %v", addr, err)
		}
		// Epochs differ from the start, otherwise two nodes would settle a collision first.
		if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatalf("set epoch of %s: %v", addr, err)
		}
		host, port, err := net.SplitHostPort(c.Addrs[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Do(ctx, "CLUSTER", "MEET", host, port, buses[0]).Err(); i > 0 && err != nil {
			t.Fatalf("join %s to %s: %v", addr, c.Addrs[0], err)
		}
	}
	for _, addr := range c.Addrs {
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = client.Close() }()
		await(t, ctx, "cluster node "+addr, func() (string, bool) {
			said, err := client.ClusterInfo(ctx).Result()
			return fmt.Sprint(said, err), strings.Contains(said, "cluster_state:ok") && strings.Contains(said, fmt.Sprintf("cluster_known_nodes:%d", masters))
		})
	}
	return c
}

// awaitRedis waits until a section of a server's INFO says something.
func awaitRedis(t testing.TB, addr, section, want string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	await(t, ctx, addr+" to say "+want, func() (string, bool) {
		said, err := client.Info(ctx, section).Result()
		return fmt.Sprint(said, err), strings.Contains(said, want)
	})
}

// await polls until ok, or fails the test with what was seen last.
func await(t testing.TB, ctx context.Context, what string, look func() (seen string, ok bool)) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, ok := look()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited for %s in vain; seen last: %s", what, seen)
		case <-tick.C:
		}
	}
}
