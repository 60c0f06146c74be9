package status

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// maxLabels bounds the distinct values of a label that comes from outside.
const maxLabels = 1000

const other = "other"

// The kinds of duplicates, told from the owner of the claim; `redelivery` (an own row found on a repeat) is outside the account.
var duplicateKinds = []string{"batch", "producer", "redelivery", "group", "topic", "table"}

var insertOutcomes = []string{"written", "rejected", "unknown"}

// The classes of the account.
var classes = []string{"inserted", "duplicate", "conflict", "dead_letter", "filtered"}

type metrics struct {
	registry *prometheus.Registry
	topics   *bounded
	tables   *bounded
	reasons  map[string]bool

	consumed, inserted, duplicates, deadLetters, inserts, settled, storeEpochs *prometheus.CounterVec
	conflicts, filtered, recoveries, readbacks, undeduplicated                 prometheus.Counter
	insertSeconds, claimSeconds, commitSeconds, batchRows                      prometheus.Histogram
	bytesBuffered                                                              prometheus.Gauge
	headroom                                                                   *prometheus.GaugeVec
}

func newMetrics(s *Status) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), topics: newBounded(), tables: newBounded(), reasons: map[string]bool{}}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sink_" + name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "sink_" + name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sink_" + name, Help: help, Buckets: buckets})
		m.registry.MustRegister(h)
		return h
	}
	m.consumed = counters("records_consumed_total", "Records read from Kafka, repeated reads included.", "topic")
	m.inserted = counters("rows_inserted_total", "Records whose own row is in the table, counted when their offset is committed.", "topic", "table")
	m.duplicates = counters("duplicates_total", "Records whose row was there already, by where the first one came from.", "kind")
	m.deadLetters = counters("dead_letters_total", "Records sent to the dead-letter topic, by reason; a repeat after a crash counts again.", "reason")
	m.settled = counters("records_settled_total", "Records by the one class they ended in, counted when their offset is committed.", "class")
	m.inserts = counters("inserts_total", "INSERT statements by what became of them.", "outcome")
	m.storeEpochs = counters("redis_store_epoch_changes_total", "Times that the store of keys was found to be another, or to have lost writes.", "table")
	m.conflicts = counter("conflicts_total", "Records with a known key and other content.")
	m.filtered = counter("filtered_total", "Records left out by a filter or as tombstones.")
	m.recoveries = counter("recoveries_total", "Batches that a predecessor had begun, or whose insert had an unknown outcome.")
	m.readbacks = counter("readbacks_total", "Questions to ClickHouse which of some keys are there.")
	m.undeduplicated = counter("undeduplicated_rows_total", "Rows written without asking the store (redis.on_outage: pass).")
	seconds := prometheus.ExponentialBuckets(0.001, 2, 17) // to 65 s, past the default timeout of an insert
	m.insertSeconds = histogram("insert_seconds", "Time of an INSERT.", seconds)
	m.claimSeconds = histogram("claim_seconds", "Time of a batch's claims.", prometheus.ExponentialBuckets(0.0002, 2, 16))
	m.commitSeconds = histogram("commit_seconds", "Time of an offset commit.", prometheus.ExponentialBuckets(0.0005, 2, 16))
	m.batchRows = histogram("batch_rows", "Rows of an INSERT.", prometheus.ExponentialBuckets(1, 4, 11)) // to a million
	m.bytesBuffered = prometheus.NewGauge(prometheus.GaugeOpts{Name: "sink_bytes_buffered", Help: "Bytes fetched and not yet settled, against memory.limit."})
	m.headroom = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "sink_dedup_window_headroom_ratio",
		Help: "How much of the table's deduplication window was left at the last look, the narrowest of table and views: 0 means that a repeat might double."}, []string{"table"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "sink_build_info", Help: "Always 1.", ConstLabels: prometheus.Labels{"version": s.o.Version}})
	build.Set(1)
	m.registry.MustRegister(m.bytesBuffered, m.headroom, build, partitionCollector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	m.startAtZero(s.o)
	return m
}

// startAtZero makes every series that is known, so that the first event is an increase and no birth.
func (m *metrics) startAtZero(o Options) {
	for _, r := range o.Routes {
		topic, table := m.topics.of(r.Topic), m.tables.of(r.Table)
		m.consumed.WithLabelValues(topic)
		m.inserted.WithLabelValues(topic, table)
		m.storeEpochs.WithLabelValues(table)
	}
	for label, vector := range map[*prometheus.CounterVec][]string{m.duplicates: duplicateKinds, m.inserts: insertOutcomes, m.settled: classes} {
		for _, value := range vector {
			label.WithLabelValues(value)
		}
	}
	for _, reason := range append([]string{other}, o.Reasons...) {
		m.reasons[reason] = true
		m.deadLetters.WithLabelValues(reason)
	}
}

// Consumed counts records read from a topic.
func (s *Status) Consumed(topic string, records int) {
	s.metrics.consumed.WithLabelValues(s.metrics.topics.of(topic)).Add(float64(records))
}

// Settled counts records that the offset was committed past, by how they ended.
func (s *Status) Settled(topic, table string, c Counts) {
	m := s.metrics
	m.inserted.WithLabelValues(m.topics.of(topic), m.tables.of(table)).Add(float64(c.Inserted))
	m.conflicts.Add(float64(c.Conflicts))
	m.filtered.Add(float64(c.Filtered))
	duplicates := 0
	for kind, n := range c.Duplicates {
		duplicates += n
		s.Duplicates(kind, n)
	}
	byClass := [...]int{c.Inserted, duplicates, c.Conflicts, c.DeadLetters, c.Filtered} // in the order of classes
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, class := range classes {
		m.settled.WithLabelValues(class).Add(float64(byClass[i]))
		s.totals[class] += byClass[i]
	}
}

// Duplicates counts those outside the account (`redelivery`); those inside come with Settled.
func (s *Status) Duplicates(kind string, n int) {
	s.metrics.duplicates.WithLabelValues(known(kind, duplicateKinds)).Add(float64(n))
}

// DeadLetter counts records sent to the dead-letter topic.
func (s *Status) DeadLetter(reason string, n int) {
	if !s.metrics.reasons[reason] {
		reason = other
	}
	s.metrics.deadLetters.WithLabelValues(reason).Add(float64(n))
}

// Insert counts and times a statement that came back.
func (s *Status) Insert(outcome string, rows int, took time.Duration) {
	s.metrics.inserts.WithLabelValues(known(outcome, insertOutcomes)).Inc()
	s.metrics.insertSeconds.Observe(took.Seconds())
	s.metrics.batchRows.Observe(float64(rows))
}

// Claim times the claims of a batch.
func (s *Status) Claim(took time.Duration) { s.metrics.claimSeconds.Observe(took.Seconds()) }

// Commit times the commit of an offset.
func (s *Status) Commit(took time.Duration) { s.metrics.commitSeconds.Observe(took.Seconds()) }

// Recovery counts a batch that a predecessor had begun, or whose insert had an unknown outcome.
func (s *Status) Recovery() { s.metrics.recoveries.Inc() }

// ReadBack counts a question to ClickHouse which of some keys are there.
func (s *Status) ReadBack() { s.metrics.readbacks.Inc() }

// Undeduplicated counts rows written without the store, as on_outage: pass allows.
func (s *Status) Undeduplicated(rows int) { s.metrics.undeduplicated.Add(float64(rows)) }

// Buffered is what is held against the memory limit now.
func (s *Status) Buffered(bytes int64) { s.metrics.bytesBuffered.Set(float64(bytes)) }

// Headroom is what is left of a table's deduplication window, 0 to 1.
func (s *Status) Headroom(table string, ratio float64) {
	s.metrics.headroom.WithLabelValues(s.metrics.tables.of(table)).Set(ratio)
}

// EpochChanged counts that a table's store of keys was found to be another, or to have lost writes.
func (s *Status) EpochChanged(table string) {
	s.metrics.storeEpochs.WithLabelValues(s.metrics.tables.of(table)).Inc()
}

func known(value string, values []string) string {
	for _, v := range values {
		if v == value {
			return v
		}
	}
	return other
}

// bounded lets the first maxLabels values through.
type bounded struct {
	mu   sync.Mutex
	seen map[string]bool
}

func newBounded() *bounded { return &bounded{seen: map[string]bool{}} }

func (b *bounded) of(value string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.seen[value] {
		if len(b.seen) >= maxLabels {
			return other
		}
		b.seen[value] = true
	}
	return value
}

// partitionCollector makes the partitions' series at each scrape, so that those of a partition that is gone end with it.
type partitionCollector struct{ s *Status }

var (
	lagDesc = prometheus.NewDesc("sink_lag_records", "Records of a partition that are there and not settled.", []string{"topic", "partition"}, nil)
	// Info-style: 1 for the state it is in, 0 for the others.
	stateDesc = prometheus.NewDesc("sink_partition_state", "1 for the state that a partition is in: running, waiting (for a server), gated (for another partition's rows), stopped (for a decision).",
		[]string{"topic", "partition", "state"}, nil)
	waitDesc = prometheus.NewDesc("sink_partition_wait_seconds", "How long a partition has not been running.", []string{"topic", "partition"}, nil)
)

func (c partitionCollector) Describe(out chan<- *prometheus.Desc) {
	out <- lagDesc
	out <- stateDesc
	out <- waitDesc
}

func (c partitionCollector) Collect(out chan<- prometheus.Metric) {
	now := c.s.o.Now()
	for _, r := range c.s.sorted() {
		number := strconv.Itoa(int(r.place.partition))
		if lag, ok := r.lag(); ok {
			out <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(lag), r.topic, number)
		}
		for _, state := range states {
			is := 0.0
			if r.state == state {
				is = 1
			}
			out <- prometheus.MustNewConstMetric(stateDesc, prometheus.GaugeValue, is, r.topic, number, state)
		}
		wait := 0.0
		if r.state != Running {
			wait = now.Sub(r.since).Seconds()
		}
		out <- prometheus.MustNewConstMetric(waitDesc, prometheus.GaugeValue, wait, r.topic, number)
	}
}
