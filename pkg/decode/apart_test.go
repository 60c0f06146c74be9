package decode

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// Keys that fold into one are other customers' rows lost, and one key that splits is a row twice (field case D12). Each line is one key in several
// spellings; no two lines may meet.
func TestKeysThatDifferStayApartAndOneKeyIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		types []string // of k0, k1, …
		keys  [][]string
	}{
		"parts that could be joined otherwise": {[]string{"String", "String"}, [][]string{
			{`"a-b","c"`}, {`"a","b-c"`}, {`"a-b-c","-"`}, {`"ab","c"`}, {`"a","bc"`}, {`"a\u0000","b"`}, {`"a","\u0000b"`}, {`"a\u0001b","c"`}, {`"a","\u0001bc"`}, {`"a:b","c"`}, {`"a","b:c"`}, {`"c","a-b"`},
		}},
		"the same id of two tenants": {[]string{"LowCardinality(String)", "String"}, [][]string{{`"t1","x"`}, {`"t2","x"`}, {`"t1","X"`}, {`"t1","x "`}, {`"t1"," x"`}, {`"T1","x"`}}},
		"numbers":                    {[]string{"UInt64"}, [][]string{{`1`, `"1"`, `1.0`, `10e-1`}, {`10`, `1e1`}, {`9007199254740993`}, {`9007199254740992`}, {`18446744073709551615`}, {`0`, `-0`, `0.0`}}},
		"text of numbers":            {[]string{"String"}, [][]string{{`"1"`}, {`"1.0"`}, {`"01"`}, {`"1 "`}, {`"+1"`}}},
		"money":                      {[]string{"Decimal(18, 4)"}, [][]string{{`1`, `1.0`, `"1.0000"`, `1e0`}, {`1.0001`}, {`-1`}, {`0`, `-0.0`}}},
		"UUIDs":                      {[]string{"UUID"}, [][]string{{`"61F0C404-5CB3-11E7-907B-A6006AD3DBA0"`, `"61f0c404-5cb3-11e7-907b-a6006ad3dba0"`}, {`"61f0c404-5cb3-11e7-907b-a6006ad3dba1"`}}},
		"text of UUIDs":              {[]string{"String"}, [][]string{{`"61F0C404"`}, {`"61f0c404"`}}},
		"times":                      {[]string{"DateTime64(3, 'UTC')"}, [][]string{{`1767225600123`, `"2026-01-01T00:00:00.123Z"`, `"2026-01-01T01:00:00.123+01:00"`}, {`1767225600124`}}},
		"text that looks alike":      {[]string{"String"}, [][]string{{`"\u00e9"`, `"é"`}, {`"e\u0301"`}, {`"\ufffd"`}, {`"\ufffd\ufffd"`}, {`"a\u0000"`}, {`"a"`}, {`"a\u200b"`}}},
	} {
		o := Options{}
		for i, typ := range c.types {
			o.Columns = append(o.Columns, Column{Name: fmt.Sprint("k", i), Type: typ})
			o.Key = append(o.Key, fmt.Sprint("k", i))
		}
		b := mustPlan(t, o).NewBlock()
		owner := map[batcher.Key]int{}
		for line, spellings := range c.keys {
			for _, s := range spellings {
				record := "{"
				for i, v := range strings.SplitN(s, ",", len(c.types)) {
					record += fmt.Sprintf(`,"k%d":%s`, i, v)
				}
				key := mustAppend(t, b, strings.Replace(record, "{,", "{", 1)+"}")[0].Key
				if other, taken := owner[key]; taken && other != line {
					t.Errorf("%s: %s is the same key as %s", name, s, c.keys[other][0])
				}
				owner[key] = line
			}
		}
		if len(owner) != len(c.keys) {
			t.Errorf("%s: %d keys of %d", name, len(owner), len(c.keys))
		}
	}
}

// Producers without ids must not fold into one row: each is a dead letter of its own (field case D12). What bytes are no text can't become one either.
func TestRecordsWithoutAKeyAreNotOneRow(t *testing.T) {
	d := mustPlan(t, Options{Columns: []Column{{Name: "id", Type: "String"}, {Name: "tenant", Type: "String"}}, Key: []string{"tenant", "id"}})
	b := d.NewBlock()
	for i := range 100 {
		record := []string{
			`{"tenant":"t"}`, `{"tenant":"t","id":""}`, `{"tenant":"t","id":null}`, `{"tenant":"t","id":" \t"}`, `{"id":"x"}`, `{"tenant":null,"id":"x"}`, `{"tenant":"","id":"x"}`,
			"{\"tenant\":\"t\",\"id\":\"x\xff\"}", "{\"tenant\":\"t\",\"id\":\"x\xfe\"}", `{"tenant":"t","id":"\ud800"}`,
		}[i%10]
		if _, rej := d.Append(b, value(record)); rej == nil || rej.Class != ClassMissingKey && rej.Class != "invalid_utf8" || b.Rows() != 0 {
			t.Errorf("%s: %v", record, rej)
		}
	}
}
