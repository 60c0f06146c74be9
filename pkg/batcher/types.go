// Package batcher holds what a batch is: the small types that every room
// shares (source, owner, range, key) and the decision where a batch ends.
//
// It is pure: values in, values out, no clock, no goroutine, no I/O.
package batcher

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Key is the 128-bit hash of a record's business key.
type Key struct{ Hi, Lo uint64 }

// Less orders keys, so that sets of them can be listed the same way twice.
func (k Key) Less(o Key) bool {
	if k.Hi != o.Hi {
		return k.Hi < o.Hi
	}
	return k.Lo < o.Lo
}

// TopicID is the UUID that Kafka gives a topic. A topic deleted and created
// again starts at offset 0 under another id, so it is part of every identity
// that is made of offsets.
type TopicID [16]byte

// Source names one partition of one topic of one cluster for good.
// It is comparable and usable as a map key.
type Source struct {
	Cluster   string // Kafka's cluster id
	Topic     TopicID
	Partition int32
}

// String is the persistent text form: cluster/topic id in hex/partition.
// Characters of the cluster id outside [A-Za-z0-9_.-] are percent-encoded.
func (s Source) String() string {
	return Escape(s.Cluster) + "/" + hex.EncodeToString(s.Topic[:]) + "/" + strconv.Itoa(int(s.Partition))
}

// ParseSource reads what String wrote.
func ParseSource(text string) (Source, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return Source{}, fmt.Errorf("source %q: want cluster/topic id/partition", text)
	}
	cluster, err := Unescape(parts[0])
	if err != nil {
		return Source{}, fmt.Errorf("source %q: %w", text, err)
	}
	id, err := hex.DecodeString(parts[1])
	if err != nil || len(id) != 16 {
		return Source{}, fmt.Errorf("source %q: the topic id must be 32 hex digits", text)
	}
	p, err := strconv.ParseInt(parts[2], 10, 32)
	if err != nil {
		return Source{}, fmt.Errorf("source %q: bad partition: %w", text, err)
	}
	return Source{Cluster: cluster, Topic: TopicID(id), Partition: int32(p)}, nil
}

// Owner is a record together with the consumer group that reads it.
type Owner struct {
	Group  string
	Source Source
	Offset int64
}

func (o Owner) String() string {
	return fmt.Sprintf("%s %s@%d", o.Group, o.Source, o.Offset)
}

// Range is a contiguous range of offsets of one partition, both ends included.
type Range struct{ First, Last int64 }

// Next is the offset behind the range: what a commit past it names.
func (r Range) Next() int64 { return r.Last + 1 }

// Contains tells whether the offset lies in the range.
func (r Range) Contains(offset int64) bool { return offset >= r.First && offset <= r.Last }

func (r Range) String() string { return fmt.Sprintf("[%d..%d]", r.First, r.Last) }

const safe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

// Escape percent-encodes every byte outside [A-Za-z0-9_.-], so that a name can
// stand between slashes in tokens, query ids and store keys.
func Escape(name string) string {
	clean := true
	for i := 0; i < len(name); i++ {
		if strings.IndexByte(safe, name[i]) < 0 {
			clean = false
			break
		}
	}
	if clean {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if strings.IndexByte(safe, name[i]) >= 0 {
			b.WriteByte(name[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", name[i])
		}
	}
	return b.String()
}

// Unescape reverses Escape.
func Unescape(text string) (string, error) {
	if strings.IndexByte(text, '%') < 0 {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", fmt.Errorf("%q ends inside an escape", text)
		}
		v, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("%q has a bad escape", text)
		}
		b.WriteByte(byte(v))
		i += 2
	}
	return b.String(), nil
}
