package dedup

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// numbered are n records whose keys nobody else uses.
func numbered(from, n int) []Item {
	list := make([]Item, n)
	var canonical [8]byte
	for i := range list {
		binary.BigEndian.PutUint64(canonical[:], uint64(from+i))
		list[i] = Item{Key: Hasher{}.Key(canonical[:]), Fingerprint: 1, Offset: int64(from + i), EventMs: testEvent}
	}
	return list
}

// A slot that was laid out for a few keys gets 60,000, in batches that overflow
// every bucket at once: no verdict changes, and no bucket leaves the compact
// encoding.
func TestASlotGrowsInTheMiddleOfABatch(t *testing.T) {
	srv := startRedis(t)
	s := openAt(t, srv.Addr, nil)
	s.Expect(1)
	opened(t, s)
	slow := openAt(t, srv.Addr, nil) // its view of the layers is always old
	slow.Expect(1)
	all := 0
	r := &Reply{}
	for n := 0; all < 60_000; n++ {
		size := 1 + all/2
		b := &Batch{Source: source0(0), First: int64(all), Nonce: uint32(n), Items: numbered(all, size)}
		must(t, s.Claim(t.Context(), b, r))
		wantVerdicts(t, fmt.Sprint("new keys at ", all), r, strings.Repeat("N", size))
		all += size
		if n%4 == 0 {
			b := &Batch{Source: source0(1), Nonce: uint32(n), Items: numbered(all/2, all-all/2)}
			must(t, slow.Claim(t.Context(), b, r))
			wantVerdicts(t, "another sink asks", r, strings.Repeat("D", all-all/2))
		}
	}
	must(t, s.Claim(t.Context(), &Batch{Source: source0(0), First: 0, Nonce: 1 << 30, Items: numbered(0, all)}, r))
	wantVerdicts(t, "all of them again", r, strings.Repeat("M", all))
	c := srv.client()
	defer func() { _ = c.Close() }()
	layers, buckets := map[string]bool{}, 0
	eachKey(t, c, func(key string) {
		at := strings.IndexByte(key, '.') // of the domain id
		at += 1 + strings.IndexByte(key[at+1:], '.')
		if !strings.Contains(key[strings.IndexByte(key, '}'):], ".") {
			return
		}
		buckets++
		layers[key[at+1:at+2]] = true
		if enc := c.ObjectEncoding(t.Context(), key).Val(); enc != "listpack" {
			t.Fatalf("%s is a %s", key, enc)
		}
	})
	if len(layers) < 2 || buckets < 300 {
		t.Fatalf("layers %v, %d buckets: the slot did not grow", layers, buckets)
	}
}

func eachKey(t *testing.T, c *redis.Client, visit func(key string)) {
	t.Helper()
	it := c.Scan(context.Background(), 0, "osink:*", 1000).Iterator()
	for it.Next(context.Background()) {
		visit(it.Val())
	}
	must(t, it.Err())
}

// The next slot begins with the size that the last one turned out to need.
func TestANewSlotLearnsFromTheOneBefore(t *testing.T) {
	srv := startRedis(t)
	s := openAt(t, srv.Addr, nil)
	s.Expect(1)
	opened(t, s)
	r := &Reply{}
	must(t, s.Claim(t.Context(), &Batch{Source: source0(0), Nonce: 1, Items: numbered(0, 40_000)}, r))
	// A layer that grew is for the next call, which learns of it.
	must(t, s.Claim(t.Context(), &Batch{Source: source0(0), Nonce: 2, Items: numbered(50_000, 10)}, r))
	next := numbered(100_000, 10)
	for i := range next {
		next[i].EventMs += time.Hour.Milliseconds()
	}
	must(t, s.Claim(t.Context(), &Batch{Source: source0(0), Nonce: 1, Items: next}, r))
	wantVerdicts(t, "new slot", r, "NNNNNNNNNN")
	slot := floorDiv(testEvent, time.Hour.Milliseconds()) + 1
	key := fmt.Sprintf("osink:{%s.0}:s%s", domainID("db.events"), strings.ToLower(base36(slot)))
	if layers := fmt.Sprint(srv.do("get", key)); len(layers) != 1 || layers[0] < 8 || layers[0] > 10 {
		t.Fatalf("layers of the next slot: %q, want about 2^9 buckets for 40,000 keys", layers)
	}
}

func base36(n int64) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	text := ""
	for ; n > 0; n /= 36 {
		text = string(digits[n%36]) + text
	}
	return text
}

// Every key that holds claims expires, a horizon after now or after the end of
// its slot, whichever is later; a claim that is used again lives on (field cases
// D9, D16).
func TestEveryClaimExpiresAHorizonAfterItsUse(t *testing.T) {
	srv := startRedis(t)
	horizon, slack := time.Hour, time.Minute
	s := openAt(t, srv.Addr, nil)
	opened(t, s)
	hour := time.Hour.Milliseconds()
	ages := []int64{-30 * 24 * hour, -hour, 0, 3 * hour}
	var items []Item
	for i, age := range ages {
		it := testItem(i, int64(i))
		it.EventMs = time.Now().UnixMilli() + age
		items = append(items, it)
	}
	items[0].EventMs = -5 * hour / 2 // before 1970
	b := &Batch{Source: source0(0), Nonce: 1, Items: items}
	wantVerdicts(t, "slots far apart", claimed(t, s, b), "NNNN")
	c := srv.client()
	defer func() { _ = c.Close() }()
	want := map[string]time.Time{}
	now := time.Now()
	for _, it := range items {
		slot := floorDiv(it.EventMs, hour)
		end := time.UnixMilli((slot + 1) * hour)
		if end.Before(now) {
			end = now
		}
		text := base36(slot)
		if slot < 0 {
			text = "-" + base36(-slot)
		}
		want[text] = end.Add(horizon + slack)
	}
	check := func() {
		t.Helper()
		eachKey(t, c, func(key string) {
			name := key[strings.IndexByte(key, '}')+2:]
			if len(name) == 1 { // marker, acked, interned owners
				return
			}
			ttl := c.PTTL(context.Background(), key).Val()
			if ttl <= 0 {
				t.Fatalf("%s does not expire", key)
			}
			slot, _, _ := strings.Cut(strings.TrimPrefix(name, "s"), ".")
			if at, ok := want[slot]; ok {
				if off := time.Until(at) - ttl; off.Abs() > 20*time.Second {
					t.Errorf("%s expires in %v, want %v", key, ttl, time.Until(at))
				}
			}
		})
	}
	check()
	// Half an hour later the holder of the late claims renews: they live on.
	eachKey(t, c, func(key string) {
		if strings.Contains(key[strings.IndexByte(key, '}'):], "-") {
			must(t, c.PExpire(context.Background(), key, 20*time.Minute).Err())
		}
	})
	b.Nonce = 2
	wantVerdicts(t, "again", claimed(t, s, b), "MMMM")
	check()
}

// Without event time a key is asked for in the slots of a whole horizon, and
// forgotten after it.
func TestArrivalSlotsRememberAHorizon(t *testing.T) {
	srv := startRedis(t)
	s := openAt(t, srv.Addr, func(c *Config, d *Domain) {
		c.Horizon, c.Slack, d.EventTime = 700*time.Millisecond, time.Millisecond, false
	})
	opened(t, s)
	marker := markerKey("db.events", 0)
	first := &Batch{Source: source0(0), Nonce: 1, Items: []Item{testItem(1, 1)}}
	ask := &Batch{Source: source0(1), Nonce: 1, Items: []Item{testItem(1, 1)}}
	claimed(t, s, first)
	slot := fmt.Sprint(srv.do("hget", marker, "max"))
	turns := 0
	for {
		r := claimed(t, s, ask)
		if now := fmt.Sprint(srv.do("hget", marker, "max")); now != slot {
			slot = now
			turns++
		}
		if turns == 1 && letters(r) != "D" {
			t.Fatalf("forgotten in the very next slot: %s", letters(r))
		}
		if letters(r) == "N" {
			break
		}
		if turns > 3 {
			t.Fatal("never forgotten")
		}
		time.Sleep(10 * time.Millisecond)
	}
	// A clock that steps back must not hide what was claimed in the newer slot.
	claimed(t, s, first)
	srv.do("hincrby", marker, "max", 3)
	third := &Batch{Source: source0(2), Nonce: 1, Items: []Item{testItem(7, 1)}}
	claimed(t, s, third)
	third.Source = source0(3)
	wantVerdicts(t, "after a step back", claimed(t, s, third), "D")
}

// A claim costs no allocation a row.
func TestClaimingAllocatesNothingPerRow(t *testing.T) {
	srv := startRedis(t)
	s := openAt(t, srv.Addr, nil)
	opened(t, s)
	r := &Reply{}
	b := &Batch{Source: source0(0), Nonce: 1, Items: numbered(0, 20_000)}
	must(t, s.Claim(t.Context(), b, r))
	n := testing.AllocsPerRun(5, func() {
		b.Nonce++
		if err := s.Claim(t.Context(), b, r); err != nil {
			t.Error(err)
		}
	})
	if n > 200 {
		t.Fatalf("%.0f allocations for 20,000 rows", n)
	}
}
