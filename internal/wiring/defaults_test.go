package wiring

import (
	"testing"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/testenv"
	"github.com/oncesink/oncesink/pkg/decode"
	"github.com/oncesink/oncesink/pkg/writer"
)

// A server that can't evaluate a DEFAULT just now (a dictionary or a table is away, no memory) says nothing of the expression. Taken for one that depends on
// other columns, every record without the field would be a dead letter until the next start.
func TestAPassingFaultMakesDeadLettersForGood(t *testing.T) {
	db := testenv.SharedEngine(t)
	cfg := config.Default()
	cfg.ClickHouse.Addresses, cfg.ClickHouse.Database = []string{db.Addr}, db.Database
	s, err := Server(cfg, writer.Events{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	r := &rig{t: t, engine: db.Addr, database: db.Database}
	r.sql("CREATE TABLE gate (open UInt8) ENGINE = MergeTree ORDER BY open")
	r.sql("CREATE TABLE plans (k UInt8, plan String DEFAULT if(hasColumnInTable('" + db.Database + "', 'gate', 'open'), 'free', 'none'), twice UInt8 DEFAULT k * 2) ENGINE = MergeTree ORDER BY k SETTINGS non_replicated_deduplication_window = 100")
	table, err := s.Describe(t.Context(), "plans")
	if err != nil {
		t.Fatal(err)
	}
	route := config.DefaultRoute()
	route.Key = []string{"k"}
	d, err := Decoder(&route, table)
	if err != nil {
		t.Fatal(err)
	}
	r.sql("DROP TABLE gate SYNC")
	e := newEvaluator(s, d)
	if err := e.Evaluate(t.Context(), d.NewDefaults()); err == nil {
		t.Fatal("evaluated without the table that it asks for")
	}
	r.sql("CREATE TABLE gate (open UInt8) ENGINE = MergeTree ORDER BY open")
	f := d.NewDefaults()
	if err := e.Evaluate(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	b := d.NewBlock()
	b.SetDefaults(f)
	if _, rej := d.Append(b, &decode.Record{Value: []byte(`{"k":1,"twice":2}`)}); rej != nil {
		t.Errorf("after the fault: %s: %v", rej.Class, rej)
	}
	if _, rej := d.Append(b, &decode.Record{Value: []byte(`{"k":1,"plan":"x"}`)}); rej == nil || rej.Class != decode.ClassDepends {
		t.Errorf("a DEFAULT of another column: %v", rej)
	}
}
