package offsets

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// Intent is the durable list of inserts under way or next for one partition.
// It travels in the metadata of the partition's committed offset.
type Intent struct {
	// MaxPartitions is the limit L of table partitions one statement may meet
	// when the rows were cut into pieces; 0: not cut. The pieces follow from
	// the rows and L, so L must survive a change of the server's setting.
	MaxPartitions int
	Entries       []Entry
	// Passed: the group had committed past every offset below it before an
	// operator moved the offset back. Their rows that are in a table are in its
	// views too (I1). 0: not moved back.
	Passed int64
	// Epochs are the largest of the dedup store that the process knew, of each
	// hash-tag group: no claim behind a row of this partition was made under a
	// larger one. 0: not known.
	Epochs []uint64
}

// Entry is one set of rows: a range of offsets and what was made of it for
// each target table.
type Entry struct {
	Range batcher.Range
	// Late lists the offsets inside Range that are inserted as a set of their
	// own, because they became new after the batch around them was inserted.
	// Ascending; nil: the set is the whole range, less what later entries list.
	Late   []int64
	Tables []Sent
}

// Sent is what was sent, or is about to be, to one table.
type Sent struct {
	Table        [16]byte // UUID
	Rows         int
	Digest       uint64
	Deadline     time.Time // server clock, ms: no statement starts later
	FirstAttempt time.Time // server clock, ms: never moved by a re-commit
	Replica      string    // where the statement goes; empty: not known
	Mixed        bool      // another token was used for some of these rows
	// Vouched: an operator has recomputed the views for this range, so the
	// table's word counts for them too.
	Vouched bool
	Attempt int
	Nonce   uint32 // of the claims behind it: claims that still hold it prove that no later attempt followed
}

// Bounds of the format. They keep WorstCase honest, and are far outside what
// a sink meets: a value beyond them is a bug in the caller.
const (
	maxRows       = 1<<28 - 1
	maxSpan       = 1<<35 - 1 // offsets from the first to the last of a range
	maxAttempt    = 1<<21 - 1
	maxPartitions = 1<<28 - 1
	maxReplica    = 255 // bytes of a replica's name
	maxDrift      = 1<<41 - 1
	maxWait       = 1<<34 - 1
	maxList       = 127 // distinct tables or replicas
	maxEpochs     = 32
	maxEpoch      = 1<<55 - 1 // microseconds: of the year 3111
)

// validate refuses what Encode can't write or Decode couldn't give back.
func (in *Intent) validate() error {
	if in.MaxPartitions < 0 || in.MaxPartitions > maxPartitions {
		return fmt.Errorf("intent: %d partitions a statement is outside 0..%d", in.MaxPartitions, maxPartitions)
	}
	if in.Passed < 0 {
		return fmt.Errorf("intent: passed offset %d is negative", in.Passed)
	}
	if in.Empty() && len(in.Epochs) == 0 {
		return errors.New("intent: no entries; commit empty metadata instead")
	}
	if len(in.Epochs) > maxEpochs {
		return fmt.Errorf("intent: %d epochs, at most %d", len(in.Epochs), maxEpochs)
	}
	for _, e := range in.Epochs {
		if e > maxEpoch {
			return fmt.Errorf("intent: epoch %d is outside 0..%d", e, int64(maxEpoch))
		}
	}
	for i := range in.Entries {
		if err := in.Entries[i].validate(in.base()); err != nil {
			return fmt.Errorf("intent: entry %d %s: %w", i, in.Entries[i].Range, err)
		}
	}
	return nil
}

func (e *Entry) validate(base int64) error {
	if e.Range.First < 0 || e.Range.Last < e.Range.First || e.Range.Last-e.Range.First > maxSpan {
		return errors.New("not a range of offsets")
	}
	if e.Late != nil && len(e.Late) == 0 {
		return errors.New("late offsets are empty but not nil")
	}
	if len(e.Late) > maxLate {
		return fmt.Errorf("%d late offsets, at most %d", len(e.Late), maxLate)
	}
	for i, o := range e.Late {
		if !e.Range.Contains(o) || i > 0 && o <= e.Late[i-1] {
			return fmt.Errorf("late offset %d is outside the range or out of order", o)
		}
	}
	if len(e.Tables) == 0 || len(e.Tables) > maxList {
		return fmt.Errorf("%d tables, want 1 to %d", len(e.Tables), maxList)
	}
	for i := range e.Tables {
		if err := e.Tables[i].validate(base); err != nil {
			return fmt.Errorf("table %x: %w", e.Tables[i].Table, err)
		}
	}
	return nil
}

func (s *Sent) validate(base int64) error {
	first := s.FirstAttempt.UnixMilli()
	switch drift, wait := first-base, s.Deadline.UnixMilli()-first; {
	case s.Rows < 0 || s.Rows > maxRows:
		return fmt.Errorf("%d rows are outside 0..%d", s.Rows, maxRows)
	case s.Attempt < 0 || s.Attempt > maxAttempt:
		return fmt.Errorf("attempt %d is outside 0..%d", s.Attempt, maxAttempt)
	case len(s.Replica) > maxReplica:
		return fmt.Errorf("the replica's name has %d bytes, at most %d fit", len(s.Replica), maxReplica)
	case drift < -maxDrift || drift > maxDrift:
		return fmt.Errorf("first attempt %s is decades from that of the first entry", s.FirstAttempt.UTC())
	case wait < -maxWait || wait > maxWait:
		return fmt.Errorf("deadline %s and first attempt %s are months apart", s.Deadline.UTC(), s.FirstAttempt.UTC())
	}
	return nil
}

// base is the time that all others are told from, in ms.
func (in *Intent) base() int64 {
	if len(in.Entries) == 0 || len(in.Entries[0].Tables) == 0 {
		return 0
	}
	return in.Entries[0].Tables[0].FirstAttempt.UnixMilli()
}

// Empty tells that no insert is under way, nor was the offset moved back: there
// is nothing but epochs, if those.
func (in *Intent) Empty() bool { return len(in.Entries) == 0 && in.Passed == 0 }

// Lists tells whether an insert under way may hold the row of the record.
func (in *Intent) Lists(offset int64) bool {
	if in == nil {
		return false
	}
	return slices.ContainsFunc(in.Entries, func(e Entry) bool {
		if e.Late != nil {
			return slices.Contains(e.Late, offset)
		}
		return e.Range.First <= offset && offset <= e.Range.Last
	})
}

// EpochsMost is how many bytes of metadata the epochs of that many hash-tag
// groups can need, beside those of WorstCase.
func EpochsMost(groups int) int { return ((1+8*groups)*8 + 5) / 6 }

// Size is the length of the encoded text; 0 for one that Encode refuses.
func (in *Intent) Size() int {
	text, err := in.Encode()
	if err != nil {
		return 0
	}
	return len(text)
}

// WorstCase is the longest text that an intent of that many entries can need,
// each for so many tables, with so many late offsets in all, whatever the
// figures in it become by re-commits. It is compared with the broker's
// offset.metadata.max.bytes *before* a claim, so that a batch that has claimed
// always finds room. Replicas are the configured addresses; without any, three
// names of 64 bytes are assumed.
func WorstCase(entries, tables, late int, replicas ...string) int {
	names := 3 * (1 + 64)
	if len(replicas) > 0 {
		names = 0
		for _, r := range replicas {
			names += uvarintLen(uint64(len(r))) + len(r)
		}
	}
	const (
		head     = 4 + 1 + 1 + 10 + 2 // L, two list lengths, base time, entry count
		sent     = 1 + 4 + 8 + 6 + 5 + 2 + 3 + 4
		entry    = 10 + 5 + 5 + 1 // first, span, late mode and count, table count
		oneLate  = 5
		checksum = 4
		passed   = 9
	)
	n := head + 16*tables + names + entries*(entry+tables*sent) + late*oneLate + passed + checksum
	return len(prefix) + (n*8+5)/6
}
