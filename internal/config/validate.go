package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncesink/oncesink/internal/nearmiss"
)

// Bounds that hold the protocol together. Each one says why at its check.
const (
	rebalanceSlack   = 10 * time.Second
	horizonDeadlines = 100
	maxBatchRows     = 1_000_000
	maxBatchBytes    = 256 << 20
	batchesInMemory  = 4
)

// Validate checks every value and every agreement between values and returns all problems as one *Invalid.
func (c *Config) Validate() error {
	p := &problems{source: c.source}
	c.Kafka.validate(p)
	c.ClickHouse.validate(p)
	c.Redis.validate(p)
	c.validateRoutes(p)
	c.validateBatch(p)
	c.validateAcross(p)

	oneOf(p, "log.level", c.Log.Level, "debug", "info", "warn", "error")
	oneOf(p, "log.format", c.Log.Format, "json", "text")
	if c.HTTP.Listen != "" {
		if why := badAddress(c.HTTP.Listen, true); why != "" {
			p.at("http.listen", "%s", why)
		}
	}
	return p.err(c.file)
}

func (k *Kafka) validate(p *problems) {
	validateAddresses(p, "kafka.brokers", k.Brokers, 9092)
	if k.Group == "" {
		p.at("kafka.group", "is missing: name the consumer group, it owns the offsets")
	}
	atLeast(p, "kafka.session_timeout", k.SessionTimeout, time.Second)
	atLeast(p, "kafka.rebalance_timeout", k.RebalanceTimeout, time.Second)
	if k.StartupTimeout < 0 {
		p.at("kafka.startup_timeout", "is below 0; 0 waits for ever")
	}
	oneOf(p, "kafka.isolation", k.Isolation, "read_committed", "read_uncommitted")
	if k.Start == "latest" {
		p.at("kafka.start", `"latest" would skip records that are there, unseen and uncounted: not in this version, use earliest`)
	} else {
		oneOf(p, "kafka.start", k.Start, "earliest")
	}
	k.TLS.validate(p, "kafka.tls")
	k.SASL.validate(p, "kafka.sasl")
	if r := k.SchemaRegistry; r.URL != "" {
		if u, err := url.Parse(r.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			p.at("kafka.schema_registry.url", "is no http:// or https:// address")
		} else if u.User != nil {
			p.at("kafka.schema_registry.url", "carries a user: write username and password as keys of their own, an address gets logged")
		}
	} else if r.Username != "" || r.Password.IsSet() {
		p.at("kafka.schema_registry", "has a user and no url")
	}
}

// saslNeeds says what each mechanism takes.
var saslNeeds = map[string]string{"PLAIN": "password", "SCRAM-SHA-256": "password", "SCRAM-SHA-512": "password", "OAUTHBEARER": "token", "AWS_MSK_IAM": "env"}

func (s *SASL) validate(p *problems, field string) {
	if s == nil {
		return
	}
	if s.Mechanism == "" {
		p.at(field+".mechanism", "is missing: %s", words(slices.Sorted(maps.Keys(saslNeeds))))
		return
	}
	if !oneOf(p, field+".mechanism", s.Mechanism, slices.Sorted(maps.Keys(saslNeeds))...) {
		return
	}
	needs := saslNeeds[s.Mechanism]
	if needs == "password" {
		if s.Username == "" {
			p.at(field+".username", "is missing: %s needs it", s.Mechanism)
		}
		if !s.Password.IsSet() {
			p.at(field+".password", "is missing: %s needs it", s.Mechanism)
		}
	} else if s.Username != "" || s.Password.IsSet() {
		p.at(field, "username and password mean nothing to %s: remove them", s.Mechanism)
	}
	if needs == "token" {
		if s.Token.IsSet() == (s.TokenFile != "") {
			p.at(field, "OAUTHBEARER needs token or token_file, one of them")
		}
	} else if s.Token.IsSet() || s.TokenFile != "" {
		p.at(field, "token and token_file belong to OAUTHBEARER: remove them")
	}
}

func (t *TLS) validate(p *problems, field string) {
	if t == nil {
		return
	}
	if (t.Cert == "") != (t.Key == "") {
		p.at(field, "cert and key belong together: give both or none")
	}
	if t.InsecureSkipVerify && (t.CA != "" || t.ServerName != "") {
		p.at(field, "insecure_skip_verify believes any certificate, so ca and server_name check nothing: remove one side")
	}
}

func (c *ClickHouse) validate(p *problems) {
	validateAddresses(p, "clickhouse.addresses", c.Addresses, 9000)
	for i, a := range c.Addresses {
		if _, port, err := net.SplitHostPort(a); err == nil && (port == "8123" || port == "8443") {
			p.at(fmt.Sprintf("clickhouse.addresses[%d]", i), "%s is ClickHouse's HTTP port; the sink speaks the native protocol: 9000, or 9440 with tls", port)
		}
	}
	if c.Balanced && len(c.Addresses) > 1 {
		p.at("clickhouse.balanced", "is for one balanced address, here are %d; replicas that are listed one by one need it not", len(c.Addresses))
	}
	if c.Database == "" {
		p.at("clickhouse.database", "is empty; remove the line for %q", Default().ClickHouse.Database)
	} else if !identifier.MatchString(c.Database) {
		p.at("clickhouse.database", "%q is no name of a database", c.Database)
	}
	oneOf(p, "clickhouse.compression", c.Compression, "lz4", "zstd", "none")
	// Shorter, an ordinary network delay makes inserts late; longer, each crash stalls its partitions so long.
	if c.InsertDeadline < time.Second || c.InsertDeadline > 5*time.Minute {
		p.at("clickhouse.insert_deadline", "%s is out of bounds: 1s to 5m", FormatDuration(c.InsertDeadline))
	}
	if c.InsertTimeout < c.InsertDeadline {
		p.at("clickhouse.insert_timeout", "%s is shorter than insert_deadline (%s): every insert would be given up before it may start",
			FormatDuration(c.InsertTimeout), FormatDuration(c.InsertDeadline))
	}
	c.TLS.validate(p, "clickhouse.tls")
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		if why := whyPinned(strings.ToLower(strings.TrimSpace(name))); why != "" {
			p.at("clickhouse.settings."+name, "is pinned by the sink: %s; remove the line", why)
		}
	}
}

func (r *Redis) validate(p *problems) {
	validateAddresses(p, "redis.addresses", r.Addresses, 6379)
	if oneOf(p, "redis.mode", r.Mode, "standalone", "cluster", "sentinel") {
		switch {
		case r.Mode == "sentinel" && r.Master == "":
			p.at("redis.master", "is missing: with mode sentinel name the master that the sentinels watch")
		case r.Mode != "sentinel" && r.Master != "":
			p.at("redis.master", "belongs to mode sentinel, and the mode is %s: set mode: sentinel or remove the line", r.Mode)
		case r.Mode == "standalone" && len(r.Addresses) > 1:
			p.at("redis.addresses", "has %d addresses; standalone is one server: set mode: cluster or mode: sentinel", len(r.Addresses))
		case r.Mode == "cluster" && r.DB != 0:
			p.at("redis.db", "must be 0: a Redis cluster has one database")
		}
	}
	if r.DB < 0 || r.DB > 65535 {
		p.at("redis.db", "%d is out of bounds: 0 to 65535", r.DB)
	}
	if oneOf(p, "redis.on_outage", r.OnOutage, "wait", "pass") && r.OnOutage == "pass" {
		p.at("redis.on_outage", "pass (write undeduplicated rows while Redis is down) is not in this version: use wait")
	}
	r.TLS.validate(p, "redis.tls")
}

func (c *Config) validateBatch(p *problems) {
	// Up to about a million rows or 256 MB an INSERT is all or nothing for each table partition; above, parts of it can be committed.
	if c.Batch.MaxRows < 1 || c.Batch.MaxRows > maxBatchRows {
		p.at("batch.max_rows", "%d is out of bounds: 1 to %d", c.Batch.MaxRows, maxBatchRows)
	}
	if c.Batch.MaxBytes < 1<<10 || c.Batch.MaxBytes > maxBatchBytes {
		p.at("batch.max_bytes", "%s is out of bounds: 1KiB to %s", c.Batch.MaxBytes, Size(maxBatchBytes))
	}
	if c.Batch.MaxAge < time.Millisecond || c.Batch.MaxAge > 5*time.Minute {
		p.at("batch.max_age", "%s is out of bounds: 1ms to 5m", FormatDuration(c.Batch.MaxAge))
	}
	if c.Batch.MaxInsertsPerSecond < 1 || c.Batch.MaxInsertsPerSecond > 1000 {
		p.at("batch.max_inserts_per_second", "%d is out of bounds: 1 to 1000", c.Batch.MaxInsertsPerSecond)
	}
}

// validateAcross checks what two sections must agree on.
func (c *Config) validateAcross(p *problems) {
	deadline := c.ClickHouse.InsertDeadline
	// A partition that is revoked lets go only when its worker has stopped; who is slower than the rebalance is thrown out of the group.
	if deadline+rebalanceSlack >= c.Kafka.RebalanceTimeout {
		p.at("kafka.rebalance_timeout", "%s must be more than clickhouse.insert_deadline + 10s (%s): raise it, or lower the deadline",
			FormatDuration(c.Kafka.RebalanceTimeout), FormatDuration(deadline+rebalanceSlack))
	}
	// A key must be remembered long after the last moment at which an insert of it may still land.
	if c.Redis.Horizon < horizonDeadlines*deadline {
		p.at("redis.horizon", "%s must be at least %d x clickhouse.insert_deadline (%s): raise it, or lower the deadline",
			FormatDuration(c.Redis.Horizon), horizonDeadlines, FormatDuration(horizonDeadlines*deadline))
	}
	// One batch in flight, one growing, their records as fetched, and what the next fetch brings.
	if need := batchesInMemory * c.Batch.MaxBytes; c.Memory.Limit < need {
		p.at("memory.limit", "%s must be at least %d x batch.max_bytes (%s): raise it, or lower max_bytes", c.Memory.Limit, batchesInMemory, need)
	}
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9.])?$`)

func validateAddresses(p *problems, field string, addresses []string, usualPort int) {
	if len(addresses) == 0 {
		p.at(field, "is missing: a list of host:port, like [localhost:%d]", usualPort)
	}
	seen := map[string]bool{}
	for i, a := range addresses {
		at := fmt.Sprintf("%s[%d]", field, i)
		if why := badAddress(a, false); why != "" {
			p.at(at, "%s, like localhost:%d", why, usualPort)
		} else if seen[a] {
			p.at(at, "%s stands here twice", a)
		}
		seen[a] = true
	}
}

// badAddress says what is wrong with host:port. To listen, the host may be missing and the port 0.
// An address with a scheme is not repeated in the message: it may carry a password.
func badAddress(address string, listen bool) string {
	if strings.Contains(address, "://") || strings.Contains(address, "@") {
		return "has a scheme or a user: write host:port alone"
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("%q is no host:port", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 || n == 0 && !listen {
		return fmt.Sprintf("%q has no port between 1 and 65535", address)
	}
	if host == "" && listen || net.ParseIP(strings.SplitN(host, "%", 2)[0]) != nil || hostName.MatchString(host) {
		return ""
	}
	return fmt.Sprintf("%q has no host", address)
}

func atLeast(p *problems, field string, got, low time.Duration) {
	if got < low {
		p.at(field, "%s is too short: at least %s", FormatDuration(got), FormatDuration(low))
	}
}

// oneOf checks a word against the known ones, and names the one that was meant.
func oneOf(p *problems, field, got string, known ...string) bool {
	if slices.Contains(known, got) {
		return true
	}
	p.at(field, "%q is none of: %s%s", got, words(known), nearmiss.Hint(got, known))
	return false
}

func words(list []string) string { return strings.Join(list, ", ") }
