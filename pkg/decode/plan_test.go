package decode

import (
	"maps"
	"strings"
	"testing"
	"time"
)

// TestBadOptionsAreFoundAtStart wants each problem named, all at once.
func TestBadOptionsAreFoundAtStart(t *testing.T) {
	_, err := NewJSON(Options{
		Columns: []Column{
			{Name: "a", Type: "Tuple(a String, UInt64)"}, {Name: "b", Type: "SimpleAggregateFunction(sum)"}, {Name: "c", Type: "Map(Point, String)"},
			{Name: "d", Type: "Nullable(Array(String))"}, {Name: "e", Type: "LowCardinality(Decimal(9, 2))"}, {Name: "f", Type: "DateTime('Mars/Olympus')"}, {Name: "g", Type: "Decimal(77, 2)"},
			{Name: "h", Type: "Array("}, {Name: "i", Type: "Enum8('a' = 1, 'a' = 2)"}, {Name: "j", Type: "String", DefaultKind: "EPHEMERAL"}, {Name: "k", Type: "String", DefaultKind: "ALIAS", DefaultExpr: "a"},
			{Name: "l", Type: "Array(UInt8)"}, {Name: "m", Type: "String"}, {Name: "m", Type: "String"}, {Name: "n", Type: "Dynamic"}, {Name: "o", Type: "DateTime64(10)"}, {Name: "p", Type: "FixedString(0)"}, {Name: "q", Type: "Enum8('a' = 1000)"}, {Name: "r", Type: "JSON(a UInt8)"},
			{Name: "s", Type: "Date"},
		},
		Key: []string{"l", "nope", "k"}, EventTime: "m", Ignore: []string{"typo"},
		From: map[string]string{"nowhere": "x", "m": "$time", "s": "$timestamp"},
	})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{
		`column "a": type "Tuple(a String, UInt64)"`, `column "b": type "SimpleAggregateFunction(sum)"`, `column "c": type "Map(Point, String)" is not supported`, `column "d"`, `column "e": type "LowCardinality(Decimal(9, 2))" is not supported`, `Mars/Olympus`, `column "g"`, `column "h"`, `column "i"`,
		`column "j" is EPHEMERAL`, `key: the table has no column "k"`, `key: column "l" is Array(UInt8)`, `key: the table has no column "nope"`, `column "m" is listed twice`, `event_time: column "m" must be part of the key`, `event_time: column "m" is String`, `ignore: "typo"`,
		`columns.nowhere`, `"$time" is not one of`, "no Hasher", `column "n": type "Dynamic" is not supported`, `column "o"`, `column "p"`, `column "q"`, `column "r": type "JSON(a UInt8)" is not supported`, "columns.s.from: $timestamp does not go into Date",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s in\n%v", want, err)
		}
	}
}

func TestComputedColumnsAreSent(t *testing.T) {
	d := mustPlan(t, Options{
		Columns: []Column{{Name: "k", Type: "UInt8"}, {Name: "m", Type: "Tuple(UInt8)", DefaultKind: "MATERIALIZED", DefaultExpr: "tuple(k)"}, {Name: "a", Type: "UInt8", DefaultKind: "ALIAS", DefaultExpr: "k"}},
		Key:     []string{"k"},
	})
	b := d.NewBlock()
	if len(b.Input()) != 1 || b.Input()[0].Name != "k" {
		t.Errorf("%v", b.Input().Columns())
	}
	for _, r := range []string{`{"k":1,"m":1}`, `{"k":1,"a":1}`} {
		if _, rej := d.Append(b, value(r)); rej == nil || rej.Class != ClassUnknown {
			t.Errorf("%s: %v", r, rej)
		}
	}
}

func TestAbsentFieldsBecomeZeroInsteadOfTheirDefault(t *testing.T) {
	d := mustPlan(t, Options{
		Columns: []Column{
			{Name: "k", Type: "UInt8"}, {Name: "plan", Type: "LowCardinality(String)", DefaultKind: "DEFAULT", DefaultExpr: "'free'"}, {Name: "price", Type: "Decimal(9, 2)", DefaultKind: "DEFAULT", DefaultExpr: "9.99"},
			{Name: "twice", Type: "UInt8", DefaultKind: "DEFAULT", DefaultExpr: "k * 2"}, {Name: "plain", Type: "Nullable(String)"}, {Name: "e", Type: "Enum8('b' = 2, 'a' = 1, 'c' = 3)"}, {Name: "d32", Type: "Date32"}, {Name: "arr", Type: "Array(String)"},
		},
		Key: []string{"k"}, MissingFields: ZeroMissing,
	})
	var names []string
	for _, c := range d.NeedsDefaults() {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "plan price twice" {
		t.Fatalf("NeedsDefaults: %s", got)
	}
	f := d.NewDefaults()
	if got, want := f.Query("plan", "price"), "SELECT CAST(('free'), 'LowCardinality(String)') AS `plan`, CAST((9.99), 'Decimal(9, 2)') AS `price`"; got != want {
		t.Errorf("query %s", got)
	}
	b := d.NewBlock()
	if _, rej := d.Append(b, value(`{"k":1,"twice":1}`)); rej == nil || rej.Class != ClassDefaultUnset {
		t.Errorf("before SetDefaults: %v", rej)
	}
	mustAppend(t, b, `{"k":1,"twice":1,"plan":"x","price":1}`)
	// What the server answers comes over the wire.
	answer := d.NewBlock()
	mustAppend(t, answer, `{"k":9,"twice":1,"plan":"free","price":9.99}`)
	wire := overTheWire(t, answer)
	f.cols[1], f.cols[2] = wire.cols[1], wire.cols[2]
	f.Unavailable("twice", "Unknown identifier k")
	b.SetDefaults(f)
	mustAppend(t, b, `{"k":2,"twice":1}`, `{"k":3,"twice":1,"plan":"","plain":"p","e":"c","d32":"2026-01-01","arr":["x"]}`)
	_, rej := d.Append(b, value(`{"k":4}`))
	if rej == nil || rej.Class != ClassDepends || !strings.Contains(rej.Detail, "Unknown identifier") {
		t.Errorf("depends: %v", rej)
	}
	if _, rej := d.Append(b, value(`{"k":4,"twice":1,"price":null}`)); rej == nil || rej.Class != ClassNull {
		t.Errorf("null: %v", rej)
	}
	want := `1 | "x" | 1.00 | 1 | NULL | "a" | 1900-01-01 | []
2 | "free" | 9.99 | 1 | NULL | "a" | 1900-01-01 | []
3 | "" | 9.99 | 1 | "p" | "c" | 2026-01-01 | ["x"]
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b, want)
	}
}

func TestMetadataSources(t *testing.T) {
	d := mustPlan(t, Options{
		Columns: []Column{
			{Name: "k", Type: "String"}, {Name: "at", Type: "DateTime64(3, 'UTC')"}, {Name: "sec", Type: "Nullable(DateTime)"}, {Name: "ms", Type: "Int64"}, {Name: "topic", Type: "LowCardinality(String)"}, {Name: "part", Type: "UInt16"}, {Name: "off", Type: "UInt64"}, {Name: "h", Type: "Nullable(UInt8)"}, {Name: "nms", Type: "Nullable(Int64)"},
		},
		Key: []string{"k"}, MissingFields: ZeroMissing,
		From: map[string]string{"k": "$key", "at": "$timestamp", "sec": "$timestamp", "ms": "$timestamp", "topic": "$topic", "part": "$partition", "off": "$offset", "h": "$header.n", "nms": "$timestamp"},
	})
	b := d.NewBlock()
	header := func(name string) ([]byte, bool) {
		return []byte("7"), name == "n"
	}
	r := &Record{Topic: "t", Partition: 3, Offset: 1 << 40, TimestampMs: 1767225600123, Key: []byte("a\xff"), Value: []byte("{}"), Headers: header}
	row, rej := d.Append(b, r)
	if rej != nil {
		t.Fatal(rej)
	}
	if row.Fingerprint != 0 {
		t.Error("metadata is in the fingerprint")
	}
	r.Headers, r.TimestampMs = nil, 5 // an epoch of unclear magnitude in a field, but not here
	if _, rej := d.Append(b, r); rej != nil {
		t.Fatal(rej)
	}
	r.TimestampMs = -1
	if _, rej := d.Append(b, r); rej != nil {
		t.Fatal(rej)
	}
	want := `"a\xff" | 2026-01-01T00:00:00.123Z | 2026-01-01T00:00:00Z | 1767225600123 | "t" | 3 | 1099511627776 | 7 | 1767225600123
"a\xff" | 1970-01-01T00:00:00.005Z | 1970-01-01T00:00:00Z | 5 | "t" | 3 | 1099511627776 | NULL | 5
"a\xff" | 1970-01-01T00:00:00Z | NULL | 0 | "t" | 3 | 1099511627776 | NULL | NULL
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b, want)
	}
	for _, c := range []struct {
		change func(*Record)
		class  string
	}{
		{func(r *Record) { r.Key = nil }, ClassMissingKey},
		{func(r *Record) { r.Key = []byte{} }, ClassMissingKey},
		{func(r *Record) { r.Partition = 70000 }, ClassOutOfRange},
		{func(r *Record) { r.Headers = func(string) ([]byte, bool) { return []byte("x"), true } }, ClassBadValue},
		{func(r *Record) { r.Value = []byte(`{"k":"x"}`) }, ClassUnknown},
		{func(r *Record) { r.Value = nil }, ClassTombstone},
	} {
		bad := *r
		c.change(&bad)
		if _, rej := d.Append(b, &bad); rej == nil || rej.Class != c.class {
			t.Errorf("%v, want %s", rej, c.class)
		}
	}
}

func TestPathsIntoObjects(t *testing.T) {
	o := Options{
		Columns: []Column{{Name: "id", Type: "String"}, {Name: "amount", Type: "Decimal(9, 2)"}, {Name: "all", Type: "Map(String, String)"}, {Name: "n.a", Type: "Array(UInt8)"}, {Name: "dot", Type: "UInt8"}},
		Key:     []string{"id"}, MissingFields: ZeroMissing,
		From: map[string]string{"id": "p.id", "amount": "p.q.amount", "all": "m", "dot": `x\.y`},
	}
	d := mustPlan(t, o)
	b := d.NewBlock()
	mustAppend(t, b, `{"p":{"q":{"amount":1.5},"id":"x"},"m":{"a":"b"},"n.a":[1],"x.y":5}`, `{"p":{"id":"y"}}`)
	if want := "\"x\" | 1.50 | {\"a\":\"b\"} | [1] | 5\n\"y\" | 0.00 | {} | [] | 0\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b, want)
	}
	o.UnknownFields = IgnoreUnknown
	lax := mustPlan(t, o)
	b = lax.NewBlock()
	mustAppend(t, b, `{"p":{"id":"x","discount":1,"q":{"tax":{"a":1}}},"m":{"n":"o"},"z":1}`, `{"p":{"discount":1,"id":"x"}}`)
	got := map[string]int64{}
	for range 2 {
		b.UnknownFields(func(path string, n int64) { got[path] += n })
	}
	if want := map[string]int64{"p.discount": 2, "p.q.tax": 1, "z": 1}; !maps.Equal(got, want) {
		t.Errorf("unknown %v, want %v", got, want)
	}
	b = d.NewBlock()
	for _, c := range []struct{ record, class, field string }{
		{`{"p":null}`, ClassNull, "p"}, {`{"p":5}`, ClassWrongType, "p"}, {`{"p":{"id":"x","q":[]}}`, ClassWrongType, "p.q"}, {`{}`, ClassMissingKey, "p.id"},
		{`{"p":{"id":"x","discount":1}}`, ClassUnknown, "p.discount"}, {`{"p":{"id":"x","q":{"amount":"z"}}}`, ClassBadValue, "p.q.amount"}, {`{"p":{"id":"x","id":"y"}}`, ClassDuplicate, "p"},
		{`{"id":"x"}`, ClassUnknown, "id"}, {`{"p":{"id":null}}`, ClassMissingKey, "p.id"},
	} {
		if _, rej := d.Append(b, value(c.record)); rej == nil || rej.Class != c.class || rej.Field != c.field {
			t.Errorf("%s: %v, want %s of %s", c.record, rej, c.class, c.field)
		}
	}
}

func TestEventTimes(t *testing.T) {
	for _, c := range []struct {
		name, typ, value string
		unit             time.Duration
		want             int64
		class            string
	}{
		{"at_ms", "Int64", "1767225600123", time.Second, 1767225600123, ""},
		{"at", "UInt64", "1767225600123", 0, 1767225600123, ""},
		{"at", "UInt32", "1767225600", time.Second, 1767225600000, ""},
		{"at", "Int64", "1767225600123999", time.Microsecond, 1767225600123, ""},
		{"at", "Int64", "-1", time.Microsecond, -1, ""},
		{"at", "Nullable(Int64)", "5", time.Nanosecond, 0, ""},
		{"at", "UInt64", "18446744073709551615", 0, 0, ClassOutOfRange},
		{"at", "Int64", "9223372036854775807", time.Second, 0, ClassOutOfRange},
		{"at", "DateTime", `"2026-01-01T00:00:00Z"`, 0, 1767225600000, ""},
		{"at", "DateTime64(6, 'Asia/Tokyo')", `"2026-01-01T00:00:00.123456Z"`, 0, 1767225600123, ""},
		{"at", "DateTime64(3, 'UTC')", `"1969-12-31T23:59:59.999Z"`, 0, -1, ""},
		{"at", "Date", `"2026-01-01"`, 0, 1767225600000, ""},
		{"at", "Date32", `"1969-12-31"`, 0, -86400000, ""},
		{"at", "Nullable(DateTime)", "null", 0, 0, ClassMissingKey},
	} {
		d := mustPlan(t, Options{Columns: []Column{{Name: c.name, Type: c.typ}}, Key: []string{c.name}, EventTime: c.name, EventTimeUnit: c.unit})
		row, rej := d.Append(d.NewBlock(), value(`{"`+c.name+`":`+c.value+`}`))
		if (rej == nil) != (c.class == "") || rej != nil && rej.Class != c.class || row.EventTimeMs != c.want {
			t.Errorf("%s %s: %d %v", c.typ, c.value, row.EventTimeMs, rej)
		}
	}
	d := mustPlan(t, Options{Columns: []Column{{Name: "at_ms", Type: "Int64"}}, Key: []string{"at_ms"}, EventTime: "at_ms", MaxFutureMs: 1000})
	for ms, class := range map[string]string{"2000": "", "2001": ClassFuture, "-5": ""} {
		_, rej := d.Append(d.NewBlock(), &Record{TimestampMs: 1000, Value: []byte(`{"at_ms":` + ms + `}`)})
		if (rej == nil) != (class == "") || rej != nil && rej.Class != class {
			t.Errorf("%s: %v, want %q", ms, rej, class)
		}
	}
}
