package dedup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Severities of a finding.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityInfo    = "info"
)

// Finding is what Check has to say: what is wrong or noteworthy, and what to
// type or set against it.
type Finding struct {
	Severity, Code, Reason, Cure string
	Unreached                    bool // Redis could not be asked
	err                          error
}

// facts are what the servers' configuration means for this client.
type facts struct {
	cutoff int64 // ms a cut-off master may still answer
	most   int   // keys that a bucket may hold before its slot grows
}

const (
	defaultEntries = 128 // listpack limit assumed where CONFIG is withheld
	defaultLag     = 10 * 1000
	defaultNode    = 15 * 1000
	// A master counts its replicas, and notices that it lost the majority, in a
	// cron; this much later at most.
	cronSlack = 2 * 1000
)

// Check dials the store and says what it finds, errors first.
func Check(ctx context.Context, cfg Config) []Finding {
	client, err := newClient(cfg)
	if err != nil {
		return []Finding{asFinding("redis_config", err)}
	}
	defer func() { _ = client.Close() }()
	_, findings := inspect(ctx, client, cfg)
	return findings
}

func asFinding(code string, err error) Finding {
	f := Finding{Severity: SeverityError, Code: code, Reason: err.Error(), err: err}
	switch e := explain(err).(type) { //nolint:errorlint // explain wraps nothing around these
	case *Unfit:
		f.Reason, f.Cure = e.Problem, e.Cure
	case *Waiting:
		f.Reason, f.Cure = e.Reason, e.Cure
	case *RouteChanged:
		f.Reason = e.Problem()
	}
	return f
}

// inspect looks at every master.
func inspect(ctx context.Context, client redis.UniversalClient, cfg Config) (facts, []Finding) {
	all := facts{most: defaultEntries}
	if err := client.Ping(ctx).Err(); err != nil {
		return all, []Finding{reachFinding(ctx, cfg, err)}
	}
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		single, is := client.(*redis.Client)
		if !is {
			return all, []Finding{{Severity: SeverityError, Code: "redis_mode", Reason: fmt.Sprintf("a client of type %T is not supported", client)}}
		}
		return inspectServer(ctx, single, cfg)
	}
	var mu sync.Mutex
	var findings []Finding
	first := true
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		f, list := inspectServer(ctx, node, cfg)
		mu.Lock()
		defer mu.Unlock()
		if first || f.most < all.most {
			all.most = f.most
		}
		first = false
		all.cutoff = max(all.cutoff, f.cutoff)
		for _, one := range list {
			one.Reason = node.Options().Addr + ": " + one.Reason
			findings = append(findings, one)
		}
		return nil
	})
	if err != nil {
		findings = append(findings, asFinding("redis_cluster", err))
	}
	if state, err := cluster.ClusterInfo(ctx).Result(); err == nil && !strings.Contains(state, "cluster_state:ok") {
		findings = append(findings, Finding{Severity: SeverityError, Code: "redis_cluster", Reason: "the cluster is not in state ok", Cure: "redis-cli --cluster check; every slot needs a master"})
	}
	return all, findings
}

// reachFinding explains why the first call got no good answer.
func reachFinding(ctx context.Context, cfg Config, err error) Finding {
	err = otherProtocol(ctx, cfg, err)
	f := asFinding("redis_reach", err)
	var waits *Waiting
	switch {
	case errors.As(explain(err), &waits):
		f.Unreached = true
		if f.Cure == "" {
			f.Cure = "wait; it goes on by itself"
		}
	case f.Cure == "":
		f.Reason = fmt.Sprintf("Redis at %s can't be reached: %v", cfg.servers(), err)
		f.Cure = "start it, or correct redis.addresses, redis.mode and redis.tls"
		f.Unreached = true
	}
	return f
}

func inspectServer(ctx context.Context, c *redis.Client, cfg Config) (facts, []Finding) {
	f := facts{most: defaultEntries * 3 / 4}
	var list []Finding
	add := func(severity, code, reason, cure string) {
		list = append(list, Finding{Severity: severity, Code: code, Reason: reason, Cure: cure})
	}
	info, err := c.Info(ctx, "server", "replication", "cluster").Result()
	if err != nil {
		return f, []Finding{asFinding("redis_info", err)}
	}
	version := infoField(info, "redis_version")
	if major, _ := strconv.Atoi(strings.SplitN(version, ".", 2)[0]); major < 7 {
		add(SeverityError, "redis_version", "Redis "+version+" is too old", "run Redis 7.0 or newer")
		return f, list
	}
	clustered := infoField(info, "cluster_enabled") == "1"
	switch {
	case clustered && cfg.Mode != "cluster":
		add(SeverityError, "redis_mode", "the server is a cluster node", "set redis.mode: cluster")
	case !clustered && cfg.Mode == "cluster":
		add(SeverityError, "redis_mode", "the server is not in a cluster", "set redis.mode: standalone")
	}
	if infoField(info, "role") != "master" {
		wait := &Waiting{Reason: "the server is a replica", Cure: "give the address of the master, or set redis.mode: sentinel"}
		list = append(list, Finding{Severity: SeverityError, Code: "redis_role", Reason: wait.Reason, Cure: wait.Cure, err: wait})
	}
	config, err := c.ConfigGet(ctx, "*").Result()
	if err != nil {
		return withheld(f, list, cfg, err)
	}
	if policy := config["maxmemory-policy"]; policy != "noeviction" {
		add(SeverityError, "redis_policy", "maxmemory-policy is "+policy+": Redis would forget keys within the horizon, and their rows would be written twice",
			"CONFIG SET maxmemory-policy noeviction, and the same in redis.conf")
	}
	if config["maxmemory"] == "0" {
		add(SeverityInfo, "redis_maxmemory", "maxmemory is not set: Redis takes what it needs, about 36 bytes a key and horizon", "CONFIG SET maxmemory <bytes>, below the machine's memory")
	}
	entries, value := number(config, "hash-max-listpack-entries"), number(config, "hash-max-listpack-value")
	f.most = max(1, entries*3/4)
	if value < entrySize || entries < defaultEntries {
		add(SeverityWarning, "redis_listpack", fmt.Sprintf("hash-max-listpack-entries %d and hash-max-listpack-value %d make Redis store claims in 2 to 4 times the memory", entries, value),
			"CONFIG SET hash-max-listpack-entries 512 and CONFIG SET hash-max-listpack-value 64, and the same in redis.conf")
	}
	switch cfg.Mode {
	case "sentinel":
		f.cutoff = int64(number(config, "min-replicas-max-lag"))*1000 + cronSlack
		least := number(config, "min-replicas-to-write")
		replicas, _ := strconv.Atoi(infoField(info, "connected_slaves"))
		if least < 1 || f.cutoff == cronSlack {
			add(SeverityError, "redis_min_replicas", "a master that is cut off from its replicas goes on taking claims, and a failover forgets them (min-replicas-to-write is 0)",
				"CONFIG SET min-replicas-to-write 1 and CONFIG SET min-replicas-max-lag 10 on every server, and the same in redis.conf")
		} else if replicas > least {
			add(SeverityWarning, "redis_min_replicas", fmt.Sprintf("%d replicas, and min-replicas-to-write is %d: a master that is cut off together with a replica goes on taking claims after another was promoted", replicas, least),
				fmt.Sprintf("CONFIG SET min-replicas-to-write %d, where a stop of writes is better than a double row", replicas))
		}
	case "cluster":
		f.cutoff = int64(number(config, "cluster-node-timeout")) + cronSlack
	}
	return f, list
}

// withheld is for services that keep CONFIG to themselves.
func withheld(f facts, list []Finding, cfg Config, err error) (facts, []Finding) {
	switch cfg.Mode {
	case "sentinel":
		f.cutoff = defaultLag + cronSlack
	case "cluster":
		f.cutoff = defaultNode + cronSlack
	}
	if !cfg.AssumeNoEviction {
		return f, append(list, Finding{Severity: SeverityError, Code: "redis_policy",
			Reason: "CONFIG GET is withheld (" + err.Error() + "), so that maxmemory-policy can't be read",
			Cure:   "make sure that it is noeviction, then set redis.assume_noeviction: true"})
	}
	return f, append(list, Finding{Severity: SeverityWarning, Code: "redis_policy",
		Reason: "maxmemory-policy is taken to be noeviction on your word (redis.assume_noeviction)"})
}

func number(config map[string]string, name string) int {
	n, _ := strconv.Atoi(config[name])
	return n
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && key == name {
			return value
		}
	}
	return ""
}

// settled is asked before a quarantine ends: the policy of a master that took
// over, and slots that are being moved, whose buckets lie on two nodes.
func (b *redisBackend) settled(ctx context.Context, group int) (bool, string, error) {
	node := func(ctx context.Context, c *redis.Client) (string, error) {
		config, err := c.ConfigGet(ctx, "maxmemory-policy").Result()
		if err != nil {
			if b.assumePolicy {
				return "", nil
			}
			return "", explain(err)
		}
		if policy := config["maxmemory-policy"]; policy != "" && policy != "noeviction" {
			return "maxmemory-policy is " + policy + " on " + c.Options().Addr + "; CONFIG SET maxmemory-policy noeviction", nil
		}
		return "", nil
	}
	if !b.cluster {
		why, err := node(ctx, b.client.(*redis.Client))
		return why == "", why, err
	}
	cluster := b.client.(*redis.ClusterClient)
	slot, err := cluster.ClusterKeySlot(ctx, b.marker[group].(string)).Result()
	if err != nil {
		return false, "", explain(err)
	}
	var mu sync.Mutex
	var why string
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		said, err := node(ctx, c)
		if err != nil {
			return err
		}
		nodes, err := c.ClusterNodes(ctx).Result()
		if err != nil {
			return explain(err)
		}
		if strings.Contains(nodes, fmt.Sprintf("[%d-", slot)) {
			said = fmt.Sprintf("slot %d of the domain is migrating (%s)", slot, c.Options().Addr)
		}
		mu.Lock()
		defer mu.Unlock()
		if said != "" {
			why = said
		}
		return nil
	})
	return why == "", why, err
}
