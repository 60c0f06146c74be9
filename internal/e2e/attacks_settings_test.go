//go:build chaos

package e2e

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/pkg/pipeline"
)

// settingAttacks take what an operator may set, see or forget.
func settingAttacks() []attack {
	return []attack{
		{name: "settings-query-killed-log-forgotten", door: linkEngine + ", " + doorLate, design: design{partitions: 1, window: 5, slow: 900 * time.Millisecond}, run: (*rig).queryKilledLogForgotten,
			what: "an insert killed between table and view by an operator, its sink too, window of 5 overrun, query_log and part_log emptied"},
		{name: "settings-log-by-halves", door: linkEngine + ", " + doorLate, design: design{partitions: 1, window: 5, slow: 250 * time.Millisecond}, run: (*rig).logByHalves,
			what: "the server logs a third of the inserts (clickhouse.settings), an operator kills inserts, window of 5 overrun, sinks killed"},
		{name: "settings-that-cut-results", door: linkEngine, rows: 1200, run: (*rig).settingsThatCut,
			what: "clickhouse.settings with limit, offset, filters, max_execution_time and row limits that break off without an error"},
		{name: "settings-blocks-in-pieces", door: linkEngine + ", " + doorLate, design: design{window: 60, slow: 20 * time.Millisecond}, run: (*rig).blocksInPieces,
			what: "clickhouse.settings that cut an insert into blocks of 10 rows by several threads, killed in between, acknowledgements cut"},
		{name: "settings-strange-times", door: doorProducer, rows: 400, run: (*rig).strangeTimes,
			what: "event times before 1970, at 0, tomorrow, in 30 days and in two years, copies in both partitions at once, FLUSHALL, a kill, all reset to 0; what is later than max_future is dead-lettered"},
	}
}

func (r *rig) inView2() bool {
	return r.until(8*time.Second, func() bool {
		table, err := r.inTable()
		if err != nil {
			return false
		}
		view, err := r.inView(r.views[len(r.views)-1])
		return err == nil && table.rows > view.rows
	})
}

func (r *rig) queryKilledLogForgotten() {
	for n := range 2 {
		p := r.ready(with{settings: settings{rows: 200}})
		r.make(700)
		if !r.inView2() {
			r.count("moments missed")
		}
		freeze(p)
		r.s.sql(r.t, "KILL QUERY WHERE startsWith(query_id, '%s') SYNC", r.queryIDs())
		r.count("inserts killed")
		r.kill(p)
		r.foreign(7)
		r.s.sql(r.t, "SYSTEM FLUSH LOGS")
		r.s.sql(r.t, "TRUNCATE TABLE IF EXISTS system.query_log")
		if n == 0 {
			r.s.sql(r.t, "TRUNCATE TABLE IF EXISTS system.part_log")
		} else {
			r.resetByHand(r.group, r.topic, toStart)
		}
		r.count("logs emptied")
		q := r.ready(with{settings: settings{rows: 45}})
		time.Sleep(2 * time.Second)
		r.end(q)
	}
}

func (r *rig) logByHalves() {
	o := with{inserts: "log_queries_probability: 0.3"}
	for n := range 3 {
		o.rows = []int{200, 60, 300}[n]
		p := r.ready(o)
		r.feed.allow(660 * (n + 1))
		for range 2 {
			if r.inView2() {
				r.s.sql(r.t, "KILL QUERY WHERE startsWith(query_id, '%s') SYNC", r.queryIDs())
				r.count("inserts killed")
			}
			r.foreign(7)
		}
		r.kill(p)
		r.foreign(7)
	}
}

func (r *rig) settingsThatCut() {
	for n, inserts := range []string{
		"limit: 10", "offset: 5", "max_rows_to_read: 10, read_overflow_mode: break", "max_result_rows: 10, result_overflow_mode: break",
		"max_execution_time: 0.001, timeout_overflow_mode: break", `additional_result_filter: "qty > 500"`, "insert_deduplicate: 0", "async_insert: 1",
		"deduplicate_blocks_in_dependent_materialized_views: 0", "max_rows_to_group_by: 1, group_by_overflow_mode: any", "materialized_views_ignore_errors: 1",
	} {
		p := r.ready(with{inserts: inserts})
		r.feed.allow(105 * (n + 1))
		r.until(4*time.Second, func() bool { return !p.running() || r.openIn(r.group, r.topic) == 0 })
		if !p.running() {
			r.count("settings refused")
			r.note("refused %s: %s", inserts, p.said(1))
		} else {
			r.count("settings taken")
		}
		r.end(p)
	}
}

func (r *rig) blocksInPieces() {
	inserts := "max_insert_block_size: 10, min_insert_block_size_rows: 1, min_insert_block_size_bytes: 1, max_block_size: 10, max_insert_threads: 4, parallel_view_processing: 1, " +
		"min_insert_block_size_rows_for_materialized_views: 1"
	rule := r.insertRule(r.toEngine, faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 3})
	for n := range 4 {
		p := r.ready(with{settings: settings{rows: []int{300, 80, 200, 40}[n]}, inserts: inserts})
		r.feed.allow(500 * (n + 1))
		r.step(p, pipeline.StepInserting)
		time.Sleep(time.Duration(n*40) * time.Millisecond)
		if n%2 == 1 {
			r.s.sql(r.t, "KILL QUERY WHERE startsWith(query_id, '%s') SYNC", r.queryIDs())
		}
		r.kill(p)
	}
	r.add("acknowledgements cut", rule.Account().Faults)
	rule.Remove()
}

func (r *rig) strangeTimes() {
	const each = 30
	now := time.Now().UnixMilli()
	day := int64(24 * time.Hour / time.Millisecond)
	var here, there []*kgo.Record
	for k, ms := range []int64{-day * 400, -1, 0, 1, now + day, now + 30*day, now + 730*day} {
		for i := range each {
			v := fmt.Appendf(nil, `{"settle_ms":%d,"id":"row-%d-%d","rev":1,"tenant":"t","amount":0.5,"qty":1,"currency":"EUR","create_time":%d}`, ms, k, i, now)
			here = append(here, &kgo.Record{Topic: r.topic, Partition: int32(i % 2), Value: v})
			there = append([]*kgo.Record{{Topic: r.topic, Partition: int32((i + 1) % 2), Value: v}}, there...)
		}
	}
	p, q := r.ready(with{settings: settings{rows: 50}, horizon: "100s"}), r.ready(with{settings: settings{rows: 20}, horizon: "100s"})
	// Later than max_future after their record's own time: refused by that name, each copy kept in the dead letters.
	const future = 2 * each
	r.letters = 2 * future
	r.promise(len(here) - future)
	r.put(here...)
	r.put(there...)
	r.make(200)
	r.step(p, pipeline.StepInserting)
	r.kill(p)
	r.flush()
	r.make(200)
	r.quiet()
	r.kill(q)
	r.resetByHand(r.group, r.topic, toStart)
	r.flush()
}
