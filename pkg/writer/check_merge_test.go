package writer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Rows of different keys that a merge makes one of are lost without an error anywhere: three records of one id and revision that differed in their time only
// were written, committed, and one of them was left.
func TestCheckRefusesEnginesThatMergeRowsOfDifferentKeys(t *testing.T) {
	s := as(t, "default")
	const columns = " (ms UInt64, id String, rev UInt32, sign Int8, n Int64, d DateTime)"
	const window = " SETTINGS non_replicated_deduplication_window = 10000"
	key := []string{"ms", "id", "rev"}
	for name, c := range map[string]struct {
		engine   string
		errors   []string
		warnings []string
		reason   string
	}{
		"Replacing, part of the key":      {engine: "ReplacingMergeTree ORDER BY (id, rev)", errors: []string{"engine_merges"}, warnings: []string{"order_by_partly"}, reason: "differ in ms only"},
		"Replacing, two missing":          {engine: "ReplacingMergeTree(rev) PARTITION BY toYYYYMM(d) PRIMARY KEY id ORDER BY (id, intDiv(rev, 2)) TTL d + INTERVAL 1 YEAR RECOMPRESS CODEC(ZSTD(3))", errors: []string{"engine_merges"}, warnings: []string{"order_by_partly"}, reason: "differ in ms, rev only"},
		"Replacing, the key in functions": {engine: "ReplacingMergeTree(rev) ORDER BY (id, rev, toStartOfHour(toDateTime(ms)))", errors: []string{"engine_merges"}, warnings: []string{"order_by_partly"}},
		"Aggregating, part of the key":    {engine: "AggregatingMergeTree ORDER BY (ms, id)", errors: []string{"engine_merges"}, warnings: []string{"order_by_partly"}},
		"Coalescing, part of the key":     {engine: "CoalescingMergeTree ORDER BY (ms, id)", errors: []string{"engine_merges"}, warnings: []string{"order_by_partly"}},
		"Replacing":                       {engine: "ReplacingMergeTree ORDER BY (id, rev, ms)"},
		"Replacing, more than the key":    {engine: "ReplacingMergeTree ORDER BY (id, rev, ms, d)"},
		"Aggregating":                     {engine: "AggregatingMergeTree ORDER BY (ms, id, rev)"},
		"Coalescing":                      {engine: "CoalescingMergeTree ORDER BY (ms, id, rev)"},
		"Summing":                         {engine: "SummingMergeTree ORDER BY (ms, id, rev)", errors: []string{"engine_summing"}},
		"Summing, named":                  {engine: "SummingMergeTree((n)) PARTITION BY toYYYYMM(d) ORDER BY (ms, id, rev)", errors: []string{"engine_summing"}},
		"Collapsing":                      {engine: "CollapsingMergeTree(sign) ORDER BY (ms, id, rev)", errors: []string{"engine_collapsing"}},
		"VersionedCollapsing":             {engine: "VersionedCollapsingMergeTree(sign, rev) ORDER BY (ms, id, rev)", errors: []string{"engine_collapsing"}},
		"MergeTree":                       {engine: "MergeTree ORDER BY (id, rev)", warnings: []string{"order_by_partly"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := tableName()
			exec(t, s, "CREATE TABLE "+n+columns+" ENGINE = "+c.engine+window)
			findings := check(t, s, describe(t, s, n), key, "")
			if diff := cmp.Diff(c.errors, codesOf(findings, SeverityError)); diff != "" {
				t.Errorf("errors: %s\n%+v", diff, findings)
			}
			if diff := cmp.Diff(c.warnings, codesOf(findings, SeverityWarning)); diff != "" {
				t.Errorf("warnings: %s\n%+v", diff, findings)
			}
			for _, f := range findings {
				if f.Severity != SeverityError {
					continue
				}
				if !strings.Contains(f.Reason, c.reason) {
					t.Errorf("reason: %s", f.Reason)
				}
				exec(t, s, strings.Split(f.Cure, "; ")...)
			}
			cured := check(t, s, describe(t, s, n), key, "")
			if bad := codesOf(cured, SeverityError); bad != nil {
				t.Errorf("not cured: %+v", cured)
			}
			create := one(t, s, "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = '"+n+"'")
			for _, kept := range []string{"PARTITION BY toYYYYMM(d)", "TTL d + toIntervalYear(1) RECOMPRESS", "non_replicated_deduplication_window = 10000"} {
				if strings.Contains(c.engine+window, strings.Replace(kept, "toIntervalYear(1)", "INTERVAL 1 YEAR", 1)) && !strings.Contains(create, kept) {
					t.Errorf("the cure lost %s: %s", kept, create)
				}
			}
		})
	}
}

// The engine has no Keeper and no roll-up rules, so these are judged from what a server would say of them.
func TestCheckKnowsReplicatedKindsOfMergingEngines(t *testing.T) {
	for engine, c := range map[string]struct {
		full, code, cure string
	}{
		"ReplicatedMergeTree":                    {full: "ReplicatedMergeTree('/t/{uuid}/{shard}', '{replica}') ORDER BY id"},
		"SharedMergeTree":                        {full: "SharedMergeTree('/t', '{replica}') ORDER BY id"},
		"ReplicatedReplacingMergeTree":           {full: "ReplicatedReplacingMergeTree('/t/{uuid}/{shard}', '{replica}', rev) ORDER BY id SETTINGS a = 1", code: "engine_merges", cure: "ENGINE = ReplicatedReplacingMergeTree('/t/{uuid}/{shard}', '{replica}', rev) ORDER BY (id, `ms`, `rev`) SETTINGS a = 1;"},
		"SharedReplacingMergeTree":               {full: "SharedReplacingMergeTree('/t', '{replica}', rev) ORDER BY id", code: "engine_merges", cure: "(id, `ms`, `rev`)"},
		"ReplicatedSummingMergeTree":             {full: "ReplicatedSummingMergeTree('/t/{uuid}/{shard}', '{replica}', (a, b)) ORDER BY id", code: "engine_summing", cure: "ENGINE = ReplicatedMergeTree('/t/{uuid}/{shard}', '{replica}') ORDER BY id"},
		"GraphiteMergeTree":                      {full: "GraphiteMergeTree('rollup') ORDER BY id", code: "engine_graphite", cure: "ENGINE = MergeTree ORDER BY id"},
		"ReplicatedVersionedCollapsingMergeTree": {full: "ReplicatedVersionedCollapsingMergeTree('/t', 'r', s, v) ORDER BY id", code: "engine_collapsing", cure: "ENGINE = ReplicatedMergeTree('/t', 'r') ORDER BY id"},
		"SomeFutureMergeTree":                    {full: "SomeFutureMergeTree ORDER BY id", code: "engine_merges", cure: "(id, `ms`, `rev`)"},
	} {
		c2 := &checker{t: &Table{Database: "d", Name: "t", Engine: engine, SortingKey: "id"}, use: Use{Key: []string{"ms", "id", "rev"}, Horizon: time.Hour}}
		c2.merging(c.full)
		switch {
		case c.code == "" && len(c2.findings) == 0:
		case len(c2.findings) != 1 || c2.findings[0].Code != c.code || !strings.Contains(c2.findings[0].Cure, c.cure):
			t.Errorf("%s: %+v", engine, c2.findings)
		}
	}
}

// Why a table that sums is refused although its keys are unique: should a version of the server leave such rows alone, this tells.
func TestASummingTableRemovesALoneRowOfZeroes(t *testing.T) {
	s, n := as(t, "default"), tableName()
	exec(t, s, "CREATE TABLE "+n+" (a UInt64, c Int64) ENGINE = SummingMergeTree ORDER BY a", "INSERT INTO "+n+" VALUES (1, 0)", "INSERT INTO "+n+" VALUES (2, 5)", "OPTIMIZE TABLE "+n+" FINAL")
	if got := one(t, s, "SELECT groupArray(a) FROM "+n); got != "[2]" {
		t.Errorf("left: %s", got)
	}
}
