package dedup

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkClaim claims b.N keys of one hour in batches, all new, and tells
// what a claim costs here and in Redis, and what a key takes there. For 5 M keys:
//
//	go test ./pkg/dedup -run - -bench Claim -benchtime 5000000x
func BenchmarkClaim(b *testing.B) {
	for _, size := range []int{1000, 20000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) { benchmarkClaim(b, size, 0) })
	}
}

// BenchmarkClaimExpected is the same with the slot's size known.
func BenchmarkClaimExpected(b *testing.B) {
	for _, size := range []int{1000, 20000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) { benchmarkClaim(b, size, b.N) })
	}
}

func benchmarkClaim(b *testing.B, size, expect int) {
	srv := startRedis(b, "--appendonly", "no")
	s := openAt(b, srv.Addr, nil)
	s.Expect(expect)
	slot := time.Now().UnixMilli()
	items := make([]Item, size)
	batch := &Batch{Source: source0(0), Nonce: 1}
	var canonical [8]byte
	var r Reply
	n := 0
	next := func() {
		batch.First = int64(n)
		batch.Items = items[:min(size, max(1, b.N-n))]
		for i := range batch.Items {
			binary.BigEndian.PutUint64(canonical[:], uint64(n+i))
			key := Hasher{}.Key(canonical[:])
			items[i] = Item{Key: key, Fingerprint: uint32(key.Lo), Offset: int64(n + i), EventMs: slot}
		}
		n += len(batch.Items)
	}
	next()
	claimed(b, s, batch)
	before, cpu := srv.figure("memory", "used_memory"), srv.cpu()
	b.ReportAllocs()
	b.ResetTimer()
	var spent time.Duration
	for n < b.N {
		next()
		from := ownCPU()
		if err := s.Claim(b.Context(), batch, &r); err != nil {
			b.Fatal(err)
		}
		spent += ownCPU() - from
	}
	b.StopTimer()
	rows := float64(max(1, b.N-size))
	b.ReportMetric((srv.cpu()-cpu)*1e9/rows, "redis-ns/claim")
	b.ReportMetric(float64(spent.Nanoseconds())/rows, "client-ns/claim")
	b.ReportMetric((srv.figure("memory", "used_memory")-before)/rows, "redis-B/key")
}

func (s *server) figure(section, name string) float64 {
	info := fmt.Sprint(s.do("info", section))
	v, err := strconv.ParseFloat(strings.TrimSpace(infoField(info, name)), 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *server) cpu() float64 {
	return s.figure("cpu", "used_cpu_user") + s.figure("cpu", "used_cpu_sys")
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
