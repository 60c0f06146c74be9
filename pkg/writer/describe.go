package writer

import (
	"context"
	"fmt"
	"regexp"
	"sort"
	"strings"
)

// NotFound says that a table isn't there, or isn't visible to the user, with the names that come near.
type NotFound struct {
	Database, Table string
	Near            []string
	Err             error
}

func (e *NotFound) Error() string {
	text := fmt.Sprintf("table %s.%s doesn't exist or isn't visible to this user", e.Database, e.Table)
	if len(e.Near) > 0 {
		text += ": did you mean " + strings.Join(e.Near, " or ") + "?"
	}
	return text
}

// Describe reads what the server says about a table, given as "table" or "database.table". It doesn't judge; see Check.
func (s *Server) Describe(ctx context.Context, name string) (*Table, error) {
	db, table, err := parseName(name, s.cfg.Database)
	if err != nil {
		return nil, err
	}
	var t *Table
	err = s.onAny(ctx, func(r *replicaState) error {
		t, err = s.describe(ctx, r, db, table)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("describe %s.%s: %w", db, table, err)
	}
	return t, nil
}

// describedTable is a row of system.tables.
type describedTable struct {
	database, name, uuid, engine, engineFull, sorting, partition, create string
	dependentDatabases, dependents                                       []string
}

const tableColumns = "database, name, toString(uuid), engine, engine_full, sorting_key, partition_key, create_table_query, " +
	"arrayStringConcat(dependencies_database, '\\n'), arrayStringConcat(dependencies_table, '\\n')"

func (s *Server) tableRow(ctx context.Context, r *replicaState, where string) (*describedTable, error) {
	rows, err := s.read(ctx, r, 10, "SELECT "+tableColumns+" FROM system.tables WHERE "+where)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	row := rows[0]
	d := &describedTable{row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], nil, nil}
	if row[9] != "" {
		d.dependentDatabases, d.dependents = strings.Split(row[8], "\n"), strings.Split(row[9], "\n")
	}
	return d, nil
}

func whereTable(db, name string) string {
	return "database = " + quoteText(db) + " AND name = " + quoteText(name)
}

func (s *Server) describe(ctx context.Context, r *replicaState, db, name string) (*Table, error) {
	f, err := s.factsOf(ctx, r)
	if err != nil {
		return nil, err
	}
	d, err := s.tableRow(ctx, r, whereTable(db, name))
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, s.notFound(ctx, r, db, name)
	}
	t := &Table{
		Database: d.database, Name: d.name, UUID: parseUUID(d.uuid), Engine: d.engine, SortingKey: d.sorting, PartitionKey: d.partition,
		Replicated: replicatedEngine(d.engine), Window: f.window(d.engine, d.engineFull), ServerVersion: f.version, TimeZone: f.timezone,
		MaxPartitions: s.maxPartitions(f),
	}
	columns, err := s.read(ctx, r, 5, fmt.Sprintf("SELECT name, type, default_kind, default_expression, toString(is_in_partition_key) FROM system.columns WHERE database = %s AND table = %s ORDER BY position",
		quoteText(db), quoteText(name)))
	if err != nil {
		return nil, err
	}
	for _, c := range columns {
		t.Columns = append(t.Columns, Column{Name: c[0], Type: c[1], DefaultKind: c[2], DefaultExpr: c[3], InPartitionKey: c[4] == "1"})
	}
	if len(t.Columns) == 0 {
		return nil, fmt.Errorf("its columns aren't visible: GRANT SHOW COLUMNS ON %s TO %s", t.quoted(), quoteName(s.cfg.Username))
	}
	if err := s.describeViews(ctx, r, f, t, d, map[string]bool{}); err != nil {
		return nil, err
	}
	s.describePolicies(ctx, r, t)
	return t, nil
}

// describePolicies reads the row policies. A user who may not see them is no reason to fail; Check says what follows.
func (s *Server) describePolicies(ctx context.Context, r *replicaState, t *Table) {
	rows, err := s.read(ctx, r, 1, fmt.Sprintf("SELECT short_name FROM system.row_policies WHERE database = %s AND table IN (%s, '') "+
		"AND (apply_to_all AND NOT has(apply_to_except, currentUser()) OR hasAny(apply_to_list, arrayConcat([currentUser()], enabledRoles())))", quoteText(t.Database), quoteText(t.Name)))
	t.PoliciesKnown = err == nil
	for _, row := range rows {
		t.Policies = append(t.Policies, row[0])
	}
}

// describeViews walks the views that hang on a table: those on the table itself, those on a view and those on a view's target.
func (s *Server) describeViews(ctx context.Context, r *replicaState, f *facts, t *Table, of *describedTable, seen map[string]bool) error {
	for i, name := range of.dependents {
		db := of.dependentDatabases[i]
		full := db + "." + name
		if seen[full] {
			continue
		}
		seen[full] = true
		v, err := s.tableRow(ctx, r, whereTable(db, name))
		if err != nil {
			return err
		}
		if v == nil {
			t.Views = append(t.Views, View{Name: full})
			continue
		}
		if v.engine != "MaterializedView" {
			t.Notes = append(t.Notes, fmt.Sprintf("%s %s reads this table and isn't fed by inserts in a way that is known", v.engine, full))
			continue
		}
		if refreshable(v.create) {
			t.Notes = append(t.Notes, fmt.Sprintf("view %s is refreshable: it reads the table on its own schedule and isn't fed by inserts", full))
			continue
		}
		view := View{Name: full}
		to, err := s.viewTarget(ctx, r, v)
		if err != nil {
			return err
		}
		if to != nil {
			view.TargetDB, view.TargetName = to.database, to.name
			view.Target, view.TargetUUID, view.Engine = to.database+"."+to.name, parseUUID(to.uuid), to.engine
			view.Window, view.Replicated, view.Null = f.window(to.engine, to.engineFull), replicatedEngine(to.engine), to.engine == "Null"
			view.Windowed = strings.HasSuffix(to.engine, "MergeTree")
		}
		t.Views = append(t.Views, view)
		if err := s.describeViews(ctx, r, f, t, v, seen); err != nil {
			return err
		}
		if to != nil {
			if err := s.describeViews(ctx, r, f, t, to, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

var refreshClause = regexp.MustCompile("^CREATE MATERIALIZED VIEW (?:`(?:[^`\\\\]|\\\\.)*`|[^` ])+ (?:ON CLUSTER [^ ]+ )?REFRESH ")

func refreshable(create string) bool { return refreshClause.MatchString(create) }

var toClause = regexp.MustCompile("^CREATE MATERIALIZED VIEW (?:`(?:[^`\\\\]|\\\\.)*`|[^` ])+ (?:UUID '[^']+' )?TO ((?:`(?:[^`\\\\]|\\\\.)*`|[^` ])+)")

// viewTarget finds the table that a view writes: named after TO, or the inner table with the view's UUID. nil: not visible.
func (s *Server) viewTarget(ctx context.Context, r *replicaState, v *describedTable) (*describedTable, error) {
	if m := toClause.FindStringSubmatch(v.create); m != nil {
		db, name, err := parseName(m[1], v.database)
		if err != nil {
			return nil, fmt.Errorf("target of view %s.%s: %w", v.database, v.name, err)
		}
		return s.tableRow(ctx, r, whereTable(db, name))
	}
	inner := ".inner_id." + v.uuid
	if parseUUID(v.uuid) == [16]byte{} {
		inner = ".inner." + v.name
	}
	return s.tableRow(ctx, r, whereTable(v.database, inner))
}

func replicatedEngine(engine string) bool {
	return strings.HasPrefix(engine, "Replicated") || strings.HasPrefix(engine, "Shared")
}

// notFound names the tables that come near.
func (s *Server) notFound(ctx context.Context, r *replicaState, db, name string) error {
	e := &NotFound{Database: db, Table: name}
	rows, err := s.read(ctx, r, 2, fmt.Sprintf("SELECT database, name FROM system.tables WHERE database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema') AND (database = %s OR lower(name) = lower(%s)) LIMIT 10000",
		quoteText(db), quoteText(name)))
	if err != nil {
		return err
	}
	type near struct {
		name     string
		distance int
	}
	var found []near
	for _, row := range rows {
		d := distance(strings.ToLower(row[1]), strings.ToLower(name))
		if strings.HasPrefix(row[1], ".inner") || d > max(2, len(name)/3) {
			continue
		}
		found = append(found, near{row[0] + "." + row[1], d})
	}
	sort.Slice(found, func(i, k int) bool {
		return found[i].distance < found[k].distance || found[i].distance == found[k].distance && found[i].name < found[k].name
	})
	for _, n := range found[:min(3, len(found))] {
		e.Near = append(e.Near, n.name)
	}
	return e
}

// distance is the number of edits between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for k := range row {
		row[k] = k
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for k := range len(b) {
			cost := before
			if a[i] != b[k] {
				cost++
			}
			before = row[k+1]
			row[k+1] = min(cost, row[k]+1, row[k+1]+1)
		}
	}
	return row[len(b)]
}
