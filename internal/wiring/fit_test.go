package wiring

import (
	"errors"
	"strings"
	"testing"

	"github.com/oncesink/oncesink/pkg/writer"
)

// check found a route fit whose run was refused: its key had changed since the store remembers keys of the table.
func TestCheckAndRunAgreeOnAKeyThatChanged(t *testing.T) {
	r := newRig(t, 1)
	r.tables()
	r.produce(0, 3)
	l := r.start(func(o *RunOptions) { o.Drain = true })
	if <-l.done; l.err != nil {
		t.Fatal(l.err)
	}
	cfg := r.config()
	server, err := Server(cfg, writer.Events{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	table, err := server.Describe(t.Context(), cfg.Routes[0].Table)
	if err != nil {
		t.Fatal(err)
	}
	if found := DomainFindings(t.Context(), cfg, &cfg.Routes[0], table); len(found) != 0 {
		t.Fatalf("the same key: %+v", found)
	}
	cfg.Routes[0].Key = []string{"id", "amount"}
	found := DomainFindings(t.Context(), cfg, &cfg.Routes[0], table)
	if len(found) != 1 || found[0].Severity != SeverityError || found[0].About != "table "+table.String() || !strings.Contains(found[0].Cure, "--scan --pattern 'osink:{") {
		t.Fatalf("%+v", found)
	}
	l = r.startWith(cfg, nil)
	<-l.done
	var unfit *Unfit
	if !errors.As(l.err, &unfit) || len(unfit.Findings) != 1 || unfit.Findings[0].Reason != found[0].Reason || unfit.Findings[0].Cure != found[0].Cure || unfit.ExitCode() != 3 {
		t.Errorf("the run says %v\nthe check %+v", l.err, found)
	}
}
