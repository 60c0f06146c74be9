package wiring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/status"
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/pipeline"
	"github.com/oncesink/oncesink/pkg/writer"
)

// RunOptions are what a run is told beside its configuration.
type RunOptions struct {
	Log    *slog.Logger
	Status *status.Status
	Drain  bool
	// Patience bounds a soft stop; it has to end below the grace of whoever
	// stops the process.
	Patience time.Duration
	// Steps, if set, is told each step of each batch. For tests and benchmarks.
	Steps   func(topic string, partition int32, step pipeline.Step)
	Version string
	// Discover, if not 0, is how often new topics and partitions are looked for
	// instead of every half minute. For tests.
	Discover time.Duration
	// Progress, if set, is told from time to time how far a drain is, in offsets.
	Progress func(done, total int64)
}

// Report is what a run has to say at its end.
type Report struct {
	Counts  pipeline.Counts
	Halted  map[string]pipeline.Halt
	Drained bool
}

// Run consumes until ctx ends or, when draining, until everything that was
// there at the start is settled.
func Run(ctx context.Context, cfg *config.Config, o RunOptions) (*Report, error) {
	sum := &tally{} // over a table that is replaced, too
	for {
		report, err := runOnce(ctx, cfg, o, sum)
		var swapped *pipeline.TableSwapped
		if errors.As(err, &swapped) && ctx.Err() == nil {
			o.Log.Warn("the target table was replaced: reading it anew", "reason", swapped.Error())
			continue
		}
		var replaced *pipeline.TopicReplaced
		if errors.As(err, &replaced) && ctx.Err() == nil {
			o.Log.Warn("a topic was replaced: reading the new one from its start; what the old one held unread is gone with it", "reason", replaced.Error())
			continue
		}
		return report, err
	}
}

// session is one run's open things, closed in reverse order.
type session struct {
	cfg     *config.Config
	o       RunOptions
	log     *slog.Logger
	admin   *kgo.Client
	cluster *offsets.Cluster
	server  *writer.Server
	clock   *pipeline.ServerClock
	targets map[*config.Route]*pipeline.Target
	topics  topicSet
	id      string
	closers []func()
	tally   *tally
	at      positions
	stops   *stops
	first   atomic.Bool // a new store's first quarantine is under way
	drain   *drain      // nil: not draining
}

func (s *session) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}

func (s *session) onClose(f func()) { s.closers = append(s.closers, f) }

func runOnce(ctx context.Context, cfg *config.Config, o RunOptions, sum *tally) (*Report, error) {
	s := &session{cfg: cfg, o: o, log: o.Log, tally: sum, targets: map[*config.Route]*pipeline.Target{}}
	defer s.close()
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	letters, err := s.openLetters(ctx)
	if err != nil {
		return nil, err
	}
	limit, assumed := s.cluster.MetadataLimit(ctx)
	if assumed != nil {
		s.log.Debug("offset.metadata.max.bytes can't be read; Kafka's default is assumed", "bytes", limit, "reason", assumed.Error())
	}
	var ends map[string]map[int32]int64
	if o.Drain {
		if s.drain, err = newDrain(ctx, cfg, s.cluster, s.topics.all()); err != nil {
			return nil, err
		}
		ends = s.drain.ends
	}
	shell := pipeline.NewShell(pipeline.Options{
		Group: cfg.Kafka.Group, Cluster: s.id, TopicID: s.topicID, Target: s.targetOf, Letters: letters,
		Owners: &owners{cluster: s.cluster, log: s.log}, LogBounds: s.logBounds, TopicNow: s.topicNow, Partitions: s.partitions,
		MetadataMax: limit, MemoryLimit: int64(cfg.Memory.Limit), InsertEvents: s.events(ctx), Drain: ends,
		DrainedElsewhere: s.drainedElsewhere(ends),
	})
	names := slices.Sorted(maps.Keys(s.topics.all()))
	base, err := KafkaOptions(cfg)
	if err != nil {
		return nil, &Usage{err}
	}
	discover := cmp.Or(o.Discover, discoverEvery)
	base = append(base, kgo.MetadataMaxAge(discover), kgo.MetadataMinAge(min(discover, 5*time.Second)))
	opts := slices.Concat(base, consumerOptions(cfg, names), shell.Callbacks(), []kgo.Opt{shell.OnAssigned(o.Status.Joined)})
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, &Usage{fmt.Errorf("kafka: %w", err)}
	}
	defer cl.CloseAllowingRebalance()
	group, err := offsets.NewGroup(cl, offsets.Events{
		Waiting: func(topic string, p int32, why error) {
			o.Status.PartitionState(topic, p, status.Waiting, "commit: "+why.Error()+" (rows are safe in ClickHouse)", "")
		},
		Passed: func(topic string, p int32) { o.Status.PartitionState(topic, p, status.Running, "", "") },
	})
	if err != nil {
		return nil, err
	}
	defer group.Close()
	s.beside(ctx, s.watchHeadroom)
	if hasPatterns(cfg) && !o.Drain {
		s.beside(ctx, func(ctx context.Context) { s.watchTopics(ctx, cl, letters.producer, discover) })
	}
	if o.Drain && o.Progress != nil {
		s.beside(ctx, func(ctx context.Context) { s.drain.show(ctx, s.cluster, cfg.Kafka.Group, o.Progress) })
	}
	s.log.Info("consuming", "group", cfg.Kafka.Group, "topics", describe(s.topics.all()), "drain", o.Drain)
	err = shell.Run(ctx, cl, group, o.Patience)
	report := &Report{Counts: s.tally.total(), Halted: shell.Halted()}
	report.Drained = o.Drain && ctx.Err() == nil && err == nil && len(report.Halted) == 0
	if err == nil {
		s.tellStopped(ctx, report)
	}
	return report, err
}

// open reaches the servers and opens the targets, waiting for what is away.
func (s *session) open(ctx context.Context) error {
	base, err := KafkaOptions(s.cfg)
	if err != nil {
		return &Usage{err}
	}
	if s.admin, err = kgo.NewClient(base...); err != nil {
		return &Usage{fmt.Errorf("kafka: %w", err)}
	}
	s.onClose(s.admin.Close)
	s.cluster = offsets.NewCluster(s.admin)
	if s.server, err = Server(s.cfg, s.serverEvents()); err != nil {
		return &Usage{err}
	}
	s.onClose(s.server.Close)
	w := newWaiter(s.cfg.Kafka.StartupTimeout, s.log, s.o.Status)
	if err := w.until(ctx, "kafka", func(ctx context.Context) (err error) {
		if s.id, err = s.cluster.ID(ctx); err != nil {
			return err
		}
		topics, err := Topics(ctx, s.cfg, s.cluster)
		s.topics.set(topics)
		return err
	}); err != nil {
		return err
	}
	if err := w.until(ctx, "clickhouse", func(ctx context.Context) (err error) {
		s.clock, err = pipeline.NewServerClock(ctx, s.server)
		return err
	}); err != nil {
		return s.refuse(&s.cfg.Routes[0], err)
	}
	s.beside(ctx, func(ctx context.Context) { s.clock.Keep(ctx, s.server, 5*time.Second) })
	for i := range s.cfg.Routes {
		r := &s.cfg.Routes[i]
		if err := w.until(ctx, "clickhouse and redis", func(ctx context.Context) error {
			t, err := s.openTarget(ctx, r)
			if err != nil {
				return err
			}
			s.targets[r] = t
			s.onClose(func() { _ = t.Store.Close() })
			s.beside(ctx, t.Store.Watch)
			return nil
		}); err != nil {
			return s.refuse(r, err)
		}
		if err := w.until(ctx, "clickhouse", func(ctx context.Context) error { return s.fit(ctx, r) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) topicID(topic string) (batcher.TopicID, error) {
	t, ok := s.topics.get(topic)
	if !ok {
		return batcher.TopicID{}, fmt.Errorf("topic %s was assigned but was not there at the start; start the sink again", topic)
	}
	return t.ID, nil
}

// topicNow is the id of the topic that bears the name by now.
func (s *session) topicNow(ctx context.Context, topic string) (batcher.TopicID, error) {
	now, err := s.cluster.Topics(ctx, topic)
	return now[topic].ID, err
}

func (s *session) partitions(topic string) int {
	t, _ := s.topics.get(topic)
	return t.Partitions
}

func (s *session) targetOf(topic string) (*pipeline.Target, error) {
	routes := s.cfg.RoutesOf(topic)
	if len(routes) != 1 {
		return nil, fmt.Errorf("topic %s has %s, want one", topic, Plural(len(routes), "route"))
	}
	return s.targets[routes[0]], nil
}

// logBounds is where a partition's log starts and where it ends now, open
// transactions included.
func (s *session) logBounds(ctx context.Context, topic string, partition int32) (start, end int64, err error) {
	b, err := s.cluster.Bounds(ctx, topic)
	if err != nil {
		return 0, 0, err
	}
	return b[topic][partition].Start, b[topic][partition].High, nil
}

// drainedElsewhere asks Kafka for partitions that other members hold.
func (s *session) drainedElsewhere(drain map[string]map[int32]int64) func(context.Context, map[string]map[int32]bool) bool {
	return func(ctx context.Context, here map[string]map[int32]bool) bool {
		missing := false
		for topic, ps := range drain {
			for p, end := range ps {
				missing = missing || end > 0 && !here[topic][p]
			}
		}
		if !missing {
			return true
		}
		all, err := s.cluster.CommittedAll(ctx, s.cfg.Kafka.Group)
		if err != nil {
			return false
		}
		for topic, ps := range drain {
			for p, end := range ps {
				if end > 0 && !here[topic][p] && all[topic][p].Offset < end {
					return false
				}
			}
		}
		return true
	}
}
