package writer

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/oncesink/oncesink/internal/embedded"
	"github.com/oncesink/oncesink/pkg/batcher"
)

// attemptAt inserts rows as the attempt at a range and returns its result.
func attemptAt(t *testing.T, s *Server, table *Table, r batcher.Range, piece, attempt int, change func(*Statement)) Result {
	t.Helper()
	st := statement(table, fmt.Sprint(r, piece, attempt), numbers(uint64(r.First), uint64(r.Last+1)))
	st.QueryID = QueryID(table.UUID, "g", testSource, r, 7, piece, Attempt{1, attempt})
	if change != nil {
		change(st)
	}
	return s.Insert(t.Context(), "", st)
}

// What the log is taken to say decides whether rows are sent again: "only rejected" of an attempt that wrote doubles them, "finished" of one that didn't loses them.
func TestAttemptsReadsTheFateOfEarlierStatements(t *testing.T) {
	s := as(t, "default")
	oldEnough(t, s)
	late := func(st *Statement) { st.Deadline = time.Now().Add(-time.Second) }
	poison := func(st *Statement) { (*st.Input[0].Data.(*proto.ColUInt64))[0] = 1_000_000 }
	r := batcher.Range{First: 100, Last: 109}
	for name, c := range map[string]struct {
		pieces int
		run    func(t *testing.T, table *Table)
		want   Attempts
	}{
		"none":       {1, func(*testing.T, *Table) {}, Attempts{Known: true, OnlyRejected: true, NoneCut: true}},
		"finished":   {1, func(t *testing.T, table *Table) { attemptAt(t, s, table, r, WholeBatch, 1, nil) }, Attempts{Known: true, Finished: true, NoneCut: true}},
		"late":       {1, func(t *testing.T, table *Table) { attemptAt(t, s, table, r, WholeBatch, 1, late) }, Attempts{Known: true, OnlyRejected: true, NoneCut: true}},
		"constraint": {1, func(t *testing.T, table *Table) { attemptAt(t, s, table, r, WholeBatch, 1, poison) }, Attempts{Known: true, OnlyRejected: true, NoneCut: true}},
		"late, then finished": {1, func(t *testing.T, table *Table) {
			attemptAt(t, s, table, r, WholeBatch, 1, late)
			attemptAt(t, s, table, r, WholeBatch, 2, nil)
		}, Attempts{Known: true, Finished: true, NoneCut: true}},
		"one of two pieces": {2, func(t *testing.T, table *Table) {
			attemptAt(t, s, table, r, 0, 1, nil)
			attemptAt(t, s, table, r, 1, 1, late)
		}, Attempts{Known: true, NoneCut: true}},
		"two of two pieces": {2, func(t *testing.T, table *Table) {
			attemptAt(t, s, table, r, 0, 1, nil)
			attemptAt(t, s, table, r, 1, 1, nil)
		}, Attempts{Known: true, Finished: true, NoneCut: true}},
		// The rows of the set are done, others of the range may lack their views.
		"another set was cut, then finished": {1, func(t *testing.T, table *Table) {
			attemptAt(t, s, table, batcher.Range{First: 105, Last: 120}, WholeBatch, 1, func(st *Statement) { (*st.Input[0].Data.(*proto.ColUInt64))[0] = 77 })
			attemptAt(t, s, table, r, WholeBatch, 1, nil)
		}, Attempts{Known: true, Finished: true}},
		"other bounds": {1, func(t *testing.T, table *Table) {
			attemptAt(t, s, table, batcher.Range{First: 105, Last: 120}, WholeBatch, 1, nil)
		}, Attempts{Known: true, NoneCut: true}},
		"a later range": {1, func(t *testing.T, table *Table) {
			attemptAt(t, s, table, batcher.Range{First: 110, Last: 112}, WholeBatch, 1, nil)
		}, Attempts{Known: true, NoneCut: true}},
		"an earlier range": {1, func(t *testing.T, table *Table) {
			attemptAt(t, s, table, batcher.Range{First: 90, Last: 99}, WholeBatch, 1, nil)
		}, Attempts{Known: true, OnlyRejected: true, NoneCut: true}},
		"another error": {1, func(t *testing.T, table *Table) {
			attemptAt(t, s, table, r, WholeBatch, 1, func(st *Statement) { (*st.Input[0].Data.(*proto.ColUInt64))[0] = 77 })
		}, Attempts{Known: true}},
		"refused at the start": {1, func(t *testing.T, table *Table) {
			attemptAt(t, s, table, r, WholeBatch, 1, func(st *Statement) { st.Settings = map[string]string{"max_memory_usage": "many"} })
		}, Attempts{Known: true, OnlyRejected: true, NoneCut: true}},
	} {
		t.Run(name, func(t *testing.T) {
			n := tableName()
			exec(t, s, "CREATE TABLE "+n+" (n UInt64, k UInt8 MATERIALIZED throwIf(n = 77), CONSTRAINT small CHECK n < 1000000) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100")
			table := describe(t, s, n)
			from := time.Now()
			c.run(t, table)
			got, err := s.Attempts(t.Context(), Stem(table.UUID, "g", testSource), BatchPrefix(table.UUID, "g", testSource, r, 7), c.pieces, from, time.Now(), "")
			if err != nil || got != c.want {
				t.Errorf("got %+v %v, want %+v", got, err, c.want)
			}
			whole, err := s.Attempts(t.Context(), Stem(table.UUID, "g", testSource), QueryIDPrefix(table.UUID, "g", testSource, r, 7, WholeBatch), c.pieces, from, time.Now(), s.replicas[0].addr)
			if err != nil || whole != c.want {
				t.Errorf("by the whole prefix: got %+v %v, want %+v", whole, err, c.want)
			}
		})
	}
}

// A sink that dies while it sends leaves a statement that wrote nothing, and the log says so as long as the server was still reading the block (field case A11).
func TestAttemptsKnowsABlockThatNeverArrived(t *testing.T) {
	admin := as(t, "default")
	oldEnough(t, admin)
	for _, compression := range []string{"none", "lz4"} {
		p := newProxy(t, sharedUsers.engine.TCPAddr)
		s := open(t, Config{Addresses: []string{p.addr}, Database: embedded.DefaultDatabase, Compression: compression})
		n := tableName()
		exec(t, admin, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100")
		table := describe(t, s, n)
		r := batcher.Range{First: 1, Last: 5000}
		if got := attemptAt(t, s, table, batcher.Range{First: 0, Last: 0}, WholeBatch, 1, nil); got.Outcome != Written { // now the server's settings are known
			t.Fatal(got.Err())
		}
		from := time.Now()
		p.arm(15_000, 0)
		got := attemptAt(t, s, table, r, WholeBatch, 1, nil)
		p.arm(0, 0)
		if got.Outcome != Unknown || got.Cause != Network || !got.Sent {
			t.Fatalf("%s: %+v", compression, got)
		}
		waitUntilOver(t, admin, TablePrefix(table.UUID))
		a, err := admin.Attempts(t.Context(), Stem(table.UUID, "g", testSource), BatchPrefix(table.UUID, "g", testSource, r, 7), 1, from, time.Now(), "")
		if err != nil || !a.OnlyRejected {
			t.Errorf("%s: %+v %v", compression, a, err)
		}
	}
	// The empty block that ends the data comes when the server has the rows already.
	for message, want := range map[string]bool{
		"Cannot read all data. Bytes read: 3. Bytes expected: 12: While executing Input. (CANNOT_READ_ALL_DATA)":                  false,
		"Cannot read all data. Bytes read: 3. Bytes expected: 4054: While executing MergeTreeSource":                              false,
		"Cannot read all data in NativeReader. Rows read: 31. Rows expected: 1000: While executing Input. (CANNOT_READ_ALL_DATA)": true,
	} {
		if got := provesNothingWritten(33, message, &Table{}); got != want {
			t.Errorf("%s: %v", message, got)
		}
	}
}

// oldEnough waits until the engine has run so long that its start doesn't cast doubt on its logs.
func oldEnough(t *testing.T, s *Server) {
	t.Helper()
	for range 100 {
		if number(one(t, s, "SELECT uptime()")) >= 5 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the engine's uptime doesn't grow")
}

// A server that restarted may have lost the last entries of its log: absence proves nothing then. A statement that is still running isn't over.
func TestAttemptsDoesNotTrustALogThatMayBeIncomplete(t *testing.T) {
	dir := t.TempDir()
	start := func() *embedded.Engine {
		e, err := embedded.StartEngine(t.Context(), embedded.EngineOptions{DataDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Kill() })
		return e
	}
	e := start()
	s := open(t, Config{Addresses: []string{e.TCPAddr}, Database: embedded.DefaultDatabase})
	exec(t, s, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100",
		"CREATE TABLE copy (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100",
		"CREATE MATERIALIZED VIEW v TO copy AS SELECT n FROM t WHERE sleepEachRow(0.2) = 0")
	oldEnough(t, s)
	table := describe(t, s, "t")
	from := time.Now()
	r := batcher.Range{First: 0, Last: 9}
	stem, exact := Stem(table.UUID, "g", testSource), BatchPrefix(table.UUID, "g", testSource, r, 7)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	st := statement(table, "a", numbers(0, 10))
	st.QueryID = QueryID(table.UUID, "g", testSource, r, 7, WholeBatch, Attempt{1, 1})
	if got := s.Insert(ctx, "", st); got.Outcome != Unknown || got.Cause != Timeout {
		t.Fatalf("%+v", got)
	}
	a, err := s.Attempts(t.Context(), stem, exact, 1, from, time.Now(), "")
	if err != nil || a.OnlyRejected || a.Finished {
		t.Errorf("while it runs: %+v %v", a, err)
	}
	waitUntilOver(t, s, stem)
	a, err = s.Attempts(t.Context(), stem, exact, 1, from, time.Now(), "")
	if err != nil || !a.Finished {
		t.Errorf("once it is over: %+v %v", a, err)
	}
	e.Kill()
	s = open(t, Config{Addresses: []string{start().TCPAddr}, Database: embedded.DefaultDatabase})
	a, err = s.Attempts(t.Context(), stem, exact, 1, from, time.Now(), "")
	if err != nil || !a.Finished || !a.Known {
		t.Errorf("what was logged before the restart still counts: %+v %v", a, err)
	}
	other := BatchPrefix(table.UUID, "g", testSource, batcher.Range{First: 10, Last: 19}, 7)
	a, err = s.Attempts(t.Context(), stem, other, 1, from, time.Now(), "")
	if err != nil || a.Known || a.OnlyRejected || !strings.Contains(a.Why, "started at") {
		t.Errorf("absence after a restart: %+v %v", a, err)
	}
	safe, why, err := s.SafeWindow(t.Context(), describe(t, s, "t"), from)
	if err != nil || safe || !strings.Contains(why, "started at") {
		t.Errorf("window after a restart: %v %q %v", safe, why, err)
	}
}

// A repeat under a token that the table or a view has forgotten doubles the rows (field case A3). Blocks of all writers count.
func TestSafeWindowEndsAtHalfOfWhatIsRemembered(t *testing.T) {
	s := as(t, "default")
	oldEnough(t, s)
	n := tableName()
	exec(t, s, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 40",
		"CREATE TABLE "+n+"_t (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 20",
		"CREATE MATERIALIZED VIEW "+n+"_v TO "+n+"_t AS SELECT n FROM "+n)
	table := describe(t, s, n)
	from := time.Now().Add(-time.Second)
	ask := func() (bool, string) {
		t.Helper()
		safe, why, err := s.SafeWindow(t.Context(), table, from)
		if err != nil {
			t.Fatal(err)
		}
		return safe, why
	}
	write := func(into string, from, to int) {
		for i := from; i < to; i++ {
			exec(t, s, fmt.Sprintf("INSERT INTO %s (n) SELECT %d SETTINGS async_insert = 0", into, i))
		}
	}
	write(n, 0, 9)
	if safe, why := ask(); !safe {
		t.Errorf("9 of 20 blocks: %s", why)
	}
	write(n+"_t", 100, 101) // another writer, into the view's target
	if safe, why := ask(); safe || !strings.Contains(why, "10 blocks") || !strings.Contains(why, n+"_t") {
		t.Errorf("10 of 20 blocks: %v %q", safe, why)
	}
	since, err := s.BlocksSince(t.Context(), table, from)
	if err != nil || len(since) != 2 || since[0].Blocks != 9 || since[1].Blocks != 10 || !since[0].Known {
		t.Errorf("%+v %v", since, err)
	}
	exec(t, s, "CREATE MATERIALIZED VIEW "+n+"_log ENGINE = Log AS SELECT n FROM "+n)
	if safe, why, err := s.SafeWindow(t.Context(), describe(t, s, n), time.Now()); safe || err != nil || !strings.Contains(why, "remembers nothing") {
		t.Errorf("a target of engine Log: %v %q %v", safe, why, err)
	}
	exec(t, s, "CREATE TABLE "+n+"_none (n UInt64) ENGINE = MergeTree ORDER BY n")
	if safe, why, err := s.SafeWindow(t.Context(), describe(t, s, n+"_none"), time.Now()); safe || err != nil || !strings.Contains(why, "no deduplication window") {
		t.Errorf("a table without a window: %v %q %v", safe, why, err)
	}
	least := as(t, "least")
	if safe, why, err := least.SafeWindow(t.Context(), describe(t, least, n+"_t"), time.Now()); safe || err != nil || why == "" {
		t.Errorf("a user who may not count: %v %q %v", safe, why, err)
	}
}

// The seconds of a Replicated table's window, which no engine here can show (field case A3).
func TestWindowOfAReplicatedTableHasSeconds(t *testing.T) {
	f := &facts{mergeTree: map[string]string{"non_replicated_deduplication_window": "0"}, replMerge: map[string]string{"replicated_deduplication_window": "10000", "replicated_deduplication_window_seconds": "3600"}}
	for engine, want := range map[string]Window{
		"ReplicatedMergeTree('/x', 'SETTINGS replicated_deduplication_window = 9') ORDER BY a SETTINGS index_granularity = 8192":                          {Blocks: 10000, Seconds: 3600},
		"ReplicatedReplacingMergeTree ORDER BY a SETTINGS replicated_deduplication_window = 5, replicated_deduplication_window_seconds = 7, min_rows = 1": {Blocks: 5, Seconds: 7},
		"SharedMergeTree ORDER BY a": {Blocks: 10000, Seconds: 3600},
		"MergeTree ORDER BY a":       {},
		"MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window=12": {Blocks: 12},
		"Log": {},
	} {
		name, _, _ := strings.Cut(strings.Fields(engine)[0], "(")
		if got := f.window(name, engine); got != want {
			t.Errorf("%s: %+v, want %+v", engine, got, want)
		}
	}
}

func TestClockIsTheServers(t *testing.T) {
	s := server(t)
	now, uncertainty, err := s.Clock(t.Context(), s.replicas[0].addr)
	if off := time.Until(now); err != nil || off < -uncertainty-time.Millisecond || off > uncertainty+time.Millisecond {
		t.Errorf("off by %s ± %s, %v", off, uncertainty, err) // both run on this machine
	}
	early, _, err := s.Now(t.Context())
	if err != nil || early.After(now.Add(time.Minute)) {
		t.Errorf("%v %v", early, err)
	}
	if _, _, err := s.Clock(t.Context(), "elsewhere:1"); err == nil {
		t.Error("a replica that isn't configured has no clock")
	}
}
