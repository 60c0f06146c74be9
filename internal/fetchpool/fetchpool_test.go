package fetchpool

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The client trusts that the capacity is there.
func TestRecordsHaveTheRoomThatWasAskedFor(t *testing.T) {
	p := New()
	for n := range 5000 {
		s := p.GetRecords(n)
		if len(s) != 0 || cap(s) < n {
			t.Fatalf("asked for %d records: length %d, capacity %d", n, len(s), cap(s))
		}
		if n >= 4 && cap(s) > n+n/4+1 {
			t.Fatalf("asked for %d records: a capacity of %d is held for nothing", n, cap(s))
		}
	}
}

// A slice of an odd size, outgrown by its reader, must not be taken for more than it is.
func TestWhatComesBackIsNeverTooSmall(t *testing.T) {
	for n := 1; n < 3000; n++ {
		p := New()
		p.PutRecords(make([]kgo.Record, n))
		for want := 1; want <= n+n/2; want += 1 + n/7 {
			s := p.GetRecords(want)
			if cap(s) < want {
				t.Fatalf("put %d, asked for %d, got %d", n, want, cap(s))
			}
			p.PutRecords(s)
		}
	}
}

func TestMemoryIsUsedAgainAndBounded(t *testing.T) {
	p := New()
	a := p.GetDecompressBytes(make([]byte, 10_000), kgo.CodecLz4)
	a = append(a, 1)
	p.PutDecompressBytes(a)
	b := p.GetDecompressBytes(make([]byte, 10_000), kgo.CodecLz4)
	if b = append(b, 2); &a[0] != &b[0] {
		t.Error("a slice that came back was not used again")
	}
	for range 100 {
		p.PutDecompressBytes(make([]byte, 1<<20))
	}
	if p.bytes.idle > bytesMost {
		t.Errorf("%d bytes lie idle, at most %d may", p.bytes.idle, bytesMost)
	}
}
