package pipeline

import (
	"context"
	"time"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/decode"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/writer"
)

// Target is a route into one table, opened and checked: what its partitions
// share.
type Target struct {
	Server *writer.Server
	Clock  *ServerClock
	// Deadline is D, how late an insert may still start.
	Deadline time.Duration
	Table    *writer.Table
	Store    *dedup.Store
	Decoder  *decode.JSON
	Key      []string
	// PartitionMost is L: the most table partitions that one statement may
	// meet. 0: the table is not partitioned.
	PartitionMost  int
	PartitionBy    PartitionBound
	Limits         batcher.Limits
	PerSecond      float64 // max_inserts_per_second
	Horizon        time.Duration
	EventTime      bool
	Defaults       Evaluator
	StopOnConflict bool
	Pass           bool // redis on_outage: pass
}

// PartitionBound tells cheaply whether all rows of a block lie in at most
// PartitionMost partitions; where it can't, the server is asked.
type PartitionBound func(firstEventMs, lastEventMs int64) bool

// Evaluator evaluates columns' DEFAULT expressions for one batch.
type Evaluator interface {
	Evaluate(ctx context.Context, d *decode.Defaults) error
}

// Letters is where dead-lettered records go.
type Letters interface {
	// Send returns when every letter is acknowledged.
	Send(ctx context.Context, letters []OutLetter) error
}

// OutLetter is a letter with the record it is about.
type OutLetter struct {
	Letter
	Topic       string
	Source      batcher.Source
	Offset      int64
	TimestampMs int64
	Key, Value  []byte
	Headers     []Header
	Fingerprint uint32
}

// Header is a record header.
type Header struct {
	Key   string
	Value []byte
}

// Owners tells whether owners of claims can still come (F6). passed: the
// owner's group has committed past it. gone: it has, or its group has no live
// member.
type Owners interface {
	Gone(ctx context.Context, owner dedup.Owner) (Fate, error)
}

// Committer commits under a lease; *offsets.Group is one.
type Committer interface {
	Commit(ctx context.Context, c offsets.Commit) error
}

// Step is a place in the protocol that an observer can be told of.
type Step string

// The steps, in the order a batch passes them.
const (
	StepDecoding  Step = "decoding"
	StepClaimed   Step = "claimed"
	StepIntent    Step = "intent"
	StepInserting Step = "inserting"
	StepWritten   Step = "written"
	StepPublished Step = "published"
	StepCommitted Step = "committed"
)

// Events are told what happens; every func must be set (see Quiet).
type Events struct {
	Consumed  func(topic string, partition int32, records int)
	Account   func(topic string, partition int32, table string, c Counts)
	Letters   func(topic string, class string, n int)
	Insert    func(table string, outcome string, rows int, took time.Duration)
	Claim     func(rows int, took time.Duration)
	Commit    func(took time.Duration)
	Recovery  func(topic string, partition int32, why string)
	ReadBack  func(rows int)
	State     func(topic string, partition int32, state State, reason, cure string)
	Position  func(topic string, partition int32, committed, next int64, held, buffered int)
	Assigned  func(topic string, partition int32)
	Gone      func(topic string, partition int32)
	Epoch     func(table string, reason string)
	Step      func(topic string, partition int32, s Step)
	EndOffset func(topic string, partition int32, end int64)
}

// State is what a partition is doing.
type State string

// The states.
const (
	Running State = "running"
	Waiting State = "waiting"
	Gated   State = "gated"
	Stopped State = "stopped"
)

// Quiet returns Events that tell nobody.
func Quiet() Events {
	return Events{
		Consumed:  func(string, int32, int) {},
		Account:   func(string, int32, string, Counts) {},
		Letters:   func(string, string, int) {},
		Insert:    func(string, string, int, time.Duration) {},
		Claim:     func(int, time.Duration) {},
		Commit:    func(time.Duration) {},
		Recovery:  func(string, int32, string) {},
		ReadBack:  func(int) {},
		State:     func(string, int32, State, string, string) {},
		Position:  func(string, int32, int64, int64, int, int) {},
		Assigned:  func(string, int32) {},
		Gone:      func(string, int32) {},
		Epoch:     func(string, string) {},
		Step:      func(string, int32, Step) {},
		EndOffset: func(string, int32, int64) {},
	}
}
