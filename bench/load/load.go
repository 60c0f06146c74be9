// Package load makes settlements as a billing system would send them, with the
// duplicates that producers make, and knows what a correct sink ends with. The
// same seed gives the same records.
package load

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// Options shape a load.
type Options struct {
	Seed       uint64
	Rows       int     // records in all, duplicates included
	Duplicates float64 // share of records that repeat an earlier one
	Elsewhere  float64 // share of the duplicates that go to another partition
	Partitions int
	Tenants    int
	Start      time.Time     // settlement time of the first; zero: an hour ago
	Spread     time.Duration // settlement times run from Start over this; 0: 50 minutes
}

// Truth is what the table and the report must hold in the end.
type Truth struct {
	Keys   int64 // distinct
	Amount int64 // sum over distinct keys, in units of 0.0001
	Qty    int64
}

// AmountText is the amount as a Decimal(38, 4) prints it, without trailing zeros.
func (t Truth) AmountText() string { return decimal(t.Amount) }

// Settlement is one business event.
type Settlement struct {
	SettleMs int64
	ID       string
	Rev      uint32
	Tenant   int
	Amount   int64 // 0.0001
	Qty      int64
}

// Generator makes records one by one. Not safe for concurrent use.
type Generator struct {
	o      Options
	made   int
	rng    *rand.Rand
	truth  Truth
	recent []Settlement // what duplicates are taken from
	last   Settlement
	repeat bool
	buf    []byte
}

const recentMost = 50_000

// New starts a load.
func New(o Options) *Generator {
	if o.Start.IsZero() {
		o.Start = time.Now().Add(-time.Hour)
	}
	if o.Spread == 0 {
		o.Spread = 50 * time.Minute
	}
	if o.Partitions == 0 {
		o.Partitions = 8
	}
	if o.Tenants == 0 {
		o.Tenants = 50
	}
	return &Generator{o: o, rng: rand.New(rand.NewPCG(o.Seed, 0x6f6e6365))} //nolint:gosec // repeatable test data
}

// Truth is what the records made so far add up to.
func (g *Generator) Truth() Truth { return g.truth }

// Made is the number of records made so far.
func (g *Generator) Made() int { return g.made }

// Last is the settlement of the latest record, and whether an earlier record
// had it already.
func (g *Generator) Last() (s Settlement, repeat bool) { return g.last, g.repeat }

// TruthOf is what a whole load adds up to, without sending it.
func TruthOf(o Options) Truth {
	g := New(o)
	for {
		if _, _, ok := g.Next(); !ok {
			return g.Truth()
		}
	}
}

// Next returns the next record's value, valid until the next call, and its
// partition. ok is false at the end.
func (g *Generator) Next() (value []byte, partition int32, ok bool) {
	if g.made >= g.o.Rows {
		return nil, 0, false
	}
	i := g.made
	g.made++
	if len(g.recent) > 0 && g.rng.Float64() < g.o.Duplicates {
		s := &g.recent[g.rng.IntN(len(g.recent))]
		g.last, g.repeat = *s, true
		p := g.home(s)
		if g.rng.Float64() < g.o.Elsewhere {
			p = int32(g.rng.IntN(g.o.Partitions)) //nolint:gosec // small
		}
		return g.Encode(s, time.Now().UnixMilli()), p, true
	}
	s := Settlement{
		SettleMs: g.o.Start.UnixMilli() + int64(float64(g.o.Spread.Milliseconds())*float64(i)/float64(g.o.Rows)),
		ID:       fmt.Sprintf("st-%016x-%08d", g.o.Seed, i), Rev: uint32(g.rng.IntN(3)), Tenant: g.rng.IntN(g.o.Tenants), //nolint:gosec // small
		Amount: g.rng.Int64N(5_000_000_000) + 1, Qty: g.rng.Int64N(1000) + 1,
	}
	g.truth.Keys++
	g.truth.Amount += s.Amount
	g.truth.Qty += s.Qty
	g.last, g.repeat = s, false
	if len(g.recent) < recentMost {
		g.recent = append(g.recent, s)
	} else {
		g.recent[g.rng.IntN(recentMost)] = s
	}
	return g.Encode(&s, time.Now().UnixMilli()), g.home(&s), true
}

// home is the partition that a settlement's first record goes to.
func (g *Generator) home(s *Settlement) int32 {
	h := uint32(2166136261)
	for i := 0; i < len(s.ID); i++ {
		h = (h ^ uint32(s.ID[i])) * 16777619
	}
	return int32(h % uint32(g.o.Partitions)) //nolint:gosec // small
}

// Recent returns settlements that were made, for sending some again by hand.
func (g *Generator) Recent() []Settlement { return g.recent }

// Home is the partition of a settlement.
func (g *Generator) Home(s *Settlement) int32 { return g.home(s) }

// Encode writes a settlement as JSON; createMs is the time of this writing,
// which the dedup ignores. The slice is valid until the next call.
func (g *Generator) Encode(s *Settlement, createMs int64) []byte {
	b := g.buf[:0]
	b = append(b, `{"settle_ms":`...)
	b = strconv.AppendInt(b, s.SettleMs, 10)
	b = append(b, `,"id":"`...)
	b = append(b, s.ID...)
	b = append(b, `","rev":`...)
	b = strconv.AppendUint(b, uint64(s.Rev), 10)
	b = append(b, `,"tenant":"tenant-`...)
	b = strconv.AppendInt(b, int64(s.Tenant), 10)
	b = append(b, `","amount":`...)
	b = append(b, decimal(s.Amount)...)
	b = append(b, `,"qty":`...)
	b = strconv.AppendInt(b, s.Qty, 10)
	b = append(b, `,"currency":"`...)
	b = append(b, [...]string{"EUR", "USD", "JPY"}[s.Tenant%3]...)
	b = append(b, `","create_time":`...)
	b = strconv.AppendInt(b, createMs, 10)
	b = append(b, '}')
	g.buf = b
	return b
}

// decimal prints units of 0.0001 as the shortest exact decimal.
func decimal(v int64) string {
	s := strconv.FormatInt(v/10_000, 10)
	if f := v % 10_000; f != 0 {
		t := fmt.Sprintf("%04d", f)
		for t[len(t)-1] == '0' {
			t = t[:len(t)-1]
		}
		s += "." + t
	}
	return s
}

// Table is the statement that makes the target table; %s is its name. Window
// is its dedup window in blocks.
func Table(name string, window int) string {
	return fmt.Sprintf(`CREATE TABLE %s (
  settle_ms Int64, id String, rev UInt32, tenant LowCardinality(String), amount Decimal(18, 4), qty UInt64,
  currency LowCardinality(String), create_time DateTime64(3, 'UTC')
) ENGINE = MergeTree PARTITION BY toYYYYMM(fromUnixTimestamp64Milli(settle_ms)) ORDER BY (settle_ms, id, rev)
SETTINGS non_replicated_deduplication_window = %d`, name, window)
}

// Report returns the statements that make the report table and the view which
// fills it from the target table.
func Report(table, report string, window int) []string {
	return []string{
		fmt.Sprintf(`CREATE TABLE %s (tenant LowCardinality(String), day Date, amount Decimal(38, 4), qty UInt64, events UInt64)
ENGINE = SummingMergeTree ORDER BY (tenant, day) SETTINGS non_replicated_deduplication_window = %d`, report, window),
		fmt.Sprintf(`CREATE MATERIALIZED VIEW %s_mv TO %s AS
SELECT tenant, toDate(fromUnixTimestamp64Milli(settle_ms), 'UTC') AS day, sum(amount) AS amount, sum(qty) AS qty, count() AS events FROM %s GROUP BY tenant, day`, report, report, table),
	}
}
