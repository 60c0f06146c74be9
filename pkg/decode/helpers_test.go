package decode

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/oncesink/oncesink/pkg/batcher"
)

// testHasher hashes the way the sink does: xxhash with two seeds.
type testHasher struct{}

func (testHasher) Key(c []byte) batcher.Key {
	var d xxhash.Digest
	d.ResetWithSeed(1)
	d.Write(c)
	return batcher.Key{Hi: d.Sum64(), Lo: xxhash.Sum64(c)}
}

func (testHasher) Field(name string, c []byte) uint64 {
	return xxhash.Sum64String(name)*0x9E3779B97F4A7C15 ^ xxhash.Sum64(c)
}

// recordingHasher keeps the canonical bytes it is given.
type recordingHasher struct {
	testHasher
	key    []byte
	fields map[string]string
}

func (h *recordingHasher) Key(c []byte) batcher.Key {
	h.key = append(h.key[:0], c...)
	return h.testHasher.Key(c)
}

func (h *recordingHasher) Field(name string, c []byte) uint64 {
	if h.fields == nil {
		h.fields = map[string]string{}
	}
	h.fields[strings.Clone(name)] = string(c)
	return h.testHasher.Field(name, c)
}

func mustPlan(t testing.TB, o Options) *JSON {
	t.Helper()
	if o.Hasher == nil {
		o.Hasher = testHasher{}
	}
	d, err := NewJSON(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func value(s string) *Record { return &Record{TimestampMs: -1, Value: []byte(s)} }

var _ = binary.LittleEndian
