package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oncesink/oncesink/internal/faultproxy"
)

// The offsets of an insert that lost its acknowledgement come back in a batch with another end: more has arrived, the sizes were set otherwise. A token of
// the new batch would not be known (field case A4). What was handed to the server but not acknowledged is not committed past (field cases C1, C2, C22).
func TestOffsetsThatComeBackInAnotherBatchAreThereOnce(t *testing.T) {
	for name, next := range map[string]settings{
		"larger":             {rows: 5000},
		"smaller":            {rows: 35},
		"by bytes":           {bytes: "1KiB"},
		"smaller and halved": {rows: 33, memory: "256KiB", bytes: "64KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
			w.send(numbered(0, 200)...)
			w.killUnacknowledgedIn(settings{rows: 50})
			table, err := w.inTable()
			if err != nil {
				t.Fatal(err)
			}
			if o := w.offsets()[0]; o.committed >= table.rows {
				t.Errorf("committed %d with %d rows in the table, of which the last batch was not acknowledged", o.committed, table.rows)
			}
			w.send(numbered(200, 40)...)
			w.mustDrain(next)
			w.holds(240, 240)
		})
	}
}

// Between two tries of an insert the store forgets keys that it had answered as seen: the second try has rows that the first one had not, and a token
// that hung on the offsets alone would have them dropped (field case A5). Its mirror: the first try fails before the server, and the keys are marked.
func TestKeysForgottenBetweenTwoTriesAreNeitherLostNorDoubled(t *testing.T) {
	for name, fault := range map[string]faultproxy.Fault{"the first try was written": faultproxy.HoldReply, "the first try never arrived": faultproxy.Swallow} {
		for _, forget := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s and keys are forgotten %v", name, forget), func(t *testing.T) {
				// With a view, rows of which some are there under no claim stop the partition by rule (see the window overrun).
				w := newWorld(t, sharedStack(t), design{partitions: 1, report: fault == faultproxy.HoldReply || !forget})
				w.send(numbered(0, 100)...)
				proxy := w.proxy()
				p := w.start(settings{rows: 500, clickhouse: proxy.Addr()})
				w.awaitSettled(p)
				rule := w.insertRule(proxy, faultproxy.RuleOptions{Fault: fault, Limit: 1})
				w.send(numbered(98, 100)...) // two of them are there
				w.await(p, rule, func(a faultproxy.Account) bool { return a.Faults+a.Holding > 0 })
				p.kill()
				proxy.Close()
				if forget {
					rdb := redis.NewClient(&redis.Options{Addr: w.s.redis})
					defer func() { _ = rdb.Close() }()
					if err := rdb.FlushAll(context.Background()).Err(); err != nil {
						t.Fatal(err)
					}
				}
				said := w.mustDrain(settings{rows: 500})
				if !forget {
					w.accounted(said, 100, 98, 2, 0, 0)
				}
				// Whose the two rows are is forgotten too: which of them counts as inserted is open, not whether they are there.
				if !strings.HasPrefix(said, "consumed 100 = ") || !strings.Contains(said, "conflicts 0 + dead letters 0") {
					t.Errorf("the drain said %q", said)
				}
				w.holds(198, 198)
			})
		}
	}
}

// A DEFAULT that differs from one evaluation to the next is evaluated once a batch and sent, so that a repeat has the row that the first try had (field
// case A15).
func TestADefaultOfTheHourIsSentWithTheBatch(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	w.s.sql(t, "ALTER TABLE %s ADD COLUMN ingested DateTime64(6) DEFAULT now64(6), ADD COLUMN trace UUID DEFAULT generateUUIDv4()", w.table)
	w.s.sql(t, "SYSTEM STOP MERGES %s", w.table)
	proxy := w.proxy()
	rule := w.insertRule(proxy, faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 2, Limit: 2})
	w.send(numbered(0, 200)...)
	p := w.start(settings{rows: 50, clickhouse: proxy.Addr()})
	w.awaitSettled(p)
	p.stop()
	if rule.Account().Faults == 0 {
		t.Error("no acknowledgement was cut: the test proves nothing")
	}
	w.holds(200, 200)
	if got := w.s.sql(t, "SELECT max(v), max(u) FROM (SELECT uniqExact(ingested) AS v, uniqExact(trace) AS u FROM %s GROUP BY _part)", w.table); got != "1\t1" {
		t.Errorf("%s values of a DEFAULT in one batch, want one", got)
	}
	w.s.sql(t, "SYSTEM FLUSH LOGS query_log")
	if got := w.s.sql(t, "SELECT countIf(query NOT LIKE '%%ingested%%trace%%') FROM system.query_log WHERE type = 'QueryStart' AND startsWith(query_id, '%s')", w.queryIDs()); got != "0" {
		t.Errorf("%s inserts leave the DEFAULT to the server", got)
	}
}
