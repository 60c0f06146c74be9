// Package status is what the sink shows of itself over HTTP: /healthz, /readyz, Prometheus' /metrics and a page for people at /.
//
// Contract: a [Status] is told what happens, by the wiring of the pipeline's events, and never asks anybody; its methods neither block nor fail and may be
// called from any goroutine. All counters stand at 0 from the start, for every label value that is known then. Label values are bounded: topics and
// tables beyond [maxLabels] are counted as "other".
//
// Not promised: the account. Counters start anew with the process; what is in the table is asked of the table.
package status

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// The states of a partition, as pipeline names them.
const (
	Running = "running"
	Waiting = "waiting" // for a server
	Gated   = "gated"   // its offset waits for another partition's rows; inserts go on
	Stopped = "stopped" // nothing is guessed: somebody has to decide
)

var states = []string{Running, Waiting, Gated, Stopped}

// Options are what is known at the start.
type Options struct {
	Group   string
	Version string
	Routes  []Route  // topics and tables whose counters start at 0
	Reasons []string // of dead letters; others are counted as "other"
	// StallAfter is how long a partition may hold records without getting on before /healthz says so. It must be longer than the longest
	// honest pause: a batch's age, and an insert's timeout. 0: ten minutes.
	StallAfter time.Duration
	Now        func() time.Time // nil: the clock
}

// Route is a topic that goes into a table.
type Route struct{ Topic, Table string }

// Counts is how the records of a batch ended. Each has exactly one class.
type Counts struct {
	Inserted, Conflicts, DeadLetters, Filtered int
	Duplicates                                 map[string]int // by kind
}

// Status is everything that is shown. The zero value isn't usable, see New.
type Status struct {
	o       Options
	metrics *metrics

	mu         sync.Mutex
	joined     bool
	failure    string // why the process is beyond help
	partitions map[place]*partition
	stores     map[string]store
	totals     map[string]int
}

type place struct {
	topic     string
	partition int32
}

type partition struct {
	state, reason, cure string
	since               time.Time // of the state
	committed, next     int64     // -1: not known yet
	end                 int64
	held, buffered      int
	progress            time.Time // when committed or next last changed, or the state did
}

// lag is how many records are there and not settled; ok is false until both ends are known.
func (p *partition) lag() (records int64, ok bool) {
	if p.end < 0 || p.committed < 0 {
		return 0, false
	}
	return max(p.end-p.committed, 0), true
}

type store struct {
	up     bool
	detail string
	since  time.Time
}

// New returns a Status with all its counters at 0.
func New(o Options) *Status {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.StallAfter == 0 {
		o.StallAfter = 10 * time.Minute
	}
	s := &Status{o: o, partitions: map[place]*partition{}, stores: map[string]store{}, totals: map[string]int{}}
	s.metrics = newMetrics(s)
	return s
}

// Joined says that the group has given this sink its partitions, perhaps none of them.
func (s *Status) Joined() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined = true
}

// Assigned says that a partition is this sink's from now on.
func (s *Status) Assigned(topic string, number int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined = true
	now := s.o.Now()
	s.partitions[place{topic, number}] = &partition{state: Waiting, reason: "starting", since: now, progress: now, committed: -1, next: -1, end: -1}
}

// Gone says that a partition is no longer this sink's. Its series end.
func (s *Status) Gone(topic string, number int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.partitions, place{topic, number})
}

// PartitionState says what a partition does now, why, and the way on when there is one to take.
func (s *Status) PartitionState(topic string, number int32, state, reason, cure string) {
	s.of(topic, number, func(p *partition) {
		if now := s.o.Now(); p.state != state {
			p.since, p.progress = now, now
		}
		p.state, p.reason, p.cure = state, reason, cure
	})
}

// Position says how far a partition is: offsets below committed are settled, below next consumed; held batches wait for their gate, buffered records for their batch.
func (s *Status) Position(topic string, number int32, committed, next int64, held, buffered int) {
	s.of(topic, number, func(p *partition) {
		if committed != p.committed || next != p.next {
			p.progress = s.o.Now()
		}
		p.committed, p.next, p.held, p.buffered = committed, next, held, buffered
	})
}

// EndOffset says where the partition ends in Kafka, as last seen.
func (s *Status) EndOffset(topic string, number int32, end int64) {
	s.of(topic, number, func(p *partition) { p.end = end })
}

// Store says that a server (a ClickHouse replica, Redis, Kafka) answers, or doesn't and why.
func (s *Status) Store(name string, up bool, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.stores[name]
	now := store{up: up, detail: detail, since: s.o.Now()}
	if known && was.up == up {
		now.since = was.since
	}
	s.stores[name] = now
}

// Failed says that a worker or the poll loop has died, and only a restart helps.
func (s *Status) Failed(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == "" {
		s.failure = why
	}
}

// of changes a partition. Reports about one that is gone are late, and ignored.
func (s *Status) of(topic string, number int32, change func(*partition)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.partitions[place{topic, number}]; p != nil {
		change(p)
	}
}

// row is a partition with its place.
type row struct {
	place
	partition
}

// sorted returns copies, by topic and number.
func (s *Status) sorted() []row {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]row, 0, len(s.partitions))
	for at, p := range s.partitions {
		rows = append(rows, row{at, *p})
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.place.partition, b.place.partition))
	})
	return rows
}
