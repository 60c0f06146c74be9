package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// grants tries what the sink does and says what falls where it may not.
func (c *checker) grants(ctx context.Context, r *replicaState) error {
	user, table := quoteName(c.s.cfg.Username), c.t.quoted()
	tries := []struct {
		statement       string
		severity, grant string
		falls           string
	}{
		{"SELECT 1 FROM " + table + " LIMIT 0", SeverityError, "SELECT ON " + table, "rows can't be read back after an unclear insert"},
		{"SELECT query_id FROM system.processes LIMIT 0", SeverityError, "SELECT ON system.processes", "whether an earlier insert still runs can't be told, so every recovery would wait for ever"},
		// The logs come into being when they are first flushed.
		{"SYSTEM FLUSH LOGS", SeverityWarning, "SYSTEM FLUSH LOGS ON *.*", "recovery waits 15 s for the query log, and never simply repeats an unclear insert"},
		{"SELECT 1 FROM system.query_log LIMIT 0", SeverityWarning, "SELECT ON system.query_log", "what became of an unclear insert can't be looked up: with dependent views the partition may stop and wait for you"},
		{"SELECT 1 FROM system.part_log LIMIT 0", SeverityWarning, "SELECT ON system.part_log", "how much of the deduplication window other writers used can't be told, so an unclear insert is never simply repeated"},
	}
	if c.t.Replicated {
		tries = append(tries, struct{ statement, severity, grant, falls string }{
			"SELECT 1 FROM system.replicas LIMIT 0", SeverityWarning, "SELECT ON system.replicas", "whether a replica has caught up can't be told, so nothing is read back from it"})
	}
	if c.s.cfg.Balanced {
		tries = append(tries, struct{ statement, severity, grant, falls string }{
			"", SeverityError, "REMOTE ON *.*", "the other servers behind the balancer can't be asked whether an earlier insert still runs"})
	}
	for _, g := range tries {
		statement := g.statement
		if statement == "" {
			from, err := c.s.everywhere(ctx, r, "system.processes")
			if err != nil {
				return err
			}
			statement = "SELECT query_id FROM " + from + " LIMIT 0"
		}
		err := c.s.on(r).run(ctx, statement)
		var ex *Exception
		switch {
		case err == nil:
		case errors.As(err, &ex) && ex.Code == 497:
			c.add(g.severity, "grant", "GRANT "+g.grant+" TO "+user, "%s: %s", lacks(c.s.cfg.Username, g.grant), g.falls)
		case errors.As(err, &ex) && ex.Code == 60:
			c.add(g.severity, "no_log", "add <query_log/> and <part_log/> to the server's configuration", "the server has no %s: %s", strings.TrimPrefix(g.grant, "SELECT ON "), g.falls)
		default:
			return err
		}
	}
	return c.insertGrant(ctx, r)
}

func lacks(user, grant string) string { return fmt.Sprintf("user %s lacks %s", user, grant) }

// insertGrant asks for the right to insert without inserting.
func (c *checker) insertGrant(ctx context.Context, r *replicaState) error {
	var names []string
	for _, column := range c.t.Columns {
		if column.Sent() {
			names = append(names, column.Name)
		}
	}
	// EXPLAIN checks the rights of the statement that it explains, and doesn't run it.
	err := c.s.on(r).run(ctx, fmt.Sprintf("EXPLAIN PIPELINE INSERT INTO %s (%s) SELECT %[2]s FROM %[1]s LIMIT 0", c.t.quoted(), quoteNames(names)))
	var ex *Exception
	if errors.As(err, &ex) && ex.Code == 497 {
		if !strings.Contains(ex.Message, "INSERT") {
			return nil // SELECT is missing, which has been said
		}
		c.add(SeverityError, "grant", "GRANT INSERT ON "+c.t.quoted()+" TO "+quoteName(c.s.cfg.Username), "%s: nothing can be written", lacks(c.s.cfg.Username, "INSERT ON "+c.t.quoted()))
		return nil
	}
	if errors.As(err, &ex) {
		return nil // an old server that can't explain it; the first insert tells
	}
	return err
}

// profile looks for settings of the user that the sink may not override, or that end statements in the middle.
func (c *checker) profile(ctx context.Context, r *replicaState) error {
	f, err := c.s.factsOf(ctx, r)
	if err != nil {
		return err
	}
	user := quoteName(c.s.cfg.Username)
	if f.guessed {
		c.add(SeverityWarning, "grant", "GRANT SELECT ON system.merge_tree_settings TO "+user+"; GRANT SELECT ON system.replicated_merge_tree_settings TO "+user,
			"%s: deduplication windows that aren't set on the table itself are taken for the smallest that a server has had", lacks(c.s.cfg.Username, "SELECT ON system.merge_tree_settings"))
	}
	if mode := f.settings["readonly"]; mode == "1" || mode == "2" {
		c.add(SeverityError, "readonly", "ALTER USER "+user+" SETTINGS readonly = 0", "user %s is read-only (readonly = %s): nothing can be written", c.s.cfg.Username, mode)
		return nil
	}
	fixed, err := c.s.on(r).settings(ctx, "system.settings", "readonly AND name IN ("+quoteTexts(settingsOfInterest())+")")
	if err != nil {
		return err
	}
	wanted := map[string]string{}
	lists := [][]proto.Setting{pinned, pinnedWhereKnown}
	if slices.ContainsFunc(c.t.Columns, func(c Column) bool { return strings.Contains(c.Type, "JSON") }) {
		lists = append(lists, pinnedForJSON)
	}
	for _, p := range slices.Concat(lists...) {
		wanted[p.Key] = p.Value
	}
	wanted["insert_deduplication_token"] = "a token"
	for _, name := range sortedNames(fixed) {
		want, ours := wanted[name]
		if ours && want != fixed[name] {
			c.add(SeverityError, "setting_fixed", fmt.Sprintf("remove the constraint: ALTER USER %s SETTINGS %s WRITABLE", user, name),
				"setting %s is fixed at %q for user %s and the sink needs %q: every insert would be refused", name, fixed[name], c.s.cfg.Username, want)
		}
	}
	if limit := f.settings["max_execution_time"]; limit != "" && limit != "0" {
		c.add(SeverityWarning, "max_execution_time", "ALTER USER "+user+" SETTINGS max_execution_time = 0",
			"max_execution_time is %s s for user %s: an insert that takes longer is ended between table and views, and has to be repeated", limit, c.s.cfg.Username)
	}
	return nil
}

// replicas compares the replicas with each other. One that can't be asked is a warning: it may be down for now.
func (c *checker) replicas(ctx context.Context) {
	if len(c.s.replicas) < 2 {
		return
	}
	type seen struct{ uuid, path, name, at string }
	var first *seen
	var earliest, latest time.Time
	base := time.Now()
	names := map[string]string{}
	for _, r := range c.s.replicas {
		d, err := c.s.tableRow(ctx, r, whereTable(c.t.Database, c.t.Name))
		switch {
		case err != nil && unreachable(err):
			c.add(SeverityWarning, "replica_down", "", "%s can't be asked now: %v", r.addr, err)
			continue
		case err != nil || d == nil:
			c.add(SeverityError, "replica_table", "create the table there, or take the address out of clickhouse.addresses", "%s has no table %s that user %s can see", r.addr, c.t, c.s.cfg.Username)
			continue
		}
		now := seen{uuid: d.uuid, at: r.addr}
		rows, err := c.s.read(ctx, r, 2, fmt.Sprintf("SELECT zookeeper_path, replica_name FROM system.replicas WHERE database = %s AND table = %s", quoteText(c.t.Database), quoteText(c.t.Name)))
		if err == nil && len(rows) == 1 {
			now.path, now.name = rows[0][0], rows[0][1]
		}
		switch {
		case first == nil:
			first = &now
		case now.path != first.path && now.path != "" && first.path != "":
			c.add(SeverityError, "another_shard", "name the replicas of one shard in clickhouse.addresses", "%s on %s and on %s are not replicas of each other (%s, %s)", c.t, first.at, r.addr, first.path, now.path)
		case now.uuid != first.uuid:
			c.add(SeverityError, "uuid_differs", "create the table ON CLUSTER, or in a Replicated database, so that its replicas share one UUID",
				"%s has UUID %s on %s and %s on %s: the sink tells a swapped table by its UUID", c.t, first.uuid, first.at, now.uuid, r.addr)
		}
		if other := names[now.name]; now.name != "" && other != "" {
			c.add(SeverityError, "same_replica", "name each replica once in clickhouse.addresses", "%s and %s are the same replica %s", other, r.addr, now.name)
		}
		names[now.name] = r.addr
		if clock, _, err := c.s.clockOf(ctx, r); err == nil {
			clock = base.Add(time.Until(clock)) // at one and the same moment
			if earliest.IsZero() || clock.Before(earliest) {
				earliest = clock
			}
			if clock.After(latest) {
				latest = clock
			}
		}
	}
	if skew := latest.Sub(earliest); skew > c.s.cfg.InsertDeadline/4 {
		c.add(SeverityWarning, "clock_skew", "synchronise the replicas' clocks", "the replicas' clocks differ by %s: the insert deadline of %s is shorter by that on the one that is ahead", skew.Round(time.Millisecond), c.s.cfg.InsertDeadline)
	}
}
