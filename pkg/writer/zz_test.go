package writer
import ("testing";"fmt")
func TestZZ(t *testing.T) {
	s := server(t)
	fmt.Println(one(t, s, "SELECT table, arrayStringConcat(groupArray(name), ' ') FROM system.columns WHERE database='system' AND table IN ('tables','columns','parts_columns') GROUP BY table"))
	fmt.Println(one(t, s, "SELECT name FROM system.table_engines WHERE name LIKE '%MergeTree'"))
	exec(t, s, "CREATE TABLE z (a UInt64, `b TTL x` String DEFAULT ') TTL ' COMMENT 'TTL d DELETE', d DateTime TTL d + INTERVAL 1 DAY, u DateTime64(3) CODEC(ZSTD(1)) TTL toDateTime(u) + INTERVAL 1 MONTH, n Int64 MATERIALIZED a*2) ENGINE = ReplacingMergeTree(u) ORDER BY (a, intDiv(a, 2)) PRIMARY KEY a TTL d + INTERVAL 1 DAY DELETE WHERE a = 1, toDateTime(u) + toIntervalMonth(3), d + INTERVAL 1 YEAR RECOMPRESS CODEC(ZSTD(3)) SETTINGS non_replicated_deduplication_window = 5 COMMENT 'SETTINGS TTL x'")
	exec(t, s, "CREATE TABLE zg (a UInt64, c UInt8, d DateTime) ENGINE = MergeTree ORDER BY a TTL d + INTERVAL 1 DAY GROUP BY a SET c = sum(c), d = max(d), d + INTERVAL 2 DAY TO DISK 'default'")
	exec(t, s, "CREATE TABLE zc (a UInt64, c Int8, d DateTime) ENGINE = CollapsingMergeTree(c) ORDER BY a TTL d + INTERVAL 1 DAY DELETE")
	for _, x := range rows(t, s, "SELECT engine_full, sorting_key, create_table_query FROM system.tables WHERE name LIKE 'z%'") { fmt.Println(x) }
	fmt.Println(one(t, s, "SELECT formatQuery('CREATE TABLE z (a Int8) ENGINE=MergeTree ORDER BY a TTL d + INTERVAL 1 DAY WHERE x')"))
}
