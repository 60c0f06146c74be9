package decode

import (
	"maps"
	"strings"
	"testing"
	"time"
)

// A member of a Tuple is what a field of the record is: refused or counted
// where no element takes it, and refused, NULL or zero where it is absent.
func TestTuplesHaveAnotherPolicyThanRecords(t *testing.T) {
	o := Options{
		Columns: []Column{{Name: "k", Type: "UInt8"}, {Name: "t", Type: "Tuple(a UInt8, b Nullable(String), c Array(Tuple(d UInt8)))"}},
		Key:     []string{"k"}, From: map[string]string{"t": "p.t"},
	}
	d := mustPlan(t, o)
	b := d.NewBlock()
	for rec, want := range map[string]string{
		`{"k":1,"p":{"t":{"a":1,"c":[],"x":1}}}`:      `unknown_field: field "p.t": an object has a member that is not in column "t" (Tuple(a UInt8, b Nullable(String), c Array(Tuple(d UInt8)))): see member "x"`,
		`{"k":1,"p":{"t":{"a":1}}}`:                   `missing_field: field "p.t": an object lacks a member that is in column "t" (Tuple(a UInt8, b Nullable(String), c Array(Tuple(d UInt8)))) and not Nullable: see member "c"`,
		`{"k":1,"p":{"t":{"c":[],"a":256}}}`:          `out_of_range: field "p.t": an object is outside the range of column "t" (Tuple(a UInt8, b Nullable(String), c Array(Tuple(d UInt8)))): see member "a"`,
		`{"k":1,"p":{"t":{"a":1,"c":[{"d":"x"}]}}}`:   `bad_value: field "p.t": an object does not spell a value of column "t" (Tuple(a UInt8, b Nullable(String), c Array(Tuple(d UInt8)))): see member "c.d"`,
		`{"k":1,"p":{"t":{"a":1,"c":[{"d":null}]}}}`:  `null: field "p.t": an object with null in it, and column "t" (Tuple(a UInt8, b Nullable(String), c Array(Tuple(d UInt8)))) is not Nullable: see member "c.d"`,
		`{"k":1,"p":{"t":[1,"x",[]]}}`:                `wrong_type: field "p.t": an array is of a JSON type that column "t" (Tuple(a UInt8, b Nullable(String), c Array(Tuple(d UInt8)))) does not take`,
		`{"k":1,"p":{"t":{"a":1,"c":[],"\u0061":2}}}`: `duplicate_name: field "p": the record has a name twice, at byte 30`,
	} {
		_, rej := d.Append(b, value(rec))
		if rej == nil || rej.Class+": "+rej.Error() != want || b.Rows() != 0 {
			t.Errorf("%s\n got %v\nwant %s", rec, rej, want)
		}
		mustAppend(t, b, `{"k":1,"p":{"t":{"c":[],"a":1}}}`) // the member of the Reject before is forgotten
		if _, rej := d.Append(b, value(`{"k":256}`)); rej == nil || strings.Contains(rej.Detail, "member") {
			t.Errorf("%v", rej)
		}
		b.Reset()
	}
	mustAppend(t, b, `{"k":1,"p":{"t":{"a":1,"b":"x","c":[{"d":1}]}}}`, `{"k":2,"p":{"t":{"c":[],"a":2}}}`)
	if want := "1 | (a=1,b=\"x\",c=[(d=1)])\n2 | (a=2,b=NULL,c=[])\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b, want)
	}

	o.UnknownFields, o.MissingFields = IgnoreUnknown, ZeroMissing
	lax := mustPlan(t, o)
	b = lax.NewBlock()
	rows := mustAppend(t, b, `{"k":1,"p":{"t":{"x":{"y":1},"b":"x","c":[{"e":1},{"d":5,"e":2}]}}}`, `{"k":2,"p":{"t":{}}}`, `{"k":1,"p":{"t":{"x":{"y":2},"b":"x","c":[{"e":1},{"d":5,"e":2}]}}}`)
	if want := "1 | (a=0,b=\"x\",c=[(d=0),(d=5)])\n2 | (a=0,b=NULL,c=[])\n1 | (a=0,b=\"x\",c=[(d=0),(d=5)])\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b, want)
	}
	got := map[string]int64{}
	b.UnknownFields(func(path string, n int64) { got[path] += n })
	if want := map[string]int64{"p.t.x": 2, "p.t.c.e": 4}; !maps.Equal(got, want) {
		t.Errorf("unknown %v, want %v", got, want)
	}
	if rows[0].Fingerprint == rows[2].Fingerprint {
		t.Error("a member that no element takes is out of the fingerprint")
	}
}

// The server takes arrays with one name before the dot for one Nested, and
// refuses a whole block for one row in which their lengths differ.
func TestOneRowOfUnequalLengthsStopsABlock(t *testing.T) {
	o := Options{
		Columns: []Column{
			{Name: "k", Type: "UInt8"}, {Name: "n.a", Type: "Array(UInt8)"}, {Name: "n.b", Type: "Array(LowCardinality(String))"}, {Name: "n.c.d", Type: "SimpleAggregateFunction(groupArrayArray, Array(UInt8))"},
			{Name: "m.a", Type: "Array(UInt8)"}, {Name: "n.s", Type: "String"}, {Name: ".x", Type: "Array(UInt8)"}, {Name: ".y", Type: "Array(UInt8)"},
		},
		Key: []string{"k"}, From: map[string]string{"n.b": "n.b"}, MissingFields: ZeroMissing,
	}
	d := mustPlan(t, o)
	b := d.NewBlock()
	mustAppend(t, b, `{"k":1,"n.a":[1,2],"n":{"b":["x","y"]},"n.c.d":[3,4],"m.a":[1],".x":[1],"n.s":"s"}`, `{"k":2,"m.a":[1]}`)
	before := b.String()
	for _, rec := range []string{`{"k":1,"n.a":[1,2],"n":{"b":["x"]},"n.c.d":[3,4]}`, `{"k":1,"n.a":[1,2]}`, `{"k":1,"n.c.d":[3,4]}`} {
		_, rej := d.Append(b, value(rec))
		if rej == nil || rej.Class != ClassBadValue || !strings.Contains(rej.Detail, `"n.a"`) || !strings.Contains(rej.Detail, "elements") || b.String() != before {
			t.Errorf("%s: %v", rec, rej)
		}
	}
}

func TestOddTypesOfEventTimes(t *testing.T) {
	for _, c := range []struct {
		typ, value string
		unit       time.Duration
		want       int64
		class      string
	}{
		{"Int128", "1767225600123", 0, 1767225600123, ""},
		{"UInt256", "1767225600", time.Second, 1767225600000, ""},
		{"Int256", "-1", 0, -1, ""},
		{"Int128", "-9223372036854775808", 0, -9223372036854775808, ""},
		{"Int128", "-9223372036854775809", 0, 0, ClassOutOfRange},
		{"UInt128", "9223372036854775808", 0, 0, ClassOutOfRange},
		{"LowCardinality(Date)", `"2026-01-01"`, 0, 1767225600000, ""},
		{"LowCardinality(Nullable(DateTime))", `1767225600`, 0, 1767225600000, ""},
		{"LowCardinality(UInt64)", `1767225600123`, 0, 1767225600123, ""},
		{"SimpleAggregateFunction(max, DateTime64(3, 'UTC'))", `1767225600123`, 0, 1767225600123, ""},
	} {
		d := mustPlan(t, Options{Columns: []Column{{Name: "at", Type: c.typ}}, Key: []string{"at"}, EventTime: "at", EventTimeUnit: c.unit})
		b := d.NewBlock()
		for range 2 {
			row, rej := d.Append(b, value(`{"at":`+c.value+`}`))
			if (rej == nil) != (c.class == "") || rej != nil && rej.Class != c.class || row.EventTimeMs != c.want {
				t.Errorf("%s %s: %d %v", c.typ, c.value, row.EventTimeMs, rej)
			}
			if rej == nil { // the halves of a dictionary change places
				b.Keep([]bool{true})
				b.Truncate(0)
			}
		}
	}
	for _, typ := range []string{"Time", "IntervalSecond", "LowCardinality(IntervalSecond)", "LowCardinality(String)", "BFloat16", "Tuple(UInt8)", "Point"} {
		if _, err := NewJSON(Options{Columns: []Column{{Name: "at", Type: typ}}, Key: []string{"at"}, EventTime: "at", Hasher: testHasher{}}); err == nil || !strings.Contains(err.Error(), `event_time: column "at" is `+typ) {
			t.Errorf("%s: %v", typ, err)
		}
	}
	for _, typ := range []string{"Tuple(UInt8)", "Point", "Ring", "Nested(a UInt8)", "JSON", "Nullable(Tuple(UInt8))", "Nullable(Point)", "Map(UInt8, UInt8)", "SimpleAggregateFunction(groupArrayArray, Array(UInt8))"} {
		if _, err := NewJSON(Options{Columns: []Column{{Name: "k", Type: typ}}, Key: []string{"k"}, Hasher: testHasher{}}); err == nil || !strings.Contains(err.Error(), `key: column "k" is `+typ) {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

func TestMetadataIntoOddTypes(t *testing.T) {
	for typ, source := range map[string]string{"IntervalDay": "$offset", "LowCardinality(UInt8)": "$topic", "Time": "$timestamp", "Tuple(UInt8)": "$partition"} {
		if _, err := NewJSON(Options{Columns: []Column{{Name: "k", Type: "UInt8"}, {Name: "v", Type: typ}}, Key: []string{"k"}, From: map[string]string{"v": source}, Hasher: testHasher{}}); err == nil || !strings.Contains(err.Error(), source+" does not go into "+typ) {
			t.Errorf("%s into %s: %v", source, typ, err)
		}
	}
	d := mustPlan(t, Options{
		Columns: []Column{{Name: "k", Type: "UInt8"}, {Name: "o", Type: "UInt256"}, {Name: "at", Type: "SimpleAggregateFunction(max, DateTime64(3, 'UTC'))"}, {Name: "t", Type: "LowCardinality(Nullable(String))"}},
		Key:     []string{"k"}, From: map[string]string{"o": "$offset", "at": "$timestamp", "t": "$topic"},
	})
	b := d.NewBlock()
	if _, rej := d.Append(b, &Record{Topic: "t", Offset: 7, TimestampMs: 5, Value: []byte(`{"k":1}`)}); rej != nil {
		t.Fatal(rej)
	}
	if want := "1 | 7 | 1970-01-01T00:00:00.005Z | \"t\"\n"; b.String() != want {
		t.Errorf("got %s want %s", b, want)
	}
}
