package dedup

import (
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// Keys lie in stores for a horizon: a function that changes makes every
// remembered key new.
func TestHashesStayWhatTheyAre(t *testing.T) {
	for _, c := range []struct {
		canonical string
		want      batcher.Key
		field     uint64
	}{
		{"", batcher.Key{Hi: 0xef46db3751d8e999, Lo: 0xc4349fc93c010000}, 0x15f08de8b273af32},
		{"settlement", batcher.Key{Hi: 0xbf71d5190568c890, Lo: 0x060dd710941eee2d}, 0x396612053b8d3673},
		{"\x01\x00\x00\x00\x00\x00\x00\x00\x2a", batcher.Key{Hi: 0x7e1480456b8f3aa6, Lo: 0xf80026d08419c0b4}, 0x1d8b8e843431311b},
	} {
		if got := (Hasher{}).Key([]byte(c.canonical)); got != c.want {
			t.Errorf("Key(%q) = {0x%016x, 0x%016x}", c.canonical, got.Hi, got.Lo)
		}
		if got := (Hasher{}).Field("amount", []byte(c.canonical)); got != c.field {
			t.Errorf("Field(amount, %q) = 0x%016x", c.canonical, got)
		}
	}
	if domainID("db.events") != "14df7d5872" {
		t.Errorf("domain id %s", domainID("db.events"))
	}
	if got := hex.EncodeToString(appendEntry(nil, entry{id: 3, fresh: true, offset: 1<<40 - 2, fp: 0xa0b0c0d0, nonce: 7})); got != "00000dfffffffffea0b0c0d000000007" {
		t.Errorf("entry %s", got)
	}
	if got := hex.EncodeToString(appendField(nil, batcher.Key{Hi: 0x0102030405060708, Lo: 0x1112131415161718})); got != "07081112131415161718" {
		t.Errorf("field %s", got)
	}
}

// D12: the name belongs to the value, and names do not run into values.
func TestFieldsDoNotTradePlaces(t *testing.T) {
	h := Hasher{}
	if h.Field("a", []byte("1")) == h.Field("b", []byte("1")) || h.Field("a", []byte("b1")) == h.Field("ab", []byte("1")) {
		t.Error("a value is the same under another name")
	}
	if domainName(Domain{Database: "a.b", Table: "c"}) == domainName(Domain{Database: "a", Table: "b.c"}) {
		t.Error("two tables share a domain")
	}
}

func TestHashingAllocatesNothing(t *testing.T) {
	key := []byte("0123456789012345678901234567890123456789")
	if n := testing.AllocsPerRun(100, func() { _, _ = Hasher{}.Key(key), Hasher{}.Field("name", key) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// D14: against a plain map, with removals, keys that share their home slot and
// reuse over rounds.
func TestSeenEqualsAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var s Seen
	for round := range 200 {
		s.Reset(rnd.IntN(100))
		want := map[batcher.Key]int{}
		for i := range 1 + rnd.IntN(600) {
			k := batcher.Key{Hi: uint64(rnd.IntN(3)), Lo: uint64(rnd.IntN(40)) << (rnd.IntN(2) * 20)}
			if rnd.IntN(4) == 0 {
				_, had := want[k]
				delete(want, k)
				if s.Remove(k) != had {
					t.Fatalf("round %d: Remove(%v) != %v", round, k, had)
				}
				continue
			}
			first, seen := s.Add(k, i)
			if at, had := want[k]; had != seen || had && at != first {
				t.Fatalf("round %d: Add(%v) = %d %v, want %d %v", round, k, first, seen, at, had)
			}
			if !seen {
				want[k] = i
			}
		}
		if s.Len() != len(want) {
			t.Fatalf("round %d: %d keys, want %d", round, s.Len(), len(want))
		}
	}
}

func TestSeenAllocatesNothingWhenReused(t *testing.T) {
	var s Seen
	s.Reset(1000)
	keys := make([]batcher.Key, 1000)
	for i := range keys {
		keys[i] = Hasher{}.Key([]byte(strconv.Itoa(i)))
	}
	if n := testing.AllocsPerRun(20, func() {
		s.Reset(len(keys))
		for i, k := range keys {
			s.Add(k, i)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The round number wraps after 2^32 batches; old entries must not come back.
func TestSeenSurvivesItsRoundsWrapping(t *testing.T) {
	var s Seen
	s.Reset(1)
	s.Add(batcher.Key{Lo: 1}, 0)
	s.round = ^uint32(0)
	s.Add(batcher.Key{Lo: 2}, 0)
	s.Reset(1)
	for lo := range uint64(3) {
		if _, seen := s.Add(batcher.Key{Lo: lo}, 0); seen {
			t.Errorf("key %d came back", lo)
		}
	}
}

// Fingerprints lie in the store: a decoder that hashes names ahead must come to
// the same ones.
func TestSeededFieldsAreTheSameFields(t *testing.T) {
	for _, name := range []string{"", "a", "amount", strings.Repeat("long ", 40)} {
		for _, value := range []string{"", "0", `"x`, strings.Repeat("value ", 100)} {
			if got, want := (Hasher{}).Seeded(Hasher{}.Seed(name), []byte(value)), (Hasher{}).Field(name, []byte(value)); got != want {
				t.Errorf("field %q of %q: seeded %x, whole %x", name, value, got, want)
			}
			if got, want := (Hasher{}).Field(name, []byte(value)), fieldOfVersion1(name, value); got != want {
				t.Errorf("field %q of %q: %x, version 1 is %x", name, value, got, want)
			}
		}
	}
}

func fieldOfVersion1(name, value string) uint64 {
	d := xxhash.NewWithSeed(xxhash.Sum64String(name) ^ 0xc2b2ae3d27d4eb4f)
	_, _ = d.WriteString(value)
	return d.Sum64()
}
