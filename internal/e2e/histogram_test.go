package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

// moment is where the protocol stands for one partition when its process is killed.
type moment string

const (
	decoding moment = "decoding/claiming"
	claimed  moment = "claimed"
	intended moment = "intent committed"
	inFlight moment = "insert in flight"
	inView   moment = "view being pushed"
	acked    moment = "acknowledged, not committed"
)

var moments = []moment{decoding, claimed, intended, inFlight, inView, acked}

// statement is one INSERT of the sink as the engine's logs tell it. The engine's clock is the test's.
type statement struct {
	partition         int32
	start, part, over time.Time // part: the table's part was there; over: the statement had ended, views included. Zero: never
	cut               bool      // it ended with an exception
}

// statements reads the sink's INSERTs into the table from the engine's logs, in the order of their start.
func (w *world) statements() []statement {
	w.t.Helper()
	w.s.sql(w.t, "SYSTEM FLUSH LOGS query_log, part_log")
	said := w.s.sql(w.t, `SELECT query_id, start, over, cut, part FROM (
  SELECT query_id, toUnixTimestamp64Micro(min(query_start_time_microseconds)) AS start,
    toUnixTimestamp64Micro(maxIf(event_time_microseconds, type != 'QueryStart')) AS over, countIf(type LIKE 'Exception%%') AS cut
  FROM system.query_log WHERE startsWith(query_id, '%[1]s') GROUP BY query_id
) AS q LEFT JOIN (
  SELECT query_id, toUnixTimestamp64Micro(min(event_time_microseconds)) AS part FROM system.part_log
  WHERE startsWith(query_id, '%[1]s') AND event_type = 'NewPart' AND error = 0 AND database = '%[2]s' AND table = '%[3]s' GROUP BY query_id
) AS p USING query_id ORDER BY start`, w.queryIDs(), w.s.database, w.table)
	var out []statement
	for _, r := range rows(said) {
		micro := func(i int) time.Time {
			n, err := strconv.ParseInt(r[i], 10, 64)
			if err != nil {
				w.t.Fatalf("the engine's log says %q: %v", r, err)
			}
			if n <= 0 {
				return time.Time{}
			}
			return time.UnixMicro(n)
		}
		// oncesink/<table>/<group>/<cluster>/<topic id>/<partition>/…
		p, err := strconv.ParseInt(strings.Split(r[0], "/")[5], 10, 32)
		if err != nil {
			w.t.Fatalf("query id %q: %v", r[0], err)
		}
		out = append(out, statement{partition: int32(p), start: micro(1), over: micro(2), part: micro(4), cut: r[3] != "0"})
	}
	return out
}

// histogram counts what kills hit: how many kills met at least one partition at a moment, and how many partitions they met there.
type histogram struct {
	kills, partitions map[moment]int
	cut               int // inserts that a kill made the engine break off when the table's part was there and the views were not served
}

// judge finds out where the kills met each partition.
func (w *world) judge(crashes []crash) *histogram {
	w.t.Helper()
	h := &histogram{kills: map[moment]int{}, partitions: map[moment]int{}}
	statements := w.statements()
	for _, s := range statements {
		if s.cut && !s.part.IsZero() {
			h.cut++
		}
	}
	for _, c := range crashes {
		met := map[moment]bool{}
		for partition := range c.queued {
			if m := c.moment(partition, statements); m != "" {
				h.partitions[m]++
				met[m] = true
			}
		}
		for m := range met {
			h.kills[m]++
		}
	}
	return h
}

func (c crash) moment(partition int32, statements []statement) moment {
	switch c.last[partition] {
	case "", pipeline.StepCommitted:
		if c.queued[partition] && len(c.last) > 0 {
			return decoding
		}
		return "" // idle
	case pipeline.StepClaimed:
		return claimed
	case pipeline.StepIntent:
		return intended
	case pipeline.StepWritten, pipeline.StepPublished:
		return acked
	case pipeline.StepInserting:
	}
	latest := -1
	for i, s := range statements {
		if s.partition == partition && !s.start.After(c.at) {
			latest = i
		}
	}
	switch {
	case latest < 0 || statements[latest].part.IsZero() || statements[latest].part.After(c.at):
		return inFlight
	case statements[latest].over.IsZero() || statements[latest].over.After(c.at):
		return inView
	default:
		return acked // the engine had answered, the sink had not read it
	}
}

func (h *histogram) String() string {
	var b strings.Builder
	for _, m := range moments {
		fmt.Fprintf(&b, "  %-28s %3d kills, %3d partitions  %s\n", m, h.kills[m], h.partitions[m], strings.Repeat("#", h.kills[m]))
	}
	fmt.Fprintf(&b, "  inserts that the engine broke off between the table and its views: %d", h.cut)
	return b.String()
}

// missed are the moments that fewer than n kills hit: a run that missed one proves nothing about it.
func (h *histogram) missed(n int) (out []moment) {
	for _, m := range moments {
		if h.kills[m] < n {
			out = append(out, m)
		}
	}
	return out
}
