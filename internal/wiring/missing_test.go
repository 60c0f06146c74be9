package wiring

import (
	"strings"
	"testing"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/pkg/writer"
)

// Which columns a record may not lack was learnt from the first dead letters.
func TestCheckNamesTheColumnsThatEveryRecordMustHave(t *testing.T) {
	table := &writer.Table{Database: "d", Name: "events", Columns: []writer.Column{
		{Name: "id", Type: "String"}, // of the key: anything else is refused whatever the route says
		{Name: "amount", Type: "Decimal(18, 2)"}, {Name: "tags", Type: "Array(Nullable(String))"},
		{Name: "note", Type: "Nullable(String)"}, {Name: "kind", Type: "LowCardinality(Nullable(String))"},
		{Name: "made", Type: "DateTime", DefaultKind: "DEFAULT", DefaultExpr: "now()"}, {Name: "day", Type: "Date", DefaultKind: "MATERIALIZED", DefaultExpr: "made"},
		{Name: "at", Type: "Int64"}, {Name: "trace", Type: "String"},
	}}
	cfg := &config.Config{}
	cfg.ClickHouse.Database = "d"
	route := &config.Route{Table: "events", Key: []string{"id"}, MissingFields: "reject", Columns: map[string]config.Column{"at": {From: "$offset"}, "trace": {From: "$header.trace"}}}
	found := MissingFindings(cfg, route, table)
	if len(found) != 1 || found[0].Severity != SeverityInfo || !strings.HasSuffix(found[0].Reason, "no DEFAULT: amount, tags, trace") || !strings.Contains(found[0].Cure, "ALTER TABLE d.events MODIFY COLUMN amount DEFAULT") {
		t.Errorf("found %+v", found)
	}
	route.MissingFields = "zero"
	if found := MissingFindings(cfg, route, table); len(found) != 0 {
		t.Errorf("the route writes zeros: %+v", found)
	}
	route.MissingFields, table.Columns = "reject", table.Columns[3:7]
	if found := MissingFindings(cfg, route, table); len(found) != 0 {
		t.Errorf("no column needs its field: %+v", found)
	}
}
