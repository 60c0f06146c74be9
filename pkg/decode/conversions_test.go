package decode_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go"

	"github.com/oncesink/oncesink/pkg/decode"
)

// conversion is what one type of column makes of each kind of JSON. In a pair
// stand the JSON and what ClickHouse prints of the row, as JSON, or the class of
// the Reject behind an exclamation mark. Kinds that are not mentioned are
// rejected: null as null, the others as wrong_type.
type conversion struct {
	typ   string
	rule  string
	cases [][2]string
}

const conversionsPage = "../../docs/conversions.md"

var rewrite = flag.Bool("rewrite", false, "write docs/conversions.md anew")

var kindsOfJSON = []struct{ name, sample string }{
	{"null", "null"}, {"true, false", "true"}, {"number", "7"}, {"string", `"x"`}, {"array", "[]"}, {"object", "{}"},
}

func kindOf(in string) string {
	switch in = strings.TrimLeft(in, " "); in[0] {
	case 'n':
		return "null"
	case 't', 'f':
		return "true, false"
	case '"':
		return "string"
	case '[':
		return "array"
	case '{':
		return "object"
	}
	return "number"
}

// complete adds the kinds that a conversion does not mention.
func (c conversion) complete() [][2]string {
	seen := map[string]bool{}
	for _, p := range c.cases {
		seen[kindOf(p[0])] = true
	}
	cases := c.cases
	for _, k := range kindsOfJSON {
		if !seen[k.name] {
			class := "!wrong_type"
			if k.name == "null" {
				class = "!null"
			}
			cases = append(cases[:len(cases):len(cases)], [2]string{k.sample, class})
		}
	}
	return cases
}

// TestConversionTable sends every value of the table to the engine, in a block
// as the sink sends it, and reads it back. What the engine prints must be what
// the table says, and must become the same value when a record has it. The page
// in docs/ is the same table; run with -rewrite to write it.
func TestConversionTable(t *testing.T) {
	s := newServer(t)
	cells, values := 0, 0
	for i, c := range conversions {
		cells += len(kindsOfJSON)
		values += len(c.complete())
		t.Run(c.typ, func(t *testing.T) { checkConversion(t, s, fmt.Sprintf("c%d", i), c) })
	}
	for _, r := range refusals {
		_, err := decode.NewJSON(decode.Options{Columns: []decode.Column{{Name: "k", Type: "UInt8"}, {Name: "v", Type: r.typ}}, Key: []string{"k"}, Hasher: hasher{}})
		if err == nil || !strings.Contains(err.Error(), `column "v": type "`+r.typ+`" is not supported: `) || !strings.Contains(err.Error(), r.cure) {
			t.Errorf("%s: %v, want a refusal that says %q", r.typ, err, r.cure)
		}
	}
	t.Logf("%d types x %d kinds of JSON = %d cells, %d values; %d types refused", len(conversions), len(kindsOfJSON), cells, values, len(refusals))
	page := conversionPage()
	if *rewrite {
		if err := os.WriteFile(conversionsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(conversionsPage)
	if err != nil || string(got) != page {
		t.Errorf("docs/conversions.md is not the table that is tested (%v); write it: go test ./pkg/decode -run TestConversionTable -rewrite", err)
	}
}

func checkConversion(t *testing.T, s *server, table string, c conversion) {
	s = &server{t: t, db: s.db, conn: s.conn}
	s.http("CREATE TABLE "+table+" (k UInt32, v "+c.typ+") ENGINE = MergeTree ORDER BY k SETTINGS flatten_nested = 0", "")
	d, err := decode.NewJSON(decode.Options{Columns: s.columns(table), Key: []string{"k"}, Hasher: hasher{}})
	if err != nil {
		t.Fatal(err)
	}
	b := d.NewBlock()
	insert := func() {
		t.Helper()
		if err := s.conn.Do(t.Context(), ch.Query{Body: "INSERT INTO " + table + " (k, v) VALUES", Input: b.Input(), Settings: jsonSettings}); err != nil {
			t.Fatal(err)
		}
		b.Reset()
	}
	printed := func(where string) []string {
		t.Helper()
		return strings.Split(strings.TrimSpace(s.http("SELECT v FROM "+table+" WHERE "+where+" ORDER BY k FORMAT JSONEachRow", "")), "\n")
	}
	var stored [][2]string
	for _, p := range c.complete() {
		_, rej := d.Append(b, &decode.Record{Value: fmt.Appendf(nil, `{"k":%d,"v":%s}`, len(stored), p[0])})
		class, bad := strings.CutPrefix(p[1], "!")
		switch {
		case bad && (rej == nil || rej.Class != class):
			t.Errorf("%s: %v, want %s", p[0], rej, class)
		case !bad && rej != nil:
			t.Errorf("%s: %s: %v, want %s", p[0], rej.Class, rej, p[1])
		}
		if rej == nil {
			stored = append(stored, p)
		}
	}
	if len(stored) == 0 {
		t.Fatal("nothing is stored")
	}
	insert()
	got := printed("k < 1000")
	for i, p := range stored {
		if want := `{"v":` + p[1] + "}"; got[i] != want {
			t.Errorf("%s: %s, want %s", p[0], got[i], want)
		}
	}
	for i, line := range got {
		if _, rej := d.Append(b, &decode.Record{Value: fmt.Appendf(nil, `{"k":%d,%s`, 1000+i, line[1:])}); rej != nil {
			t.Fatalf("%s, which the engine prints: %v", line, rej)
		}
	}
	insert()
	for i, line := range printed("k >= 1000") {
		if line != got[i] {
			t.Errorf("%s, which the engine prints of %s, becomes %s", got[i], stored[i][0], line)
		}
	}
}

const conversionHead = `# Which JSON becomes which value

Written by ` + "`go test ./pkg/decode -run TestConversionTable -rewrite`" + `, which has sent every value below to ClickHouse as the sink sends it, and read it
back. Left of an arrow stands the JSON of the record, right of it what ClickHouse prints of the row (FORMAT JSONEachRow); a word behind the JSON is the
reason with which the record goes to the dead letters. There is no third way: nothing is wrapped, cut off or guessed at, and nothing but floats is rounded.
The rules are in [pkg/decode/doc.go](../pkg/decode/doc.go). The server's time zone is UTC here.

An absent field is the column's DEFAULT, or NULL, or a rejected record (missing_field; with missing_fields: zero the type's own default).
`

func conversionPage() string {
	var b strings.Builder
	b.WriteString(conversionHead)
	for _, c := range conversions {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| JSON | is stored | is rejected |\n|---|---|---|\n", code(c.typ), c.rule)
		cases := c.complete()
		for _, k := range kindsOfJSON {
			var stored, rejected []string
			for _, p := range cases {
				if kindOf(p[0]) != k.name {
					continue
				}
				if class, bad := strings.CutPrefix(p[1], "!"); bad {
					rejected = append(rejected, code(p[0])+" "+class)
				} else {
					stored = append(stored, code(p[0])+" → "+code(p[1]))
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", k.name, strings.Join(stored, "<br>"), strings.Join(rejected, "<br>"))
		}
	}
	b.WriteString("\n## Types that are refused at start\n\n| Type | What is said |\n|---|---|\n")
	for _, r := range refusals {
		fmt.Fprintf(&b, "| %s | %s |\n", code(r.typ), strings.ReplaceAll(r.cure, "|", `\|`))
	}
	return b.String()
}

// code is a code span in a table, whatever is in it.
func code(s string) string {
	s = strings.ReplaceAll(s, "|", `\|`)
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}
