package decode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/cespare/xxhash/v2"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// testHasher hashes with xxhash and two seeds, without the sink's own setup.
type testHasher struct{}

func (testHasher) Key(c []byte) batcher.Key {
	h := xxhash.Sum64(c)
	return batcher.Key{Hi: h*0x9E3779B97F4A7C15 + uint64(len(c)), Lo: h}
}

func (testHasher) Field(name string, c []byte) uint64 {
	return xxhash.Sum64String(name)*0x9E3779B97F4A7C15 ^ xxhash.Sum64(c)
}

// seededHasher is testHasher as a FieldSeeder.
type seededHasher struct{ testHasher }

func (seededHasher) Seed(name string) uint64 {
	return xxhash.Sum64String(name) * 0x9E3779B97F4A7C15
}

func (seededHasher) Seeded(seed uint64, c []byte) uint64 { return seed ^ xxhash.Sum64(c) }

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

// mustAppend appends records that must be taken.
func mustAppend(t testing.TB, b *Block, records ...string) (rows []Row) {
	t.Helper()
	for _, r := range records {
		row, rej := b.plan.Append(b, value(r))
		if rej != nil {
			t.Fatalf("%s: %v", r, rej)
		}
		rows = append(rows, row)
	}
	return rows
}

// overTheWire encodes a block as ch-go sends it, in both of its ways, and
// reads it into another.
func overTheWire(t testing.TB, b *Block) *Block {
	t.Helper()
	head := proto.Block{Columns: len(b.cols), Rows: b.rows}
	var buf proto.Buffer
	if err := head.EncodeRawBlock(&buf, proto.Version, b.Input()); err != nil {
		t.Fatal(err)
	}
	var vectored bytes.Buffer
	w := proto.NewWriter(&vectored, new(proto.Buffer))
	head.Info = proto.BlockInfo{}
	if err := head.WriteBlock(w, 0, b.Input()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	var plain proto.Buffer
	if err := head.EncodeRawBlock(&plain, 0, b.Input()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(plain.Buf, vectored.Bytes()) {
		t.Fatal("EncodeColumn and WriteColumn differ")
	}
	out := b.plan.NewBlock()
	var results proto.Results
	for i, c := range out.cols {
		results = append(results, proto.ResultColumn{Name: b.plan.cols[i].Name, Data: c})
	}
	var got proto.Block
	r := buf.Reader()
	if err := got.DecodeRawBlock(r, proto.Version, results); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Fatal("bytes are left behind the block")
	}
	out.rows = got.Rows
	return out
}

// rows prints a block, one line a row.
func (b *Block) String() string {
	var s strings.Builder
	for i := range b.rows {
		for n, c := range b.cols {
			if n > 0 {
				s.WriteString(" | ")
			}
			s.WriteString(show(c, i))
		}
		s.WriteByte('\n')
	}
	return s.String()
}

// show prints row i of a column.
func show(c column, i int) string {
	switch c := c.(type) {
	case *jsonCol:
		return string(c.at(i))
	case *strCol:
		return strconv.Quote(string(c.at(i)))
	case *fixedStrCol:
		return strconv.Quote(string(c.at(i)))
	case *lowCardCol:
		if c.nullable && c.keys[i] == 0 {
			return "NULL"
		}
		return show(c.dict, int(c.keys[i]))
	case *qbitCol:
		var list []string
		for e := range c.n {
			list = append(list, show(c.val, i*c.n+e))
		}
		return "[" + strings.Join(list, ",") + "]"
	case *tupleCol:
		var list []string
		for n, e := range c.elems {
			if c.names != nil {
				list = append(list, c.names[n]+"="+show(e, i))
			} else {
				list = append(list, show(e, i))
			}
		}
		return "(" + strings.Join(list, ",") + ")"
	case *wideCol[i128, *i128]:
		return showWide(c.v[i].get(), c.signed, 0)
	case *wideCol[ui128, *ui128]:
		return showWide(c.v[i].get(), c.signed, 0)
	case *wideCol[i256, *i256]:
		return showWide(c.v[i].get(), c.signed, 0)
	case *dec256Col:
		return showWide(u256(c.v[i]), true, c.scale)
	case *bfloatCol:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(c.v[i])<<16)), 'g', -1, 32)
	case *hoursCol[int32]:
		return showHours(int64(c.v[i]), 1)
	case *hoursCol[int64]:
		return showHours(c.v[i], c.second)
	case *boolCol:
		return strconv.FormatBool(c.v[i] == 1)
	case *nullCol:
		if c.nulls[i] != 0 {
			return "NULL"
		}
		return show(c.val, i)
	case *arrCol:
		var list []string
		for e := c.off.end(i); e < c.off.end(i+1); e++ {
			list = append(list, show(c.val, e))
		}
		return "[" + strings.Join(list, ",") + "]"
	case *mapCol:
		var list []string
		for e := c.off.end(i); e < c.off.end(i+1); e++ {
			list = append(list, show(c.key, e)+":"+show(c.val, e))
		}
		return "{" + strings.Join(list, ",") + "}"
	case *decCol[int32]:
		return showDecimal(big.NewInt(int64(c.v[i])), c.scale)
	case *decCol[int64]:
		return showDecimal(big.NewInt(c.v[i]), c.scale)
	case *dec128Col:
		v := new(big.Int).Lsh(big.NewInt(int64(c.v[i].hi)), 64)
		return showDecimal(v.Add(v, new(big.Int).SetUint64(c.v[i].lo)), c.scale)
	case *dateCol[uint16]:
		return time.Unix(int64(c.v[i])*86400, 0).UTC().Format(time.DateOnly)
	case *dateCol[int32]:
		return time.Unix(int64(c.v[i])*86400, 0).UTC().Format(time.DateOnly)
	case *timeCol[uint32]:
		return showTime(c.instant(i))
	case *timeCol[int64]:
		return showTime(c.instant(i))
	case *uuidCol:
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], c.v[i].hi)
		binary.BigEndian.PutUint64(b[8:], c.v[i].lo)
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	case *ipv4Col:
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], c.v[i])
		return netip.AddrFrom4(b).String()
	case *ipv6Col:
		return netip.AddrFrom16(c.v[i]).String()
	case *enumCol[int8]:
		return strconv.Quote(c.labels[c.v[i]])
	case *enumCol[int16]:
		return strconv.Quote(c.labels[c.v[i]])
	case *floatCol[float32]:
		return strconv.FormatFloat(float64(c.v[i]), 'g', -1, 32)
	case *floatCol[float64]:
		return strconv.FormatFloat(c.v[i], 'g', -1, 64)
	case *intCol[int8]:
		return fmt.Sprint(c.v[i])
	case *intCol[int16]:
		return fmt.Sprint(c.v[i])
	case *intCol[int32]:
		return fmt.Sprint(c.v[i])
	case *intCol[int64]:
		return fmt.Sprint(c.v[i])
	case *intCol[uint8]:
		return fmt.Sprint(c.v[i])
	case *intCol[uint16]:
		return fmt.Sprint(c.v[i])
	case *intCol[uint32]:
		return fmt.Sprint(c.v[i])
	case *intCol[uint64]:
		return fmt.Sprint(c.v[i])
	}
	panic(fmt.Sprintf("cannot show %T", c))
}

func showWide(v u256, signed bool, scale int) string {
	n := new(big.Int)
	for i := 3; i >= 0; i-- {
		n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(v[i]))
	}
	if signed && v[3]>>63 == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 256))
	}
	return showDecimal(n, scale)
}

func showHours(ticks, second int64) string {
	sign := ""
	if ticks < 0 {
		sign, ticks = "-", -ticks
	}
	s := ticks / second
	text := fmt.Sprintf("%s%02d:%02d:%02d", sign, s/3600, s/60%60, s%60)
	if second > 1 {
		text += "." + strconv.FormatInt(second+ticks%second, 10)[1:]
	}
	return text
}

func showDecimal(v *big.Int, scale int) string {
	s := new(big.Int).Abs(v).String()
	for len(s) <= scale {
		s = "0" + s
	}
	if scale > 0 {
		s = s[:len(s)-scale] + "." + s[len(s)-scale:]
	}
	if v.Sign() < 0 {
		s = "-" + s
	}
	return s
}

func showTime(sec int64, nano uint32) string {
	return time.Unix(sec, int64(nano)).UTC().Format(time.RFC3339Nano)
}
