package e2e

import (
	"testing"
	"time"
)

// Records that can't be written go to the dead letters, each with its reason,
// and hold nothing up. The rest is there once, and each is counted once.
func TestPoisonGoesToTheDeadLettersAndTheRestIsThereOnce(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	w.send(numbered(0, 100)...)
	w.send(
		nil, nil, []byte{}, // tombstones
		[]byte(`{"settle_ms":`), []byte("\x00\xff\xfe"),
		[]byte(`[1,2]`),
		[]byte(`{"id":"no settle_ms","rev":1}`),
		[]byte(`{"settle_ms":1,"id":"a","rev":-1,"tenant":"t","amount":1,"qty":1,"currency":"EUR","create_time":1700000000000}`),
		[]byte(`{"settle_ms":1,"id":"a","rev":1,"tenant":"t","amount":0.00001,"qty":1,"currency":"EUR","create_time":1700000000000}`),
		[]byte(`{"settle_ms":1,"id":"a","rev":1,"tenant":"t","amount":1,"qty":1,"currency":"EUR","create_time":1700000000000,"more":1}`),
	)
	w.send(numbered(95, 10)...)                                              // five of them again
	w.send(row{n: 3, qty: 7}.json())                                         // another content under a known key
	w.send(row{n: 500, tenant: "x"}.json(), row{n: 500, tenant: "y"}.json()) // and in one batch
	w.send(numbered(105, 95)...)
	w.accounted(w.mustDrain(settings{member: "-", rows: 60}), 100+10+10+1+2+95, 201, 5, 2, 10)
	w.holds(201, 201)
	w.lettered(map[string]int{
		"tombstone": 3, "syntax": 2, "not_an_object": 1, "missing_key": 1, "out_of_range": 1, "inexact": 1, "unknown_field": 1, "conflict": 2,
	})
	w.accounted(w.mustDrain(settings{member: "-"}), 0, 0, 0, 0, 0)
}

// A value that only the server refuses is found among the others of its insert
// (field case B6).
func TestRowsThatAConstraintRefusesAreFoundAndTheOthersStayOnce(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	w.s.sql(t, "ALTER TABLE %s ADD CONSTRAINT small CHECK qty < 1000", w.table)
	w.send(numbered(0, 300)...)
	w.send(row{n: 1000, qty: 5000}.json(), row{n: 1001}.json(), row{n: 1002, qty: 1000}.json())
	w.send(numbered(300, 200)...)
	w.send(row{n: 1000, qty: 5000}.json()) // the refused key again: it owns nothing
	w.accounted(w.mustDrain(settings{member: "-", rows: 400}), 504, 501, 0, 0, 3)
	w.holds(501, 501)
	w.lettered(map[string]int{"server_rejected": 3})
	w.s.sql(t, "ALTER TABLE %s DROP CONSTRAINT small", w.table)
	w.send(row{n: 1000, qty: 5000}.json())
	w.accounted(w.mustDrain(settings{member: "-"}), 1, 1, 0, 0, 0)
	w.holds(502, 5501)
}

// A view that throws has the table written and itself not: nothing is
// dead-lettered, nothing is passed over, and once it is mended both have all, and
// a healthy view beside it had nothing twice (field cases B1, B6).
func TestAViewThatThrowsIsWaitedForUntilItIsMended(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true, slow: time.Millisecond})
	query := w.s.sql(t, "SELECT as_select FROM system.tables WHERE database = '%s' AND name = '%s_report_mv' FORMAT TSVRaw", w.s.database, w.topic)
	w.s.sql(t, "ALTER TABLE %s_report_mv MODIFY QUERY SELECT tenant, toDate(0) + throwIf(tenant = 'bad') AS day, sum(amount) AS amount, sum(qty) AS qty, count() AS events FROM %s GROUP BY tenant, day", w.topic, w.table)
	w.send(numbered(0, 100)...)
	w.send(row{n: 100, tenant: "bad"}.json())
	w.send(numbered(101, 99)...)
	p := w.start(settings{member: "-", rows: 150})
	w.awaitMoving(p, "the view has thrown twice", func() (int64, bool) {
		w.s.sql(t, "SYSTEM FLUSH LOGS query_log")
		n := int64(len(rows(w.s.sql(t, "SELECT 1 FROM system.query_log WHERE startsWith(query_id, '%s') AND type LIKE 'Exception%%'", w.queryIDs()))))
		return n, n >= 2
	})
	if o := w.offsets()[0]; o.committed >= 101 {
		t.Errorf("committed %d, past a row that its view lacks", o.committed)
	}
	if n := w.deadLetters(); n != 0 {
		t.Errorf("%d letters of rows that are only a view's trouble", n)
	}
	w.s.sql(t, "ALTER TABLE %s_report_mv MODIFY QUERY %s", w.topic, query)
	w.awaitSettled(p)
	p.stop()
	w.holds(200, 200)
}
