package decode_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"
	"github.com/cespare/xxhash/v2"

	"github.com/oncesink/oncesink/internal/testenv"
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/decode"
)

func TestMain(m *testing.M) { testenv.Main(m) }

type hasher struct{}

func (hasher) Key(c []byte) batcher.Key { return batcher.Key{Lo: xxhash.Sum64(c)} }
func (hasher) Field(name string, c []byte) uint64 {
	return xxhash.Sum64String(name) ^ xxhash.Sum64(c)
}

// server is a ClickHouse that is asked over both of its protocols.
type server struct {
	t    *testing.T
	db   *testenv.EngineDatabase
	conn *ch.Client
}

func newServer(t *testing.T) *server {
	db := testenv.SharedEngine(t)
	conn, err := ch.Dial(t.Context(), ch.Options{Address: db.Addr, Database: db.Database})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &server{t, db, conn}
}

// http runs a statement over HTTP and returns the answer.
func (s *server) http(sql, body string) string {
	s.t.Helper()
	q := url.Values{"query": {sql}, "database": {s.db.Database}, "date_time_input_format": {"best_effort"},
		"allow_suspicious_low_cardinality_types": {"1"}, "input_format_null_as_default": {"0"}}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.db.HTTPAddr+"/?"+q.Encode(), strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%.200s: %v %s", sql, err, out)
	}
	return string(out)
}

// columns reads a table's columns as the sink does.
func (s *server) columns(table string) (list []decode.Column) {
	s.t.Helper()
	var name, typ, kind, expr proto.ColStr
	results := proto.Results{{Name: "name", Data: &name}, {Name: "type", Data: &typ}, {Name: "default_kind", Data: &kind}, {Name: "default_expression", Data: &expr}}
	err := s.conn.Do(s.t.Context(), ch.Query{
		Body:   "SELECT name, type, default_kind, default_expression FROM system.columns WHERE database = currentDatabase() AND table = '" + table + "' ORDER BY position",
		Result: results,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range name.Rows() {
		list = append(list, decode.Column{Name: name.Row(i), Type: typ.Row(i), DefaultKind: kind.Row(i), DefaultExpr: expr.Row(i)})
	}
	return list
}

type oracleType struct {
	typ    string
	values []string
}

// oracleTypes are column types with JSON values that ClickHouse's own JSON
// format reads exactly.
var oracleTypes = []oracleType{
	{"Int8", []string{"-128", "127", `"5"`}}, {"Int16", []string{"-32768", "32767"}}, {"Int32", []string{"-2147483648", "2147483647"}}, {"Int64", []string{"-9223372036854775808", "9223372036854775807", `"9007199254740993"`}},
	{"UInt8", []string{"0", "255"}}, {"UInt16", []string{"65535"}}, {"UInt32", []string{"4294967295"}}, {"UInt64", []string{"18446744073709551615", `"18446744073709551615"`}},
	{"Float32", []string{"0.1", "-3.4028235e38", "16777217", "1.00000005960464477540"}}, {"Float64", []string{"0.1", "123456789.123456789", "5e-324", "1.7976931348623157e308", "9007199254740993", "1e23"}},
	{"Bool", []string{"true", "false"}},
	{"String", []string{`""`, `"a\u0000\n\\é😀\ud83d\ude00"`, `"` + strings.Repeat("x", 300) + `"`}},
	{"FixedString(4)", []string{`"abcd"`, `"a"`, `""`, `"éé"`}},
	{"Decimal(9, 2)", []string{"1.15", "-9999999.99", `"4.35"`, "1e3", "1e-2"}}, {"Decimal(18, 4)", []string{"99999999999999.9999", "-0.0001", "19.99"}}, {"Decimal(38, 10)", []string{"9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "0.0000000001", "-1"}}, {"Decimal(38, 38)", []string{"0.12345678901234567890123456789012345678"}}, {"Decimal(5, 0)", []string{"-99999"}},
	{"Date", []string{`"1970-01-01"`, `"2149-06-06"`, `"2024-02-29"`}}, {"Date32", []string{`"1900-01-01"`, `"2299-12-31"`, `"1969-12-31"`}},
	{"DateTime('UTC')", []string{`"1970-01-01T00:00:00Z"`, `"2106-02-07T06:28:15Z"`, "1767225600", `"2026-01-01 00:00:00"`}}, {"DateTime('Asia/Tokyo')", []string{`"2026-01-15 10:00:00"`, `"2026-01-15T10:00:00+02:00"`}}, {"DateTime('America/New_York')", []string{`"2026-03-08 01:59:59"`, `"2026-03-08 03:00:00"`, `"2026-07-04 12:00:00"`}},
	{"DateTime64(3, 'UTC')", []string{`"1900-01-01T00:00:00Z"`, `"2299-12-31T23:59:59.999Z"`, `"1969-12-31T23:59:59.999Z"`, `"2026-01-01 00:00:00.123"`}}, {"DateTime64(9, 'Europe/Berlin')", []string{`"2026-01-15T10:00:00.123456789"`, `"2262-04-11T23:47:16.854775807Z"`, `"2026-03-29 03:00:00"`, `"1965-06-01 12:00:00"`}}, {"DateTime64(0, 'UTC')", []string{`"2026-01-01T00:00:00Z"`}}, {"DateTime64(6, 'America/New_York')", []string{`"2026-07-04 12:00:00.123456"`, `"2050-01-01 00:00:00"`}},
	{"UUID", []string{`"61F0C404-5CB3-11E7-907B-A6006AD3DBA0"`, `"61f0c4045cb311e7907ba6006ad3dba0"`}},
	{`Enum8('a' = 1, 'b,=\'(' = -128, 'c\nd' = 127)`, []string{`"a"`, `"b,='("`, `"c\nd"`, "127"}}, {`Enum16('x' = -32768, '' = 5)`, []string{`"x"`, `""`}},
	{"IPv4", []string{`"192.168.0.1"`, `"255.255.255.255"`}}, {"IPv6", []string{`"2001:DB8::1"`, `"::ffff:1.2.3.4"`, `"1.2.3.4"`}},
	{"LowCardinality(String)", []string{`"x"`, `""`, `"y"`}}, {"LowCardinality(Nullable(String))", []string{"null", `""`, `"x"`}}, {"LowCardinality(FixedString(3))", []string{`"EUR"`, `"E"`}}, {"LowCardinality(Nullable(FixedString(3)))", []string{"null", `"EUR"`, `""`}},
	{"Nullable(Int16)", []string{"null", "-7"}}, {"Nullable(Decimal(38, 2))", []string{"null", "1.25"}}, {"Nullable(String)", []string{"null", `""`, `"null"`}}, {"Nullable(Enum8('a' = 1))", []string{"null", `"a"`}}, {"Nullable(FixedString(4))", []string{"null", `"ab"`}}, {"Nullable(DateTime64(3, 'UTC'))", []string{"null", `"2026-01-01T00:00:00.5Z"`}}, {"Nullable(UUID)", []string{"null"}}, {"Nullable(Bool)", []string{"null", "true"}},
	{"Array(Nullable(Int32))", []string{"[1,null,2]", "[]"}}, {"Array(String)", []string{`["a","",""]`}}, {"Array(DateTime64(3, 'UTC'))", []string{`["2026-01-01T00:00:00.123Z"]`}}, {"Array(Array(UInt8))", []string{"[[1,2],[],[3]]", "[]"}}, {"Array(LowCardinality(String))", []string{`["a","b","a"]`, "[]"}}, {"Array(Array(LowCardinality(Nullable(String))))", []string{`[["a",null],[]]`}}, {"Array(Enum8('a' = 1))", []string{`["a"]`}}, {"Array(FixedString(2))", []string{`["a","bc"]`}},
	{"Map(String, String)", []string{`{"a":"1","b":""}`, "{}"}}, {"Map(String, UInt64)", []string{`{"a":18446744073709551615}`}}, {"Map(LowCardinality(String), Array(Nullable(String)))", []string{`{"a":["x",null],"b":[]}`}},
}

// TestServerReadsOtherValuesThanItsOwnParser sends the same records as native
// blocks and as JSON text, and compares the tables as the server prints them.
// What records leave out is compared with an INSERT that leaves it out: the
// JSON format has a rule of its own there (1970 for a Date32).
func TestServerReadsOtherValuesThanItsOwnParser(t *testing.T) {
	s := newServer(t)
	var defs []string
	var records, texts []string
	date32 := slices.IndexFunc(oracleTypes, func(o oracleType) bool { return o.typ == "Date32" })
	for i, o := range oracleTypes {
		defs = append(defs, fmt.Sprintf("c%d %s", i, o.typ))
		for _, v := range o.values {
			r := fmt.Sprintf(`{"k":%d,"c%d":%s}`, len(records), i, v)
			records = append(records, r)
			if i != date32 {
				r = strings.Replace(r, ",", fmt.Sprintf(`,"c%d":"1900-01-01",`, date32), 1)
			}
			texts = append(texts, r)
		}
	}
	records = append(records, fmt.Sprintf(`{"k":%d}`, len(records)))
	for _, table := range []string{"native", "text"} {
		s.http("CREATE TABLE "+table+" (k UInt32, "+strings.Join(defs, ", ")+") ENGINE = MergeTree ORDER BY k", "")
	}
	s.http("INSERT INTO text FORMAT JSONEachRow", strings.Join(texts, "\n"))
	s.http(fmt.Sprintf("INSERT INTO text (k) VALUES (%d)", len(texts)), "")

	zone, err := time.LoadLocation(strings.TrimSpace(s.http("SELECT timezone()", "")))
	if err != nil {
		t.Fatal(err)
	}
	d, err := decode.NewJSON(decode.Options{Columns: s.columns("native"), Key: []string{"k"}, TimeZone: zone, MissingFields: decode.ZeroMissing, Hasher: hasher{}})
	if err != nil {
		t.Fatal(err)
	}
	b := d.NewBlock()
	for round := range 2 { // the second block shows that Reset leaves nothing
		for _, r := range records {
			if _, rej := d.Append(b, &decode.Record{Value: []byte(r)}); rej != nil {
				t.Fatalf("%s: %v", r, rej)
			}
		}
		if round == 0 {
			b.Reset()
		}
	}
	if err := s.conn.Do(t.Context(), ch.Query{Body: "INSERT INTO native (" + names(b.Input()) + ") VALUES", Input: b.Input()}); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(s.http("SELECT * FROM native ORDER BY k FORMAT JSONEachRow", ""), "\n")
	want := strings.Split(s.http("SELECT * FROM text ORDER BY k FORMAT JSONEachRow", ""), "\n")
	if len(got) != len(want) || len(got) != len(records)+1 {
		t.Fatalf("%d rows, want %d of %d records", len(got), len(want), len(records))
	}
	bad := 0
	for i := range got {
		if got[i] != want[i] {
			if bad++; bad < 5 {
				t.Errorf("%s\nnative %s\ntext   %s", records[i], got[i], want[i])
			}
		}
	}
}

func names(in proto.Input) string {
	var list []string
	for _, c := range in {
		list = append(list, "`"+c.Name+"`")
	}
	return strings.Join(list, ", ")
}

// TestDefaultsOfTheServer asks the server for the values of absent fields, as
// the sink does once a batch, and finds out which it cannot give.
func TestDefaultsOfTheServer(t *testing.T) {
	s := newServer(t)
	s.http(`CREATE TABLE d (k UInt8, plan LowCardinality(String) DEFAULT 'free', price Decimal(9, 2) DEFAULT 9.99, at DateTime64(3, 'UTC') DEFAULT '2026-01-01 00:00:00.123',
		now DateTime DEFAULT now(), e Enum8('it\'s' = 1, 'b' = 2) DEFAULT 'it\'s', tags Array(LowCardinality(Nullable(String))) DEFAULT ['x', NULL], m Map(String, String) DEFAULT map('a', 'b'),
		n Nullable(UInt8) DEFAULT 7, u UUID DEFAULT '61f0c404-5cb3-11e7-907b-a6006ad3dba0', f FixedString(3) DEFAULT 'ab', lf LowCardinality(Nullable(String)) DEFAULT NULL, twice UInt8 DEFAULT k * 2) ENGINE = MergeTree ORDER BY k`, "")
	d, err := decode.NewJSON(decode.Options{Columns: s.columns("d"), Key: []string{"k"}, Hasher: hasher{}})
	if err != nil {
		t.Fatal(err)
	}
	f := d.NewDefaults()
	for range 2 { // a second batch asks again
		for _, c := range d.NeedsDefaults() {
			err := s.conn.Do(t.Context(), ch.Query{Body: f.Query(c.Name), Result: f.Results(c.Name)})
			if (err != nil) != (c.Name == "twice") {
				t.Errorf("%s: %v", c.Name, err)
			}
			if err != nil {
				f.Unavailable(c.Name, err.Error())
				s.conn, err = ch.Dial(t.Context(), ch.Options{Address: s.db.Addr, Database: s.db.Database})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.conn.Close() })
			}
		}
	}
	b := d.NewBlock()
	b.SetDefaults(f)
	if _, rej := d.Append(b, &decode.Record{Value: []byte(`{"k":1,"twice":2}`)}); rej != nil {
		t.Fatal(rej)
	}
	if _, rej := d.Append(b, &decode.Record{Value: []byte(`{"k":1}`)}); rej == nil || rej.Class != decode.ClassDepends {
		t.Errorf("%v", rej)
	}
	if err := s.conn.Do(t.Context(), ch.Query{Body: "INSERT INTO d (" + names(b.Input()) + ") VALUES", Input: b.Input()}); err != nil {
		t.Fatal(err)
	}
	s.http("INSERT INTO d (k) VALUES (1)", "")
	got := strings.Split(strings.TrimSpace(s.http("SELECT * EXCEPT now, toUnixTimestamp(now) > 1700000000 FROM d FORMAT TSV", "")), "\n")
	if len(got) != 2 || got[0] != got[1] {
		t.Errorf("sent by us and made by the server:\n%s", strings.Join(got, "\n"))
	}
}
