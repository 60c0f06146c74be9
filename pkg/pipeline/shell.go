package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/writer"
)

// Options are what a Shell is made of.
type Options struct {
	Group        string
	Cluster      string // Kafka's cluster id
	TopicID      func(topic string) (batcher.TopicID, error)
	Target       func(topic string) (*Target, error) // of a subscribed topic
	Letters      Letters
	Owners       Owners
	LogBounds    func(ctx context.Context, topic string, partition int32) (start, end int64, err error)
	TopicNow     func(ctx context.Context, topic string) (batcher.TopicID, error) // the id that bears the name by now; nil: never another
	Partitions   func(topic string) int                                           // of the topic, for the pace of inserts; 0: not known
	MetadataMax  int                                                              // offset.metadata.max.bytes
	MemoryLimit  int64
	InsertEvents Events
	Clock        func() time.Time
	// Drain holds the offsets at which a drain ends; nil: run until stopped.
	Drain map[string]map[int32]int64
	// DrainedElsewhere tells whether the partitions of the drain that others of
	// the group hold are committed up to their ends. nil: this member is alone.
	DrainedElsewhere func(ctx context.Context, here map[string]map[int32]bool) bool
}

// Shell consumes: it polls, keeps one worker for each assigned partition, and
// runs what their machines decide. Its callbacks belong to one kgo client.
type Shell struct {
	Options
	group     string
	owners    Owners
	letters   Letters
	events    Events
	committer Committer
	leases    *offsets.Leases
	refetch   func(ctx context.Context, broken map[string][]int32) (map[string]map[int32]kgo.EpochOffset, error)
	client    *kgo.Client

	mu         sync.Mutex
	workers    map[place]*worker
	pools      map[*Target]*blockPool
	turns      map[*Target]turns
	failed     chan error    // the first failure that ends the process
	running    chan struct{} // closed by Run
	softly     chan struct{}
	once       sync.Once
	broken     map[string][]int32
	halted     map[string]Halt // set at the end of a run
	stillAt    int64           // committed offsets, all together, of a drain that waits
	stillSince time.Time
}

type place struct {
	topic     string
	partition int32
}

// NewShell makes a shell. Its callbacks are given to the kgo client, which is
// then handed to Run.
func NewShell(o Options) *Shell {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Shell{
		Options: o, group: o.Group, owners: o.Owners, letters: o.Letters, events: o.InsertEvents,
		leases: offsets.NewLeases(), workers: map[place]*worker{}, pools: map[*Target]*blockPool{}, turns: map[*Target]turns{},
		failed: make(chan error, 1), running: make(chan struct{}), softly: make(chan struct{}),
	}
}

func (s *Shell) clock() time.Time { return s.Clock() }

// Callbacks are the options that tie a kgo client to the shell.
func (s *Shell) Callbacks() []kgo.Opt {
	return []kgo.Opt{
		kgo.OnPartitionsAssigned(s.assigned),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
			s.leases.Revoked(m)
			s.stop(m)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
			s.leases.Lost(m)
			s.stop(m)
		}),
		kgo.OnOffsetsFetched(s.leases.OffsetsFetched),
		kgo.BlockRebalanceOnPoll(),
		kgo.DisableAutoCommit(),
		kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NoResetOffset().AtStart()), // no commit: the oldest; out of range: an error
	}
}

func (s *Shell) assigned(_ context.Context, cl *kgo.Client, added map[string][]int32) {
	// The client keeps a pause beyond the assignment that it was made in, and a
	// new worker knows nothing of it.
	cl.ResumeFetchPartitions(added)
	broken := s.leases.Assigned(cl, added)
	s.mu.Lock()
	for topic, ps := range broken {
		if s.broken == nil {
			s.broken = map[string][]int32{}
		}
		s.broken[topic] = append(s.broken[topic], ps...)
	}
	s.mu.Unlock()
	for topic, partitions := range added {
		for _, p := range partitions {
			s.start(topic, p)
		}
	}
}

// start makes the worker of an assignment.
func (s *Shell) start(topic string, partition int32) {
	lease, ok := s.leases.Lease(topic, partition)
	if !ok {
		return
	}
	target, err := s.Target(topic)
	if err != nil {
		s.fail(err)
		return
	}
	id, err := s.TopicID(topic)
	if err != nil {
		s.fail(err)
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.mu.Lock()
	pool := s.pools[target]
	if pool == nil {
		pool = newBlockPool(target)
		s.pools[target], s.turns[target] = pool, newTurns(target.Store.Groups())
	}
	w := &worker{
		shell: s, target: target, topic: topic, partition: partition, lease: lease, pool: pool,
		source: batcher.Source{Cluster: s.Cluster, Topic: id, Partition: partition},
		ctx:    ctx, cancel: cancel, done: make(chan struct{}), inbox: make(chan Event, 4), arrived: make(chan struct{}, 1),
		softly: s.softly, flush: -1, lastDone: s.clock(), reader: newReader(target.Decoder),
		turns: s.turns[target], turn: make(chan struct{}, 1),
	}
	w.limits = s.paced(target, topic)
	// How fast the store answers is not known yet, and a batch that is cut stays
	// as large as it is: the first ones are smaller.
	w.pace = batcher.NewPace(w.limits.MaxRows)
	for w.pace.Rows() > firstRows {
		w.pace = w.pace.Took(w.pace.Rows(), target.Deadline.Milliseconds(), target.Deadline.Milliseconds())
	}
	w.limits.MaxRows = w.pace.Rows()
	if s.Drain != nil {
		w.flush = 0
		if end, ok := s.Drain[topic][partition]; ok {
			w.flush = end
		}
	}
	w.machine = NewMachine(Config{
		Group: s.group, Source: w.source, Topic: topic, Table: target.Table.UUID, Deadline: target.Deadline.Milliseconds(), Horizon: target.Horizon.Milliseconds(),
		Views: len(target.Table.Views) > 0, Metadata: s.MetadataMax - offsets.EpochsMost(target.Store.Groups()), Parts: target.PartitionMost, Conflict: target.StopOnConflict,
		Nonce: nonce, Stem: writer.Stem(target.Table.UUID, s.group, w.source),
		StemOf: func(o dedup.Owner) string { return writer.Stem(target.Table.UUID, o.Group, o.Source) },
	})
	s.workers[place{topic, partition}] = w
	s.mu.Unlock()
	s.events.Assigned(topic, partition)
	go func() {
		defer s.guard(w)
		w.run()
	}()
}

// firstRows is the most rows of the first batch of an assignment.
const firstRows = 16_384

func nonce() uint32 {
	for {
		if n := rand.Uint32() >> 1; n != 0 { // the high bit is the store's: settled for good //nolint:gosec // tells attempts apart, keeps no secret
			return n
		}
	}
}

// paced stretches the age of a batch so that the table's partitions together
// keep max_inserts_per_second.
func (s *Shell) paced(t *Target, topic string) batcher.Limits {
	l := t.Limits
	if s.Partitions != nil {
		l = l.Stretch(s.Partitions(topic), t.PerSecond)
	}
	return l
}

// stop ends the workers of partitions that are taken away: an insert in flight
// is abandoned, and every goroutine is over before the callback returns.
func (s *Shell) stop(gone map[string][]int32) {
	var ended []*worker
	s.mu.Lock()
	for topic, partitions := range gone {
		for _, p := range partitions {
			if w := s.workers[place{topic, p}]; w != nil {
				delete(s.workers, place{topic, p})
				w.cancel(offsets.ErrFenced)
				ended = append(ended, w)
			}
		}
	}
	s.mu.Unlock()
	for _, w := range ended {
		<-w.done
		s.events.Gone(w.topic, w.partition)
	}
}

// Run consumes until ctx ends (soft: what is under way is finished, within
// patience), a drain is done, or something fails for good.
func (s *Shell) Run(ctx context.Context, cl *kgo.Client, group *offsets.Group, patience time.Duration) error {
	s.client, s.committer = cl, group
	s.refetch = func(ctx context.Context, broken map[string][]int32) (map[string]map[int32]kgo.EpochOffset, error) {
		return group.Refetch(ctx, s.leases, broken)
	}
	close(s.running)
	polling, stopPolling := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPolling()
	polled := make(chan error, 1)
	go func() {
		defer s.guard(nil)
		polled <- s.poll(polling)
	}()
	drained := make(chan struct{})
	if s.Drain != nil {
		go s.watchDrain(polling, drained)
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.failed:
	case <-drained:
	case err = <-polled:
		polled <- nil
	}
	// The order of stopping: no new batches; what is under way ends and is
	// committed; polling ends; the workers end; the group is left by Close.
	s.once.Do(func() { close(s.softly) })
	s.finish(patience)
	stopPolling()
	if perr := <-polled; err == nil {
		err = perr
	}
	halted := s.Halted()
	s.stop(s.all())
	s.mu.Lock()
	s.halted = halted
	s.mu.Unlock()
	return err
}

func (s *Shell) all() map[string][]int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := map[string][]int32{}
	for p := range s.workers {
		m[p.topic] = append(m[p.topic], p.partition)
	}
	return m
}

// finish waits for the workers to end by themselves, at most that long.
func (s *Shell) finish(patience time.Duration) {
	t := time.NewTimer(patience)
	defer t.Stop()
	s.mu.Lock()
	var ws []*worker
	for _, w := range s.workers {
		ws = append(ws, w)
	}
	s.mu.Unlock()
	for _, w := range ws {
		select {
		case <-w.done:
		case <-t.C:
			return
		}
	}
}

// poll hands records to the workers. Records of a poll come before its errors.
func (s *Shell) poll(ctx context.Context) error {
	for {
		fetches := s.client.PollRecords(ctx, 0)
		if fetches.IsClientClosed() {
			return nil
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) == 0 {
				return
			}
			s.mu.Lock()
			w := s.workers[place{p.Topic, p.Partition}]
			s.mu.Unlock()
			if w == nil || w.ctx.Err() != nil {
				for _, r := range p.Records {
					r.Recycle()
				}
				return
			}
			s.events.EndOffset(p.Topic, p.Partition, p.HighWatermark)
			w.push(p.Records)
			s.mayPause(w)
		})
		err := s.fetchErrors(ctx, fetches)
		s.mend(ctx)
		s.client.AllowRebalance()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// fetchErrors: a partition whose next offset is gone stops (I4); what passes
// is kgo's to repeat.
func (s *Shell) fetchErrors(ctx context.Context, fetches kgo.Fetches) error {
	var fatal error
	fetches.EachError(func(topic string, p int32, err error) {
		if ctx.Err() != nil || errors.Is(err, context.Canceled) {
			return
		}
		s.mu.Lock()
		w := s.workers[place{topic, p}]
		s.mu.Unlock()
		text, cure, lost := explainFetch(err)
		switch {
		case fatal != nil:
		case s.replaced(ctx, topic, err):
			fatal = &TopicReplaced{topic}
		case lost && w != nil:
			w.send(unreadable{text, cure})
		case w != nil && !w.halted.Load():
			w.fetchFails.Store(true)
			s.events.State(topic, p, Waiting, text, cure)
		case cure != "":
			fatal = fmt.Errorf("consume: %s; %s", text, cure)
		}
	})
	return fatal
}

// mend starts partitions again whose hold was broken without a word to the
// callbacks (see offsets.Leases.Assigned).
func (s *Shell) mend(ctx context.Context) {
	s.mu.Lock()
	broken := s.broken
	s.broken = nil
	s.mu.Unlock()
	if len(broken) == 0 {
		return
	}
	s.stop(broken)
	positions, err := s.refetch(ctx, broken)
	if err != nil {
		s.fail(fmt.Errorf("read the committed offsets again after a lost membership: %w", err))
		return
	}
	s.client.ResumeFetchPartitions(broken)
	s.client.SetOffsets(positions)
	for topic, partitions := range broken {
		for _, p := range partitions {
			s.start(topic, p)
		}
	}
}

// fail ends the process loudly: a dead worker in a live process would stall.
func (s *Shell) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// guard turns a panic of a goroutine into a loud end.
func (s *Shell) guard(w *worker) {
	if p := recover(); p != nil {
		where := "the poll loop"
		if w != nil {
			where = fmt.Sprintf("%s/%d", w.topic, w.partition)
		}
		s.fail(&Defect{Where: where, What: fmt.Sprint(p), Stack: debug.Stack()})
	}
}

// Defect is a bug of the sink that a goroutine died of. What was written stays
// once; the next start recovers the rest.
type Defect struct {
	Where, What string
	Stack       []byte
}

func (d *Defect) Error() string {
	return fmt.Sprintf("a defect of the sink ended %s: %s; nothing is lost, the next start goes on from the committed offsets", d.Where, d.What)
}

// Halted lists the stopped partitions with reason and cure; after a run, those
// that were stopped at its end.
func (s *Shell) Halted() map[string]Halt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.halted != nil {
		return s.halted
	}
	out := map[string]Halt{}
	for p, w := range s.workers {
		if h := w.reason.Load(); h != nil {
			out[fmt.Sprintf("%s/%d", p.topic, p.partition)] = *h
		}
	}
	return out
}
