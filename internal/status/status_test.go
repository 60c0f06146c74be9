package status

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// clock is time that a test moves.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newTest(t *testing.T) (*Status, *clock, func(path string) (int, string)) {
	t.Helper()
	c := &clock{time.Unix(1_700_000_000, 0)}
	s := New(Options{
		Group: "g<b>", Version: "v0.1", Now: c.Now, StallAfter: 5 * time.Minute,
		Routes: []Route{{"settlements", "default.events"}}, Reasons: []string{"syntax", "wrong_type"},
	})
	h := s.Handler()
	return s, c, func(path string) (int, string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%q is missing", line)
		}
	}
}

// A rate() over a counter that is born at 5 misses the first five.
func TestCountersStandAtZeroBeforeAnythingHappened(t *testing.T) {
	_, _, get := newTest(t)
	code, text := get("/metrics")
	if code != http.StatusOK {
		t.Fatal(code)
	}
	wantLines(t, text,
		`sink_records_consumed_total{topic="settlements"} 0`, `sink_rows_inserted_total{table="default.events",topic="settlements"} 0`,
		`sink_duplicates_total{kind="batch"} 0`, `sink_duplicates_total{kind="producer"} 0`, `sink_duplicates_total{kind="redelivery"} 0`,
		`sink_duplicates_total{kind="group"} 0`, `sink_duplicates_total{kind="topic"} 0`, `sink_conflicts_total 0`,
		`sink_dead_letters_total{reason="syntax"} 0`, `sink_dead_letters_total{reason="wrong_type"} 0`, `sink_dead_letters_total{reason="other"} 0`,
		`sink_inserts_total{outcome="written"} 0`, `sink_inserts_total{outcome="rejected"} 0`, `sink_inserts_total{outcome="unknown"} 0`,
		`sink_records_settled_total{class="filtered"} 0`, `sink_recoveries_total 0`, `sink_readbacks_total 0`, `sink_undeduplicated_rows_total 0`,
		`sink_redis_store_epoch_changes_total{table="default.events"} 0`, `sink_bytes_buffered 0`, `sink_insert_seconds_count 0`, `sink_claim_seconds_count 0`,
		`sink_commit_seconds_count 0`, `sink_batch_rows_count 0`, `sink_build_info{version="v0.1"} 1`)
}

func TestEachEventReachesItsMetric(t *testing.T) {
	s, c, get := newTest(t)
	s.Consumed("settlements", 10)
	s.Settled("settlements", "default.events", Counts{Inserted: 5, Conflicts: 1, DeadLetters: 1, Filtered: 1, Duplicates: map[string]int{"batch": 1, "topic": 1}})
	s.Duplicates("redelivery", 3)
	s.DeadLetter("syntax", 2)
	s.DeadLetter("a reason of tomorrow", 1)
	s.Insert("written", 5, 20*time.Millisecond)
	s.Insert("unknown", 7, 60*time.Second)
	s.Claim(time.Millisecond)
	s.Commit(time.Millisecond)
	s.Recovery()
	s.ReadBack()
	s.Undeduplicated(4)
	s.Buffered(1024)
	s.Headroom("default.events", 0.75)
	s.EpochChanged("default.events")
	s.Assigned("settlements", 3)
	s.PartitionState("settlements", 3, Gated, "waits for settlements/1", "")
	s.Position("settlements", 3, 100, 150, 2, 10)
	s.EndOffset("settlements", 3, 160)
	c.now = c.now.Add(7 * time.Second)
	_, text := get("/metrics")
	wantLines(t, text,
		`sink_records_consumed_total{topic="settlements"} 10`, `sink_rows_inserted_total{table="default.events",topic="settlements"} 5`,
		`sink_duplicates_total{kind="batch"} 1`, `sink_duplicates_total{kind="topic"} 1`, `sink_duplicates_total{kind="redelivery"} 3`,
		`sink_records_settled_total{class="inserted"} 5`, `sink_records_settled_total{class="duplicate"} 2`, `sink_records_settled_total{class="conflict"} 1`,
		`sink_records_settled_total{class="dead_letter"} 1`, `sink_records_settled_total{class="filtered"} 1`, `sink_conflicts_total 1`, `sink_filtered_total 1`,
		`sink_dead_letters_total{reason="syntax"} 2`, `sink_dead_letters_total{reason="other"} 1`, `sink_inserts_total{outcome="written"} 1`,
		`sink_inserts_total{outcome="unknown"} 1`, `sink_insert_seconds_count 2`, `sink_batch_rows_sum 12`, `sink_recoveries_total 1`, `sink_readbacks_total 1`,
		`sink_undeduplicated_rows_total 4`, `sink_bytes_buffered 1024`, `sink_dedup_window_headroom_ratio{table="default.events"} 0.75`,
		`sink_redis_store_epoch_changes_total{table="default.events"} 1`, `sink_lag_records{partition="3",topic="settlements"} 60`,
		`sink_partition_state{partition="3",state="gated",topic="settlements"} 1`, `sink_partition_state{partition="3",state="running",topic="settlements"} 0`,
		`sink_partition_wait_seconds{partition="3",topic="settlements"} 7`)
}

// A partition that moved to another sink must not go on reporting its last lag here for ever.
func TestTheSeriesOfAPartitionEndWhenItIsGone(t *testing.T) {
	s, _, get := newTest(t)
	s.Assigned("settlements", 0)
	s.Position("settlements", 0, 1, 1, 0, 0)
	s.EndOffset("settlements", 0, 9)
	s.Gone("settlements", 0)
	s.PartitionState("settlements", 0, Running, "", "") // a late report
	if _, text := get("/metrics"); strings.Contains(text, `partition="0"`) {
		t.Error("it is still there")
	}
}

func TestAPatternThatMeetsAnyNumberOfTopicsDoesNotMakeAsManySeries(t *testing.T) {
	s, _, get := newTest(t)
	for i := range 3 * maxLabels {
		s.Consumed(fmt.Sprintf("t%d", i), 1)
	}
	_, text := get("/metrics")
	if n := strings.Count(text, "sink_records_consumed_total{"); n != maxLabels+1 {
		t.Errorf("%d series", n)
	}
	wantLines(t, text, fmt.Sprintf(`sink_records_consumed_total{topic="other"} %d`, 2*maxLabels+1))
}

// An orchestrator restarts what isn't alive and sends nobody to what isn't ready. Each line is what a step makes of the two: a
// server that is away is no reason to restart, however long (field cases C5, K6).
func TestRestartOnlyWhereItHelpsAndReadyOnlyWhereAllGetsOn(t *testing.T) {
	s, c, get := newTest(t)
	expect := func(when string, alive, ready int, reason string) {
		t.Helper()
		gotAlive, aliveText := get("/healthz")
		gotReady, readyText := get("/readyz")
		if gotAlive != alive || gotReady != ready || !strings.Contains(aliveText+readyText, reason) {
			t.Errorf("%s: healthz %d, readyz %d (%s%s); want %d, %d, %q", when, gotAlive, gotReady, aliveText, readyText, alive, ready, reason)
		}
	}
	expect("at the start", 200, 503, "no partition is assigned yet")
	s.Joined()
	expect("a member without partitions stands by", 200, 200, "ready")
	s.Assigned("t", 0)
	s.Assigned("t", 1)
	expect("assigned", 200, 503, "t/0 is waiting: starting")
	s.PartitionState("t", 0, Running, "", "")
	s.PartitionState("t", 1, Gated, "waits for t/0", "")
	expect("running and gated", 200, 200, "ready")
	s.Position("t", 1, 10, 30, 2, 100) // records are held all the while
	s.PartitionState("t", 1, Waiting, "redis r:6379: connection refused", "")
	c.now = c.now.Add(24 * time.Hour)
	expect("a day of waiting for a server", 200, 503, "connection refused")
	s.PartitionState("t", 1, Stopped, "the intent is corrupt", "sink offsets resolve")
	expect("stopped for a decision", 200, 503, "t/1 is stopped: the intent is corrupt")
	s.Gone("t", 1)
	s.Position("t", 0, 10, 20, 1, 0)
	c.now = c.now.Add(5 * time.Minute)
	expect("busy for a while", 200, 200, "ready")
	c.now = c.now.Add(time.Second)
	expect("holding records and not getting on", 503, 503, "t/0 holds records and has not got on for 5m1s")
	s.Position("t", 0, 10, 20, 1, 0)
	expect("a report without progress", 503, 503, "t/0")
	s.Position("t", 0, 20, 20, 0, 0)
	expect("got on", 200, 200, "ready")
	s.EndOffset("t", 0, 21) // the marker of a transaction: an offset that nobody will ever consume
	c.now = c.now.Add(24 * time.Hour)
	expect("idle", 200, 200, "ready")
	s.Failed("the worker of t/0 has died: …")
	s.Failed("the second reason")
	expect("a worker died", 503, 503, "the worker of t/0 has died")
}

func TestOneDeadServerDoesNotFillTheAnswerWithOneReasonAPartition(t *testing.T) {
	s, _, get := newTest(t)
	for i := range 100 {
		s.Assigned("t", int32(i))
	}
	_, text := get("/readyz")
	if strings.Count(text, "\n") != shownReasons+1 || !strings.Contains(text, "and 95 more") {
		t.Error(text)
	}
}

func TestThePageShowsPartitionsTotalsAndServersAndEscapesThem(t *testing.T) {
	s, c, get := newTest(t)
	s.Assigned("b", 1)
	s.Assigned("a", 10)
	s.Assigned("a", 2)
	s.PartitionState("a", 2, Running, "", "")
	s.PartitionState("a", 10, Stopped, "<script>alert(1)</script>", "run sink offsets resolve")
	s.Position("a", 2, 1000, 1200, 3, 44)
	s.EndOffset("a", 2, 1500)
	s.Settled("a", "t", Counts{Inserted: 12345, Duplicates: map[string]int{"group": 77}})
	s.Store("clickhouse c:9000", true, "26.7")
	s.Store("redis r:6379", false, "connection refused")
	c.now = c.now.Add(90 * time.Second)
	code, text := get("/")
	if code != http.StatusOK || strings.Contains(text, "<script>") || strings.Contains(text, "g<b>") {
		t.Fatalf("%d %s", code, text)
	}
	for _, want := range []string{"run sink offsets resolve", "1000", "1500", ">500<", "oldest wait 1m30s", "12345", "77", "connection refused", "3 partitions, lag 500", "down"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	_, asJSON := get("/status.json")
	var v view
	if err := json.Unmarshal([]byte(asJSON), &v); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, p := range v.Partitions {
		order = append(order, fmt.Sprintf("%s/%d", p.Topic, p.Partition))
	}
	if got := strings.Join(order, " "); got != "a/2 a/10 b/1" || v.Alive != true || v.Ready {
		t.Errorf("%s: %+v", got, v)
	}
	if code, _ := get("/nope"); code != http.StatusNotFound {
		t.Errorf("unknown path: %d", code)
	}
}

func TestAPortThatIsTakenIsToldAndAServerStopsCleanly(t *testing.T) {
	s, _, _ := newTest(t)
	server, err := s.Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Serve(server.Addr()); err == nil || !strings.Contains(err.Error(), "http.listen "+server.Addr()+": another process has this port") {
		t.Errorf("%v", err)
	}
	if _, err := s.Serve("192.0.2.1:0"); err == nil || !strings.Contains(err.Error(), "doesn't have this address") {
		t.Errorf("%v", err)
	}
	response, err := http.Get("http://" + server.Addr() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || string(body) != "alive\n" {
		t.Errorf("%d %q %v", response.StatusCode, body, err)
	}
	_ = response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if response, err := http.Get("http://" + server.Addr() + "/healthz"); err == nil {
		_ = response.Body.Close()
		t.Error("it still answers")
	}
}

func TestAnEmptyAddressOpensNoPortInsteadOfAnyPort(t *testing.T) {
	s, _, _ := newTest(t)
	server, err := s.Serve("")
	if err != nil || server.Addr() != "" || server.Shutdown(t.Context()) != nil {
		t.Errorf("%v %q", err, server.Addr())
	}
}

func TestReportsFromManyGoroutinesWhileTheyAreRead(t *testing.T) {
	s, _, get := newTest(t)
	done := make(chan struct{})
	for w := range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range 200 {
				s.Assigned("t", int32(w))
				s.PartitionState("t", int32(w), Running, "", "")
				s.Position("t", int32(w), int64(i), int64(i), 0, 0)
				s.Settled("t", "e", Counts{Inserted: 1})
				s.Gone("t", int32(w))
			}
		}()
	}
	for range 20 {
		get("/metrics")
		get("/")
		get("/readyz")
	}
	for range 4 {
		<-done
	}
	if _, text := get("/metrics"); !strings.Contains(text, `sink_records_settled_total{class="inserted"} 800`+"\n") {
		t.Error("reports were lost")
	}
}
