package decode

import (
	"encoding/hex"
	"maps"
	"strings"
	"testing"
)

// TestKeyFormatV1IsPinned: a change of one byte makes every remembered key
// unknown, and every row that comes again a double.
func TestKeyFormatV1IsPinned(t *testing.T) {
	for _, c := range []struct{ typ, value, want string }{
		{"UInt8", "0", "0100"}, {"UInt64", "0", "0100"}, {"Int8", "-0", "0100"},
		{"UInt8", "1", "010101"}, {"Int64", "1", "010101"}, {"UInt32", `"1"`, "010101"}, {"UInt32", "1.0", "010101"},
		{"UInt16", "256", "01020001"}, {"Int64", "-1", "020101"}, {"Int8", "-128", "020180"}, {"Int64", "-9223372036854775808", "02080000000000000080"}, {"UInt64", "18446744073709551615", "0108ffffffffffffffff"},
		{"Bool", "true", "0301"}, {"Bool", "false", "0300"},
		{"String", `"ab"`, "04026162"}, {"LowCardinality(String)", `"ab"`, "04026162"}, {"Nullable(String)", `"ab"`, "04026162"}, {"LowCardinality(Nullable(String))", `"ab"`, "04026162"},
		{"FixedString(4)", `"ab"`, "04026162"}, {"LowCardinality(FixedString(3))", `"ab"`, "04026162"}, {"Enum8('ab' = 5)", `"ab"`, "04026162"}, {"Enum16('ab' = 5)", "5", "04026162"},
		{"String", `"` + strings.Repeat("x", 200) + `"`, "04c801" + strings.Repeat("78", 200)},
		{"Decimal(9, 2)", "1.5", "0501010f"}, {"Decimal(18, 4)", "1.50", "0501010f"}, {"Decimal(38, 10)", "15e-1", "0501010f"}, {"Decimal(38, 10)", "-1.5", "0601010f"}, {"Decimal(9, 2)", "0", "050000"}, {"Decimal(9, 2)", "100", "05000164"},
		{"Decimal(38, 0)", "18446744073709551616", "050009000000000000000001"},
		{"UInt128", "340282366920938463463374607431768211455", "0110ffffffffffffffffffffffffffffffff"}, {"Int256", "-18446744073709551616", "0209000000000000000001"}, {"UInt256", "1", "010101"}, {"Decimal(76, 10)", "-1.50", "0601010f"}, {"Decimal(76, 0)", "340282366920938463463374607431768211456", "0500110000000000000000000000000000000001"},
		{"Time", `"00:00:01"`, "0c010000000000000000000000"}, {"Time64(3)", `"0:00:01"`, "0c010000000000000000000000"}, {"Time64(9)", `"-0:00:00.1"`, "0cffffffffffffffff00e9a435"}, {"LowCardinality(UInt16)", "256", "01020001"}, {"BFloat16", "1.5", "07000000000000f83f"}, {"IntervalDay", "1", "010101"},
		{"Float64", "1.5", "07000000000000f83f"}, {"Float32", "1.5", "07000000000000f83f"}, {"Float64", "-0.0", "070000000000000000"},
		{"DateTime64(3, 'UTC')", "1767225600123", "0800b9556900000000c0d45407"}, {"DateTime64(9, 'Asia/Tokyo')", `"2026-01-01T00:00:00.123Z"`, "0800b9556900000000c0d45407"}, {"DateTime", "1767225600", "0800b955690000000000000000"}, {"DateTime64(3, 'UTC')", `"1969-12-31T23:59:59.999Z"`, "08ffffffffffffffffc0878b3b"},
		{"Date", `"1970-01-02"`, "0901000000"}, {"Date32", `"1970-01-02"`, "0901000000"}, {"Date32", `"1969-12-31"`, "09ffffffff"},
		{"UUID", `"61F0C404-5cb3-11e7-907b-a6006ad3dba0"`, "0a61f0c4045cb311e7907ba6006ad3dba0"},
		{"IPv4", `"1.2.3.4"`, "0b00000000000000000000ffff01020304"}, {"IPv6", `"::ffff:1.2.3.4"`, "0b00000000000000000000ffff01020304"}, {"IPv6", `"::1"`, "0b00000000000000000000000000000001"},
	} {
		h := &recordingHasher{}
		d := mustPlan(t, Options{Columns: []Column{{Name: "k", Type: c.typ}}, Key: []string{"k"}, Hasher: h})
		mustAppend(t, d.NewBlock(), `{"k":`+c.value+`}`)
		if got := hex.EncodeToString(h.key); got != "01"+c.want {
			t.Errorf("%s %s: %s, want 01%s", c.typ, c.value, got, c.want)
		}
	}
}

func TestKeysOfOtherColumnsRunTogether(t *testing.T) {
	h := &recordingHasher{}
	d := mustPlan(t, Options{
		Columns: []Column{{Name: "b", Type: "String"}, {Name: "a", Type: "String"}},
		Key:     []string{"a", "b"}, Hasher: h,
	})
	b := d.NewBlock()
	rows := mustAppend(t, b, `{"a":"a-b","b":"c"}`, `{"a":"a","b":"b-c"}`, `{"a":"c","b":"a-b"}`, `{"b":"c","a":"a-b"}`)
	if rows[0].Key == rows[1].Key || rows[0].Key == rows[2].Key || rows[0].Key != rows[3].Key {
		t.Errorf("%v", rows)
	}
	if want := "\x01\x04\x03a-b\x04\x01c"; string(h.key) != want {
		t.Errorf("key %q, want %q", h.key, want)
	}
}

// TestFingerprintFormatV1IsPinned: a change makes a conflict of every
// duplicate.
func TestFingerprintFormatV1IsPinned(t *testing.T) {
	long := strings.Repeat("9", 41)
	for _, c := range [][2]string{
		{"null", "null"}, {"true", "true"}, {"false", "false"},
		{`""`, `"`}, {`"a"`, `"a`}, {`"\u0061\n"`, "\"a\n"}, {`"é"`, `"é`}, {`"\u00e9"`, `"é`}, {`"1"`, `"1`}, {`"null"`, `"null`},
		{"0", "0"}, {"-0", "0"}, {"0.0", "0"}, {"0e5", "0"}, {"-0.00e-3", "0"},
		{"1", "1"}, {"1.0", "1"}, {"10e-1", "1"}, {"1.5", "1.5"}, {"1.50", "1.5"}, {"15e-1", "1.5"}, {"0.15e1", "1.5"}, {"-1.5", "-1.5"}, {"-15E-1", "-1.5"},
		{"1200", "1200"}, {"1.2e3", "1200"}, {"12e+2", "1200"}, {"0.001", "0.001"}, {"1e-3", "0.001"}, {"12e-3", "0.012"}, {"123e-2", "1.23"}, {"100.010", "100.01"},
		{"1e39", "1" + strings.Repeat("0", 39)}, {"1e40", "1e40"}, {"1" + strings.Repeat("0", 40), "1e40"}, {"1e-40", "0." + strings.Repeat("0", 39) + "1"}, {"1e-41", "1e-41"}, {"12e-41", "12e-41"}, {"-10e40", "-1e41"},
		{long, long + "e0"}, {long + ".0", long + "e0"}, {long[:40], long[:40]}, {long[:40] + ".5", long[:40] + ".5"}, {"18446744073709551616.0", "18446744073709551616"}, {"0." + long, long + "e-41"},
		{"[]", "["}, {"[1]", "[\x01\x00\x00\x001"}, {"[1.0, \"a\"]", "[\x01\x00\x00\x001\x02\x00\x00\x00\"a"}, {"[[],null]", "[\x01\x00\x00\x00[\x04\x00\x00\x00null"},
		{"{}", "{\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"},
	} {
		h := &recordingHasher{}
		d := mustPlan(t, Options{Columns: []Column{{Name: "k", Type: "UInt8"}}, Key: []string{"k"}, Hasher: h, UnknownFields: IgnoreUnknown})
		b := d.NewBlock()
		row := mustAppend(t, b, `{"k":1,"v":`+c[0]+`}`)[0]
		if got := h.fields["v"]; got != c[1] {
			t.Errorf("%s: %q, want %q", c[0], got, c[1])
		}
		if _, keyed := h.fields["k"]; keyed {
			t.Error("the key is in the fingerprint")
		}
		if row.Fingerprint != h.Field("v", []byte(c[1])) {
			t.Errorf("%s: the fingerprint is not the sum", c[0])
		}
	}
	h := &recordingHasher{}
	d := mustPlan(t, Options{Columns: []Column{{Name: "k", Type: "UInt8"}}, Key: []string{"k"}, Hasher: h, UnknownFields: IgnoreUnknown})
	mustAppend(t, d.NewBlock(), `{"k":1,"v":{"b":[],"a":1.0}}`)
	sum := h.testHasher.Field("a", []byte("1")) + h.testHasher.Field("b", []byte("["))
	want := "{\x02\x00\x00\x00"
	for i := range 8 {
		want += string([]byte{byte(sum >> (8 * i))})
	}
	if h.fields["v"] != want {
		t.Errorf("object: %q, want %q", h.fields["v"], want)
	}
}

// TestSameRowSpelledOtherwiseIsAConflict: order, spaces, escapes and spelling
// of numbers are no differences; everything else is.
func TestSameRowSpelledOtherwiseIsAConflict(t *testing.T) {
	cols := []Column{{Name: "k", Type: "UInt8"}, {Name: "v", Type: "Decimal(9, 2)"}, {Name: "s", Type: "String"}}
	hash := func(o Options, rec string) uint64 {
		t.Helper()
		o.UnknownFields, o.MissingFields = IgnoreUnknown, ZeroMissing
		return mustAppend(t, mustPlan(t, o).NewBlock(), rec)[0].Fingerprint
	}
	o := Options{Columns: cols, Key: []string{"k"}, Ignore: []string{"seen"}}
	base := hash(o, `{"k":1,"v":1.5,"s":"a","o":{"x":1,"y":[2]}}`)
	for _, same := range []string{
		`{"s":"\u0061","o":{"y":[2.0],"x":1e0},"v":1.50,"k":1}`, `{ "k" : 1.0 , "v":15e-1,"s":"a","o":{"x":1,"y":[2]}, "seen": 5 }`, `{"k":"1","v":1.5,"s":"a","o":{"x":1,"y":[2]},"seen":{"q":[1]}}`,
	} {
		if hash(o, same) != base {
			t.Errorf("%s differs", same)
		}
	}
	for _, other := range []string{
		`{"k":1,"v":"1.5","s":"a","o":{"x":1,"y":[2]}}`, `{"k":1,"v":1.5,"s":"b","o":{"x":1,"y":[2]}}`, `{"k":1,"v":1.5,"s":"a","o":{"x":2,"y":[1]}}`, `{"k":1,"v":1.5,"s":"a","o":{"x":1,"y":[[2]]}}`,
		`{"k":1,"v":1.5,"s":"a","o":{"x":1,"y":[2],"z":null}}`, `{"k":1,"v":1.5,"s":"a","o":{"x":1,"y":[2]},"n":null}`, `{"k":1,"v":1.5,"s":"a","p":{"x":1,"y":[2]}}`, `{"k":1,"v":1.5,"s":"a"}`, `{"k":1,"v":1.5,"s":"a","o":{"y":1,"x":[2]}}`,
	} {
		if hash(o, other) == base {
			t.Errorf("%s is the same", other)
		}
	}
	// The table may change: another type, one column more or less.
	wide := Options{Columns: []Column{cols[0], {Name: "v", Type: "Float64"}, cols[2], {Name: "o", Type: "Map(String, Array(UInt8))"}, {Name: "new", Type: "String"}}, Key: o.Key, Ignore: o.Ignore}
	narrow := Options{Columns: cols[:1], Key: o.Key, Ignore: o.Ignore}
	for _, o := range []Options{wide, narrow} {
		rec := `{"k":1,"v":1.5,"s":"a"}`
		if hash(o, rec) != hash(Options{Columns: cols, Key: o.Key, Ignore: o.Ignore}, rec) {
			t.Error("a change of the table changed the fingerprint")
		}
	}
}

func TestKeyedAndIgnoredPathsAreInTheFingerhash(t *testing.T) {
	h := &recordingHasher{}
	d := mustPlan(t, Options{
		Columns: []Column{{Name: "id", Type: "String"}, {Name: "amount", Type: "Decimal(9, 2)"}, {Name: "at", Type: "DateTime64(3, 'UTC')"}},
		Key:     []string{"id"}, Ignore: []string{"at", "meta.trace"}, UnknownFields: IgnoreUnknown, MissingFields: ZeroMissing, Hasher: h,
		From: map[string]string{"id": "payload.head.id", "amount": "payload.amount", "at": "meta.at"},
	})
	b := d.NewBlock()
	rows := mustAppend(t, b,
		`{"payload":{"head":{"id":"x"},"amount":1.5},"meta":{"at":1767225600123,"trace":"q","v":1}}`,
		`{"meta":{"v":1,"trace":"r","at":1767225600999},"payload":{"amount":1.50,"head":{"id":"x"}}}`,
		`{"payload":{"head":{"id":"y"},"amount":1.5},"meta":{"v":1}}`,
		`{"payload":{"head":{"id":"x"},"amount":1.5},"meta":{"at":1767225600123,"trace":"q","v":2}}`,
		`{"payload":{"head":{"id":"x","z":0},"amount":1.5},"meta":{"v":1}}`,
	)
	f := func(i int) uint64 { return rows[i].Fingerprint }
	if f(0) != f(1) || rows[0].Key != rows[1].Key {
		t.Error("ignored paths count")
	}
	if f(0) != f(2) || rows[0].Key == rows[2].Key {
		t.Error("the keyed path counts as a field")
	}
	if f(0) == f(3) || f(0) == f(4) {
		t.Error("other members do not count")
	}
	for name := range maps.Keys(h.fields) {
		if name == "id" || name == "trace" || name == "at" {
			t.Errorf("%s was hashed", name)
		}
	}
}

func TestSeededHashesDiffer(t *testing.T) {
	for _, rec := range []string{
		string(settlement(7)), `{"settle_ms":1767225600123,"id":"x","rev":1,"other":{"a":[1.50]},"\u0071ty":5}`, string(settlement(8)),
	} {
		o := settlementOptions()
		o.UnknownFields, o.MissingFields = IgnoreUnknown, ZeroMissing
		o.Hasher = testHasher{}
		plain := mustPlan(t, o)
		o.Hasher = seededHasher{}
		seeded := mustPlan(t, o)
		if a, b := mustAppend(t, plain.NewBlock(), rec), mustAppend(t, seeded.NewBlock(), rec); a[0] != b[0] {
			t.Errorf("%s: %v and %v", rec, a[0], b[0])
		}
	}
}
