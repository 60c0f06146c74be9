package writer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// A key that is there and isn't found is written again; one that is found and isn't there is lost. Types differ in how the server compares them.
func TestReadBackFindsExactlyTheKeysThatAreThere(t *testing.T) {
	s := server(t)
	str := func(values ...string) *proto.ColStr { c := new(proto.ColStr); c.AppendArr(values); return c }
	fixed := &proto.ColFixedStr{Size: 3}
	for _, v := range []string{"ab\x00", "abc", "\xff\x00\xff"} {
		fixed.Append([]byte(v))
	}
	low := new(proto.ColStr).LowCardinality()
	low.AppendArr([]string{"", "a", "ä\x00'"})
	ids := proto.ColUUID{uuid.MustParse("61f0c404-5cb3-11e7-907b-a6006ad3dba0"), uuid.Nil, uuid.MustParse("61f0c404-5cb3-11e7-907b-a6006ad3dba1")}
	for _, c := range []struct {
		typ  string
		data proto.ColInput // three values; the first two are in the table
		sql  string         // the first two
	}{
		{"UInt64", &proto.ColUInt64{1 << 63, 0, 1}, "(9223372036854775808), (0)"},
		{"Int8", &proto.ColInt8{-128, 127, 0}, "(-128), (127)"},
		{"String", str("a\x00b", "", "a"), "('a\\0b'), ('')"},
		{"LowCardinality(String)", low, "(''), ('a')"},
		{"FixedString(3)", fixed, "('ab'), ('abc')"},
		{"UUID", &ids, "('61f0c404-5cb3-11e7-907b-a6006ad3dba0'), ('00000000-0000-0000-0000-000000000000')"},
		{`Enum8('a, b' = -1, 'it\'s' = 2, 'c' = 3)`, proto.Alias(&proto.ColInt8{-1, 2, 3}, `Enum8('a, b' = -1, 'it\'s' = 2, 'c' = 3)`), "('a, b'), ('it\\'s')"},
		{"Enum16('x' = 1000, 'y' = 2, 'z' = 3)", proto.Alias(&proto.ColInt16{1000, 2, 3}, "Enum16('x' = 1000, 'y' = 2, 'z' = 3)"), "('x'), ('y')"},
		{"Decimal(18, 4)", proto.Alias(&proto.ColDecimal64{12345, -1, 123450}, "Decimal(18, 4)"), "(1.2345), (-0.0001)"},
		{"Decimal(38, 10)", proto.Alias(&proto.ColDecimal128{{Low: 1}, {Low: 10}, {Low: 100}}, "Decimal(38, 10)"), "('0.0000000001'), ('0.000000001')"},
		{"Date", proto.Alias(&proto.ColUInt16{0, 20513, 1}, "Date"), "(toDate(0)), (toDate(20513))"},
		{"Date32", proto.Alias(&proto.ColInt32{-1, 20513, 1}, "Date32"), "(toDate32(-1)), (toDate32(20513))"},
		{"DateTime('Asia/Tokyo')", proto.Alias(&proto.ColUInt32{0, 1772000000, 1}, "DateTime('Asia/Tokyo')"), "(0), (1772000000)"},
		{"DateTime64(3, 'UTC')", proto.Alias(&proto.ColInt64{1767225600123, -1, 1767225600124}, "DateTime64(3, 'UTC')"), "(fromUnixTimestamp64Milli(1767225600123)), (fromUnixTimestamp64Milli(-1))"},
		{"DateTime64(9)", proto.Alias(&proto.ColInt64{1767225600123456789, 0, 1767225600123456788}, "DateTime64(9)"), "(fromUnixTimestamp64Nano(1767225600123456789)), (fromUnixTimestamp64Nano(0))"},
		{"IPv4", proto.Alias(&proto.ColUInt32{0x7f000001, 0, 1}, "IPv4"), "('127.0.0.1'), ('0.0.0.0')"},
		{"Bool", &proto.ColBool{true, true, false}, "(true), (true)"},
	} {
		t.Run(c.typ, func(t *testing.T) {
			n := tableName()
			exec(t, s, "CREATE TABLE "+n+" (k "+c.typ+", second UInt8 DEFAULT 7, v UInt64) ENGINE = MergeTree ORDER BY (k, second)",
				"INSERT INTO "+n+" (k) SELECT CAST(c1, "+quoteText(c.typ)+") FROM values("+c.sql+")")
			table := describe(t, s, n)
			sevens := proto.ColUInt8{7, 7, 7}
			for range 2 { // the columns are used again
				present := []bool{true, true, true}
				if err := s.ReadBack(t.Context(), table, []string{"second", "k"}, proto.Input{{Name: "k", Data: c.data}, {Name: "second", Data: &sevens}}, present); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]bool{true, true, false}, present); diff != "" {
					t.Error(diff)
				}
			}
			eights := proto.ColUInt8{8, 7, 7}
			present := make([]bool, 3)
			if err := s.ReadBack(t.Context(), table, []string{"k", "second"}, proto.Input{{Name: "k", Data: c.data}, {Name: "second", Data: &eights}}, present); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]bool{false, true, false}, present); diff != "" {
				t.Errorf("another value of the second column: %s", diff)
			}
		})
	}
}

// The profile of TestAHostileProfile… cuts results at 3 rows and filters them; more keys than a block of the server holds are asked for.
func TestReadBackIsNotCutByAProfile(t *testing.T) {
	admin, s := as(t, "default"), as(t, "hostile")
	n := tableName()
	const size = 150_000
	exec(t, admin, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n", fmt.Sprintf("INSERT INTO %s SELECT number * 2 FROM numbers(%d)", n, size))
	present := make([]bool, 2*size)
	if err := s.ReadBack(t.Context(), describe(t, s, n), []string{"n"}, numbers(0, 2*size), present); err != nil {
		t.Fatal(err)
	}
	for i, there := range present {
		if there != (i%2 == 0) {
			t.Fatalf("key %d: %v", i, there)
		}
	}
}

// A key that was absent a moment ago may be there now, and one that was deleted is not: an answer out of a cache, or with rows that are gone, doubles or loses it.
func TestReadBackTellsWhatIsThereNow(t *testing.T) {
	admin := as(t, "default")
	for _, user := range []string{"hostile", "caching"} {
		s, n := as(t, user), tableName()
		exec(t, admin, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n")
		table := describe(t, s, n)
		for _, step := range []struct {
			statement string
			want      []bool
		}{
			{"INSERT INTO " + n + " SELECT 1", []bool{false, true, false}}, {"INSERT INTO " + n + " SELECT 2", []bool{false, true, true}}, {"DELETE FROM " + n + " WHERE n = 1", []bool{false, false, true}},
			{"TRUNCATE TABLE " + n, make([]bool, 3)},
		} {
			exec(t, admin, step.statement)
			present := make([]bool, 3)
			if err := s.ReadBack(t.Context(), table, []string{"n"}, numbers(0, 3), present); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(step.want, present); diff != "" {
				t.Errorf("%s, after %s: %s", user, step.statement, diff)
			}
			if empty, err := s.Empty(t.Context(), table); err != nil || empty == slices.Contains(step.want, true) {
				t.Errorf("%s, after %s: empty %v, %v", user, step.statement, empty, err)
			}
		}
	}
}

func TestReadBackRefusesWhatIsNotTheKey(t *testing.T) {
	s := server(t)
	n := tableName()
	exec(t, s, "CREATE TABLE "+n+" (n UInt64, x UInt64) ENGINE = MergeTree ORDER BY n")
	table := describe(t, s, n)
	for name, call := range map[string]func() error{
		"a column is missing": func() error {
			return s.ReadBack(t.Context(), table, []string{"n", "x"}, numbers(0, 2), make([]bool, 2))
		},
		"other rows": func() error { return s.ReadBack(t.Context(), table, []string{"n"}, numbers(0, 2), make([]bool, 3)) },
		"no such column": func() error {
			return s.ReadBack(t.Context(), table, []string{"y"}, proto.Input{{Name: "y", Data: &proto.ColUInt64{1}}}, make([]bool, 1))
		},
	} {
		if err := call(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A batch is cut by these; a row in the wrong piece gives a piece too many partitions, and another cut of the same rows another token.
func TestPartitionIDsAreTheServers(t *testing.T) {
	s := server(t)
	for _, key := range []string{"toYYYYMM(d)", "(s, n % 3)", "s", "(toMonday(d), s)", "n % 2 = 0", "(computed)", "computed", "(n % 3) + (n % 5)", "(alias, s)", "`odd ( name`", "tuple()", ""} {
		t.Run(key, func(t *testing.T) {
			n := tableName()
			by := ""
			if key != "" {
				by = " PARTITION BY " + key
			}
			exec(t, s, "CREATE TABLE "+n+" (n UInt64, s String, d DateTime64(3, 'UTC'), computed UInt8 MATERIALIZED toUInt8(n % 4), alias UInt8 ALIAS toUInt8(n % 2), `odd ( name` UInt8) ENGINE = MergeTree ORDER BY n"+
				strings.Replace(by, "alias", "n % 2", 1)+" SETTINGS non_replicated_deduplication_window = 10")
			table := describe(t, s, n)
			const size = 60
			input := numbers(0, size)
			text, odd, at := new(proto.ColStr), proto.ColUInt8{}, proto.ColInt64{}
			for i := range size {
				text.Append([]string{"", "a,b", "it's", "x\x00"}[i%4])
				at.Append(1_700_000_000_000 + int64(i)*86_400_000*7)
				odd.Append(uint8(i % 7))
			}
			input = append(input, proto.InputColumn{Name: "s", Data: text}, proto.InputColumn{Name: "d", Data: proto.Alias(&at, "DateTime64(3, 'UTC')")}, proto.InputColumn{Name: "odd ( name", Data: &odd})
			if r := s.Insert(t.Context(), "", statement(table, "t", input)); r.Outcome != Written {
				t.Fatal(r.Err())
			}
			got, err := s.PartitionIDs(t.Context(), table, input, size)
			if err != nil {
				t.Fatal(err)
			}
			want := rows(t, s, "SELECT _partition_id FROM "+n+" ORDER BY n")
			if key == "" || key == "tuple()" {
				want = nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// One bad row must not take its neighbours along, and looking for it must not write (field cases E1, E16, B6).
func TestIsolateFindsTheRowsThatAreRefusedAndWritesNothing(t *testing.T) {
	s := server(t)
	const size = 220
	for name, c := range map[string]struct {
		extra string
		bad   []int
		want  []int
		code  int32
	}{
		"constraint":                   {", CONSTRAINT c CHECK n < 1000000", []int{0, 109, 110, 219}, []int{0, 109, 110, 219}, 469},
		"expression of a column":       {", k UInt8 MATERIALIZED throwIf(n >= 1000000)", []int{7}, []int{7}, 395},
		"expression of an index":       {", INDEX i toUInt8(if(n >= 1000000, 'a', '1')) TYPE minmax", []int{218}, []int{218}, 6},
		"nothing wrong with the rows":  {"", []int{3}, nil, 0},
		"two neighbours and a default": {", x String DEFAULT 'd', CONSTRAINT c CHECK n < 1000000 AND x = 'd'", []int{5, 6}, []int{5, 6}, 469},
	} {
		t.Run(name, func(t *testing.T) {
			n := tableName()
			exec(t, s, "CREATE TABLE "+n+" (n UInt64"+c.extra+") ENGINE = MergeTree PARTITION BY n % 110 ORDER BY n SETTINGS non_replicated_deduplication_window = 10",
				"CREATE TABLE "+n+"_t (n UInt64) ENGINE = MergeTree ORDER BY n", "CREATE MATERIALIZED VIEW "+n+"_v TO "+n+"_t AS SELECT n FROM "+n)
			table := describe(t, s, n)
			input := numbers(0, size)
			values := *input[0].Data.(*proto.ColUInt64)
			for _, i := range c.bad {
				values[i] = 1_000_000
			}
			var scratch proto.ColUInt64
			take := func(lo, hi int) proto.Input {
				scratch = append(scratch[:0], values[lo:hi]...)
				return proto.Input{{Name: "n", Data: &scratch}}
			}
			bad, err := s.Isolate(t.Context(), table, input, size, take)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, b := range bad {
				got = append(got, b.Row)
				if b.Code != c.code || b.Message == "" {
					t.Errorf("%+v", b)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if left := one(t, s, fmt.Sprintf("SELECT count(), (SELECT count() FROM %[1]s_t), (SELECT count() FROM system.tables WHERE name = 'oncesink_isolate') FROM %[1]s", n)); left != "0\t0\t0" {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}
