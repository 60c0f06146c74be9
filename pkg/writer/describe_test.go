package writer

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A view that is overlooked is doubled by a repeat; a wrong window makes a repeat look safe that isn't.
func TestDescribeFindsEveryViewAndWindow(t *testing.T) {
	s := server(t)
	exec(t, s, "CREATE DATABASE d1",
		"CREATE TABLE d1.src (n UInt64, e Enum8('a' = 1, 'it''s' = 2), d String DEFAULT 'x', m UInt64 MATERIALIZED n + 1, a UInt64 ALIAS n) ENGINE = MergeTree PARTITION BY n % 10 ORDER BY (n, e) SETTINGS non_replicated_deduplication_window = 100",
		"CREATE TABLE d1.`t.g``t` (n UInt64) ENGINE = SummingMergeTree ORDER BY n COMMENT 'x SETTINGS non_replicated_deduplication_window=5'",
		"CREATE MATERIALIZED VIEW d1.mv1 TO d1.`t.g``t` AS SELECT n FROM d1.src",
		"CREATE MATERIALIZED VIEW d1.mv2 ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 3 AS SELECT n FROM d1.src",
		"CREATE MATERIALIZED VIEW d1.chained ENGINE = MergeTree ORDER BY n AS SELECT n FROM d1.`t.g``t`",
		"CREATE MATERIALIZED VIEW d1.`REFRESH me` ENGINE = MergeTree ORDER BY n AS SELECT n FROM d1.src",
		"CREATE MATERIALIZED VIEW d1.refreshed REFRESH EVERY 1 HOUR ENGINE = MergeTree ORDER BY n AS SELECT n FROM d1.src",
		"CREATE MATERIALIZED VIEW d1.nowhere ENGINE = Null AS SELECT n FROM d1.src",
		"CREATE VIEW d1.plain AS SELECT n FROM d1.src")
	t.Cleanup(func() { s := server(t); exec(t, s, "DROP DATABASE d1") })
	table := describe(t, s, "d1.src")
	wantColumns := []Column{
		{Name: "n", Type: "UInt64", InPartitionKey: true}, {Name: "e", Type: `Enum8('a' = 1, 'it\'s' = 2)`}, {Name: "d", Type: "String", DefaultKind: "DEFAULT", DefaultExpr: "'x'"},
		{Name: "m", Type: "UInt64", DefaultKind: "MATERIALIZED", DefaultExpr: "n + 1"}, {Name: "a", Type: "UInt64", DefaultKind: "ALIAS", DefaultExpr: "n"},
	}
	if diff := cmp.Diff(wantColumns, table.Columns); diff != "" {
		t.Error(diff)
	}
	if table.SortingKey != "n, e" || table.PartitionKey != "n % 10" || table.Engine != "MergeTree" || table.Window != (Window{Blocks: 100}) || table.MaxPartitions != 100 ||
		table.UUID == [16]byte{} || table.TimeZone == "" || !strings.HasPrefix(table.ServerVersion, "26.7") {
		t.Errorf("%+v", table)
	}
	got := map[string]string{}
	for _, v := range table.Views {
		line := v.Engine
		if strings.HasPrefix(v.Target, "d1.t.") {
			line = v.Target + " " + line
		}
		if v.TargetUUID == [16]byte{} {
			t.Errorf("no UUID of the target of %s", v.Name)
		}
		if v.Window.Blocks > 0 {
			line += " window"
		}
		if v.Null {
			line += " null"
		}
		got[v.Name] = line
	}
	want := map[string]string{
		"d1.mv1": "d1.t.g`t SummingMergeTree", "d1.mv2": "MergeTree window", "d1.chained": "MergeTree", "d1.REFRESH me": "MergeTree", "d1.nowhere": "Null null",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDescribeOfAMissingTableNamesTheNearOnes(t *testing.T) {
	s := server(t)
	exec(t, s, "CREATE DATABASE d2", "CREATE TABLE d2.settlements (n UInt64) ENGINE = MergeTree ORDER BY n", "CREATE TABLE d2.Events (n UInt64) ENGINE = MergeTree ORDER BY n")
	t.Cleanup(func() { exec(t, server(t), "DROP DATABASE d2") })
	for name, near := range map[string]string{"d2.setlements": "d2.settlements", "events": "d2.Events", "d2.unlike": ""} {
		_, err := s.Describe(t.Context(), name)
		var missing *NotFound
		if !errors.As(err, &missing) {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Join(missing.Near, " "); got != near {
			t.Errorf("%s: near %q, want %q", name, got, near)
		}
	}
}
