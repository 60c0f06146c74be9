package e2e

import (
	"strings"
	"testing"
)

func TestSecondDrainAddsNothing(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 4, report: true})
	truth := w.produce(20_000, 5).all()
	if got := w.mustDrain(settings{member: "-"}); !strings.HasPrefix(got, "consumed 20000 = ") {
		t.Errorf("the first drain said %q", got)
	}
	w.verify(truth)
	before := w.inserts()
	if got, want := w.mustDrain(settings{member: "-"}), "consumed 0 = inserted 0 + duplicates 0 + conflicts 0 + dead letters 0 + filtered 0\n"; got != want {
		t.Errorf("the second drain said %q, want %q", got, want)
	}
	w.verify(truth)
	if after := w.inserts(); after != before {
		t.Errorf("the second drain sent inserts: %s after %s", after, before)
	}
}

// inserts is how many INSERTs the sink has sent for this table.
func (w *world) inserts() string {
	w.t.Helper()
	w.s.sql(w.t, "SYSTEM FLUSH LOGS query_log")
	return w.s.sql(w.t, "SELECT count() FROM system.query_log WHERE type = 'QueryStart' AND startsWith(query_id, '%s')", w.queryIDs())
}

// queryIDs is what the query ids of the sink's INSERTs into this table begin with.
func (w *world) queryIDs() string {
	w.t.Helper()
	return "oncesink/" + w.s.sql(w.t, "SELECT uuid FROM system.tables WHERE database = '%s' AND name = '%s'", w.s.database, w.table) + "/"
}
