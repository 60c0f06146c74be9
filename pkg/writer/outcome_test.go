package writer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// An insert that is taken for rejected and wasn't is doubled; one taken for unknown that was rejected only costs a wait. So each line says what the server
// does on a real engine, and a rejected one must have left nothing in table and view (field cases
// A10, B1, B8).
func TestOutcomeTable(t *testing.T) {
	const (
		oneView  = "SELECT n FROM $"
		slowView = "SELECT n FROM $ WHERE sleepEachRow(0.2) = 0"
	)
	for _, c := range []struct {
		name                  string
		partition             string
		tableSettings, extra  string // of the table
		view                  string // SELECT of a view
		viewTarget            string // what comes after the columns of its target
		before                string // a statement between describing and inserting
		settings              map[string]string
		rows                  uint64
		late                  bool
		timeout               time.Duration
		outcome               Outcome
		cause                 Cause
		code                  int32
		sent                  bool
		tableHas, viewHas     string // rows of the insert that are there afterwards
		afterwards, viewAfter string // the same once nothing runs any more; "": as above
	}{
		{name: "written", outcome: Written, sent: true, tableHas: "10"},
		{name: "written with view", view: oneView, outcome: Written, sent: true, tableHas: "10", viewHas: "10"},
		{name: "late", late: true, outcome: Rejected, cause: Late, code: 395, sent: true, tableHas: "0"},
		{name: "late with view", late: true, view: oneView, outcome: Rejected, cause: Late, code: 395, sent: true, tableHas: "0", viewHas: "0"},
		{name: "partitions", partition: "n", rows: 101, outcome: Rejected, cause: TooManyPartitions, code: 252, sent: true, tableHas: "0"},
		{name: "partitions, with view", partition: "n", rows: 101, view: oneView, outcome: Unknown, cause: TooManyPartitions, code: 252, sent: true, tableHas: "0", viewHas: "0"},
		{name: "partitions of a view's target", rows: 101, view: oneView, viewTarget: "ENGINE = MergeTree ORDER BY n PARTITION BY n", outcome: Unknown, cause: ViewFailed, code: 252, sent: true, tableHas: "101", viewHas: "0"},
		{name: "parts", tableSettings: ", parts_to_throw_insert = 1, parts_to_delay_insert = 1", outcome: Rejected, cause: Busy, code: 252, sent: true, tableHas: "0"},
		{name: "parts, with view", tableSettings: ", parts_to_throw_insert = 1, parts_to_delay_insert = 1", view: oneView, outcome: Rejected, cause: Busy, code: 252, sent: true, tableHas: "0", viewHas: "0"},
		// Here the view's target is asked before the table gets its rows: "while pushing to view" doesn't say that they are there.
		{name: "parts of a view's target", view: oneView, viewTarget: "ENGINE = MergeTree ORDER BY n SETTINGS parts_to_throw_insert = 1, parts_to_delay_insert = 1", outcome: Unknown, cause: ViewFailed, code: 252, sent: true, tableHas: "0", viewHas: "0"},
		{name: "constraint", extra: ", CONSTRAINT c CHECK n < 5", partition: "n % 3", outcome: Rejected, cause: Data, code: 469, sent: true, tableHas: "0"},
		{name: "constraint, with view", extra: ", CONSTRAINT c CHECK n < 5", view: oneView, outcome: Rejected, cause: Data, code: 469, sent: true, tableHas: "0", viewHas: "0"},
		{name: "constraint of a view's target", view: oneView, viewTarget: "CONSTRAINT", outcome: Unknown, cause: ViewFailed, code: 469, sent: true, tableHas: "10", viewHas: "0"},
		{name: "expression in a view", view: "SELECT toUInt64(toString(n) || 'x') AS n FROM $", outcome: Unknown, cause: ViewFailed, code: 6, sent: true, tableHas: "10", viewHas: "0"},
		{name: "throwIf in a view", view: "SELECT n FROM $ WHERE NOT throwIf(n = 3)", outcome: Unknown, cause: ViewFailed, code: 395, sent: true, tableHas: "10", viewHas: "0"},
		{name: "throwIf of the table", extra: ", k UInt8 MATERIALIZED throwIf(n = 3)", outcome: Unknown, cause: Data, code: 395, sent: true, tableHas: "0"},
		{name: "expression of a column", extra: ", k UInt8 MATERIALIZED toUInt8('a' || toString(n))", outcome: Unknown, cause: Data, code: 6, sent: true, tableHas: "0"},
		// The same code, raised while the second partition is written: the first one is there.
		{name: "expression of an index", extra: ", INDEX i toUInt8(if(n = 2, 'a', '1')) TYPE minmax", partition: "n", outcome: Unknown, cause: Data, code: 6, sent: true, tableHas: "1"},
		{name: "memory", settings: map[string]string{"max_memory_usage": "100000"}, rows: 1_000_000, outcome: Unknown, cause: Busy, code: 241, sent: true, tableHas: "0"},
		{name: "time of the query in a view", settings: map[string]string{"max_execution_time": "1"}, view: slowView, outcome: Unknown, cause: Busy, code: 159, sent: true, tableHas: "10", viewHas: "0"},
		{name: "disk", tableSettings: ", min_free_disk_bytes_to_perform_insert = 1e18", outcome: Unknown, cause: Busy, code: 243, sent: true, tableHas: "0"},
		{name: "disk of a view's target", view: oneView, viewTarget: "ENGINE = MergeTree ORDER BY n SETTINGS min_free_disk_bytes_to_perform_insert = 1e18", outcome: Unknown, cause: ViewFailed, code: 243, sent: true, tableHas: "10", viewHas: "0"},
		{name: "view's target gone", view: oneView, before: "DROP TABLE $target", outcome: Unknown, cause: ViewFailed, code: 60, sent: true, tableHas: "0"},
		{name: "no answer in time", timeout: 500 * time.Millisecond, view: slowView, outcome: Unknown, cause: Timeout, sent: true, tableHas: "10", viewHas: "0", afterwards: "10", viewAfter: "10"},
		{name: "column renamed", before: "ALTER TABLE $ RENAME COLUMN x TO y", outcome: Rejected, cause: Shape, code: 16, tableHas: "0"},
		{name: "table gone", before: "DROP TABLE $", outcome: Rejected, cause: Shape, code: 60},
		{name: "unknown setting", settings: map[string]string{"nonsense": "1"}, outcome: Rejected, cause: Misconfigured, code: 115, tableHas: "0"},
		{name: "bad value of a setting", settings: map[string]string{"max_memory_usage": "a lot"}, outcome: Rejected, cause: Misconfigured, code: 27, tableHas: "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := server(t)
			n := tableName()
			fill := strings.NewReplacer("$target", n+"_t", "$", n)
			partition := ""
			if c.partition != "" {
				partition = "PARTITION BY " + c.partition
			}
			exec(t, s, "CREATE TABLE "+n+" (n UInt64, x UInt64 DEFAULT 3"+c.extra+") ENGINE = MergeTree "+partition+" ORDER BY tuple() SETTINGS non_replicated_deduplication_window = 100"+c.tableSettings)
			if strings.Contains(c.tableSettings, "parts_to_throw") {
				exec(t, s, "INSERT INTO "+n+" (n) SELECT 1000000000")
			}
			if c.view != "" {
				after, constraint := c.viewTarget, ""
				if after == "CONSTRAINT" {
					after, constraint = "", ", CONSTRAINT c CHECK n < 5"
				}
				if after == "" {
					after = "ENGINE = MergeTree ORDER BY n"
				}
				exec(t, s, "CREATE TABLE "+n+"_t (n UInt64"+constraint+") "+after)
				if strings.Contains(after, "parts_to_throw") {
					exec(t, s, "INSERT INTO "+n+"_t (n) SELECT 1000000000")
				}
				exec(t, s, "CREATE MATERIALIZED VIEW "+n+"_v TO "+n+"_t AS "+fill.Replace(c.view))
			}
			table := describe(t, s, n)
			if c.before != "" {
				exec(t, s, fill.Replace(c.before))
			}
			if c.rows == 0 {
				c.rows = 10
			}
			input := numbers(0, c.rows)
			var x proto.ColUInt64
			for range c.rows {
				x.Append(1)
			}
			st := statement(table, "token", append(input, proto.InputColumn{Name: "x", Data: &x}))
			st.Settings = c.settings
			if c.late {
				st.Deadline = time.Now().Add(-time.Second)
			}
			ctx := t.Context()
			if c.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.timeout)
				defer cancel()
			}
			r := s.Insert(ctx, "", st)
			if r.Outcome != c.outcome || r.Cause != c.cause || r.Code != c.code || r.Sent != c.sent {
				t.Errorf("got %s/%s code %d sent %v, want %s/%s code %d sent %v: %s", r.Outcome, r.Cause, r.Code, r.Sent, c.outcome, c.cause, c.code, c.sent, r.Message)
			}
			check := func(when, table, want string) {
				t.Helper()
				if want == "" {
					return
				}
				if got := one(t, s, "SELECT count() FROM "+table+" WHERE n < 1000000000"); got != want {
					t.Errorf("%s %s has %s rows, want %s", when, table, got, want)
				}
			}
			check("at once", n, c.tableHas)
			check("at once", n+"_t", c.viewHas)
			if c.outcome == Rejected && (c.tableHas != "" && c.tableHas != "0" || c.viewHas != "" && c.viewHas != "0") {
				t.Error("a rejected insert can't have rows: the line contradicts itself")
			}
			waitUntilOver(t, s, TablePrefix(table.UUID))
			check("afterwards", n, c.afterwards)
			check("afterwards", n+"_t", c.viewAfter)
		})
	}
}

// What a user may not do is refused before the block leaves, so it is repeated once an operator, or time, has mended it (field cases H4, H5, I6).
func TestWhatAUserMayNotDoIsRejectedBeforeTheBlock(t *testing.T) {
	admin := as(t, "default")
	n := tableName()
	exec(t, admin, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 10")
	table := describe(t, admin, n)
	for user, want := range map[string]Result{
		"lookers": {Outcome: Rejected, Cause: Misconfigured, Code: 497},
		"fixed":   {Outcome: Rejected, Cause: Misconfigured, Code: 452},
		"reader":  {Outcome: Rejected, Cause: Misconfigured, Code: 164},
		"single":  {Outcome: Rejected, Cause: Busy, Code: 202},
	} {
		s := as(t, user)
		if user == "single" {
			// The server may count a statement for a moment after its answer.
			r := s.Insert(t.Context(), "", statement(table, "single", numbers(0, 3)))
			for ; r.Cause == Busy; r = s.Insert(t.Context(), "", statement(table, "single", numbers(0, 3))) {
				time.Sleep(10 * time.Millisecond)
			}
			if r.Outcome != Written {
				t.Fatal(r.Err())
			}
			go func() { // it takes the only place there is
				sleeper := &request{body: "SELECT sleepEachRow(0.1) FROM numbers(20)", id: "oncesink/single", result: discard{}, onBlock: func(int) error { return nil }}
				err := s.do(context.Background(), s.replicas[0], sleeper)
				for t.Context().Err() == nil && err != nil {
					err = s.do(context.Background(), s.replicas[0], sleeper)
				}
			}()
			for running := 0; running == 0; {
				var err error
				if running, err = admin.Running(t.Context(), "oncesink/single"); err != nil {
					t.Fatal(err)
				}
			}
		}
		r := s.Insert(t.Context(), "", statement(table, user, numbers(10, 13)))
		if r.Outcome != want.Outcome || r.Cause != want.Cause || r.Code != want.Code || r.Sent {
			t.Errorf("%s: %+v", user, r)
		}
	}
	waitUntilOver(t, admin, "oncesink/single")
	if got := one(t, admin, "SELECT count() FROM "+n); got != "3" {
		t.Errorf("%s rows", got)
	}
}

// waitUntilOver waits until no statement with the prefix runs.
func waitUntilOver(t *testing.T, s *Server, prefix string) {
	t.Helper()
	for range 500 {
		n, err := s.Running(t.Context(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("still running: %s", prefix)
}

// Codes that the engine can't be made to raise, a quorum's UNKNOWN_STATUS_OF_INSERT among them (field case A9): their outcome hangs on whether the block has
// left, and on nothing else.
func TestCodesThatProveNothingLeaveASentBlockUnknown(t *testing.T) {
	table := &Table{Database: "d", Name: "t", UUID: [16]byte{1}}
	if c, ok := codes[319]; !ok || c.before != noProof {
		t.Error("UNKNOWN_STATUS_OF_INSERT says that it isn't known")
	}
	for code, c := range codes {
		if c.before != noProof {
			continue
		}
		err := error(&Exception{Code: code, Message: "Constraint `c` for table d.t (01000000-0000-0000-0000-000000000000) is violated, insert deadline passed"})
		if r := classify(err, stage{sent: true}, table); r.Outcome != Unknown {
			t.Errorf("code %d after the block: %s", code, r.Outcome)
		}
		if r := classify(err, stage{}, table); r.Outcome != Rejected {
			t.Errorf("code %d before the block: %s", code, r.Outcome)
		}
	}
	for _, err := range []error{errors.New("read: connection reset by peer"), context.DeadlineExceeded, &Exception{Code: 4242, Message: "new"}} {
		if r := classify(err, stage{sent: true}, table); r.Outcome != Unknown {
			t.Errorf("%v: %s", err, r.Outcome)
		}
	}
	for code, cause := range map[int32]Cause{
		202: Busy, 203: Busy, 159: Busy, 241: Busy, 242: Busy, 319: Busy, 999: Busy, 341: Busy, 425: Busy, 209: Network, 210: Network, 164: Misconfigured,
		452: Misconfigured, 497: Misconfigured, 516: Misconfigured, 60: Shape, 16: Shape, 47: Shape, 53: Shape, 117: Shape, 469: Data, 190: Data,
	} {
		if r := classify(&Exception{Code: code}, stage{sent: true}, table); r.Cause != cause {
			t.Errorf("code %d: %s, want %s", code, r.Cause, cause)
		}
	}
}
