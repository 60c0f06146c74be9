package decode

import (
	"fmt"
	"testing"
)

func settlementColumns() []Column {
	return []Column{
		{Name: "settle_ms", Type: "DateTime64(3, 'UTC')"},
		{Name: "id", Type: "String"},
		{Name: "rev", Type: "UInt32"},
		{Name: "tenant", Type: "LowCardinality(String)"},
		{Name: "amount", Type: "Decimal(18, 4)"},
		{Name: "qty", Type: "UInt64"},
		{Name: "currency", Type: "LowCardinality(String)"},
		{Name: "create_time", Type: "DateTime64(3, 'UTC')"},
	}
}

func settlementOptions() Options {
	return Options{
		Columns: settlementColumns(), Key: []string{"settle_ms", "id", "rev"},
		EventTime: "settle_ms", Ignore: []string{"create_time"}, Hasher: seededHasher{},
	}
}

func settlement(i int) []byte {
	return fmt.Appendf(nil, `{"settle_ms":%d,"id":"settlement-%08d-a1b2c3d4e5f6","rev":%d,"tenant":"tenant-%03d","amount":%d.%02d,"qty":%d,"currency":"EUR","create_time":"2026-01-01T00:%02d:%02d.%03dZ"}`,
		1767225600123+int64(i)*7, i, i%3, i%200, i%100000, i%100, i*13%1000000, i/60%60, i%60, i%1000)
}

func BenchmarkSettlement(b *testing.B) {
	recs := make([][]byte, 10000)
	size := 0
	for i := range recs {
		recs[i] = settlement(i)
		size += len(recs[i])
	}
	d := mustPlan(b, settlementOptions())
	blk := d.NewBlock()
	r := Record{TimestampMs: 1767225600123}
	b.SetBytes(int64(size / len(recs)))
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if i%len(recs) == 0 {
			blk.Reset()
		}
		r.Value = recs[i%len(recs)]
		if _, rej := d.Append(blk, &r); rej != nil {
			b.Fatal(rej)
		}
	}
}
