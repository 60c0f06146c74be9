package decode

import (
	"strings"
	"testing"
)

// A key of which nothing can be seen is what a producer sends that has none:
// all its records would be one row (field case D12).
func TestABlankKeyMakesOneRowOfMany(t *testing.T) {
	for _, typ := range []string{"String", "LowCardinality(String)", "FixedString(16)"} {
		d := mustPlan(t, Options{Columns: []Column{{Name: "id", Type: typ}}, Key: []string{"id"}})
		b := d.NewBlock()
		for _, id := range []string{
			"", " ", `\t\n`, `\u0000`, `\u0000\u0000`, `\u00a0`, ` \u00a0`, `\u00a0 `, `\u3000`, `\u2003`, `\u0085`, `\u1680`, `\u2028`, `\u202f`, `\u205f`,
			`\u200b`, `\u200d`, `\u2060`, `\ufeff`, `\ufeff\u0000`, ` \u200b`, `\u00ad`, `\u200e`, `\u3164`, `\ufe0f`, `\u180e`, "\u00a0", "\u3000\u200b",
		} {
			if _, rej := d.Append(b, value(`{"id":"`+id+`"}`)); rej == nil || rej.Class != ClassMissingKey || rej.Field != "id" {
				t.Errorf("%s: id %q is taken: %v", typ, id, rej)
			}
		}
		for _, id := range []string{"0", `\u00a0x`, `x\u00a0`, "é", "x ", `\u0000x`, `\u0001`, "日", "\u200b1", "😀", "~", `\u007f`, "-"} {
			if _, rej := d.Append(b, value(`{"id":"`+id+`"}`)); rej != nil {
				t.Errorf("%s: id %q: %v", typ, id, rej)
			}
		}
	}
	long := mustPlan(t, Options{Columns: []Column{{Name: "id", Type: "String"}}, Key: []string{"id"}})
	b := long.NewBlock()
	spaces := strings.Repeat("\u3000", 100) // a length of two bytes stands before it
	if _, rej := long.Append(b, value(`{"id":"`+spaces+`"}`)); rej == nil || rej.Class != ClassMissingKey {
		t.Errorf("300 bytes of space: %v", rej)
	}
	mustAppend(t, b, `{"id":"`+spaces+`é"}`)
	// A key of bytes that are no text is none of these.
	meta := mustPlan(t, Options{Columns: []Column{{Name: "id", Type: "String"}}, Key: []string{"id"}, From: map[string]string{"id": "$key"}})
	for key, blank := range map[string]bool{"\xff": false, "\x00\x01": false, "\x80\x80": false, "\x00\x00": true, "\xe3\x80\x80": true} {
		_, rej := meta.Append(meta.NewBlock(), &Record{Key: []byte(key), Value: []byte("{}")})
		if (rej != nil) != blank {
			t.Errorf("key %q: %v", key, rej)
		}
	}
}

// An amount that a producer forgot is not 0.
func TestAForgottenFieldBecomesZero(t *testing.T) {
	o := Options{
		Columns: []Column{
			{Name: "id", Type: "String"}, {Name: "amount", Type: "Decimal(18, 4)"}, {Name: "tags", Type: "Array(String)"}, {Name: "cause", Type: "Nullable(Int16)"},
			{Name: "tenant", Type: "LowCardinality(Nullable(String))"}, {Name: "at", Type: "DateTime64(3, 'UTC')"}, {Name: "plan", Type: "String", DefaultKind: "DEFAULT", DefaultExpr: "'free'"},
		},
		Key: []string{"id"}, From: map[string]string{"amount": "p.amount", "at": "$timestamp"},
	}
	d := mustPlan(t, o)
	b := d.NewBlock()
	b.SetDefaults(defaultsOf(t, d, `{"id":"d","p":{"amount":0},"tags":[],"plan":"free"}`))
	at := func(rec string) *Record { return &Record{TimestampMs: 1767225600123, Value: []byte(rec)} }
	for rec, field := range map[string]string{
		`{"id":"x","tags":[]}`: "p.amount", `{"id":"x","p":{},"tags":[]}`: "p.amount", `{"id":"x","p":{"amount":1}}`: "tags",
	} {
		_, rej := d.Append(b, at(rec))
		if rej == nil || rej.Class != ClassMissing || rej.Field != field || b.Rows() != 0 {
			t.Errorf("%s: %v, want %s of %s", rec, rej, ClassMissing, field)
		}
	}
	if _, rej := d.Append(b, value(`{"id":"x","p":{"amount":1},"tags":[]}`)); rej == nil || rej.Class != ClassMissing || rej.Field != "$timestamp" {
		t.Errorf("no timestamp: %v", rej)
	}
	if _, rej := d.Append(b, at(`{"id":"x","p":{"amount":1},"tags":[]}`)); rej != nil { // NULL and DEFAULT say what an absent field is
		t.Fatal(rej)
	}
	o.MissingFields = ZeroMissing
	lax := mustPlan(t, o)
	z := lax.NewBlock()
	z.SetDefaults(defaultsOf(t, lax, `{"id":"d","plan":"free"}`))
	if _, rej := lax.Append(z, at(`{"id":"x"}`)); rej != nil {
		t.Fatal(rej)
	}
	want := "\"x\" | 1.0000 | [] | NULL | NULL | 2026-01-01T00:00:00.123Z | \"free\"\n"
	if b.String() != want || z.String() != strings.Replace(want, "1.0000", "0.0000", 1) {
		t.Errorf("got\n%s%swant\n%s", b, z, want)
	}
	if _, rej := lax.Append(z, at(`{}`)); rej == nil || rej.Class != ClassMissingKey {
		t.Errorf("a key is never made up: %v", rej)
	}
}

// defaultsOf are Defaults as a server would give them: the values of a record.
func defaultsOf(t *testing.T, d *JSON, record string) *Defaults {
	t.Helper()
	answer := d.NewBlock()
	if _, rej := d.Append(answer, &Record{TimestampMs: 1767225600123, Value: []byte(record)}); rej != nil {
		t.Fatal(rej)
	}
	f := d.NewDefaults()
	f.cols = overTheWire(t, answer).cols
	return f
}

// What a person reads in the dead letter must say which value and which column,
// say it once, and be true.
func TestARejectDoesNotSayWhatIsWrong(t *testing.T) {
	d := mustPlan(t, Options{
		Columns: []Column{{Name: "k", Type: "UInt8"}, {Name: "n", Type: "UInt16"}, {Name: "at", Type: "DateTime('UTC')"}, {Name: "list", Type: "Array(UInt8)"}},
		Key:     []string{"k"}, From: map[string]string{"n": "p.n"}, MissingFields: ZeroMissing,
	})
	for rec, want := range map[string]string{
		`{"k":1,"p":{"n":null}}`:           `field "p.n": null, and column "n" (UInt16) is not Nullable`,
		`{"k":1,"list":[1,null]}`:          `field "list": an array with null in it, and column "list" (Array(UInt8)) is not Nullable`,
		`{"k":1,"p":{"n":65536}}`:          `field "p.n": 65536 is outside the range of column "n" (UInt16)`,
		`{"k":1,"p":{"n":"abc"}}`:          `field "p.n": a string of 3 bytes does not spell a value of column "n" (UInt16)`,
		`{"k":1,"at":"0e10"}`:              `field "at": "0e10" is an epoch whose unit (s, ms, us or ns) its magnitude does not tell, for column "at" (DateTime('UTC'))`,
		`{"k":1,"at":"1e5"}`:               `field "at": "1e5" is an epoch whose unit (s, ms, us or ns) its magnitude does not tell, for column "at" (DateTime('UTC'))`,
		`{"k":1,"p":{"n":"0e9999999999"}}`: `field "p.n": "0e9999999999" has a number with an exponent beyond 1000000000, for column "n" (UInt16)`,
		`{"k":1,"p":{"n":0e9999999999}}`:   `field "p": the record has a number with an exponent beyond 1000000000, at byte 27`,
		`{"p":{}}`:                         `field "k": the key column "k" is absent`,
		`{"k":null}`:                       `field "k": the key column "k" is null`,
	} {
		_, rej := d.Append(d.NewBlock(), value(rec))
		if rej == nil || rej.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", rec, rej, want)
		}
		if rej != nil && strings.HasPrefix(rej.Error(), rej.Class) {
			t.Errorf("%s: the reason stands in the text again: %v", rec, rej)
		}
	}
}
