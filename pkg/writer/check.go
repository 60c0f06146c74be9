package writer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Severities of a Finding. An error makes a table unfit for a sink.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityInfo    = "info"
)

// Finding is something that an operator should know before rows are written, with the exact statement that mends it where there is one.
type Finding struct {
	Severity, Code string
	Reason         string // what is, and what follows from it
	Cure           string // a statement, or what to do
}

// Use is what a route makes of a table.
type Use struct {
	Key       []string
	EventTime string        // a column of the key; "": none
	Horizon   time.Duration // how long a key is remembered without asking the table
}

// Check judges a table against what exactly-once needs. The error is that of a server that can't be asked.
func (s *Server) Check(ctx context.Context, t *Table, use Use) ([]Finding, error) {
	c := &checker{s: s, t: t, use: use}
	c.engine()
	c.columns(use.Key, use.EventTime)
	c.window()
	c.views()
	c.policies()
	if len(c.findings) > 0 && c.findings[0].Code == "engine" {
		return c.findings, nil // nothing else about it matters
	}
	before := len(c.findings)
	err := s.onAny(ctx, func(r *replicaState) error {
		c.findings = c.findings[:before] // a replica that broke off says nothing twice
		d, err := s.tableRow(ctx, r, whereTable(t.Database, t.Name))
		if err != nil || d == nil {
			return err // it was dropped a moment ago: who describes it next, hears so
		}
		c.merging(d.engineFull)
		if err := c.ttl(ctx, r, d); err != nil {
			return err
		}
		if err := c.sortingKey(ctx, r, use.Key); err != nil {
			return err
		}
		if err := c.grants(ctx, r); err != nil {
			return err
		}
		return c.profile(ctx, r)
	})
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", t, err)
	}
	c.replicas(ctx)
	return c.findings, nil
}

type checker struct {
	s        *Server
	t        *Table
	use      Use
	findings []Finding
}

func (c *checker) add(severity, code, cure, reason string, args ...any) {
	c.findings = append(c.findings, Finding{Severity: severity, Code: code, Cure: cure, Reason: fmt.Sprintf(reason, args...)})
}

func (c *checker) engine() {
	t := c.t
	switch {
	case t.Engine == "Distributed":
		c.add(SeverityError, "engine", "name the table behind it in routes.table, and the replicas of one shard in clickhouse.addresses",
			"%s is a Distributed table: a repeated insert may reach another shard, and its tokens mean nothing there", t)
	case t.Engine == "View" || t.Engine == "MaterializedView" || t.Engine == "Buffer" || t.Engine == "Null" || t.Engine == "Kafka":
		c.add(SeverityError, "engine", "name a table of the MergeTree family in routes.table", "%s is of engine %s, which neither remembers tokens nor can be read back", t, t.Engine)
	case !strings.HasSuffix(t.Engine, "MergeTree"):
		c.add(SeverityError, "engine", "name a table of the MergeTree family in routes.table", "%s is of engine %s, which doesn't remember tokens", t, t.Engine)
	case t.UUID == [16]byte{}:
		c.add(SeverityError, "no_uuid", "create the table in a database of engine Atomic or Replicated", "%s has no UUID: a table that is swapped or made anew can't be told from this one", t)
	}
	if !t.Replicated && (len(c.s.replicas) > 1 || c.s.cfg.Balanced) {
		c.add(SeverityError, "not_replicated", "name one address in clickhouse.addresses, or make the table a Replicated one",
			"%s is of engine %s and several servers may be behind clickhouse.addresses: each would get a part of the rows", t, t.Engine)
	}
	if len(t.Views) > 0 && olderThan(t.ServerVersion, 24, 7) {
		c.add(SeverityError, "old_server", "upgrade ClickHouse to 24.8 or later, or drop the views",
			"ClickHouse %s doesn't push a repeated insert to the views when the table has it already: a view would miss rows after an unclear insert", t.ServerVersion)
	}
	for _, note := range t.Notes {
		c.add(SeverityInfo, "note", "", "%s", note)
	}
}

func olderThan(version string, major, minor int64) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, b := number(parts[0]), number(parts[1])
	return a < major || a == major && b < minor
}

// changing are functions that answer differently when the same row is written again.
var (
	changing = regexp.MustCompile(`(?i)\b(now|now64|nowInBlock|nowInBlock64|today|yesterday|curdate|current_date|current_timestamp|utc_?timestamp|rand|rand32|rand64|randConstant|generate(UUIDv|Snowflake|Serial)\w*)\s*\(`)
	literals = regexp.MustCompile(`'(?:[^'\\]|\\.)*'`)
)

func (c *checker) columns(key []string, eventTime string) {
	for _, column := range c.t.Columns {
		if column.DefaultKind == "EPHEMERAL" {
			c.add(SeverityError, "ephemeral", "ALTER TABLE "+c.t.quoted()+" DROP COLUMN "+quoteName(column.Name),
				"column %s of %s is EPHEMERAL: what is computed from it can't be repeated the same", column.Name, c.t)
		}
		if column.DefaultKind == "MATERIALIZED" && changing.MatchString(literals.ReplaceAllString(column.DefaultExpr, "''")) {
			c.add(SeverityWarning, "column_clock", fmt.Sprintf("ALTER TABLE %s MODIFY COLUMN %s %s MATERIALIZED <an expression of the record's own columns>", c.t.quoted(), quoteName(column.Name), column.Type),
				"column %s of %s is MATERIALIZED %s: it tells when a row was written, so that a row which is written again later, as after a deletion, gets another value", column.Name, c.t, column.DefaultExpr)
		}
	}
	for _, name := range key {
		column, err := c.t.column(name)
		switch {
		case err != nil:
			c.add(SeverityError, "key_column", "name columns of the table in routes.key", "%s, which routes.key names", err)
		case !column.Sent():
			c.add(SeverityError, "key_column", "name columns in routes.key that the records carry", "column %s of %s is %s: its value isn't known before the insert", name, c.t, column.DefaultKind)
		case strings.Contains(column.Type, "Nullable("):
			c.add(SeverityError, "key_nullable", fmt.Sprintf("ALTER TABLE %s MODIFY COLUMN %s %s", c.t.quoted(), quoteName(name), strings.TrimSuffix(strings.Replace(column.Type, "Nullable(", "", 1), ")")),
				"key column %s of %s is %s: NULL equals nothing, so such a key can't be looked up", name, c.t, column.Type)
		case strings.Contains(column.Type, "Float"):
			c.add(SeverityWarning, "key_float", "use an integer or Decimal column in routes.key", "key column %s of %s is %s: NaN equals nothing, so such a key can't be looked up", name, c.t, column.Type)
		}
	}
	if eventTime != "" {
		if _, err := c.t.column(eventTime); err != nil {
			c.add(SeverityError, "event_time", "name a column of the table in routes.event_time", "%s, which routes.event_time names", err)
		}
	}
}

const (
	fewBlocks  = 1000
	fewSeconds = 600
	goodWindow = 10_000
)

func windowSetting(replicated bool) string {
	if replicated {
		return "replicated_deduplication_window"
	}
	return "non_replicated_deduplication_window"
}

func modifySetting(database, table, setting string, value int) string {
	return fmt.Sprintf("ALTER TABLE %s.%s MODIFY SETTING %s = %d", quoteName(database), quoteName(table), setting, value)
}

func (c *checker) window() {
	t := c.t
	setting := windowSetting(t.Replicated)
	cure := modifySetting(t.Database, t.Name, setting, goodWindow)
	switch w := t.Window; {
	case !strings.HasSuffix(t.Engine, "MergeTree"):
	case w.Blocks == 0:
		c.add(SeverityError, "window_zero", cure, "%s (%s) has %s = 0: the server ignores tokens, and an insert that is repeated after a lost answer counts twice", t, t.Engine, setting)
	case w.Blocks < fewBlocks:
		c.add(SeverityWarning, "window_small", cure, "%s remembers the last %d blocks of all writers: once half of them are used, an unclear insert is settled by reading back, which needs that no view depends on the table", t, w.Blocks)
	}
	if w := t.Window; w.Blocks > 0 && w.Seconds > 0 && w.Seconds < fewSeconds {
		c.add(SeverityWarning, "window_short", modifySetting(t.Database, t.Name, setting+"_seconds", 7*24*3600), "%s remembers a token for %s only", t, time.Duration(w.Seconds)*time.Second)
	}
}

func (c *checker) views() {
	done := map[string]bool{}
	for _, v := range c.t.Views {
		switch {
		case v.Target == "":
			db, _, _ := strings.Cut(v.Name, ".")
			c.add(SeverityError, "view_hidden", fmt.Sprintf("GRANT SHOW TABLES, SHOW COLUMNS ON %s.* TO %s", quoteName(db), quoteName(c.s.cfg.Username)),
				"view %s depends on %s and its target isn't visible to this user: whether it would count a repeated insert twice can't be told", v.Name, c.t)
		case done[v.Target]:
		case v.Null:
			c.add(SeverityError, "view_null", "let the views behind it read "+c.t.quoted()+" itself", "view %s feeds %s, which is of engine Null: what hangs on it can't tell a repeated insert from a new one", v.Name, v.Target)
		case !v.Windowed:
			c.add(SeverityWarning, "view_engine", "let the view write a table of the MergeTree family",
				"view %s feeds %s of engine %s, which doesn't remember tokens: after an unclear insert that the query log doesn't settle, the partition stops and waits for you", v.Name, v.Target, v.Engine)
		case v.Window.Blocks == 0:
			c.add(SeverityError, "view_window_zero", modifySetting(v.TargetDB, v.TargetName, windowSetting(v.Replicated), goodWindow),
				"view %s feeds %s (%s), which has %s = 0: an insert that is repeated after a lost answer would count twice in it", v.Name, v.Target, v.Engine, windowSetting(v.Replicated))
		case v.Window.Blocks < fewBlocks:
			c.add(SeverityWarning, "view_window_small", modifySetting(v.TargetDB, v.TargetName, windowSetting(v.Replicated), goodWindow),
				"%s, which view %s feeds, remembers the last %d blocks: once half of them are used, an unclear insert can stop the partition", v.Target, v.Name, v.Window.Blocks)
		}
		done[v.Target] = true
	}
}

func (c *checker) policies() {
	user := quoteName(c.s.cfg.Username)
	if len(c.t.Policies) > 0 {
		c.add(SeverityError, "row_policy", fmt.Sprintf("ALTER ROW POLICY %s ON %s TO ALL EXCEPT %s", quoteName(c.t.Policies[0]), c.t.quoted(), user),
			"row policy %s on %s may hide rows from this user: a key that is there would look absent, and be written again", strings.Join(c.t.Policies, ", "), c.t)
	}
	if !c.t.PoliciesKnown {
		c.add(SeverityWarning, "row_policy_unknown", "GRANT SHOW ROW POLICIES ON *.* TO "+user, "whether a row policy hides rows of %s from this user can't be told", c.t)
	}
}

// sortingKey looks whether rows can be found by key without reading the table.
func (c *checker) sortingKey(ctx context.Context, r *replicaState, key []string) error {
	if len(key) == 0 {
		return nil
	}
	sorted := splitExpressions(c.t.SortingKey)
	leading := 0
	for leading < len(sorted) && slices.Contains(key, unquoteName(sorted[leading])) {
		leading++
	}
	if leading == len(key) {
		return nil
	}
	indexed, err := c.s.read(ctx, r, 1, fmt.Sprintf("SELECT expr FROM system.data_skipping_indices WHERE database = %s AND table = %s", quoteText(c.t.Database), quoteText(c.t.Name)))
	var ex *Exception
	if err != nil && !errors.As(err, &ex) {
		return err
	}
	for _, row := range indexed {
		for _, expr := range splitExpressions(row[0]) {
			if slices.Contains(key, unquoteName(expr)) {
				c.add(SeverityInfo, "order_by_index", "", "%s isn't sorted by the key; read-backs use the index on %s", c.t, expr)
				return nil
			}
		}
	}
	names := quoteNames(key)
	if leading > 0 {
		c.add(SeverityWarning, "order_by_partly", "recreate the table with ORDER BY ("+names+", …)",
			"ORDER BY of %s is (%s) and only its first %d columns are of the key (%s): read-backs after an unclear insert read more than they need", c.t, c.t.SortingKey, leading, strings.Join(key, ", "))
		return nil
	}
	c.add(SeverityError, "order_by", fmt.Sprintf("ALTER TABLE %s ADD INDEX oncesink_key %s TYPE bloom_filter; ALTER TABLE %[1]s MATERIALIZE INDEX oncesink_key; or recreate the table with ORDER BY (%s)", c.t.quoted(), quoteName(key[0]), names),
		"ORDER BY of %s is (%s), which doesn't begin with the key (%s): every read-back would read the whole table", c.t, c.t.SortingKey, strings.Join(key, ", "))
	return nil
}
