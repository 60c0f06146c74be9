package decode

import (
	"fmt"
	"strings"
	"testing"
)

func strictPlan(t testing.TB, policy Policy) *JSON {
	return mustPlan(t, Options{
		Columns:       []Column{{Name: "id", Type: "String"}, {Name: "amount", Type: "Nullable(Decimal(18, 4))"}, {Name: "a\"b", Type: "Nullable(String)"}},
		Key:           []string{"id"},
		UnknownFields: policy,
	})
}

// TestLenientJSONIsRejected: each of these is taken by some JSON library and
// then changes a value, merges ids or loses a row.
func TestLenientJSONIsRejected(t *testing.T) {
	deep := strings.Repeat("[", 63) + strings.Repeat("]", 63)
	for _, c := range []struct{ record, class string }{
		{"", "tombstone"},
		{" ", "syntax"},
		{"null", "not_an_object"}, {"[]", "not_an_object"}, {`[{"id":"x"}]`, "not_an_object"}, {`"x"`, "not_an_object"}, {"0", "not_an_object"}, {"true", "not_an_object"}, {" 1.5 ", "not_an_object"},
		{"nul", "syntax"}, {"x", "syntax"}, {"'x'", "syntax"}, {"0 0", "trailing_data"}, {"[", "syntax"}, {"nulls", "trailing_data"},
		{"{}", "missing_key"}, {`{"amount":1}`, "missing_key"}, {`{"id":null}`, "missing_key"}, {`{"id":""}`, "missing_key"}, {`{"id":" \t"}`, "missing_key"},
		{"\xef\xbb\xbf" + `{"id":"x"}`, "syntax"},
		{`{"id":"x"} trailing`, "trailing_data"}, {`{"id":"x"}{"id":"y"}`, "trailing_data"}, {`{"id":"x"}}`, "trailing_data"}, {`{"id":"x"},`, "trailing_data"}, {"{\"id\":\"x\"}\x00", "trailing_data"},
		{`{"id":"x","id":"y"}`, "duplicate_name"}, {`{"id":"x","\u0069d":"y"}`, "duplicate_name"}, {`{"id":"x","amount":1,"amount":1}`, "duplicate_name"},
		{`{"ID":"x"}`, "unknown_field"}, {`{"id":"x","AMOUNT":99}`, "unknown_field"}, {`{"id":"x","discount":1}`, "unknown_field"}, {`{"id":"x","":1}`, "unknown_field"},
		{`{"id":"x",}`, "syntax"}, {`{,"id":"x"}`, "syntax"}, {`{"id" "x"}`, "syntax"}, {`{"id":}`, "syntax"}, {`{id:"x"}`, "syntax"}, {`{"id":"x" "amount":1}`, "syntax"}, {`{"id":"x"`, "syntax"}, {`{"id":"x`, "syntax"}, {`{"id":"x",`, "syntax"}, {`{`, "syntax"}, {`{"id"`, "syntax"}, {`{"id":`, "syntax"},
		{`{"id":"x","amount":01}`, "syntax"}, {`{"id":"x","amount":1.}`, "syntax"}, {`{"id":"x","amount":.5}`, "syntax"}, {`{"id":"x","amount":+1}`, "syntax"}, {`{"id":"x","amount":-}`, "syntax"}, {`{"id":"x","amount":1e}`, "syntax"}, {`{"id":"x","amount":NaN}`, "syntax"}, {`{"id":"x","amount":Infinity}`, "syntax"}, {`{"id":"x","amount":0x1}`, "syntax"}, {`{"id":"x","amount":1_0}`, "syntax"}, {`{"id":"x","amount":nulL}`, "syntax"},
		{`{"id":"x",/* */"amount":1}`, "syntax"}, {"{\"id\":\"x\",\v\"amount\":1}", "syntax"}, {"{\"id\":\"x\",\u00a0\"amount\":1}", "syntax"},
		{"{\"id\":\"x\xff\"}", "invalid_utf8"}, {"{\"id\":\"x\",\"\xff\":1}", "invalid_utf8"}, {`{"id":"\ud800"}`, "invalid_utf8"}, {`{"id":"\udc00\ud800"}`, "invalid_utf8"}, {`{"id":"\ud800\ud800"}`, "invalid_utf8"},
		{`{"id":"x","a"b":"y"}`, "syntax"}, // a\"b is a column; its raw name in the text is no JSON
		{`{"id":"x","amount":` + deep + `}`, "wrong_type"}, {`{"id":"x","amount":[` + deep + `]}`, "too_deep"},
		{`{"id":{"a":1,"a":2}}`, "duplicate_name"}, {`{"id":[{"a":[{"b":1,"b":2}]}]}`, "duplicate_name"},
	} {
		d := strictPlan(t, RejectUnknown)
		b := d.NewBlock()
		mustAppend(t, b, `{"id":"first","amount":1.5,"a\"b":"q"}`) // teaches the order
		before := b.String()
		_, rej := d.Append(b, value(c.record))
		if rej == nil || rej.Class != c.class {
			t.Errorf("%q: %v, want %s", c.record, rej, c.class)
			continue
		}
		if b.String() != before {
			t.Errorf("%q changed the block", c.record)
		}
		if len(rej.Error()) > 400 {
			t.Errorf("%q: a message of %d bytes", c.record, len(rej.Error()))
		}
	}
}

func TestUnusualSpellingsOfARecord(t *testing.T) {
	d := strictPlan(t, RejectUnknown)
	b := d.NewBlock()
	mustAppend(t, b,
		`{"id":"x","amount":1.5,"a\"b":"q"}`,
		"\n\t { \"amount\" : 1.5 ,\r\n \"id\" : \"x\" , \"a\\u0022b\":\"q\" } \n",
		`{"\u0069\u0064":"x","a\"b":"q","amou\u006et":15e-1}`,
	)
	if want := strings.Repeat("\"x\" | 1.5000 | \"q\"\n", 3); b.String() != want {
		t.Errorf("got\n%s", b)
	}
}

func TestUnknownFieldsAreCountedAndBounded(t *testing.T) {
	d := strictPlan(t, IgnoreUnknown)
	b := d.NewBlock()
	for i := range 2000 {
		mustAppend(t, b, fmt.Sprintf(`{"id":"x","discount":1,"n%d":2,"z":{"q":1}}`, i))
	}
	got := map[string]int64{}
	b.UnknownFields(func(name string, n int64) { got[name] = n })
	if got["discount"] != 2000 || got["z"] != 2000 || got["n5"] != 1 || len(got) != maxLearned+1 {
		t.Errorf("discount %d, z %d, n5 %d, %d names", got["discount"], got["z"], got["n5"], len(got))
	}
	if total := got[""]; total != 2000-(maxLearned-2) {
		t.Errorf("%d under no name", total)
	}
	b.UnknownFields(func(name string, n int64) { t.Errorf("%s counted again", name) })
	// Unknown names are looked at for duplicates too, remembered or not.
	for _, r := range []string{`{"id":"x","discount":1,"discount":1}`, `{"id":"x","n1999":1,"n1999":1}`, `{"id":"x","n1999":1,"z":1,"n\u0031999":1}`} {
		if _, rej := d.Append(b, value(r)); rej == nil || rej.Class != ClassDuplicate {
			t.Errorf("%s: %v", r, rej)
		}
	}
	// Many names in one record cost no more than their number.
	var big strings.Builder
	big.WriteString(`{"id":"x"`)
	for i := range 50000 {
		fmt.Fprintf(&big, `,"w%d":{"w%d":1}`, i, i)
	}
	mustAppend(t, b, big.String()+"}")
	if _, rej := d.Append(b, value(big.String()+`,"w777":1}`)); rej == nil || rej.Class != ClassDuplicate {
		t.Errorf("late duplicate: %v", rej)
	}
}

// A block that has learned one order must not take another for it.
func TestPredictedOrderIsOnlyAHint(t *testing.T) {
	d := mustPlan(t, Options{
		Columns: []Column{{Name: "a", Type: "UInt8"}, {Name: "ab", Type: "UInt8"}, {Name: "b", Type: "Nullable(UInt8)"}},
		Key:     []string{"a"}, UnknownFields: IgnoreUnknown,
	})
	b := d.NewBlock()
	mustAppend(t, b,
		`{"a":1,"ab":2,"b":3}`, `{"ab":2,"a":1,"b":3}`, `{"b":3,"ab":2,"a":1}`, `{"a":1,"b":3,"ab":2}`,
		`{"a":1,"x":0,"ab":2,"b":3}`, `{"x":0,"a":1,"y":0,"ab":2,"b":3,"z":0}`, `{"a":1,"ab":2,"b":3}`, `{"a":1,"ab":2}`, `{"ab":2,"a":1,"b":null}`)
	want := strings.Repeat("1 | 2 | 3\n", 7) + strings.Repeat("1 | 2 | NULL\n", 2)
	if b.String() != want {
		t.Errorf("got\n%s", b)
	}
}
