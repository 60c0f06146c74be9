package config

import (
	"fmt"
	"io"
	"strings"
)

// Knob documents one field of sink.yaml: its default and what a change of it trades.
type Knob struct {
	Field   string // the path, with [] for each item of a list and * for a free name
	Default string // as one would write it; "" : none
	Values  string // what it may be, where that isn't plain
	Doc     string
}

// Knobs are all of them, in the file's order. A test holds them against the structs and their defaults.
var Knobs = []Knob{
	{"kafka.brokers", "", "host:port, …", "Where to find the cluster; one that answers is enough, more survive the loss of one. A ${VAR} may hold several, with commas."},
	{"kafka.group", "", "", "The consumer group. It owns the offsets: another name starts from the beginning, and the rows that are there already are then counted as duplicates, not written."},
	{"kafka.session_timeout", "45s", "", "How long Kafka waits for a silent sink before it gives its partitions away. Shorter: faster fail-over, but a long pause of the machine costs a rebalance."},
	{"kafka.rebalance_timeout", "60s", "more than clickhouse.insert_deadline + 10s", "How long the members of the group may take to let go of their partitions. Shorter: faster rebalances, but who needs longer is thrown out."},
	{"kafka.isolation", "read_committed", "read_committed | read_uncommitted", "read_committed waits for open transactions and leaves out aborted ones; read_uncommitted is sooner and may write what its producer took back."},
	{"kafka.start", "earliest", "earliest", "Where a group without offsets starts. From the first record there is: a later start would skip records unseen."},
	{"kafka.startup_timeout", "0", "0 or a duration", "How long to wait at the start for servers that don't answer; 0: for ever, which survives any order of starting. Longer than 0: a wrong address ends in an error."},
	{"kafka.instance_id", "", "", "Static membership: a restart within session_timeout costs no rebalance, but partitions of a sink that died wait that long. It must be one of its own for each sink."},
	{"kafka.tls", "", "{} for the system's roots", "Encrypts. Costs some CPU a byte; without it everybody on the way can read the records."},
	{"kafka.tls.ca", "", "file", "Trusts this authority instead of the system's. Read at the start."},
	{"kafka.tls.cert", "", "file", "The client's certificate, with key. Read again when the file changes, so that rotation needs no restart."},
	{"kafka.tls.key", "", "file", "The key of cert. Keep its mode at 0600."},
	{"kafka.tls.server_name", "", "", "The name to expect in the server's certificate when it differs from the address."},
	{"kafka.tls.insecure_skip_verify", "false", "", "Believes any certificate: encrypted, but not protected against somebody in between. For tests."},
	{"kafka.sasl", "", "", "Authentication at the brokers."},
	{"kafka.sasl.mechanism", "", "PLAIN | SCRAM-SHA-256 | SCRAM-SHA-512 | OAUTHBEARER | AWS_MSK_IAM", "PLAIN and OAUTHBEARER show the secret to the server: use them with tls. AWS_MSK_IAM takes AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN from the environment."},
	{"kafka.sasl.username", "", "", "For PLAIN and SCRAM."},
	{"kafka.sasl.password", "", "", "For PLAIN and SCRAM. As ${file:/path} it is read again at each authentication, so that rotation needs no restart."},
	{"kafka.sasl.token", "", "", "For OAUTHBEARER. As ${file:/path} it is read again at each authentication."},
	{"kafka.sasl.token_file", "", "file", "For OAUTHBEARER: the token, read again at each authentication."},
	{"kafka.schema_registry.url", "", "", "Where the schemas of avro and protobuf records are. Not in this version: json needs none."},
	{"kafka.schema_registry.username", "", "", "For a registry with authentication."},
	{"kafka.schema_registry.password", "", "", "For a registry with authentication."},

	{"clickhouse.addresses", "", "host:port, …", "The replicas of one shard, native protocol (9000, with tls 9440). More than one: inserts go on when one is down."},
	{"clickhouse.balanced", "false", "", "The one address is a balancer before several replicas (ClickHouse Cloud). Questions about running inserts then go to all of them through clusterAllReplicas, which needs the grant REMOTE."},
	{"clickhouse.database", "default", "", "For tables that are named without one."},
	{"clickhouse.username", "", "", "Empty: the server's default user."},
	{"clickhouse.password", "", "", "Best as ${file:/run/secrets/…} or ${VAR}."},
	{"clickhouse.tls", "", "{} for the system's roots", "Encrypts. Costs some CPU a byte; without it everybody on the way can read the rows."},
	{"clickhouse.tls.ca", "", "file", "Trusts this authority instead of the system's. Read at the start."},
	{"clickhouse.tls.cert", "", "file", "The client's certificate, with key. Read again when the file changes."},
	{"clickhouse.tls.key", "", "file", "The key of cert. Keep its mode at 0600."},
	{"clickhouse.tls.server_name", "", "", "The name to expect in the server's certificate when it differs from the address."},
	{"clickhouse.tls.insecure_skip_verify", "false", "", "Believes any certificate. For tests."},
	{"clickhouse.compression", "lz4", "lz4 | zstd | none", "Network against CPU: none is cheapest on the same machine, zstd smallest over a thin line, lz4 between."},
	{"clickhouse.insert_deadline", "5s", "1s to 5m", "How late an insert may still start on the server. After a crash the next owner waits at most what is left of it; shorter: faster recovery, but a busy server refuses more inserts as late and gets them again."},
	{"clickhouse.insert_timeout", "60s", "at least insert_deadline", "How long an answer may take; then the insert's outcome is unknown, and the sink waits until it is over and looks. Shorter than your slowest view: needless doubt; longer: a dead connection is noticed later."},
	{"clickhouse.settings", "", "{name: value}", "Settings for each insert. The ones that keep rows from doubling are pinned and can't be given here."},

	{"redis.mode", "standalone", "standalone | cluster | sentinel", "cluster spreads the keys over several servers; sentinel fails over to a replica, and keys that it hadn't got yet are looked up in ClickHouse."},
	{"redis.addresses", "", "host:port, …", "The server, some nodes of the cluster, or the sentinels."},
	{"redis.master", "", "", "With mode sentinel: the master's name."},
	{"redis.username", "", "", "Empty: the default user."},
	{"redis.password", "", "", "Best as ${file:/run/secrets/…} or ${VAR}."},
	{"redis.tls", "", "{} for the system's roots", "Encrypts. Costs some CPU a key."},
	{"redis.tls.ca", "", "file", "Trusts this authority instead of the system's. Read at the start."},
	{"redis.tls.cert", "", "file", "The client's certificate, with key. Read again when the file changes."},
	{"redis.tls.key", "", "file", "The key of cert. Keep its mode at 0600."},
	{"redis.tls.server_name", "", "", "The name to expect in the server's certificate when it differs from the address."},
	{"redis.tls.insecure_skip_verify", "false", "", "Believes any certificate. For tests."},
	{"redis.db", "0", "0 to 65535; 0 with mode cluster", "The numbered database."},
	{"redis.horizon", "24h", "at least 100 x clickhouse.insert_deadline", "How long a key is remembered. Longer: later repeats are caught without asking ClickHouse, for about 36 bytes of Redis a key. Without event_time nothing older is caught at all."},
	{"redis.assume_noeviction", "false", "", "Say true where the server hides its CONFIG (some clouds) and you know that maxmemory-policy is noeviction. Wrong: forgotten keys, rows twice."},
	{"redis.on_outage", "wait", "wait | pass", "While Redis is down: wait keeps every key single and lets lag grow; pass writes undeduplicated rows, and counts them."},

	{"routes[].topics", "", "names; or topic_pattern", "The topics, by name."},
	{"routes[].topic_pattern", "", "regular expression; or topics", "Topics by pattern, new ones too. Anchor it ('^a\\.'): an open one takes more than was meant. Dead-letter topics and Kafka's own are left out."},
	{"routes[].table", "", "table or database.table", "The target. Topics of several routes into one table share its keys."},
	{"routes[].format", "json", "json | avro | protobuf", "How records are encoded. In this version: json."},
	{"routes[].key", "", "columns", "The business key: two records with equal values are one row. The table's ORDER BY should start with it, or reading back is slow."},
	{"routes[].event_time", "", "a column of key", "The key's own time. With it, keys older than the horizon are looked up in ClickHouse and never written twice; without it the horizon is the limit."},
	{"routes[].ignore", "", "columns outside key", "Fields that may differ between two records of the same row (a time of sending). All others must be equal, or it is a conflict."},
	{"routes[].unknown_fields", "reject", "reject | ignore", "A field without a column: reject keeps the record for you in the dead letters; ignore drops the field's value."},
	{"routes[].missing_fields", "reject", "reject | zero", "A record without the field of a column that is neither Nullable nor has a DEFAULT: reject keeps it in the dead letters; zero writes the type's own zero, also for an amount that was forgotten. A DEFAULT in the table says it better."},
	{"routes[].on_conflict", "dead_letter", "dead_letter | stop", "Same key, other content: dead_letter keeps the first and goes on; stop halts the partition until somebody decides."},
	{"routes[].dead_letter", "", "topic", "Where records go that can't be written, with the reason. Created when missing and allowed. Without one such a record stops its partition."},
	{"routes[].columns.*.from", "", "field, field.inner, $topic, $partition, $offset, $timestamp, $key or $header.NAME", "Where a column's value comes from, when that isn't the field of its name."},

	{"batch.max_rows", "100000", "1 to 1000000", "Rows of one insert. More: cheaper a row for ClickHouse, more memory, and more to check again after a crash."},
	{"batch.max_bytes", "16MiB", "1KiB to 256MiB", "Bytes of one insert, with the same trade."},
	{"batch.max_age", "1s", "1ms to 5m", "How long a row may wait for others. Shorter: fresher rows, more and smaller inserts, more merging. It stretches to keep max_inserts_per_second."},
	{"batch.max_inserts_per_second", "20", "1 to 1000", "Inserts a second into one table, all partitions together. More: fresher rows; too many: \"too many parts\" in ClickHouse."},
	{"memory.limit", "512MiB", "at least 4 x batch.max_bytes", "One budget for fetches, queues and batches of all partitions. Less: more pauses of fetching; more: more work kept ready."},
	{"http.listen", ":8080", "host:port, or empty for none", "/healthz, /readyz, /metrics and the status page. No authentication: bind it to 127.0.0.1 where others may reach it."},
	{"log.level", "info", "debug | info | warn | error", "debug tells each batch; warn and error only what needs you."},
	{"log.format", "json", "json | text", "json for machines, text for eyes."},
}

// WriteKnobs prints the reference that `sink run --help` ends with.
func WriteKnobs(w io.Writer) error {
	if _, err := fmt.Fprint(w, "\nsink.yaml, every knob with its default. ${VAR}, ${VAR:-default} and ${file:/path} are replaced in any value; $$ is a dollar sign.\n"); err != nil {
		return err
	}
	section := ""
	for _, k := range Knobs {
		if s, _, _ := strings.Cut(k.Field, "."); s != section {
			section = s
			if _, err := fmt.Fprintf(w, "\n%s\n", section); err != nil {
				return err
			}
		}
		line := "  " + k.Field
		if k.Default != "" {
			line += ": " + k.Default
		}
		if k.Values != "" {
			line += "   (" + k.Values + ")"
		}
		if _, err := fmt.Fprintf(w, "%s\n%s", line, wrap(k.Doc, "      ", 100)); err != nil {
			return err
		}
	}
	return nil
}

// wrap breaks a text into indented lines of at most width letters.
func wrap(text, indent string, width int) string {
	var out strings.Builder
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width && line != indent {
			out.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	out.WriteString(line + "\n")
	return out.String()
}
