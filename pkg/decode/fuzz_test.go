package decode

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"testing"
	"unicode/utf8"
)

// FuzzAgainstStandardLibrary feeds any bytes to a plan of many types. What is
// taken, encoding/json must take too, with the same values; what it takes as
// an object, may be rejected here only for a reason other than syntax; and a
// Reject leaves the block as it was.
func FuzzAgainstStandardLibrary(f *testing.F) {
	for _, s := range []string{
		`{"s":"x"}`, `{"s":"x","i":-7,"u":18446744073709551615,"f":1.5e3,"b":true,"n":null,"a":["q",null],"m":{"k":"v"}}`,
		`{"s":"\ud83d\ude00\u0000\n","i":1e3,"f":-0.0}`, `{"s":"x","x":{"y":[1,{"z":2}]},"i":"12"}`, `{"s":"a","s":"b"}`, `{"s":"\ud800"}`, "{\"s\":\"\xff\"}",
		`{"s":"x"} `, `{"s":"x"}x`, `[1]`, `null`, "\xef\xbb\xbf{}", `{"s":"x","f":1e400}`, `{"s":"x","i":1.0,"u":00}`, ` { "s" : "x" , "a" : [ ] } `, `{"s":"x","a":[[[]]],"m":{"a":"b","a":"c"}}`,
		`{"s":"x","t":{"a":1,"b":null},"k":{"1":2,"1.0":3},"j":{"a":[1.5,{"b":null}],"c.d":1e22},"w":-5789604461865809771178549,"h":"-9:00:00.1","bf":1.00390625,"lv":-0.0,"q":[1,2,3],"d":1e-76}`,
		`{"s":"x","i":9223372036854775808,"f":0.1234567890123456789012345678901234567890}`,
	} {
		f.Add([]byte(s))
	}
	d := mustPlan(f, Options{
		Columns: []Column{
			{Name: "s", Type: "String"}, {Name: "i", Type: "Int64"}, {Name: "u", Type: "UInt64"}, {Name: "f", Type: "Float64"}, {Name: "b", Type: "Bool"},
			{Name: "n", Type: "Nullable(String)"}, {Name: "a", Type: "Array(LowCardinality(Nullable(String)))"}, {Name: "m", Type: "Map(String, String)"},
			{Name: "t", Type: "Nullable(Tuple(a UInt8, b LowCardinality(Nullable(String))))"}, {Name: "k", Type: "Map(Float64, UInt8)"}, {Name: "j", Type: "JSON"}, {Name: "w", Type: "Int256"}, {Name: "h", Type: "Time64(3)"},
			{Name: "bf", Type: "BFloat16"}, {Name: "lv", Type: "LowCardinality(Float64)"}, {Name: "q", Type: "QBit(BFloat16, 3)"}, {Name: "d", Type: "Decimal(76, 76)"},
		},
		Key: []string{"s"}, UnknownFields: IgnoreUnknown, MissingFields: ZeroMissing,
	})
	b := d.NewBlock()
	f.Fuzz(func(t *testing.T, data []byte) {
		b.Reset()
		mustAppend(t, b, `{"s":"first","a":["z"],"m":{"k":"v"}}`)
		before := b.String()
		_, rej := d.Append(b, &Record{Value: data})
		std, members, isObject := standard(data)
		if rej != nil {
			if b.String() != before || b.Rows() != 1 {
				t.Fatalf("%q: %v left a trace", data, rej)
			}
			switch rej.Class {
			case ClassSyntax, ClassTrailing, ClassNotObject, ClassTombstone:
				if isObject {
					t.Fatalf("%q: %v, but encoding/json takes it", data, rej)
				}
			}
			return
		}
		if !isObject {
			t.Fatalf("%q: taken, but encoding/json refuses it", data)
		}
		if !utf8.Valid(data) {
			t.Fatalf("%q: taken with bytes that are not UTF-8", data)
		}
		if members > len(std) {
			t.Fatalf("%q: taken with a name twice", data)
		}
		compare(t, b, std)
		if wire := overTheWire(t, b).String(); wire != b.String() {
			t.Fatalf("%q: over the wire %s", data, wire)
		}
	})
}

// standard decodes with encoding/json and counts the top members.
func standard(data []byte) (map[string]any, int, bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v map[string]any
	if dec.Decode(&v) != nil || v == nil {
		return nil, 0, false
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, 0, false
	}
	members := 0
	dec = json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	_, _ = dec.Token()
	for dec.More() {
		var skip json.RawMessage
		_, _ = dec.Token()
		_ = dec.Decode(&skip)
		members++
	}
	return v, members, true
}

func compare(t *testing.T, b *Block, std map[string]any) {
	t.Helper()
	for i, c := range b.plan.cols {
		v, given := std[c.Name]
		if !given {
			continue
		}
		got, want := show(b.cols[i], 1), ""
		switch v := v.(type) {
		case nil:
			want = "NULL"
		case bool:
			want = strconv.FormatBool(v)
		case json.Number:
			fl, _ := strconv.ParseFloat(string(v), 64)
			want = strconv.FormatFloat(fl, 'g', -1, 64)
			switch c.Name {
			case "i", "u", "w": // integers: their exactness is another test's
				g, _ := strconv.ParseFloat(got, 64)
				got = strconv.FormatFloat(g, 'g', -1, 64)
				if fl == 0 {
					want = "0"
				}
			case "f":
			default:
				continue // rounded, or with digits of its scale
			}
		case string:
			if want = strconv.Quote(v); c.Type != "String" && c.Type != "Nullable(String)" {
				continue // a quoted number
			}
		case []any:
			if c.Name != "a" {
				continue
			}
			want = "["
			for n, e := range v {
				if n > 0 {
					want += ","
				}
				if s, is := e.(string); is {
					want += strconv.Quote(s)
				} else {
					want += "NULL"
				}
			}
			want += "]"
		default:
			continue // the order of a map is not kept by encoding/json
		}
		if got != want {
			t.Fatalf("%s: %s, encoding/json has %s", c.Name, got, want)
		}
	}
}
