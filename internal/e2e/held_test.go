package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/faultproxy"
)

// An insert into a path that swallows it holds up its own partition, until its own deadline: the others go on, and the member stays in its group well
// beyond its session (field cases A13, C19).
func TestAHeldInsertHoldsUpNoOtherPartitionAndCostsNoMembership(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 2, report: true})
	proxy := w.proxy()
	w.send(numbered(0, 10)...)
	p := w.start(settings{clickhouse: proxy.Addr(), session: 1500 * time.Millisecond, insertTimeout: 4 * time.Second, age: 50 * time.Millisecond})
	w.awaitMoving(p, "the first rows are committed", func() (int64, bool) { at := w.offsets()[0].committed; return at, at == 10 })
	rule := w.insertRule(proxy, faultproxy.RuleOptions{Fault: faultproxy.Swallow, Limit: 1})
	w.send(numbered(10, 10)...)
	w.await(p, rule, func(a faultproxy.Account) bool { return a.Faults > 0 })
	n, held := 0, time.Now()
	for ; time.Since(held) < 3*time.Second; n++ {
		r := &kgo.Record{Topic: w.topic, Partition: 1, Value: row{n: 1000 + n}.json()}
		if err := w.kafka.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		w.awaitMoving(p, "the other partition is committed", func() (int64, bool) { at := w.offsets()[1].committed; return at, at == int64(n+1) })
	}
	if at := w.offsets()[0].committed; at != 10 {
		t.Errorf("committed %d, past an insert without an answer", at)
	}
	w.awaitSettled(p)
	p.stop()
	w.holds(int64(20+n), int64(20+n))
	w.s.sql(t, "SYSTEM FLUSH LOGS query_log")
	generations := w.s.sql(t, "SELECT uniqExact(splitByChar('.', splitByChar('/', query_id)[-1])[1]) FROM system.query_log WHERE startsWith(query_id, '%s')", w.queryIDs())
	if generations != "1" {
		t.Errorf("the inserts are of %s generations of the group: the member was thrown out", generations)
	}
}

// A view that takes longer than the sink waits for an answer: the insert is not sent again beside the one that runs, and is settled once it is over
// (field case B8).
func TestAViewSlowerThanTheInsertTimeoutMeetsOneInsertAtATime(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true, slow: 2 * time.Second})
	w.send(numbered(0, 40)...)
	p := w.start(settings{rows: 40, insertTimeout: time.Second})
	w.awaitSettled(p)
	p.stop()
	w.holds(40, 40)
	w.s.sql(t, "SYSTEM FLUSH LOGS query_log")
	log := rows(w.s.sql(t, `SELECT query_start_time_microseconds, query_start_time_microseconds + toIntervalMillisecond(query_duration_ms), query_id FROM system.query_log
WHERE startsWith(query_id, '%s') AND type != 'QueryStart' ORDER BY 1`, w.queryIDs()))
	for i := 1; i < len(log); i++ {
		if log[i][0] < log[i-1][1] {
			t.Errorf("%s began beside %s", strings.Join(log[i], " "), strings.Join(log[i-1], " "))
		}
	}
	if len(log) == 0 {
		t.Error("the log has no insert")
	}
}
