package dedup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func codes(list []Finding, severity string) []string {
	var found []string
	for _, f := range list {
		if f.Severity == severity {
			found = append(found, f.Code)
		}
	}
	return found
}

// Each is told apart, with a cure, by Check and by Open.
func TestUnfitServersAreToldApart(t *testing.T) {
	srv := startRedis(t)
	srv.do("acl", "setuser", "weak", "on", ">w", "~*", "+@all", "-config")
	srv.do("acl", "setuser", "blind", "on", ">w", "~*", "+@all", "-info")
	srv.do("acl", "setuser", "default", "resetpass", ">secret")
	for _, c := range []struct {
		name    string
		change  func(*Config)
		problem string
		cure    string
	}{
		{"no password", nil, "password", "redis.password"},
		{"wrong password", func(c *Config) { c.Password = "guess" }, "refuses the user or password", "redis.password"},
		{"CONFIG withheld", func(c *Config) { c.Username, c.Password = "weak", "w" }, "CONFIG GET is withheld", "assume_noeviction"},
		{"INFO withheld", func(c *Config) { c.Username, c.Password = "blind", "w" }, "permission", "ACL SETUSER"},
		{"not a cluster", func(c *Config) { c.Password, c.Mode = "secret", "cluster" }, "cluster", "standalone"},
		{"unknown mode", func(c *Config) { c.Mode = "sharded" }, "not known", "standalone, sentinel or cluster"},
		{"sentinel without master", func(c *Config) { c.Mode = "sentinel" }, "no master", "redis.master"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Config{Addresses: []string{srv.Addr}}
			if c.change != nil {
				c.change(&cfg)
			}
			_, err := Open(t.Context(), cfg, testDomain, quietHooks(), Events{})
			var unfit *Unfit
			if !errors.As(err, &unfit) || !strings.Contains(unfit.Problem, c.problem) || !strings.Contains(unfit.Cure, c.cure) {
				t.Errorf("open: %v", err)
			}
			list := Check(t.Context(), cfg)
			if !slices.ContainsFunc(list, func(f Finding) bool {
				return f.Severity == SeverityError && strings.Contains(f.Reason, c.problem) && strings.Contains(f.Cure, c.cure)
			}) {
				t.Errorf("check: %+v", list)
			}
		})
	}
	cfg := Config{Addresses: []string{srv.Addr}, Username: "weak", Password: "w", AssumeNoEviction: true}
	s, err := Open(t.Context(), cfg, testDomain, quietHooks(), Events{})
	must(t, err)
	defer func() { _ = s.Close() }()
	opened(t, s)
}

// Whatever evicts makes a key new that was written (field case D8).
func TestEvictionIsRefused(t *testing.T) {
	srv := startRedis(t)
	cfg := Config{Addresses: []string{srv.Addr}}
	if list := codes(Check(t.Context(), cfg), SeverityError); list != nil {
		t.Fatalf("a fit server: %v", list)
	}
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		srv.do("config", "set", "maxmemory-policy", policy)
		if list := codes(Check(t.Context(), cfg), SeverityError); !slices.Equal(list, []string{"redis_policy"}) {
			t.Fatalf("%s: %v", policy, list)
		}
		var unfit *Unfit
		if _, err := Open(t.Context(), cfg, testDomain, quietHooks(), Events{}); !errors.As(err, &unfit) || !strings.Contains(unfit.Cure, "noeviction") {
			t.Fatalf("%s: %v", policy, err)
		}
	}
	// A server that turned to eviction before a failover does not open again.
	srv.do("config", "set", "maxmemory-policy", "noeviction")
	s := openAt(t, srv.Addr, nil)
	opened(t, s)
	srv.do("config", "set", "maxmemory-policy", "allkeys-lru", "hash-max-listpack-value", "8")
	srv.do("flushall")
	b := &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 1, 0)}
	var hold *Quarantine
	for range 20 {
		if err := s.Claim(t.Context(), b, &Reply{}); !errors.As(err, &hold) {
			t.Fatalf("claims go on under eviction: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !strings.Contains(hold.Reason, "allkeys-lru") {
		t.Fatal(hold)
	}
	if list := codes(Check(t.Context(), cfg), SeverityWarning); !slices.Contains(list, "redis_listpack") {
		t.Fatalf("claims would take a multiple of the memory, unnoticed: %v", list)
	}
}

// A full server refuses claims, and lets through what frees the sink from
// waiting: acked, releases (field case D9).
func TestAFullServerHoldsClaimsOnly(t *testing.T) {
	srv := startRedis(t)
	s := openAt(t, srv.Addr, nil)
	opened(t, s)
	b := &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 50, 0)}
	r := claimed(t, s, b)
	must(t, s.StartRun(t.Context(), source0(0), 0))
	srv.do("config", "set", "maxmemory", "1")
	more := &Batch{Source: source0(0), First: 50, Nonce: 2, Items: someItems(50, 50, 50)}
	var wait *Waiting
	if err := s.Claim(t.Context(), more, &Reply{}); !errors.As(err, &wait) || !strings.Contains(wait.Reason, "maxmemory") {
		t.Fatalf("a claim: %v", err)
	}
	must(t, s.Publish(t.Context(), source0(0), 0, 50, r.Ticket, false))
	held := b.Items[:1]
	held[0].Nonce = 1
	must(t, s.Release(t.Context(), r.Ticket, source0(0), held))
	out := make([]GateAnswer, 1)
	must(t, s.Gate(t.Context(), []GateItem{{Item: b.Items[1], Owner: Owner{}}}, out))
	srv.do("flushall")
	var hold *Quarantine
	if err := s.Claim(t.Context(), more, &Reply{}); !errors.As(err, &hold) {
		t.Fatalf("an epoch could not be raised on a full server: %v", err)
	}
	srv.do("config", "set", "maxmemory", "0")
	wantVerdicts(t, "with room again", claimed(t, s, more), strings.Repeat("N", 50))
}

// The master became a replica under open connections, and came back (field
// case D5).
func TestAReplicaAnswersNothing(t *testing.T) {
	srv, other := startRedis(t), startRedis(t)
	s := openAt(t, srv.Addr, nil)
	b := &Batch{Source: source0(0), Nonce: 1, Items: someItems(0, 3, 0)}
	before := claimed(t, s, b)
	host, port, _ := strings.Cut(other.Addr, ":")
	srv.do("replicaof", host, port)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var wait *Waiting
	for _, f := range []func() error{
		func() error { return s.Claim(ctx, b, &Reply{}) },
		func() error { return s.Gate(ctx, []GateItem{{Item: b.Items[0]}}, make([]GateAnswer, 1)) },
		func() error { _, err := s.Acked(ctx, source0(0)); return err },
	} {
		if err := f(); !errors.As(err, &wait) {
			t.Fatalf("a replica answered: %v", err)
		}
	}
	srv.do("replicaof", "no", "one")
	b.Nonce = 2
	if r := claimed(t, s, b); r.Ticket.Equal(before.Ticket) {
		t.Fatal("the server was another's replica for a while, and the epoch is the same")
	}
}

func TestAnUnreachableServerIsAnErrorNotAWait(t *testing.T) {
	cfg := Config{Addresses: []string{"127.0.0.1:1"}}
	if _, err := Open(t.Context(), cfg, testDomain, quietHooks(), Events{}); err == nil {
		t.Fatal("opened nothing")
	} else if rank(err) != 1 {
		t.Fatalf("%v must be unknown, so that the caller repeats it", err)
	}
	if list := codes(Check(t.Context(), cfg), SeverityError); !slices.Equal(list, []string{"redis_reach"}) {
		t.Fatal(list)
	}
}
