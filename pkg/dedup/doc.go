// Package dedup remembers who wrote a key: claims in Redis, each with the
// record that owns it, and for every consumer group and partition the run of
// offsets whose rows are known to be in ClickHouse (acked).
//
// # Contract
//
// Every method may be called again with the same arguments after any error and
// after a lost reply: a claim carries the nonce of its attempt, and a call that
// is repeated with the same nonce gives the same answer. Each answer is the
// decision of one script, atomic within a hash-tag group (the whole domain,
// except in a Redis Cluster), taken under an epoch that the Ticket names.
//
// The store may lose writes: a restart, a failover, FLUSHALL, another store at
// its address. Whoever meets another server process, another replication
// history, no marker, another table, or an epoch below the largest it knows,
// raises the epoch and starts a quarantine; until it ends claims are refused
// (*Quarantine), and afterwards Reply.Verify says that absence from the store
// proves nothing yet.
//
// # Not promised
//
// A server that drops single entries (eviction, DEL by hand) is not noticed;
// Open and Check refuse eviction policies. A server that reports the same
// process and replication history after losing writes is not noticed either, nor
// are two stores at one address at the same time.
// Without event time a key is remembered for the horizon and no longer.
//
// Store is the client. It works over Redis, or over Memory, the same semantics
// in plain Go under a given clock for simulations; a test holds the two equal.
package dedup
