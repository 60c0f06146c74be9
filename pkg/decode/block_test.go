package decode

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// allTypes is a table with each kind of column.
func allTypes() Options {
	return Options{
		Columns: []Column{
			{Name: "k", Type: "UInt32"}, {Name: "s", Type: "String"}, {Name: "f", Type: "FixedString(3)"},
			{Name: "lc", Type: "LowCardinality(String)"}, {Name: "lcn", Type: "LowCardinality(Nullable(String))"},
			{Name: "lcf", Type: "LowCardinality(FixedString(3))"}, {Name: "n", Type: "Nullable(String)"},
			{Name: "d", Type: "Decimal(38, 2)"}, {Name: "a", Type: "Array(Array(LowCardinality(Nullable(String))))"},
			{Name: "m", Type: "Map(String, Array(Nullable(UInt8)))"}, {Name: "u", Type: "UUID"},
			{Name: "w", Type: "Array(Int256)"}, {Name: "dd", Type: "Decimal(76, 1)"}, {Name: "h", Type: "Time64(3)"}, {Name: "bf", Type: "BFloat16"},
			{Name: "lv", Type: "LowCardinality(Nullable(UInt16))"}, {Name: "ld", Type: "LowCardinality(Date32)"}, {Name: "mi", Type: "Map(UInt16, LowCardinality(UInt64))"},
			{Name: "t", Type: "Nullable(Tuple(a LowCardinality(String), b Array(Tuple(UInt8, Nullable(String)))))"}, {Name: "ne", Type: "Nested(a UInt8, j JSON)"}, {Name: "e", Type: "Tuple()"}, {Name: "q", Type: "QBit(Float32, 9)"},
			{Name: "n.a", Type: "Array(UInt8)"}, {Name: "n.b", Type: "Array(String)"}, {Name: "ip", Type: "IPv6"},
		},
		Key: []string{"k"},
	}
}

func allTypesRecord(rnd *rand.Rand, k int, bad bool) string {
	text := func() string { return fmt.Sprintf("%q", strings.Repeat("v", rnd.IntN(3))+fmt.Sprint(rnd.IntN(9))) }
	orNull := func() string {
		if rnd.IntN(3) == 0 {
			return "null"
		}
		return text()
	}
	list := func(f func() string) string {
		var l []string
		for range rnd.IntN(4) {
			l = append(l, f())
		}
		return "[" + strings.Join(l, ",") + "]"
	}
	last := fmt.Sprintf("%q", fmt.Sprintf("::%x", rnd.IntN(1<<16)))
	if bad { // after all other columns have taken their value
		last = `"no address"`
	}
	fixed := func() string { return fmt.Sprintf("%q", fmt.Sprint(rnd.IntN(300))) }
	number := func() string { return fmt.Sprint(rnd.IntN(256)) }
	pair := func() string { return "[" + number() + "," + orNull() + "]" }
	tuple := fmt.Sprintf(`{"b":%s,"a":%s}`, list(pair), text())
	if rnd.IntN(3) == 0 {
		tuple = "null"
	}
	few := rnd.IntN(9)
	low := "null"
	if few > 2 {
		low = fmt.Sprint(few)
	}
	more := fmt.Sprintf(`"w":%s,"dd":-%d.5,"h":"%d:00:00.%03d","bf":%d,"lv":%s,"ld":"20%02d-01-01","mi":{"%d":%d,"%d":7},"t":%s,"ne":[{"j":{"x":%s},"a":1}],"e":[],"q":[%d,2,-3,4,5,6,7,8,9.5],"n.a":[%d,1],"n.b":["x",%s]`,
		list(number), few, few, few, few, low, few, few, few, few+1, tuple, number(), few, few, text())
	return fmt.Sprintf(`{"k":%d,"s":%s,"f":%s,"lc":%s,"lcn":%s,"lcf":%s,"n":%s,"d":%d.5,"a":%s,"m":{"x":%s,"y":[null]},"u":"61f0c404-5cb3-11e7-907b-%012x",%s,"ip":%s}`,
		k, text(), fixed(), text(), orNull(), fixed(), orNull(), rnd.Int64()-1<<62,
		list(func() string { return list(orNull) }), list(func() string { return fmt.Sprint(rnd.IntN(256)) }), rnd.IntN(1<<40), more, last)
}

// TestDroppedRowsLeaveATrace compares blocks under random appends, rejects,
// truncations, compactions, copies and resets with a list of printed rows.
func TestDroppedRowsLeaveATrace(t *testing.T) {
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		d := mustPlan(t, allTypes())
		b, other := d.NewBlock(), d.NewBlock()
		input := b.Input()
		var model []string
		for step := range 120 {
			switch op := rnd.IntN(20); {
			case op < 12:
				row := allTypesRecord(rnd, step, false)
				mustAppend(t, b, row)
				one := d.NewBlock()
				mustAppend(t, one, row)
				model = append(model, one.String())
			case op < 15:
				if _, rej := d.Append(b, value(allTypesRecord(rnd, step, true))); rej == nil {
					t.Fatal("taken")
				}
			case op < 16:
				n := rnd.IntN(len(model) + 1)
				b.Truncate(n)
				model = model[:n]
			case op < 17:
				sel := make([]bool, len(model))
				var kept []string
				for i := range sel {
					if sel[i] = rnd.IntN(3) > 0; sel[i] {
						kept = append(kept, model[i])
					}
				}
				b.Keep(sel)
				model = kept
			case op < 19 && len(model) > 0:
				i := rnd.IntN(len(model))
				other.Reset()
				other.AppendFrom(b, i)
				b.AppendFrom(other, 0)
				model = append(model, model[i])
			case op == 19 && rnd.IntN(4) == 0:
				b.Reset()
				model = model[:0]
			}
			if got, want := b.String(), strings.Join(model, ""); got != want || b.Rows() != len(model) {
				t.Fatalf("seed %d step %d: %d rows\n%swant:\n%s", seed, step, b.Rows(), got, want)
			}
		}
		if got := overTheWire(t, b).String(); got != strings.Join(model, "") {
			t.Fatalf("seed %d: over the wire:\n%s", seed, got)
		}
		for i, c := range b.Input() {
			if c.Data != input[i].Data {
				t.Fatal("Input has changed")
			}
		}
		// The dictionary holds what the rows use and nothing else.
		for _, c := range b.cols {
			if lc, is := c.(*lowCardCol); is {
				used := map[uint32]bool{}
				for _, k := range lc.keys {
					used[k] = true
				}
				if lc.nullable {
					used[0] = true
				}
				if len(used) != len(lc.born) || lc.dict.Rows() != len(lc.born) {
					t.Fatalf("seed %d: %d entries, %d used", seed, len(lc.born), len(used))
				}
			}
		}
	}
}

func TestDictionaryWidthsOnTheWire(t *testing.T) {
	for typ, sizes := range map[string][]int{
		"LowCardinality(String)":           {1, 256, 257, 65537},
		"LowCardinality(Nullable(String))": {255, 256, 65535},
	} {
		for _, n := range sizes {
			d := mustPlan(t, Options{Columns: []Column{{Name: "k", Type: typ}}, Key: []string{"k"}})
			b := d.NewBlock()
			for i := range n {
				mustAppend(t, b, fmt.Sprintf(`{"k":"%d"}`, i))
			}
			mustAppend(t, b, `{"k":"0"}`)
			wire := overTheWire(t, b)
			for i := range n + 1 {
				if got := show(wire.cols[0], i); got != strconv.Quote(strconv.Itoa(i%n)) {
					t.Fatalf("%s of %d values: row %d is %s", typ, n, i, got)
				}
			}
		}
	}
}

func TestHotPathAllocates(t *testing.T) {
	o := settlementOptions()
	o.UnknownFields = IgnoreUnknown
	for name, shape := range map[string]func(int) []byte{
		"settlement":    settlement,
		"unknown field": func(i int) []byte { return append(settlement(i)[:len(settlement(i))-1], `,"extra":[1,{"a":1.50}]}`...) },
		"quoted": func(i int) []byte {
			return fmt.Appendf(nil, `{"settle_ms":"%d","id":"x","rev":"%d","tenant":"t","amount":"%d.5","qty":"1.0","currency":"EUR","create_time":"2026-01-01 00:00:00"}`, 1767225600123+i, i, i)
		},
		"escapes": func(i int) []byte {
			return []byte(strings.Replace(string(settlement(i)), "settlement-", `\u0073\n`, 1))
		},
		"spaces": func(i int) []byte { return []byte(strings.ReplaceAll(string(settlement(i)), ":", " : ")) },
	} {
		t.Run(name, func(t *testing.T) {
			var recs []Record
			for i := range 1000 {
				recs = append(recs, Record{Value: shape(i)})
			}
			if name == "spaces" {
				recs = recs[:0]
				for i := range 1000 {
					recs = append(recs, Record{Value: []byte(strings.ReplaceAll(string(settlement(i)), `":`, `" : `))})
				}
			}
			d := mustPlan(t, o)
			b := d.NewBlock()
			sel := make([]bool, len(recs))
			run := func() {
				b.Reset()
				for i := range recs {
					if _, rej := d.Append(b, &recs[i]); rej != nil {
						t.Fatal(rej)
					}
				}
				for i := range sel {
					sel[i] = i%7 != 0
				}
				b.Keep(sel)
			}
			run()
			if n := testing.AllocsPerRun(10, run); n != 0 {
				t.Errorf("%v allocations in 1000 rows", n)
			}
		})
	}
}

func TestNestedValuesAllocate(t *testing.T) {
	d := mustPlan(t, allTypes())
	b := d.NewBlock()
	rnd := rand.New(rand.NewPCG(1, 1))
	var recs []Record
	for i := range 200 {
		recs = append(recs, *value(allTypesRecord(rnd, i, false)))
	}
	run := func() {
		b.Reset()
		for i := range recs {
			if _, rej := d.Append(b, &recs[i]); rej != nil {
				t.Fatal(rej)
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(10, run); n != 0 {
		t.Errorf("%v allocations in 200 rows", n)
	}
}

func TestBytesFollowTheRows(t *testing.T) {
	d := mustPlan(t, settlementOptions())
	b := d.NewBlock()
	if b.Bytes() != 0 {
		t.Errorf("empty: %d bytes", b.Bytes())
	}
	for i := range 1000 {
		if _, rej := d.Append(b, &Record{Value: settlement(i)}); rej != nil {
			t.Fatal(rej)
		}
	}
	if per := b.Bytes() / 1000; per < 70 || per > 120 {
		t.Errorf("%d bytes a row", per)
	}
	b.Reset()
	if b.Bytes() != 0 {
		t.Errorf("after Reset: %d bytes", b.Bytes())
	}
}
