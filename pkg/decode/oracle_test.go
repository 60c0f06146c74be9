package decode_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
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
		"input_format_null_as_default": {"0"}}
	for _, name := range []string{"allow_suspicious_low_cardinality_types", "enable_nullable_tuple_type", "enable_time_time64_type", "allow_suspicious_types_in_order_by"} {
		q.Set(name, "1")
	}
	for _, set := range jsonSettings {
		q.Set(set.Key, set.Value)
	}
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

// TestServerReadsOtherValuesThanItsOwnParser sends the same records as native
// blocks and as JSON text, and compares the tables as the server prints them.
// What records leave out is compared with an INSERT that leaves it out: the
// JSON format has a rule of its own there (1970 for a Date32).
func TestServerReadsOtherValuesThanItsOwnParser(t *testing.T) {
	s := newServer(t)
	var defs []string
	var records, texts []string
	for i, o := range oracleTypes {
		defs = append(defs, fmt.Sprintf("c%d %s", i, o.typ))
		for _, v := range o.values {
			r := fmt.Sprintf(`{"k":%d,"c%d":%s}`, len(records), i, v)
			records = append(records, r)
			for n, other := range oracleTypes { // what the record leaves out
				if n != i && strings.Contains(other.typ, "Date32") && !strings.Contains(other.typ, "Nullable") {
					r = strings.Replace(r, ",", fmt.Sprintf(`,"c%d":"1900-01-01",`, n), 1)
				}
			}
			texts = append(texts, r)
		}
	}
	records = append(records, fmt.Sprintf(`{"k":%d}`, len(records)))
	for _, table := range []string{"native", "text"} {
		s.http("CREATE TABLE "+table+" (k UInt32, "+strings.Join(defs, ", ")+") ENGINE = MergeTree ORDER BY k SETTINGS flatten_nested = 0", "")
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
	if err := s.conn.Do(t.Context(), ch.Query{Body: "INSERT INTO native (" + names(b.Input()) + ") VALUES", Input: b.Input(), Settings: jsonSettings}); err != nil {
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
				n, w := strings.Split(got[i], `,"c`), strings.Split(want[i], `,"c`)
				for c := range n {
					if c < len(w) && n[c] != w[c] {
						t.Errorf("%s\nnative %s\ntext   %s", records[i], n[c], w[c])
					}
				}
				if len(n) != len(w) {
					t.Errorf("%s\nnative %s\ntext   %s", records[i], got[i], want[i])
				}
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
