package decode

import (
	"time"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// Column is a column of the target table as the server reports it in
// system.columns.
type Column struct {
	Name string
	Type string
	// DefaultKind is "", "DEFAULT", "MATERIALIZED", "ALIAS" or "EPHEMERAL".
	DefaultKind string
	DefaultExpr string
}

// Hasher turns canonical bytes into the key and into the fingerprint of a
// field. It must neither retain nor change what it is given: names and bytes
// lie in the record.
type Hasher interface {
	Key(canonical []byte) batcher.Key
	Field(name string, canonical []byte) uint64
}

// FieldSeeder is a Hasher that can hash the name of a field once for all
// records: Seeded(Seed(name), canonical) equals Field(name, canonical).
type FieldSeeder interface {
	Seed(name string) uint64
	Seeded(seed uint64, canonical []byte) uint64
}

// Policy says what becomes of a record with a field that no column takes.
type Policy uint8

const (
	// RejectUnknown rejects the record.
	RejectUnknown Policy = iota
	// IgnoreUnknown leaves the field out of the row, counts it by name (see
	// Block.UnknownFields) and keeps it in the fingerprint.
	IgnoreUnknown
)

// Missing says what becomes of a record without the field of a column that is
// neither Nullable nor has a DEFAULT.
type Missing uint8

const (
	// RejectMissing rejects the record: nothing says what the value is, and an
	// amount that was forgotten is not 0.
	RejectMissing Missing = iota
	// ZeroMissing takes the default of the column's type: 0, "", 1970-01-01, [].
	ZeroMissing
)

// Options describe one route into one table.
type Options struct {
	Columns []Column
	// Key names the columns of the business key, in the order that is hashed.
	Key []string
	// EventTime names the column whose value is the event time; it must be
	// part of the key. Empty: none.
	EventTime string
	// EventTimeUnit is the unit of an integer EventTime column whose name
	// does not end in _ms. 0 means milliseconds.
	EventTimeUnit time.Duration
	// MaxFutureMs rejects a record whose event time is later than its Kafka
	// timestamp by more than this. 0 means no bound. The bound is taken from
	// the record, not from a clock, so that a retry decides the same.
	MaxFutureMs int64
	// Ignore names columns and fields that are no part of the fingerprint.
	Ignore        []string
	UnknownFields Policy
	MissingFields Missing
	// From gives a column a source other than the field of its own name:
	// a path ("payload.amount"; a dot inside a name is written \.) or one of
	// $timestamp, $topic, $partition, $offset, $key, $header.NAME.
	From map[string]string
	// TimeZone is the zone of the server, for time text without a zone into a
	// column without a zone. nil means UTC.
	TimeZone *time.Location
	Hasher   Hasher
}

// Record is one Kafka record. Nothing of it is retained.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	// TimestampMs is the record's time; negative means that it has none.
	TimestampMs int64
	Key, Value  []byte
	// Headers returns the value of the header of that name. nil: no headers.
	Headers func(name string) ([]byte, bool)
}

// Row is what the protocol needs to know of a decoded row.
type Row struct {
	Key         batcher.Key
	Fingerprint uint64
	// EventTimeMs is valid where Options.EventTime is set.
	EventTimeMs int64
}
