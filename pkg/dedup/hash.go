package dedup

import (
	"github.com/cespare/xxhash/v2"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// HashVersion names the two functions below. Keys and fingerprints lie in the
// store for a horizon: another hash is another version and another domain.
const HashVersion = 1

// Seeds of version 1. The first half of a key is plain xxhash64.
const (
	seedLow   = 0x9e3779b97f4a7c15
	seedField = 0xc2b2ae3d27d4eb4f
)

// Hasher hashes keys and fields. The zero value is ready.
type Hasher struct{}

// Key hashes the canonical bytes of a business key to 128 bits.
func (Hasher) Key(canonical []byte) batcher.Key {
	var d xxhash.Digest
	d.ResetWithSeed(seedLow)
	_, _ = d.Write(canonical)
	return batcher.Key{Hi: xxhash.Sum64(canonical), Lo: d.Sum64()}
}

// Field hashes one field of a record for the fingerprint. The name seeds the
// hash of the value, so that a value moved to another field differs.
func (h Hasher) Field(name string, canonical []byte) uint64 { return h.Seeded(h.Seed(name), canonical) }

// Seed is the part of Field that the name alone decides: names are few, and a
// decoder hashes each of them once.
func (Hasher) Seed(name string) uint64 { return xxhash.Sum64String(name) ^ seedField }

// Seeded is Field for the name of that seed.
func (Hasher) Seeded(seed uint64, canonical []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	_, _ = d.Write(canonical)
	return d.Sum64()
}

// Fold shortens a record's fingerprint to what a claim stores of it.
// It is never UnknownFingerprint.
func Fold(fingerprint uint64) uint32 {
	if f := uint32(fingerprint>>32) ^ uint32(fingerprint); f != UnknownFingerprint {
		return f
	}
	return 1
}

// UnknownFingerprint is that of a row read from the table: the record behind it
// is not known, so that it equals any.
const UnknownFingerprint = 0
