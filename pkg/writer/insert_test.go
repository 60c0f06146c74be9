package writer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// A profile is the operator's, so everything in it that could queue, split, cut, filter or double an insert, or keep it out of the log, has to be overridden
// (field cases A1, A6, A11, A17).
func TestAHostileProfileDoublesAndLosesNothing(t *testing.T) {
	admin, s := as(t, "default"), as(t, "hostile")
	n := tableName()
	exec(t, admin,
		"CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n PARTITION BY n % 2 SETTINGS non_replicated_deduplication_window = 100",
		"CREATE TABLE "+n+"_sum (k UInt64, c UInt64, s UInt64) ENGINE = SummingMergeTree ORDER BY k SETTINGS non_replicated_deduplication_window = 100",
		"CREATE TABLE "+n+"_copy (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100",
		"CREATE MATERIALIZED VIEW "+n+"_v1 TO "+n+"_sum AS SELECT n % 10 AS k, count() AS c, sum(n) AS s FROM "+n+" GROUP BY k",
		"CREATE MATERIALIZED VIEW "+n+"_v2 TO "+n+"_copy AS SELECT n FROM "+n)
	table := describe(t, s, n)
	from := uint64(0)
	for _, size := range []uint64{1, 20_000, 1_100_000} { // the last one is above the server's own max_insert_block_size
		token := fmt.Sprint("size ", size)
		for try := range 2 {
			st := statement(table, token, numbers(from, from+size))
			if r := s.Insert(t.Context(), "", st); r.Outcome != Written {
				t.Fatalf("%d rows: %v", size, r.Err())
			}
			exec(t, admin, "SYSTEM FLUSH LOGS")
			parts := rows(t, admin, "SELECT table, toString(count()), toString(sum(rows)), toString(uniq(error)), any(error) = 389 FROM system.part_log WHERE query_id = '"+st.QueryID+"' AND event_type = 'NewPart' AND table != '"+n+"_sum' GROUP BY table ORDER BY table")
			inParts := min(size, 2)
			want := []string{fmt.Sprintf("%s\t%d\t%d\t1\t%d", n, inParts, size, try), fmt.Sprintf("%s_copy\t1\t%d\t1\t%d", n, size, try)}
			if diff := cmp.Diff(want, parts); diff != "" {
				t.Errorf("parts of %d rows, try %d: one a partition is wanted, refused as known (389) the second time\n%s", size, try, diff)
			}
			if logged := one(t, admin, "SELECT type FROM system.query_log WHERE query_id = '"+st.QueryID+"' ORDER BY type"); logged != "QueryStart\nQueryFinish" {
				t.Errorf("logged %q", logged)
			}
		}
		from += size
	}
	sum := from * (from - 1) / 2
	want := fmt.Sprintf("%d\t%d\t%d\t%d\t%d", from, sum, from, sum, from)
	if got := one(t, admin, fmt.Sprintf("SELECT count(), sum(n), (SELECT sum(c) FROM %[1]s_sum), (SELECT sum(s) FROM %[1]s_sum), (SELECT count() FROM %[1]s_copy) FROM %[1]s", n)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// An insert is only written when its views have their share. A profile can have the server pass over a view whose target is gone, filter what a view reads, or
// leave out the groups beyond a limit (field case B4).
func TestAViewsShareIsLostByAProfile(t *testing.T) {
	admin := as(t, "default")
	for name, c := range map[string]struct {
		user, view, spoil string
		want              Outcome
	}{
		"dropped target": {"hostile", "SELECT n, 1 AS c FROM %s", "DROP TABLE %s_to SYNC", Unknown},
		"few groups":     {"narrow", "SELECT n, count() AS c FROM %s GROUP BY n", "", Unknown},
		"filter":         {"filtering", "SELECT n, 1 AS c FROM %s", "", Written},
	} {
		t.Run(name, func(t *testing.T) {
			s := as(t, c.user)
			n := tableName()
			if c.user == "filtering" {
				n = "filtered_by_profile"
			}
			exec(t, admin,
				"CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100",
				"CREATE TABLE "+n+"_to (n UInt64, c UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100",
				"CREATE MATERIALIZED VIEW "+n+"_v TO "+n+"_to AS "+fmt.Sprintf(c.view, n))
			table := describe(t, s, n)
			if c.spoil != "" {
				exec(t, admin, fmt.Sprintf(c.spoil, n))
			}
			r := s.Insert(t.Context(), "", statement(table, "token", numbers(0, 10)))
			if r.Outcome != c.want {
				t.Errorf("%v (%v), want %v", r.Outcome, r.Err(), c.want)
			}
			if r.Outcome == Written {
				if got := one(t, admin, "SELECT count() FROM "+n+"_to"); got != "10" {
					t.Errorf("the view has %s rows of 10", got)
				}
			}
		})
	}
}

// Names and types go through two layers of quoting, the structure of input() and the statement.
func TestAnyNameAndTypeArrivesUnchanged(t *testing.T) {
	s := server(t)
	name := tableName() + " `'\\\"é;--"
	columns := []string{
		"`plain` UInt8", "`with space` String", "`back\\`tick` Int64", "`quote'\"` UInt16", "`slash\\\\` UInt32", "`ünï` Float64", "`a.b` Array(String)",
		`e Enum8('a, b' = 1, 'it\'s' = 2, 'x=\\' = -3)`, "d DateTime64(6, 'America/New_York')", "dt DateTime('Asia/Tokyo')", "p Decimal(38, 10)", "f FixedString(3)",
		"lc LowCardinality(String)", "ni Nullable(Int32)", "m Map(String, String)", "u UUID",
	}
	exec(t, s, "CREATE TABLE "+quoteName(name)+" ("+strings.Join(columns, ", ")+") ENGINE = MergeTree ORDER BY plain SETTINGS non_replicated_deduplication_window = 10")
	table := describe(t, s, quoteName(name))
	at := time.Date(2026, 3, 8, 7, 30, 0, 123456000, time.UTC)
	d := new(proto.ColDateTime64).WithPrecision(6).WithLocation(time.UTC)
	d.Append(at)
	dt := &proto.ColDateTime{Location: time.UTC}
	dt.Append(at)
	strs := func(v string) *proto.ColStr { c := new(proto.ColStr); c.Append(v); return c }
	list := new(proto.ColStr).Array()
	list.Append([]string{"x", "", "y'\\"})
	e := proto.ColInt8{2}
	f := &proto.ColFixedStr{Size: 3}
	f.Append([]byte("a\x00\xff"))
	lc := new(proto.ColStr).LowCardinality()
	lc.Append("low")
	ni := new(proto.ColInt32).Nullable()
	ni.Append(proto.Null[int32]())
	m := proto.NewMap[string, string](new(proto.ColStr), new(proto.ColStr))
	m.Append(map[string]string{"k'": "v`"})
	u := proto.ColUUID{uuid.MustParse("61f0c404-5cb3-11e7-907b-a6006ad3dba0")}
	dec := proto.ColDecimal128{proto.Decimal128{Low: 12345678901234567890}}
	input := proto.Input{
		{Name: "plain", Data: &proto.ColUInt8{255}}, {Name: "with space", Data: strs("\x00\xff'\\")}, {Name: "back`tick", Data: &proto.ColInt64{-1 << 63}},
		{Name: `quote'"`, Data: &proto.ColUInt16{65535}}, {Name: `slash\`, Data: &proto.ColUInt32{1 << 31}}, {Name: "ünï", Data: &proto.ColFloat64{0.1}}, {Name: "a.b", Data: list},
		{Name: "e", Data: &e}, {Name: "d", Data: d}, {Name: "dt", Data: dt}, {Name: "p", Data: proto.Alias(&dec, "Decimal(38, 10)")}, {Name: "f", Data: f}, {Name: "lc", Data: lc}, {Name: "ni", Data: ni},
		{Name: "m", Data: m}, {Name: "u", Data: &u},
	}
	for range 2 { // columns are used again by a repeat
		if r := s.Insert(t.Context(), "", statement(table, "it's `a` \\token", input)); r.Outcome != Written {
			t.Fatal(r.Err())
		}
	}
	var out strings.Builder
	if err := s.Query(t.Context(), "SELECT * REPLACE (hex(`with space`) AS `with space`, hex(f) AS f) FROM "+table.quoted(), JSONLines, &out); err != nil {
		t.Fatal(err)
	}
	want := `{"plain":255,"with space":"00FF275C","back` + "`" + `tick":-9223372036854775808,"quote'\"":65535,"slash\\":2147483648,"ünï":0.1,"a.b":["x","","y'\\"],"e":"it's","d":"2026-03-08 03:30:00.123456",` +
		`"dt":"2026-03-08 16:30:00","p":1234567890.123456789,"f":"6100FF","lc":"low","ni":null,"m":{"k'":"v` + "`" + `"},"u":"61f0c404-5cb3-11e7-907b-a6006ad3dba0"}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// The server takes a block with other names in silence and fills in defaults.
func TestABlockThatIsNotTheTablesIsRefusedHere(t *testing.T) {
	s := server(t)
	n := tableName()
	exec(t, s, "CREATE TABLE "+n+" (n UInt64, x UInt64 DEFAULT 7) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 10")
	table := describe(t, s, n)
	short := proto.ColUInt64{1}
	for name, input := range map[string]proto.Input{
		"unknown column": {{Name: "n", Data: &short}, {Name: "zz", Data: &short}},
		"other type":     {{Name: "n", Data: &proto.ColUInt32{1}}},
		"uneven columns": {{Name: "n", Data: &short}, {Name: "x", Data: &proto.ColUInt64{1, 2}}},
		"no rows":        {{Name: "n", Data: &proto.ColUInt64{}}},
		"no columns":     {},
	} {
		st := &Statement{Table: table, Input: input, Token: "t", QueryID: "q " + name, Deadline: time.Now().Add(time.Minute)}
		if len(input) > 0 {
			st.Rows = input[0].Data.Rows()
		}
		r := s.Insert(t.Context(), "", st)
		if r.Outcome != Rejected || r.Cause != Shape || r.Sent {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if got := one(t, s, "SELECT count() FROM "+n); got != "0" {
		t.Errorf("%s rows", got)
	}
	if r := s.Insert(t.Context(), "", statement(table, "fine", numbers(0, 3))); r.Outcome != Written {
		t.Errorf("after the refusals: %v", r.Err())
	}
}

// Without its identity or its deadline a statement could be written twice, or late.
func TestAStatementWithoutTokenOrDeadlineIsNotSent(t *testing.T) {
	s := server(t)
	n := tableName()
	exec(t, s, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 10")
	table := describe(t, s, n)
	for name, spoil := range map[string]func(*Statement){
		"token": func(st *Statement) { st.Token = "" }, "query id": func(st *Statement) { st.QueryID = "" }, "deadline": func(st *Statement) { st.Deadline = time.Time{} },
	} {
		st := statement(table, "t", numbers(0, 3))
		spoil(st)
		if r := s.Insert(t.Context(), "", st); r.Outcome != Rejected || r.Sent {
			t.Errorf("without %s: %+v", name, r)
		}
	}
}

func TestPinnedSettingsCanNotBeConfigured(t *testing.T) {
	for _, name := range []string{"async_insert", "insert_deduplicate", "insert_deduplication_token", "deduplicate_insert_select", "limit"} {
		_, err := Open(Config{Addresses: []string{"localhost:9000"}, Settings: map[string]string{name: "1"}}, Events{})
		if err == nil || !strings.Contains(err.Error(), "clickhouse.settings."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Open(Config{Addresses: []string{"localhost", "b:9000", "b:9000"}, Compression: "gzip", Balanced: true, MaxConns: -1}, Events{})
	for _, part := range []string{`"localhost" is no host:port`, "b:9000 is named twice", "balanced", `"gzip"`, "negative"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in %v", part, err)
		}
	}
}

func TestEveryCompressionIsUnderstood(t *testing.T) {
	for _, c := range []string{"lz4", "zstd", "none"} {
		s := open(t, Config{Addresses: []string{engine(t).TCPAddr}, Database: "oncesink", Compression: c})
		n := tableName()
		exec(t, s, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 10")
		table := describe(t, s, n)
		if r := s.Insert(t.Context(), "", statement(table, "t", numbers(0, 400_000))); r.Outcome != Written { // several frames
			t.Errorf("%s: %v", c, r.Err())
		}
		if got := one(t, s, "SELECT count(), sum(n) FROM "+n); got != "400000\t79999800000" {
			t.Errorf("%s: %s", c, got)
		}
	}
}
