package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// proxy puts a fault proxy between the sink and the engine.
func (w *world) proxy() *faultproxy.Proxy {
	w.t.Helper()
	p, err := faultproxy.Listen(w.s.engine)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(p.Close)
	return p
}

// inserts makes a rule about the sink's INSERTs into the table, and about none of its trials in scratch tables.
func (w *world) insertRule(p *faultproxy.Proxy, o faultproxy.RuleOptions) *faultproxy.Rule {
	o.Marker = "INSERT INTO `" + w.s.database + "`.`" + w.table + "`"
	return p.Add(faultproxy.ClickHouseInsert(o))
}

// await waits for a rule's account, as long as the sink runs.
func (w *world) await(p *sink, rule *faultproxy.Rule, cond func(faultproxy.Account) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := rule.Await(ctx, cond); err != nil {
		w.t.Fatalf("%v: %+v of the faults; the sink said:\n%s", err, rule.Account(), p.said(20))
	}
}

func TestCutAcknowledgementsLoseAndDoubleNothing(t *testing.T) {
	records := size(t, "ONCESINK_E2E_RECORDS", 60_000)
	w := newWorld(t, sharedStack(t), design{partitions: 8, report: true})
	proxy := w.proxy()
	rule := w.insertRule(proxy, faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 5})
	f := w.produce(records, 2)
	samples := w.watch(f)
	defer samples()
	p := w.start(settings{clickhouse: proxy.Addr(), rows: min(records/60, 10_000)})
	truth := f.all()
	w.awaitSettled(p)
	p.stop()
	account := rule.Account()
	t.Logf("%d of %d inserts lost their acknowledgement, %d samples", account.Faults, account.Matches, samples())
	if account.Faults < 5 {
		t.Errorf("%d acknowledgements were cut, want at least 5", account.Faults)
	}
	w.verify(truth)
	if got := w.mustDrain(settings{}); !strings.HasPrefix(got, "consumed 0 = ") {
		t.Errorf("a drain behind it said %q", got)
	}
	w.verify(truth)
}

func TestLateLandingIsRefusedByTheServer(t *testing.T) {
	const window = 10
	w := newWorld(t, sharedStack(t), design{partitions: 2, window: window, report: true})
	proxy := w.proxy()
	records := size(t, "ONCESINK_E2E_RECORDS", 12_000)
	f := w.produce(records, 3)
	f.allow(records / 3)
	p := w.start(settings{clickhouse: proxy.Addr(), rows: min(records/24, 10_000), insertTimeout: 2 * time.Second})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// The sink's checks at its start ask about such a statement too: the rule shall meet inserts only.
	if err := p.trace.awaitStep(ctx, pipeline.StepWritten, 1); err != nil {
		t.Fatalf("no insert came through: %v; the sink said:\n%s", err, p.said(20))
	}
	rule := w.insertRule(proxy, faultproxy.RuleOptions{Fault: faultproxy.HoldRequest, Every: 4, Limit: 1})
	f.allow(2 * records / 3)
	w.await(p, rule, func(a faultproxy.Account) bool { return a.Holding > 0 })
	w.foreign(3 * window) // nothing that was sent before is remembered now
	// The sink gives up, waits until the server must refuse the statement, and sends the rows again. Only then does the statement arrive.
	w.awaitSettled(p)
	rule.Release()
	if err := rule.AwaitLateReply(ctx, 1); err != nil {
		t.Fatalf("the server did not answer the late insert: %v", err)
	}
	if got := string(rule.LateReplies()[0]); !strings.Contains(got, "insert deadline passed") {
		t.Errorf("the server answered the late insert with %q, want its refusal", got)
	}
	truth := f.all()
	w.awaitSettled(p)
	p.stop()
	w.verify(truth)
	w.s.sql(t, "SYSTEM FLUSH LOGS query_log")
	if got := w.s.sql(t, "SELECT count() FROM system.query_log WHERE startsWith(query_id, '%s') AND exception_code = 395", w.queryIDs()); got != "1" {
		t.Errorf("the query log has %s refusals by deadline, want 1", got)
	}
}
