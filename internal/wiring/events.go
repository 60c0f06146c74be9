package wiring

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncesink/oncesink/internal/status"
	"github.com/oncesink/oncesink/pkg/pipeline"
	"github.com/oncesink/oncesink/pkg/writer"
)

// tally sums the account of a run.
type tally struct {
	mu  sync.Mutex
	sum pipeline.Counts
}

func (t *tally) add(c pipeline.Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Inserted += c.Inserted
	t.sum.Conflicts += c.Conflicts
	t.sum.DeadLetters += c.DeadLetters
	t.sum.Filtered += c.Filtered
	t.sum.DupBatch += c.DupBatch
	t.sum.DupProducer += c.DupProducer
	t.sum.DupGroup += c.DupGroup
	t.sum.DupTopic += c.DupTopic
	t.sum.DupTable += c.DupTable
	t.sum.RecordsConsumed += c.RecordsConsumed
}

func (t *tally) total() pipeline.Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sum
}

// states remembers what was logged of each partition, so that a change is told
// once.
type states struct {
	mu    sync.Mutex
	last  map[string]string
	log   *slog.Logger
	first *atomic.Bool // a new store's first quarantine is under way
	stops *stops
}

func (s *states) tell(topic string, partition int32, state pipeline.State, reason, cure string) {
	at := fmt.Sprintf("%s/%d", topic, partition)
	s.mu.Lock()
	before, known := s.last[at]
	s.last[at] = string(state)
	s.mu.Unlock()
	if before == string(state) || !known && state == pipeline.Running {
		return
	}
	if before == string(pipeline.Stopped) {
		s.stops.gone(topic, partition)
	}
	switch state {
	case pipeline.Stopped:
		s.log.Error("partition stopped: nothing is guessed", "topic", topic, "partition", partition, "reason", reason, "cure", cure)
		s.stops.set(topic, partition, cure)
	case pipeline.Waiting:
		level := slog.LevelWarn
		if expected(s.first, reason) {
			level = slog.LevelInfo
		}
		s.log.Log(context.Background(), level, "partition waits", "topic", topic, "partition", partition, "reason", reason)
	case pipeline.Gated:
		s.log.Info("partition inserts on, its offset waits for another partition's rows", "topic", topic, "partition", partition, "reason", reason)
	default:
		s.log.Info("partition goes on", "topic", topic, "partition", partition)
	}
}

// events turns what the pipeline tells into the status page, metrics and log.
func (s *session) events(ctx context.Context) pipeline.Events {
	st := s.o.Status
	s.stops = newStops(s.log)
	s.beside(ctx, s.stops.watch)
	told := &states{last: map[string]string{}, log: s.log, first: &s.first, stops: s.stops}
	steps := s.o.Steps
	if steps == nil {
		steps = func(string, int32, pipeline.Step) {}
	}
	return pipeline.Events{
		Consumed: func(topic string, _ int32, n int) { st.Consumed(topic, n) },
		Account: func(topic string, _ int32, table string, c pipeline.Counts) {
			s.tally.add(c)
			st.Settled(topic, table, status.Counts{
				Inserted: c.Inserted, Conflicts: c.Conflicts, DeadLetters: c.DeadLetters, Filtered: c.Filtered,
				Duplicates: map[string]int{"batch": c.DupBatch, "producer": c.DupProducer, "group": c.DupGroup, "topic": c.DupTopic, "table": c.DupTable},
			})
		},
		Letters:  func(_ string, class string, n int) { st.DeadLetter(class, n) },
		Insert:   func(_, outcome string, rows int, took time.Duration) { st.Insert(outcome, rows, took) },
		Claim:    func(_ int, took time.Duration) { st.Claim(took) },
		Commit:   func(took time.Duration) { st.Commit(took) },
		Recovery: func(string, int32, string) { st.Recovery() },
		ReadBack: func(int) { st.ReadBack() },
		State: func(topic string, p int32, state pipeline.State, reason, cure string) {
			st.PartitionState(topic, p, string(state), reason, cure)
			told.tell(topic, p, state, reason, cure)
		},
		Position: func(topic string, p int32, committed, next int64, held, buffered int) {
			st.Position(topic, p, committed, next, held, buffered)
			s.at.set(position{topic, p, committed, next})
			if s.drain != nil {
				s.drain.position(topic, p, committed)
			}
		},
		Assigned: st.Assigned,
		Gone: func(topic string, p int32) {
			st.Gone(topic, p)
			if ctx.Err() == nil && s.drain == nil { // at the end all go, and how far they were is told then
				s.at.gone(topic, p)
				s.stops.gone(topic, p)
			}
		},
		Epoch:     func(table, _ string) { st.EpochChanged(table) },
		Step:      steps,
		EndOffset: st.EndOffset,
	}
}

func (s *session) serverEvents() writer.Events {
	return writer.Events{
		ReplicaDown: func(replica string, err error) {
			s.o.Status.Store("clickhouse "+replica, false, err.Error())
			s.log.Warn("clickhouse does not answer", "replica", replica, "error", err.Error())
		},
		ReplicaUp: func(replica string) {
			s.o.Status.Store("clickhouse "+replica, true, "")
			s.log.Info("clickhouse answers again", "replica", replica)
		},
	}
}

// Plural writes "1 error" and "2 errors".
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
