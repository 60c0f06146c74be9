package pipeline

import (
	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// RecordStatus is what decoding made of a record.
type RecordStatus uint8

// The statuses.
const (
	Decoded  RecordStatus = iota
	Rejected              // undecodable: bound for the dead-letter topic
	Filtered              // a tombstone or filtered by rule: counted, never sent
)

// Record is what the machine knows of a record.
type Record struct {
	Offset      int64
	Key         batcher.Key
	EventMs     int64 // event time, milliseconds; 0 without event_time
	Fingerprint uint32
	Status      RecordStatus
	Cold        bool // older than the horizon: read in ClickHouse before it counts as new
}

// Reject says why a record was not decoded.
type Reject struct{ Class, Detail string }

// Batch is a contiguous range of offsets of one partition with the verdict of
// each of its records.
type Batch struct {
	Range   batcher.Range // Last covers trailing gaps and control records
	Records []Record
	Rejects map[int32]Reject
	Data    any // the shell's: raw records and columns

	verdicts  []verdict
	owners    map[int32]dedup.Owner // of records that wait at the gate
	read      map[int32]dedup.Owner // whose key was read in ClickHouse, with the owner met before
	stray     map[int32]uint32      // nonces of claims that a renewal left out
	lettered  map[int32]bool        // acknowledged by the dead-letter topic
	entry     *offsets.Entry        // what the intent says of the batch; nil: nothing to send
	nonce     uint32                // of its claims
	waiting   int                   // records whose gate is closed
	heldSince int64                 // server time at which it was inserted
}

// verdict is the state of one record of a batch.
type verdict uint8

const (
	vOpen     verdict = iota // to be claimed
	vNew                     // claimed by this attempt
	vMine                    // owned by this very record (or a later one of the batch) before
	vWait                    // duplicate; its owner's row is not known to be settled
	vLate                    // owned by this record since after its batch was inserted
	vOwn                     // its own row is in the table
	vFollower                // same key and fingerprint as an earlier record of the batch
	vDupProducer
	vDupGroup
	vDupTopic
	vDupTable // the key was read in ClickHouse; who put it there is not known
	vRival    // same key, other fingerprint than an earlier record of the batch; not yet lettered
	vConflict
	vDead // dead-lettered for another reason
	vFiltered
)

// settled tells verdicts behind which the offset may move.
func (v verdict) settled() bool {
	switch v {
	case vOwn, vFollower, vDupProducer, vDupGroup, vDupTopic, vDupTable, vConflict, vDead, vFiltered:
		return true
	}
	return false
}

// Counts is the account of I5: each record of a batch in exactly one class.
type Counts struct {
	Inserted, Conflicts, DeadLetters, Filtered                          int
	DupBatch, DupProducer, DupGroup, DupTopic, DupTable                 int
	FirstOffset, NextOffset, FirstEventMs, LastEventMs, RecordsConsumed int64
}

// Duplicates is the sum of all kinds.
func (c Counts) Duplicates() int {
	return c.DupBatch + c.DupProducer + c.DupGroup + c.DupTopic + c.DupTable
}

// Total is the number of records that have a class.
func (c Counts) Total() int {
	return c.Inserted + c.Conflicts + c.DeadLetters + c.Filtered + c.Duplicates()
}

func (b *Batch) counts() Counts {
	c := Counts{FirstOffset: b.Range.First, NextOffset: b.Range.Next(), RecordsConsumed: int64(len(b.Records))}
	for _, v := range b.verdicts {
		switch v {
		case vOwn:
			c.Inserted++
		case vConflict:
			c.Conflicts++
		case vDead:
			c.DeadLetters++
		case vFiltered:
			c.Filtered++
		case vFollower:
			c.DupBatch++
		case vDupProducer:
			c.DupProducer++
		case vDupGroup:
			c.DupGroup++
		case vDupTopic:
			c.DupTopic++
		case vDupTable:
			c.DupTable++
		}
	}
	return c
}

// item is the record as the store wants it.
func (b *Batch) item(row int32) dedup.Item {
	r := &b.Records[row]
	return dedup.Item{Key: r.Key, Fingerprint: r.Fingerprint, Offset: r.Offset, EventMs: r.EventMs}
}

// duplicateKind tells a duplicate's door from its owner.
func duplicateKind(group string, source batcher.Source, offset int64, o dedup.Owner) verdict {
	switch {
	case o.Group == dedup.WarmGroup:
		return vDupTable
	case o.Source != source:
		return vDupTopic
	case o.Group != group && o.Offset == offset:
		return vDupGroup
	default:
		return vDupProducer
	}
}
