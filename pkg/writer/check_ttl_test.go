package writer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Rows that leave by TTL are new when they are sent again after the store was lost, and a view counts them a second time.
func TestCheckRefusesATTLThatAViewWouldCountPast(t *testing.T) {
	s := as(t, "default")
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		ttl              string
		column           string // more of the column n
		event            string // its type; "": the route has none
		eventName        string
		horizon          time.Duration
		noView           bool
		errors, warnings []string
		cured            []string // warnings after the cures; nil: those before
		reason           string
	}{
		"none":                        {event: "DateTime"},
		"another column":              {ttl: "made + INTERVAL 30 DAY", event: "DateTime", errors: []string{"ttl_view"}, cured: []string{"ttl"}, reason: "counts twice in"},
		"another column, no view":     {ttl: "made + INTERVAL 30 DAY", event: "DateTime", noView: true, warnings: []string{"ttl"}, reason: "becomes a row again"},
		"no event time":               {ttl: "at + INTERVAL 30 DAY", errors: []string{"ttl_view"}, cured: []string{}, reason: "without routes.event_time"},
		"longer than the horizon":     {ttl: "at + INTERVAL 30 DAY", event: "DateTime", warnings: []string{"ttl"}, reason: "counts again in"},
		"a minute longer":             {ttl: "at + toIntervalMinute(1441)", event: "DateTime", warnings: []string{"ttl"}},
		"as long as the horizon":      {ttl: "at + INTERVAL 1 DAY", event: "DateTime", errors: []string{"ttl_view"}, cured: []string{"ttl"}, reason: "redis.horizon (24h0m0s)"},
		"a long horizon":              {ttl: "at + INTERVAL 30 DAY", event: "DateTime", horizon: 40 * day, errors: []string{"ttl_view"}, cured: []string{"ttl"}},
		"from the day's start":        {ttl: "toStartOfDay(at) + INTERVAL 36 HOUR", event: "DateTime", errors: []string{"ttl_view"}, cured: []string{"ttl"}},
		"months":                      {ttl: "toStartOfMonth(at) + toIntervalMonth(3)", event: "DateTime", warnings: []string{"ttl"}},
		"milliseconds":                {ttl: "toDateTime(at) + INTERVAL 2 DAY", event: "DateTime64(3, 'Asia/Tokyo')", warnings: []string{"ttl"}},
		"a date":                      {ttl: "at + INTERVAL 2 DAY", event: "Date", warnings: []string{"ttl"}},
		"a number":                    {ttl: "toDateTime(at) + INTERVAL 2 DAY", event: "UInt32", warnings: []string{"ttl"}},
		"a number of ms":              {ttl: "toDateTime(intDiv(at_ms, 1000)) + INTERVAL 2 DAY", event: "UInt64", eventName: "at_ms", warnings: []string{"ttl"}},
		"a number of ms, too early":   {ttl: "toDateTime(intDiv(at_ms, 1000)) + INTERVAL 2 HOUR", event: "UInt64", eventName: "at_ms", errors: []string{"ttl_view"}, cured: []string{"ttl"}},
		"the earlier of two":          {ttl: "least(at, made) + INTERVAL 30 DAY", event: "DateTime", errors: []string{"ttl_view"}, cured: []string{"ttl"}},
		"some rows":                   {ttl: "at + INTERVAL 1 HOUR DELETE WHERE n > 5, at + INTERVAL 30 DAY", event: "DateTime", errors: []string{"ttl_view"}, cured: []string{"ttl"}},
		"rolled up":                   {ttl: "at + INTERVAL 30 DAY TO VOLUME 'default', at + INTERVAL 60 DAY GROUP BY a SET n = sum(n), made = max(made)", event: "DateTime", errors: []string{"ttl_rollup"}, cured: []string{}},
		"rolled up, no view":          {ttl: "at + INTERVAL 60 DAY GROUP BY a SET n = sum(n)", noView: true, errors: []string{"ttl_rollup"}, cured: []string{}},
		"moved and packed":            {ttl: "made + INTERVAL 1 DAY TO DISK 'default', made + INTERVAL 1 HOUR RECOMPRESS CODEC(ZSTD(6))"},
		"moved, and leaves too early": {ttl: "at + INTERVAL 1 DAY TO DISK 'default', at + INTERVAL 2 HOUR", event: "DateTime", errors: []string{"ttl_view"}, cured: []string{"ttl"}},
		"a column":                    {column: "COMMENT 'TTL, ) ENGINE' CODEC(ZSTD(1)) TTL made + INTERVAL 1 DAY", warnings: []string{"ttl_column"}, cured: []string{"ttl_column"}, reason: "column n of"},
		"no TTL but its words":        {column: "DEFAULT length(' TTL x') COMMENT ' TTL made'"},
	} {
		t.Run(name, func(t *testing.T) {
			n := tableName()
			at, typ := "at", "DateTime"
			if c.eventName != "" {
				at = c.eventName
			}
			if c.event != "" {
				typ = c.event
			}
			key := []string{"a", at}
			ttl := ""
			if c.ttl != "" {
				ttl = " TTL " + c.ttl
			}
			exec(t, s, "CREATE TABLE "+n+" (a UInt64, "+at+" "+typ+", n Int64 "+c.column+", made DateTime, `TTL x` String) ENGINE = MergeTree ORDER BY (a, "+at+")"+ttl+" SETTINGS non_replicated_deduplication_window = 10000")
			if !c.noView {
				exec(t, s, "CREATE MATERIALIZED VIEW "+n+"_v ENGINE = SummingMergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 10000 AS SELECT a, count() AS c FROM "+n+" GROUP BY a")
			}
			use := Use{Key: key, Horizon: day}
			if c.event != "" {
				use.EventTime = at
			}
			if c.horizon != 0 {
				use.Horizon = c.horizon
			}
			judge := func() []Finding {
				findings, err := s.Check(t.Context(), describe(t, s, n), use)
				if err != nil {
					t.Fatal(err)
				}
				return findings
			}
			findings := judge()
			if diff := cmp.Diff(c.errors, codesOf(findings, SeverityError)); diff != "" {
				t.Errorf("errors: %s\n%+v", diff, findings)
			}
			if diff := cmp.Diff(c.warnings, codesOf(findings, SeverityWarning)); diff != "" {
				t.Errorf("warnings: %s\n%+v", diff, findings)
			}
			for _, f := range findings {
				if !strings.Contains(f.Reason, c.reason) {
					t.Errorf("reason: %s", f.Reason)
				}
				if f.Severity == SeverityError {
					exec(t, s, f.Cure)
				}
			}
			if c.errors == nil {
				return
			}
			cured := judge()
			got := codesOf(cured, SeverityWarning)
			if bad := codesOf(cured, SeverityError); bad != nil || strings.Join(got, " ") != strings.Join(c.cured, " ") {
				t.Errorf("not cured: %+v", cured)
			}
		})
	}
}

// A part of the key that turns into a default makes several keys one.
func TestCheckRefusesAKeyColumnWithATTL(t *testing.T) {
	s, n := as(t, "default"), tableName()
	exec(t, s, "CREATE TABLE "+n+" (a UInt64, b String TTL d + INTERVAL 1 DAY, d DateTime) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 10000")
	findings := check(t, s, describe(t, s, n), []string{"a", "b"}, "")
	if diff := cmp.Diff([]string{"ttl_key"}, codesOf(findings, SeverityError)); diff != "" {
		t.Fatalf("%s\n%+v", diff, findings)
	}
	for _, f := range findings {
		if f.Code == "ttl_key" {
			exec(t, s, f.Cure)
		}
	}
	if left := codesOf(check(t, s, describe(t, s, n), []string{"a", "b"}, ""), SeverityError); left != nil {
		t.Errorf("not cured: %v", left)
	}
}

// The double itself: what the check is there to prevent.
func TestRowsThatLeftByTTLCountTwiceInAView(t *testing.T) {
	s, n := as(t, "default"), tableName()
	exec(t, s, "CREATE TABLE "+n+" (a UInt64, d DateTime) ENGINE = MergeTree ORDER BY a TTL d + INTERVAL 1 DAY SETTINGS non_replicated_deduplication_window = 10000",
		"CREATE MATERIALIZED VIEW "+n+"_v ENGINE = SummingMergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 10000 AS SELECT a, count() AS c FROM "+n+" GROUP BY a",
		"INSERT INTO "+n+" SETTINGS insert_deduplication_token = 'x' VALUES (1, '2020-01-01 00:00:00')", "OPTIMIZE TABLE "+n+" FINAL",
		"INSERT INTO "+n+" SETTINGS insert_deduplication_token = 'y' VALUES (1, '2020-01-01 00:00:00')")
	if got := one(t, s, "SELECT sum(c) FROM "+n+"_v"); got != "2" {
		t.Errorf("the view counts %s", got)
	}
	if codes := codesOf(check(t, s, describe(t, s, n), []string{"a"}, ""), SeverityError); strings.Join(codes, " ") != "ttl_view" {
		t.Errorf("%v", codes)
	}
}
