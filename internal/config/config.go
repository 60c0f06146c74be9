// Package config reads sink.yaml: every knob, its default, its unit and what it trades.
//
// Contract: [Load] and [Parse] either return a configuration whose values are in bounds and agree with each other, or an [*Invalid]
// that names all problems at once, each with its line and field. Unknown and duplicate keys are problems. `${VAR}`, `${VAR:-default}` and `${file:/path}`
// are expanded inside scalar values, after the YAML was parsed, so that a value can never become structure. Secrets are never printed,
// not even in an error about them.
//
// Not promised: that the servers exist, that the table has these columns, or that a password is right. `sink check` asks them.
package config

import (
	"regexp"
	"time"
)

// Config is a whole sink.yaml. The yaml tags are a contract with users: extend them, don't rename them.
type Config struct {
	Kafka      Kafka      `yaml:"kafka"`
	ClickHouse ClickHouse `yaml:"clickhouse"`
	Redis      Redis      `yaml:"redis"`
	Routes     []Route    `yaml:"routes"`
	Batch      Batch      `yaml:"batch"`
	Memory     Memory     `yaml:"memory"`
	HTTP       HTTP       `yaml:"http"`
	Log        Log        `yaml:"log"`

	source source // for the problems that Validate finds
	file   string
}

// Kafka is where records come from.
type Kafka struct {
	Brokers          []string       `yaml:"brokers"`
	Group            string         `yaml:"group"`
	SessionTimeout   time.Duration  `yaml:"session_timeout"`
	RebalanceTimeout time.Duration  `yaml:"rebalance_timeout"`
	Isolation        string         `yaml:"isolation"`
	Start            string         `yaml:"start"`
	StartupTimeout   time.Duration  `yaml:"startup_timeout"`
	InstanceID       string         `yaml:"instance_id"`
	TLS              *TLS           `yaml:"tls"`
	SASL             *SASL          `yaml:"sasl"`
	SchemaRegistry   SchemaRegistry `yaml:"schema_registry"`
}

// TLS being there at all (`tls: {}`) switches encryption on, with the system's roots.
type TLS struct {
	CA                 string `yaml:"ca"`
	Cert               string `yaml:"cert"`
	Key                string `yaml:"key"`
	ServerName         string `yaml:"server_name"`
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"`
}

// SASL is how the sink proves to Kafka who it is.
type SASL struct {
	Mechanism string `yaml:"mechanism"`
	Username  string `yaml:"username"`
	Password  Secret `yaml:"password"`
	Token     Secret `yaml:"token"`
	TokenFile string `yaml:"token_file"`

	env Lookup // AWS credentials come from the environment
}

// SchemaRegistry serves the schemas of Avro and Protobuf records.
type SchemaRegistry struct {
	URL      string `yaml:"url"`
	Username string `yaml:"username"`
	Password Secret `yaml:"password"`
}

// ClickHouse is where rows go: the replicas of one shard.
type ClickHouse struct {
	Addresses      []string          `yaml:"addresses"`
	Balanced       bool              `yaml:"balanced"`
	Database       string            `yaml:"database"`
	Username       string            `yaml:"username"`
	Password       Secret            `yaml:"password"`
	TLS            *TLS              `yaml:"tls"`
	Compression    string            `yaml:"compression"`
	InsertDeadline time.Duration     `yaml:"insert_deadline"`
	InsertTimeout  time.Duration     `yaml:"insert_timeout"`
	Settings       map[string]string `yaml:"settings"`
}

// Redis remembers the keys.
type Redis struct {
	Mode             string        `yaml:"mode"`
	Addresses        []string      `yaml:"addresses"`
	Master           string        `yaml:"master"`
	Username         string        `yaml:"username"`
	Password         Secret        `yaml:"password"`
	TLS              *TLS          `yaml:"tls"`
	DB               int           `yaml:"db"`
	Horizon          time.Duration `yaml:"horizon"`
	AssumeNoEviction bool          `yaml:"assume_noeviction"`
	OnOutage         string        `yaml:"on_outage"`
}

// Route leads topics into a table.
type Route struct {
	Topics        []string          `yaml:"topics"`
	TopicPattern  string            `yaml:"topic_pattern"`
	Table         string            `yaml:"table"`
	Format        string            `yaml:"format"`
	Key           []string          `yaml:"key"`
	EventTime     string            `yaml:"event_time"`
	Ignore        []string          `yaml:"ignore"`
	UnknownFields string            `yaml:"unknown_fields"`
	MissingFields string            `yaml:"missing_fields"`
	OnConflict    string            `yaml:"on_conflict"`
	DeadLetter    string            `yaml:"dead_letter"`
	Columns       map[string]Column `yaml:"columns"`

	pattern *regexp.Regexp
}

// Column says where a column's value comes from when that isn't the field of its own name.
type Column struct {
	From string `yaml:"from"`
}

// Batch is when a batch is cut, for each table.
type Batch struct {
	MaxRows             int           `yaml:"max_rows"`
	MaxBytes            Size          `yaml:"max_bytes"`
	MaxAge              time.Duration `yaml:"max_age"`
	MaxInsertsPerSecond int           `yaml:"max_inserts_per_second"`
}

// Memory is one budget for all partitions.
type Memory struct {
	Limit Size `yaml:"limit"`
}

// HTTP is the port of health, metrics and the status page.
type HTTP struct {
	Listen string `yaml:"listen"`
}

// Log is what goes to stderr.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// Default is the configuration before a file is read. Names and addresses have no default.
func Default() *Config {
	return &Config{
		Kafka: Kafka{
			SessionTimeout: 45 * time.Second, RebalanceTimeout: 60 * time.Second,
			Isolation: "read_committed", Start: "earliest",
		},
		ClickHouse: ClickHouse{
			Database: "default", Compression: "lz4",
			InsertDeadline: 5 * time.Second, InsertTimeout: 60 * time.Second,
		},
		Redis:  Redis{Mode: "standalone", Horizon: 24 * time.Hour, OnOutage: "wait"},
		Batch:  Batch{MaxRows: 100_000, MaxBytes: 16 << 20, MaxAge: time.Second, MaxInsertsPerSecond: 20},
		Memory: Memory{Limit: 512 << 20},
		HTTP:   HTTP{Listen: ":8080"},
		Log:    Log{Level: "info", Format: "json"},
	}
}

// DefaultRoute is a route before its part of the file is read.
func DefaultRoute() Route {
	return Route{Format: "json", UnknownFields: "reject", MissingFields: "reject", OnConflict: "dead_letter"}
}

// File is the path that the configuration was read from.
func (c *Config) File() string { return c.file }

// DeadLetterTopics are the topics that the sink writes: it never reads one of them through a pattern.
func (c *Config) DeadLetterTopics() []string {
	var topics []string
	seen := map[string]bool{}
	for _, r := range c.Routes {
		if r.DeadLetter != "" && !seen[r.DeadLetter] {
			seen[r.DeadLetter] = true
			topics = append(topics, r.DeadLetter)
		}
	}
	return topics
}

// RoutesOf returns the routes that a topic takes, in the file's order. Patterns meet neither dead-letter topics nor Kafka's own (`__…`).
func (c *Config) RoutesOf(topic string) []*Route {
	var routes []*Route
	for i := range c.Routes {
		if c.Routes[i].lists(topic) || c.Routes[i].matches(topic) && !c.excluded(topic) {
			routes = append(routes, &c.Routes[i])
		}
	}
	return routes
}

func (c *Config) excluded(topic string) bool {
	if len(topic) > 1 && topic[:2] == "__" {
		return true
	}
	for i := range c.Routes {
		if c.Routes[i].DeadLetter == topic {
			return true
		}
	}
	return false
}

func (r *Route) lists(topic string) bool {
	for _, t := range r.Topics {
		if t == topic {
			return true
		}
	}
	return false
}

func (r *Route) matches(topic string) bool {
	return r.pattern != nil && r.pattern.MatchString(topic)
}
