package dedup

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open dials the store and refuses one that can't keep the promise (*Unfit). It
// does not wait for a server: the caller repeats it after other errors. A
// marker that names another table is no error here: the first Claim tells.
func Open(ctx context.Context, cfg Config, d Domain, hooks Hooks, events Events) (*Store, error) {
	h, err := newHead(cfg, d)
	if err != nil {
		return nil, err
	}
	client, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, client, cfg, h, d, hooks, events)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return s, nil
}

func open(ctx context.Context, client redis.UniversalClient, cfg Config, h *head, d Domain, hooks Hooks, events Events) (*Store, error) {
	facts, findings := inspect(ctx, client, cfg)
	for _, f := range findings {
		if f.Severity != SeverityError {
			continue
		}
		if f.err != nil {
			return nil, explain(f.err)
		}
		return nil, &Unfit{Problem: f.Reason, Cure: f.Cure}
	}
	h.cutoff = facts.cutoff
	if cfg.Mode == "cluster" {
		var err error
		if h.groups, err = readGroups(ctx, client, cfg, h); err != nil {
			return nil, err
		}
	}
	b := newRedisBackend(client, cfg.servers(), h, uint(bits.TrailingZeros(uint(h.groups))), facts.most)
	b.keys.ask = cfg.ExpectedKeys
	b.assumePolicy, b.cluster = cfg.AssumeNoEviction, cfg.Mode == "cluster"
	s, err := newStore(b, h, d, hooks, events)
	if err != nil {
		return nil, err
	}
	return s, s.greet(ctx)
}

// greet makes any guarded call: it raises the epoch of a new domain, so that
// its quarantine runs while the sink gets ready, and refuses another route. A
// marker that names another table is adopted where ClickHouse confirms ours
// after that was seen; else the first claim tells.
func (s *Store) greet(ctx context.Context) error {
	_, list := s.everyGroup(opAcked, "")
	err := s.run(ctx, list)
	var swapped *Swapped
	if !errors.As(err, &swapped) || s.hooks.TableUUID == nil {
		if swapped == nil {
			return err
		}
		return nil //nolint:nilerr // told again by the first claim; the caller adopts the table
	}
	table, err := s.hooks.TableUUID(ctx)
	if err != nil {
		return fmt.Errorf("read the UUID of %s.%s: %w", s.domain.Database, s.domain.Table, err)
	}
	if table != s.domain.TableUUID {
		return &Swapped{Marker: swapped.Marker, Ours: s.domain.TableUUID}
	}
	return s.Adopt(ctx, table)
}

// Expect tells how many keys a slot of the domain is expected to hold: an hour
// of event time, or a horizon of arrivals. It sizes slots that begin; a wrong
// figure costs memory or time, never correctness.
func (s *Store) Expect(keysPerSlot int) {
	if b, ok := s.back.(*redisBackend); ok {
		b.keys.keys.Store(int64(keysPerSlot))
	}
}

// servers names them in messages.
func (cfg Config) servers() string {
	text := strings.Join(cfg.Addresses, ", ")
	if cfg.Master != "" {
		text = cfg.Master + " of " + text
	}
	return text
}

func newClient(cfg Config) (redis.UniversalClient, error) {
	quietLibrary()
	if len(cfg.Addresses) == 0 {
		return nil, errors.New("dedup: no address of Redis is given (redis.addresses)")
	}
	o := &redis.UniversalOptions{
		Addrs: cfg.Addresses, DB: cfg.DB, Username: cfg.Username, Password: cfg.Password, TLSConfig: cfg.TLS,
		SentinelUsername: cfg.SentinelUsername, SentinelPassword: cfg.SentinelPassword,
		ContextTimeoutEnabled: true, DialTimeout: cfg.DialTimeout, ReadTimeout: cfg.ReadTimeout, PoolSize: cfg.PoolSize,
		ClientName: "oncesink",
		// A server that can't be dialled is told at once: the caller repeats.
		DialerRetries: 1,
		// No notices about maintenance: they are a service's own, and asking for
		// them costs a round trip a connection.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch cfg.Mode {
	case "", "standalone":
		if len(cfg.Addresses) > 1 {
			return nil, &Unfit{Problem: fmt.Sprintf("%d addresses are given for one standalone server", len(cfg.Addresses)), Cure: "set redis.mode to cluster or sentinel, or give one address"}
		}
		return redis.NewClient(o.Simple()), nil
	case "sentinel":
		if cfg.Master == "" {
			return nil, &Unfit{Problem: "redis.mode is sentinel and no master is named", Cure: "set redis.master to the name the sentinels monitor"}
		}
		o.MasterName = cfg.Master
		return redis.NewFailoverClient(o.Failover()), nil
	case "cluster":
		if cfg.DB != 0 {
			return nil, &Unfit{Problem: fmt.Sprintf("redis.db is %d, and a cluster has database 0 only", cfg.DB), Cure: "remove redis.db"}
		}
		return redis.NewClusterClient(o.Cluster()), nil
	}
	return nil, &Unfit{Problem: fmt.Sprintf("redis.mode %q is not known", cfg.Mode), Cure: "set it to standalone, sentinel or cluster"}
}

// quietLibrary keeps go-redis from writing lines of its own to stderr: its
// errors are returned, and told by whoever made the call.
var quietLibrary = sync.OnceFunc(func() { redis.SetLogger(noLog{}) })

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

// readGroups finds the domain's number of hash-tag groups. It is fixed for
// good, and every marker carries it: one may be lost.
func readGroups(ctx context.Context, client redis.UniversalClient, cfg Config, h *head) (int, error) {
	want := cfg.Groups
	if want == 0 {
		want = clusterGroups
	}
	if want < 1 || want > MaxGroups || want&(want-1) != 0 {
		return 0, &Unfit{Problem: fmt.Sprintf("%d hash-tag groups were asked for", want), Cure: fmt.Sprintf("use a power of two up to %d", MaxGroups)}
	}
	known := 0
	for g := range MaxGroups {
		key := markerKey(h.name, g)
		text, err := client.HGet(ctx, key, "groups").Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return 0, explain(away(cfg.servers(), err))
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxGroups || n&(n-1) != 0 || known != 0 && n != known {
			return 0, &Unfit{Problem: fmt.Sprintf("the marker %s names %q hash-tag groups, others %d", key, text, known),
				Cure: "the store was edited or restored in parts: stop the sinks, delete the keys of the domain in Redis, start them again"}
		}
		known = n
	}
	if known != 0 {
		return known, nil
	}
	return want, nil
}
