package writer

import (
	"fmt"
	"testing"

	"github.com/ClickHouse/ch-go/proto"
)

// BenchmarkInsert sends blocks of 100,000 settlements of 8 columns.
func BenchmarkInsert(b *testing.B) {
	for _, compression := range []string{"none", "lz4", "zstd"} {
		b.Run(compression, func(b *testing.B) {
			s := open(b, Config{Addresses: []string{engine(b).TCPAddr}, Database: "oncesink", Compression: compression})
			n := tableName()
			exec(b, s, "CREATE TABLE "+n+" (settle_ms UInt64, id UInt64, rev UInt32, tenant LowCardinality(String), amount Decimal(18, 4), qty UInt32, kind Enum8('a' = 1, 'b' = 2), note String) "+
				"ENGINE = MergeTree ORDER BY (settle_ms, id, rev) SETTINGS non_replicated_deduplication_window = 1000")
			table, err := s.Describe(b.Context(), n)
			if err != nil {
				b.Fatal(err)
			}
			const rows = 100_000
			var ms, id proto.ColUInt64
			var rev, qty proto.ColUInt32
			tenant := new(proto.ColStr).LowCardinality()
			var amount proto.ColInt64
			var kind proto.ColInt8
			note := new(proto.ColStr)
			for i := range rows {
				ms.Append(1_700_000_000_000 + uint64(i/7))
				id.Append(uint64(i) * 0x9E3779B97F4A7C15)
				rev.Append(uint32(i % 3))
				tenant.Append(fmt.Sprint("tenant-", i%50))
				amount.Append(int64(i) * 37)
				qty.Append(uint32(i % 100))
				kind.Append(int8(i%2) + 1)
				note.Append(fmt.Sprint("settlement ", i))
			}
			input := proto.Input{
				{Name: "settle_ms", Data: &ms}, {Name: "id", Data: &id}, {Name: "rev", Data: &rev}, {Name: "tenant", Data: tenant}, {Name: "amount", Data: proto.Alias(&amount, "Decimal(18, 4)")},
				{Name: "qty", Data: &qty}, {Name: "kind", Data: proto.Alias(&kind, "Enum8('a' = 1, 'b' = 2)")}, {Name: "note", Data: note},
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if r := s.Insert(b.Context(), "", statement(table, fmt.Sprint("block ", i), input)); r.Outcome != Written {
					b.Fatal(r.Err())
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
