package writer

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// codesOf lists the findings of a severity.
func codesOf(findings []Finding, severity string) []string {
	var out []string
	for _, f := range findings {
		if f.Severity == severity {
			out = append(out, f.Code)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func check(t *testing.T, s *Server, table *Table, key []string, eventTime string) []Finding {
	t.Helper()
	findings, err := s.Check(t.Context(), table, Use{Key: key, EventTime: eventTime, Horizon: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// Each of these makes a bill wrong some day; the sink has to refuse before the first row, or to say what falls when rows are written again (field cases A7,
// B5; J9: a month by the clock of the insert).
func TestCheckRefusesTablesThatCanNotBeExact(t *testing.T) {
	s := as(t, "default")
	const good = " ENGINE = MergeTree ORDER BY (a, b) SETTINGS non_replicated_deduplication_window = 10000"
	for name, c := range map[string]struct {
		create           []string // $ is the table
		key              []string
		eventTime        string
		errors, warnings []string
		cure             string // a part of one of them
	}{
		"fit":                   {create: []string{"CREATE TABLE $ (a UInt64, b String, v UInt8)" + good}},
		"fit with a view":       {create: []string{"CREATE TABLE $ (a UInt64, b String, v UInt8)" + good, "CREATE MATERIALIZED VIEW $_v ENGINE = SummingMergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 10000 AS SELECT a, count() AS c FROM $ GROUP BY a"}},
		"key in another order":  {create: []string{"CREATE TABLE $ (a UInt64, b String)" + good}, key: []string{"b", "a"}},
		"no window":             {create: []string{"CREATE TABLE $ (a UInt64, b String) ENGINE = MergeTree ORDER BY (a, b)"}, errors: []string{"window_zero"}, cure: "MODIFY SETTING non_replicated_deduplication_window = 10000"},
		"small window":          {create: []string{"CREATE TABLE $ (a UInt64, b String) ENGINE = MergeTree ORDER BY (a, b) SETTINGS non_replicated_deduplication_window = 50"}, warnings: []string{"window_small"}},
		"view without a window": {create: []string{"CREATE TABLE $ (a UInt64, b String)" + good, "CREATE MATERIALIZED VIEW $_v ENGINE = MergeTree ORDER BY a AS SELECT a FROM $"}, errors: []string{"view_window_zero"}, cure: ".inner_id."},
		"chained view":          {create: []string{"CREATE TABLE $ (a UInt64, b String)" + good, "CREATE TABLE $_t (a UInt64) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 10000", "CREATE MATERIALIZED VIEW $_v TO $_t AS SELECT a FROM $", "CREATE MATERIALIZED VIEW $_w ENGINE = MergeTree ORDER BY a AS SELECT a FROM $_t"}, errors: []string{"view_window_zero"}},
		"view into Null":        {create: []string{"CREATE TABLE $ (a UInt64, b String)" + good, "CREATE MATERIALIZED VIEW $_v ENGINE = Null AS SELECT a FROM $"}, errors: []string{"view_null"}},
		"view into Log":         {create: []string{"CREATE TABLE $ (a UInt64, b String)" + good, "CREATE MATERIALIZED VIEW $_v ENGINE = Log AS SELECT a FROM $"}, warnings: []string{"view_engine"}},
		"sorted otherwise":      {create: []string{"CREATE TABLE $ (a UInt64, b String, v UInt8) ENGINE = MergeTree ORDER BY v SETTINGS non_replicated_deduplication_window = 10000"}, errors: []string{"order_by"}, cure: "ADD INDEX oncesink_key `a` TYPE bloom_filter"},
		"sorted partly":         {create: []string{"CREATE TABLE $ (a UInt64, b String, v UInt8) ENGINE = MergeTree ORDER BY (a, v) SETTINGS non_replicated_deduplication_window = 10000"}, warnings: []string{"order_by_partly"}},
		"indexed":               {create: []string{"CREATE TABLE $ (a UInt64, b String, v UInt8, INDEX i b TYPE bloom_filter) ENGINE = MergeTree ORDER BY v SETTINGS non_replicated_deduplication_window = 10000"}},
		"ephemeral column":      {create: []string{"CREATE TABLE $ (a UInt64, b String, e UInt8 EPHEMERAL)" + good}, errors: []string{"ephemeral"}, cure: "DROP COLUMN `e`"},
		"key column missing":    {create: []string{"CREATE TABLE $ (a UInt64, b String)" + good}, key: []string{"a", "id"}, errors: []string{"key_column"}, warnings: []string{"order_by_partly"}},
		"key column computed":   {create: []string{"CREATE TABLE $ (a UInt64, b String MATERIALIZED toString(a))" + good}, errors: []string{"key_column"}},
		"key column nullable":   {create: []string{"CREATE TABLE $ (a UInt64, b Nullable(String)) ENGINE = MergeTree ORDER BY (a, b) SETTINGS non_replicated_deduplication_window = 10000, allow_nullable_key = 1"}, errors: []string{"key_nullable"}, cure: "MODIFY COLUMN `b` String"},
		"column of the clock":   {create: []string{"CREATE TABLE $ (a UInt64, b String, m UInt32 MATERIALIZED toYYYYMM(now()))" + good}, warnings: []string{"column_clock"}, cure: "MODIFY COLUMN `m` UInt32 MATERIALIZED "},
		"columns of the clock":  {create: []string{"CREATE TABLE $ (a UInt64, b String, d Date MATERIALIZED today() - 1, t DateTime64(3) MATERIALIZED now64(3), r UInt32 MATERIALIZED rand())" + good}, warnings: []string{"column_clock"}},
		"columns of the record": {create: []string{"CREATE TABLE $ (a UInt64, b String, m UInt32 MATERIALIZED toYYYYMM(toDateTime(a)), n String MATERIALIZED concat(b, ' now()'), d DateTime DEFAULT now())" + good}},
		"event time missing":    {create: []string{"CREATE TABLE $ (a UInt64, b String)" + good}, eventTime: "ts", errors: []string{"event_time"}},
		"Buffer":                {create: []string{"CREATE TABLE $_l (a UInt64, b String)" + good, "CREATE TABLE $ AS $_l ENGINE = Buffer(oncesink, $_l, 1, 1, 1, 1, 1, 1, 1)"}, errors: []string{"engine"}},
		"Log":                   {create: []string{"CREATE TABLE $ (a UInt64, b String) ENGINE = Log"}, errors: []string{"engine"}},
		"a view":                {create: []string{"CREATE VIEW $ AS SELECT 1 AS a, '' AS b"}, errors: []string{"engine"}},
		"ReplacingMergeTree":    {create: []string{"CREATE TABLE $ (a UInt64, b String) ENGINE = ReplacingMergeTree ORDER BY (a, b) SETTINGS non_replicated_deduplication_window = 10000"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := tableName()
			for _, statement := range c.create {
				exec(t, s, strings.ReplaceAll(statement, "$", n))
			}
			if c.key == nil {
				c.key = []string{"a", "b"}
			}
			findings := check(t, s, describe(t, s, n), c.key, c.eventTime)
			if diff := cmp.Diff(c.errors, codesOf(findings, SeverityError)); diff != "" {
				t.Errorf("errors: %s\n%+v", diff, findings)
			}
			if diff := cmp.Diff(c.warnings, codesOf(findings, SeverityWarning)); diff != "" {
				t.Errorf("warnings: %s\n%+v", diff, findings)
			}
			found := c.cure == ""
			for _, f := range findings {
				found = found || strings.Contains(f.Cure, c.cure)
				if f.Severity != SeverityInfo && f.Cure == "" {
					t.Errorf("no cure for %+v", f)
				}
			}
			if !found {
				t.Errorf("no cure with %q: %+v", c.cure, findings)
			}
			// A cure that is a statement has to be one: it is run, and the finding must be gone.
			for _, f := range findings {
				if f.Code == "window_zero" || f.Code == "view_window_zero" || f.Code == "window_small" {
					exec(t, s, f.Cure)
				}
			}
			for _, f := range check(t, s, describe(t, s, n), c.key, c.eventTime) {
				if f.Code == "window_zero" || f.Code == "view_window_zero" || f.Code == "window_small" {
					t.Errorf("not cured: %+v", f)
				}
			}
		})
	}
}

// What a user may not do is found before the first row, with the statement that grants it and what falls without it (field cases A1, A17, H5, I6).
func TestCheckAndCanaryFindWhatAUserMayNotDo(t *testing.T) {
	admin := as(t, "default")
	exec(t, admin, "CREATE TABLE IF NOT EXISTS policed (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 10000")
	exec(t, admin, "SYSTEM FLUSH LOGS") // makes them, where no test has needed them yet
	for user, c := range map[string]struct {
		errors, warnings []string
		canary           []string
		cures            []string
	}{
		"default":  {},
		"hostile":  {},
		"fixed":    {errors: []string{"setting_fixed"}, canary: []string{"canary_insert"}, cures: []string{"ALTER USER `fixed` SETTINGS async_insert WRITABLE", "insert_deduplication_token WRITABLE"}},
		"hasty":    {warnings: []string{"max_execution_time"}, cures: []string{"ALTER USER `hasty` SETTINGS max_execution_time = 0"}},
		"filtered": {errors: []string{"row_policy"}},
		"least": {errors: []string{"grant"}, warnings: []string{"grant", "row_policy_unknown"}, canary: []string{"canary_refused"}, cures: []string{
			"GRANT SELECT ON system.processes TO `least`", "GRANT SELECT ON system.query_log TO `least`", "GRANT SELECT ON system.part_log TO `least`", "GRANT SYSTEM FLUSH LOGS ON *.* TO `least`",
			"GRANT SELECT ON system.merge_tree_settings TO `least`", "GRANT SHOW ROW POLICIES ON *.* TO `least`"}},
		"lookers": {errors: []string{"grant"}, warnings: []string{"grant", "row_policy_unknown"}, canary: []string{"canary_refused"}, cures: []string{
			"GRANT INSERT ON `oncesink`.`policed` TO `lookers`", "GRANT SELECT ON `oncesink`.`policed` TO `lookers`"}},
	} {
		t.Run(user, func(t *testing.T) {
			s := as(t, user)
			findings := check(t, s, describe(t, s, "policed"), []string{"n"}, "n")
			if diff := cmp.Diff(c.errors, codesOf(findings, SeverityError)); diff != "" {
				t.Errorf("errors: %s\n%+v", diff, findings)
			}
			if diff := cmp.Diff(c.warnings, codesOf(findings, SeverityWarning)); diff != "" {
				t.Errorf("warnings: %s\n%+v", diff, findings)
			}
			for _, cure := range c.cures {
				if !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Cure, cure) }) {
					t.Errorf("no cure %q in %+v", cure, findings)
				}
			}
			canary, err := s.Canary(t.Context(), "oncesink")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range canary {
				got = append(got, f.Code)
			}
			if diff := cmp.Diff(c.canary, got); diff != "" {
				t.Errorf("canary: %s\n%+v", diff, canary)
			}
		})
	}
	if left := one(t, admin, "SELECT count() FROM system.tables WHERE name LIKE '%canary%'"); left != "0" {
		t.Errorf("the canary left %s tables", left)
	}
	_, err := as(t, "reader").Describe(t.Context(), "policed")
	var ex *Exception
	if !errors.As(err, &ex) || ex.Code != 164 || !strings.Contains(err.Error(), "ALTER USER `reader` SETTINGS readonly = 0") {
		t.Errorf("a read-only user: %v", err)
	}
}

// Several servers and a table that isn't replicated: each would get a part of the rows (field case A8).
func TestCheckRefusesAPlainTableBehindSeveralAddresses(t *testing.T) {
	first, second := engine(t), as(t, "default")
	exec(t, server(t), "CREATE TABLE spread (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 10000")
	exec(t, second, "CREATE TABLE spread (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 10000")
	s := open(t, Config{Addresses: []string{first.TCPAddr, second.cfg.Addresses[0]}, Database: "oncesink"})
	findings := check(t, s, describe(t, s, "spread"), []string{"n"}, "")
	if diff := cmp.Diff([]string{"not_replicated", "uuid_differs"}, codesOf(findings, SeverityError)); diff != "" {
		t.Errorf("%s\n%+v", diff, findings)
	}
}

// A Distributed table needs a cluster, which the engine has none of (field case A8).
func TestCheckRefusesADistributedTable(t *testing.T) {
	c := &checker{s: server(t), t: &Table{Database: "d", Name: "t", Engine: "Distributed", UUID: [16]byte{1}}}
	c.engine()
	if len(c.findings) != 1 || c.findings[0].Code != "engine" || !strings.Contains(c.findings[0].Cure, "replicas of one shard") {
		t.Errorf("%+v", c.findings)
	}
}

// Versions before 24.7 cut a repeat off at the table, so that a view can miss rows for good (field case B1).
func TestCheckRefusesViewsOnServersThatDoNotRepeatIntoThem(t *testing.T) {
	for version, old := range map[string]bool{"24.6.1.1": true, "23.12.9.1": true, "24.7.1.1": false, "24.10.2.3": false, "26.7.2.1": false, "unknown": false} {
		if got := olderThan(version, 24, 7); got != old {
			t.Errorf("%s: %v", version, got)
		}
	}
	c := &checker{s: server(t), t: &Table{Database: "d", Name: "t", Engine: "MergeTree", UUID: [16]byte{1}, ServerVersion: "24.3.1.1", Views: []View{{Name: "d.v"}}}}
	c.engine()
	if codes := codesOf(c.findings, SeverityError); !slices.Contains(codes, "old_server") {
		t.Errorf("%+v", c.findings)
	}
}
