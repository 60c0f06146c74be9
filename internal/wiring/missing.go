package wiring

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/deadletter"
	"github.com/oncesink/oncesink/pkg/writer"
)

// MissingTopic is the finding about a topic that isn't there.
func MissingTopic(cfg *config.Config, topic string) Finding {
	return Finding{
		Severity: SeverityError, Code: "kafka_topic_missing", About: "topic " + topic,
		Reason: "there is no such topic, or the user lacks the ACL DESCRIBE on it",
		Cure:   createTopic(cfg, topic, 8) + ", or correct routes[].topics",
	}
}

func createTopic(cfg *config.Config, topic string, partitions int) string {
	return fmt.Sprintf("kafka-topics.sh --bootstrap-server %s --create --topic %s --partitions %d", cfg.Kafka.Brokers[0], topic, partitions)
}

// TargetMissing turns the error of a table or database that isn't there into its finding; false for other errors.
func TargetMissing(cfg *config.Config, r *config.Route, err error) (Finding, bool) {
	var table *writer.NotFound
	var ex *writer.Exception
	switch {
	case errors.As(err, &table):
		reason := "the table isn't there, or isn't visible to this user"
		if len(table.Near) > 0 {
			reason += "; near to it: " + strings.Join(table.Near, ", ")
		}
		return Finding{Severity: SeverityError, Code: "table_missing", About: "table " + cfg.Qualified(r.Table), Reason: reason, Cure: createTable(cfg, r)}, true
	case errors.As(err, &ex) && ex.Code == unknownDatabase:
		return Finding{
			Severity: SeverityError, Code: "database_missing", About: "database " + cfg.ClickHouse.Database, Reason: "the database isn't there, or isn't visible to this user",
			Cure: "CREATE DATABASE " + name(cfg.ClickHouse.Database) + ", or correct clickhouse.database",
		}, true
	}
	return Finding{}, false
}

const unknownDatabase = 81

// createTable sketches the table of a route: what is known of it is in it, what isn't is left to the reader.
func createTable(cfg *config.Config, r *config.Route) string {
	var columns []string
	add := func(column, typ string) {
		if column = name(column) + " " + typ; column != name("")+" "+typ && !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
	}
	typeOf := func(column string) string {
		if column == r.EventTime {
			return "Int64"
		}
		return "String"
	}
	for _, k := range append(slices.Clone(r.Key), r.EventTime) {
		add(k, typeOf(k))
	}
	others := slices.Clone(r.Ignore)
	for c := range r.Columns {
		others = append(others, c)
	}
	slices.Sort(others)
	for _, c := range others {
		add(c, typeOf(c))
	}
	engine, window := "MergeTree", "non_replicated_deduplication_window"
	if len(cfg.ClickHouse.Addresses) > 1 || cfg.ClickHouse.Balanced {
		engine, window = "ReplicatedMergeTree", "replicated_deduplication_window"
	}
	key := make([]string, len(r.Key))
	for i, k := range r.Key {
		key[i] = name(k)
	}
	db, table, _ := strings.Cut(cfg.Qualified(r.Table), ".")
	return fmt.Sprintf("CREATE TABLE %s.%s (%s /* take your types, add your other columns */) ENGINE = %s ORDER BY (%s) SETTINGS %s = 10000",
		name(db), name(table), strings.Join(columns, ", "), engine, strings.Join(key, ", "), window)
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// name writes a name as statements want it.
func name(n string) string {
	if plainName.MatchString(n) {
		return n
	}
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(n) + "`"
}

// refuse turns the error of a target that isn't there into the answer no, with the statement that mends it.
func (s *session) refuse(r *config.Route, err error) error {
	if err == nil {
		return nil
	}
	var letters *deadletter.MissingError
	if errors.As(err, &letters) {
		return &Unfit{[]Finding{{
			Severity: SeverityError, Code: "dead_letter_missing", About: "topic " + letters.Topic,
			Reason: fmt.Sprintf("the dead-letter topic isn't there and could not be created: %v", letters.Err),
			Cure:   createTopic(s.cfg, letters.Topic, letters.Partitions) + ", or grant CREATE on it to the sink's user",
		}}}
	}
	if f, missing := TargetMissing(s.cfg, r, err); missing {
		return &Unfit{[]Finding{f}}
	}
	if f, refused := storeRefusal(s.cfg, r, err); refused {
		return &Unfit{[]Finding{f}}
	}
	return err
}

// MissingFindings names the columns whose field every record has to have: one that lacks it is a dead letter. That is as asked for, but whoever adds a column
// to a table, or takes a source whose fields come and go, learns it best before the first letter.
func MissingFindings(cfg *config.Config, r *config.Route, t *writer.Table) []Finding {
	if r.MissingFields == "zero" {
		return nil
	}
	var must []string
	for _, c := range t.Columns {
		switch from := r.Columns[c.Name].From; {
		case c.DefaultKind != "", slices.Contains(r.Key, c.Name), from == "$topic", from == "$partition", from == "$offset":
		case strings.HasPrefix(c.Type, "Nullable("), strings.HasPrefix(c.Type, "LowCardinality(Nullable("):
		default:
			must = append(must, c.Name)
		}
	}
	if len(must) == 0 {
		return nil
	}
	return []Finding{{
		Severity: SeverityInfo, Code: "field_required", About: "table " + t.String(),
		Reason: "a record without the field of one of these columns is a dead letter (missing_field), since they are not Nullable and have no DEFAULT: " + strings.Join(must, ", "),
		Cure:   "where a field may be absent, give the column a value of your choice (ALTER TABLE " + cfg.Qualified(t.Name) + " MODIFY COLUMN " + must[0] + " DEFAULT …), or set routes[].missing_fields: zero for all of them",
	}}
}
