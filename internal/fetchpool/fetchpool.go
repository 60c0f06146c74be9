// Package fetchpool keeps the memory of fetched Kafka records for reuse: the
// slices that franz-go decompresses into and those of its records, which come
// back once every record of a fetched batch was recycled.
//
// Records are held until their offsets are committed, much longer than the
// time between two garbage collections, which empty a sync.Pool; so these are
// shelves of their own, by size: a slice much larger than asked for would be
// cleared and held for nothing, one too small be outgrown by copying. What lies
// idle is bounded; the rest is left to the collector.
package fetchpool

import (
	"math/bits"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	bytesMost   = 48 << 20 // idle bytes
	recordsMost = 150_000  // idle records, about 190 bytes each
	// growth is how many times larger a batch is expected to come out than its
	// compressed form; one that comes out larger is copied once.
	growth = 5
)

// Pool implements kgo.PoolDecompressBytes and kgo.PoolRecords. It is safe for
// concurrent use.
type Pool struct {
	bytes   shelves[byte]
	records shelves[kgo.Record]
}

// New returns an empty pool.
func New() *Pool {
	return &Pool{bytes: shelves[byte]{most: bytesMost}, records: shelves[kgo.Record]{most: recordsMost}}
}

// GetDecompressBytes returns an empty slice to decompress into.
func (p *Pool) GetDecompressBytes(compressed []byte, _ kgo.CompressionCodecType) []byte {
	const slack = 1024 // the reader wants some room at the end
	return p.bytes.get(growth*len(compressed) + slack)
}

// PutDecompressBytes takes a slice back.
func (p *Pool) PutDecompressBytes(s []byte) { p.bytes.put(s) }

// GetRecords returns an empty slice with room for n records.
func (p *Pool) GetRecords(n int) []kgo.Record { return p.records.get(n) }

// PutRecords takes a slice back.
func (p *Pool) PutRecords(s []kgo.Record) { p.records.put(s) }

// shelves hold slices by size, four sizes a doubling.
type shelves[T any] struct {
	most int

	mu   sync.Mutex
	idle int // elements of all slices that lie here
	by   [sizes][][]T
}

const sizes = 4 * 28

// size is the capacity of slices that are made for a shelf: 4, 5, 6, 7, 8, 10, 12, …
func size(shelf int) int { return (4 + shelf%4) << (shelf / 4) }

// below is the last shelf whose size is at most n, for n of at least 4.
func below(n int) int {
	shift := bits.Len(uint(n)) - 3
	return 4*shift + n>>shift - 4
}

func (s *shelves[T]) get(n int) []T {
	n = max(n, 4)
	first := below(n)
	if size(first) < n {
		first++
	}
	s.mu.Lock()
	for shelf := first; shelf < min(first+3, sizes); shelf++ {
		if k := len(s.by[shelf]); k > 0 {
			out := s.by[shelf][k-1]
			s.by[shelf][k-1] = nil
			s.by[shelf] = s.by[shelf][:k-1]
			s.idle -= cap(out)
			s.mu.Unlock()
			return out
		}
	}
	s.mu.Unlock()
	if first >= sizes {
		return make([]T, 0, n)
	}
	return make([]T, 0, size(first))
}

func (s *shelves[T]) put(out []T) {
	n := cap(out)
	if n < 4 {
		return
	}
	shelf := below(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if shelf < sizes && s.idle+n <= s.most {
		s.idle += n
		s.by[shelf] = append(s.by[shelf], out[:0])
	}
}
