package wiring

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/testenv"
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/decode"
	"github.com/oncesink/oncesink/pkg/writer"
)

// oddColumns are types that other clients have refused or spelt otherwise, with a value and a DEFAULT. The names are no less odd: they go through the record,
// the statement, the structure of input() and the comparison with what the server expects.
var oddColumns = []struct{ name, typ, value, expr string }{
	{"i.d", "Int256", `-57896044618658097711785492504343953926634992332820282019728792003956564819968`, "-1"},
	{"select", "UInt128", `340282366920938463463374607431768211455`, "5"},
	{"a`b", "Decimal(76, 20)", `12345678901234567890123456789012345678.12345678901234567890`, "1.5"},
	{`c\d`, "BFloat16", `1.5`, "2.5"},
	{"'e'", "Time", `"-999:59:59"`, "'01:02:03'"},
	{`"f"`, "Time64(6)", `"12:00:00.000001"`, "'01:02:03.5'"},
	{"größe 日", "LowCardinality(UInt64)", `18446744073709551615`, "7"},
	{"with space", "LowCardinality(Nullable(Date))", `"2026-02-28"`, "'2026-01-01'"},
	{"--", "Tuple(a UInt8, `b.c` LowCardinality(String))", `{"a":1,"b.c":"x"}`, "(2, 'y')"},
	{"from", "Tuple(UInt8, Array(Tuple(String, Nullable(UInt8))))", `[1,[["x",null]]]`, "(2, [('z', 3)])"},
	{"null", "Nullable(Tuple(a UInt8, b LowCardinality(Nullable(String))))", `{"a":1,"b":null}`, "NULL"},
	{"*", "Map(UInt16, LowCardinality(String))", `{"1":"x","2":"x"}`, "map(1, 'a')"},
	{"{x:UInt8}", "Map(LowCardinality(UUID), Date)", `{"61f0c404-5cb3-11e7-907b-a6006ad3dba0":"2026-01-01"}`, "map()"},
	{"?", "MultiPolygon", `[[[[0,0],[1,0.5],[0,1]]]]`, "[]"},
	{"$1", "Point", `[1,2]`, "(0.5, 1)"},
	{"@", "SimpleAggregateFunction(sum, UInt64)", `5`, "6"},
	{"a;b", "IntervalDay", `3`, "INTERVAL 2 DAY"},
	{"a\nb", "Nested(a UInt8, b Nested(c String))", `[{"a":1,"b":[{"c":"x"}]}]`, "[(1, [])]"},
	{"n.x", "Array(UInt8)", `[1,2]`, "[3]"},
	{"n.y", "Array(String)", `["a","b"]`, "['z']"},
	{"true", "JSON", `{"a":{"b":1.5,"c":"2026-01-01 00:00:00.5"},"d":[true,1]}`, `'{"x":1}'`},
	{"JSON", "Array(Nullable(JSON))", `[null,{"a":1}]`, "[]"},
}

// One record with all of it goes the way that the sink's own go, and a second one that has nothing but its key, of which the server says the rest.
func TestAnOddTypeOrNameStopsARoute(t *testing.T) {
	r, s := engineRig(t)
	quote := strings.NewReplacer(`\`, `\\`, "`", "\\`")
	record, columns := `{"k":1`, "k Int128"
	for _, c := range oddColumns {
		name := "`" + quote.Replace(c.name) + "`"
		columns += fmt.Sprintf(", %s %s DEFAULT %s", name, c.typ, c.expr)
		member, err := json.Marshal(c.name)
		if err != nil {
			t.Fatal(err)
		}
		record += fmt.Sprintf(",%s:%s", member, c.value)
	}
	record += "}"
	r.sql("CREATE TABLE odd (" + columns + ") ENGINE = MergeTree ORDER BY k SETTINGS non_replicated_deduplication_window = 100, " +
		"flatten_nested = 0, allow_suspicious_low_cardinality_types = 1, enable_nullable_tuple_type = 1, enable_time_time64_type = 1")
	table, d := compiled(t, s, "odd", "k")
	f := d.NewDefaults()
	if err := newEvaluator(s, d).Evaluate(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	b := d.NewBlock()
	b.SetDefaults(f)
	for _, value := range []string{record, `{"k":2}`} {
		if _, rej := d.Append(b, &decode.Record{Value: []byte(value)}); rej != nil {
			t.Fatalf("%s: %v", value, rej)
		}
	}
	write(t, s, table, b)
	r.sql("INSERT INTO odd (k) VALUES (3)")
	got := r.lines("SELECT toString(tuple(* EXCEPT k)) AS line FROM odd ORDER BY k")
	if len(got) != 3 || got[1] != got[2] {
		t.Errorf("what is absent, by us and by the server:\n%s", strings.Join(got, "\n"))
	}
	want := `(-57896044618658097711785492504343953926634992332820282019728792003956564819968,340282366920938463463374607431768211455,12345678901234567890123456789012345678.1234567890123456789,1.5,'-999:59:59','12:00:00.000001',` +
		`18446744073709551615,'2026-02-28',(1,'x'),(1,[('x',NULL)]),(1,NULL),{1:'x',2:'x'},{'61f0c404-5cb3-11e7-907b-a6006ad3dba0':'2026-01-01'},[[[(0,0),(1,0.5),(0,1)]]],(1,2),5,3,[(1,[('x')])],[1,2],['a','b'],` +
		`'{"a":{"b":1.5,"c":"2026-01-01 00:00:00.5"},"d":[true,1]}',[NULL,'{"a":1}'])`
	if got[0] != want {
		t.Errorf("got\n%s\nwant\n%s", got[0], want)
	}
	// A row that the table refuses is looked for in a copy of the table, which must have these columns too.
	if bad, err := s.Isolate(t.Context(), table, b.Input(), 2, func(int, int) proto.Input { return b.Input() }); err != nil || len(bad) > 0 {
		t.Errorf("isolate: %v %v", bad, err)
	}
}

// A key is looked up by its values, and remembered again from what the table prints.
func TestAKeyOfAnOddTypeIsNotFoundAgain(t *testing.T) {
	r, s := engineRig(t)
	r.sql("CREATE TABLE keys (a Int256, b UInt128, c Decimal(76, 20), d Time, e Time64(6), f LowCardinality(UInt64), g LowCardinality(DateTime('Asia/Tokyo')), h BFloat16, i IntervalDay, j SimpleAggregateFunction(max, UInt8)) " +
		"ENGINE = MergeTree ORDER BY (a, b, c, d, e, f, g) SETTINGS non_replicated_deduplication_window = 100, allow_suspicious_low_cardinality_types = 1")
	key := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	table, d := compiled(t, s, "keys", key...)
	records := []string{
		`{"a":-57896044618658097711785492504343953926634992332820282019728792003956564819968,"b":340282366920938463463374607431768211455,"c":-0.00000000000000000001,"d":"-999:59:59","e":"999:59:59.999999","f":18446744073709551615,"g":"2026-01-01 00:00:00","h":0.1,"i":-5,"j":1}`,
		`{"a":0,"b":0,"c":1.5,"d":"00:00:00","e":"-00:00:00.1","f":0,"g":1767225600,"h":-1.5,"i":7,"j":2}`,
	}
	b := d.NewBlock()
	made := map[batcher.Key]bool{}
	for _, record := range records {
		row, rej := d.Append(b, &decode.Record{Value: []byte(record)})
		if rej != nil {
			t.Fatal(rej)
		}
		made[row.Key] = true
	}
	write(t, s, table, b)
	present := []bool{false, false}
	if err := s.ReadBack(t.Context(), table, key, b.Columns(key...), present); err != nil || !present[0] || !present[1] {
		t.Errorf("read back: %v %v", present, err)
	}
	again := 0
	err := s.ScanKeys(t.Context(), table, key, "", func(rows []string) error {
		for _, text := range rows {
			row, rej := d.Append(b, &decode.Record{Value: []byte(text)})
			if rej != nil || !made[row.Key] {
				t.Errorf("%s: %v, another key", text, rej)
			}
			again++
		}
		return nil
	})
	if err != nil || again != 2 {
		t.Errorf("%d keys: %v", again, err)
	}
}

func engineRig(t *testing.T) (*rig, *writer.Server) {
	t.Helper()
	db := testenv.SharedEngine(t)
	cfg := config.Default()
	cfg.ClickHouse.Addresses, cfg.ClickHouse.Database = []string{db.Addr}, db.Database
	s, err := Server(cfg, writer.Events{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &rig{t: t, engine: db.Addr, database: db.Database}, s
}

// compiled is a table and the plan of a route into it.
func compiled(t *testing.T, s *writer.Server, name string, key ...string) (*writer.Table, *decode.JSON) {
	t.Helper()
	table, err := s.Describe(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	route := config.DefaultRoute()
	route.Key = key
	d, err := Decoder(&route, table)
	if err != nil {
		t.Fatal(err)
	}
	return table, d
}

func write(t *testing.T, s *writer.Server, table *writer.Table, b *decode.Block) {
	t.Helper()
	id := writer.QueryID(table.UUID, "g", batcher.Source{}, batcher.Range{First: 1, Last: 2}, 1, writer.WholeBatch, writer.Attempt{Generation: 1, Number: 1})
	result := s.Insert(t.Context(), "", &writer.Statement{Table: table, Input: b.Input(), Rows: b.Rows(), Token: "token", QueryID: id, Deadline: time.Now().Add(time.Minute)})
	if result.Outcome != writer.Written {
		t.Fatal(result.Err())
	}
}

// lines is a result of one column of strings.
func (r *rig) lines(body string) (out []string) {
	r.t.Helper()
	conn, err := ch.Dial(r.t.Context(), ch.Options{Address: r.engine, Database: r.database})
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var found proto.ColStr
	err = conn.Do(r.t.Context(), ch.Query{
		Body: "SELECT line FROM (" + body + ")", Result: proto.Results{{Name: "line", Data: &found}},
		OnResult: func(context.Context, proto.Block) error {
			for i := range found.Rows() {
				out = append(out, found.Row(i))
			}
			return nil
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}
