package writer

import (
	"fmt"
)

// Column is a column as the server declares it.
type Column struct {
	Name, Type  string
	DefaultKind string // "", DEFAULT, MATERIALIZED, ALIAS or EPHEMERAL
	DefaultExpr string

	InPartitionKey bool
}

// Sent tells whether the sink sends the column: everything that the table stores and doesn't compute itself.
func (c Column) Sent() bool { return c.DefaultKind == "" || c.DefaultKind == "DEFAULT" }

// Window is how much a table remembers for deduplication.
type Window struct {
	Blocks  int64 // 0: nothing is remembered
	Seconds int64 // 0: as long as Blocks allow
}

// Table is a target as the server describes it.
type Table struct {
	Database, Name string
	UUID           [16]byte // zero where the database gives none
	Engine         string   // "ReplicatedMergeTree", …
	Columns        []Column
	SortingKey     string // expressions, separated by ", "
	PartitionKey   string // "": not partitioned
	Replicated     bool
	Window         Window
	Views          []View   // that an insert feeds, directly or through another view's target
	Notes          []string // what was seen and left out, e.g. refreshable views
	Policies       []string // row policies that may hide rows from a read-back
	PoliciesKnown  bool     // false: the user may not see them
	MaxPartitions  int      // of one insert's block; 0: no limit
	ServerVersion  string
	TimeZone       string
}

// View is a materialized view that an insert into the table feeds.
type View struct {
	Name       string // database.name
	Target     string // database.name of the table that it writes; "" when the server doesn't show it
	TargetDB   string
	TargetName string
	TargetUUID [16]byte
	Engine     string // of the target
	Window     Window
	Replicated bool
	Null       bool // the target keeps nothing
	Windowed   bool // the target's engine has a deduplication window at all
}

func (v View) String() string {
	if v.Target == "" {
		return v.Name
	}
	return v.Name + " -> " + v.Target
}

func (t *Table) String() string { return t.Database + "." + t.Name }

// quoted is the name as statements write it. A temporary table has no database.
func (t *Table) quoted() string {
	if t.Database == "" {
		return quoteName(t.Name)
	}
	return quoteName(t.Database) + "." + quoteName(t.Name)
}

func (t *Table) column(name string) (Column, error) {
	for _, c := range t.Columns {
		if c.Name == name {
			return c, nil
		}
	}
	return Column{}, fmt.Errorf("%s has no column %s", t, name)
}

// target is a table with a deduplication window that an insert writes: the table itself or a view's target.
type target struct {
	database, name string
	uuid           [16]byte
	window         Window
	replicated     bool
}

func (t target) String() string { return t.database + "." + t.name }

// targets lists the table and each view target once.
func (t *Table) targets() []target {
	out := []target{{t.Database, t.Name, t.UUID, t.Window, t.Replicated}}
	seen := map[string]bool{t.String(): true}
	for _, v := range t.Views {
		if v.Target == "" || v.Null || seen[v.Target] {
			continue
		}
		seen[v.Target] = true
		out = append(out, target{v.TargetDB, v.TargetName, v.TargetUUID, v.Window, v.Replicated})
	}
	return out
}

// parseName reads "table" or "database.table", either part optionally in backquotes.
func parseName(text, database string) (db, table string, err error) {
	parts := []string{""}
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		last := &parts[len(parts)-1]
		switch {
		case c == '`':
			quoted = !quoted
		case quoted && c == '\\' && i+1 < len(text):
			i++
			*last += text[i : i+1]
		case c == '.' && !quoted && len(parts) == 1:
			parts = append(parts, "")
		default:
			*last += text[i : i+1]
		}
	}
	if quoted || parts[len(parts)-1] == "" || parts[0] == "" {
		return "", "", fmt.Errorf("table name %q: want table or database.table", text)
	}
	if len(parts) == 1 {
		return database, parts[0], nil
	}
	return parts[0], parts[1], nil
}
