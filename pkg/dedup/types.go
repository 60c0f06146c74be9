package dedup

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// Config says where the store is and how long it remembers.
type Config struct {
	Mode      string   // standalone (also ""), sentinel or cluster
	Addresses []string // of the server, the sentinels or some cluster nodes
	Master    string   // sentinel: the name of the master
	Username  string
	Password  string
	DB        int
	TLS       *tls.Config
	// SentinelUsername and SentinelPassword, where sentinels ask for their own.
	SentinelUsername, SentinelPassword string
	// AssumeNoEviction is the operator's word where CONFIG is withheld.
	AssumeNoEviction bool
	// Horizon is how long a key is remembered, Slack how much longer its entry
	// lives, against clocks that step and slots that end. 0: 24 h and 1 h.
	Horizon, Slack time.Duration
	// Groups is the number of hash-tag groups of a new domain in a cluster, a
	// power of two up to MaxGroups; the marker's figure holds for an old one.
	Groups int
	// ExpectedKeys estimates how many keys a slot will hold. nil: see Expect.
	ExpectedKeys func(slot int64) int
	// DialTimeout, ReadTimeout and PoolSize are go-redis's; 0: its defaults.
	DialTimeout, ReadTimeout time.Duration
	PoolSize                 int
}

// Domain is what is deduplicated together: one table by name.
type Domain struct {
	Database, Table string
	TableUUID       [16]byte
	// Route is the canonical definition of keys and fingerprints: name=value,
	// with blanks between and no semicolon. All who write the table need the same.
	Route          string
	EventTime      bool
	InsertDeadline time.Duration
	Group          string
}

// Hooks are asked of ClickHouse while a quarantine is on.
type Hooks struct {
	// Quiet tells whether no statement of a sink into this table that started
	// longer ago than `since` still runs on any replica, and else why not.
	Quiet func(ctx context.Context, since time.Duration) (quiet bool, why string, err error)
	// TableUUID reads the table's UUID from ClickHouse now. Open asks it when the
	// marker names another table, and adopts the domain's when it is confirmed.
	// nil: the caller does that by Adopt.
	TableUUID func(ctx context.Context) ([16]byte, error)
	// TableEmpty tells that there is nothing to verify against.
	TableEmpty func(ctx context.Context) (bool, error)
	// Known reads the largest epochs, of each hash-tag group, under which claims
	// are known to have been made, from where they outlive the processes. It is
	// asked when the store answers for the first time, and after each silence in
	// which another store may have given out claims. nil: nothing is known.
	Known func(ctx context.Context) ([]uint64, error)
}

// Events tell what happens to the store. Each func may be nil; none may block.
type Events struct {
	// EpochRaised: this client found that writes may be lost, or another table.
	EpochRaised func(group int, epoch uint64, reason string)
	// Quarantined: claims are refused until at least `until`, and why. Told
	// once a change of reason.
	Quarantined func(group int, until time.Time, reason string)
	// Opened: the quarantine is over; verify tells whether verify mode stays on.
	Opened func(group int, epoch uint64, verify bool)
}

// Item is one record's part in a call. Key, Fingerprint, Offset and EventMs
// are the record's; Nonce is what the entry is believed to hold (Renew, Gate,
// TakeOver, Release).
type Item struct {
	Key         batcher.Key
	Fingerprint uint32
	Offset      int64
	EventMs     int64
	Nonce       uint32
}

// Batch is what one attempt claims. The keys of its items differ from each
// other (see Seen). Late marks a claim made after the batch was inserted.
type Batch struct {
	Source batcher.Source
	First  int64
	Nonce  uint32
	Items  []Item
	Late   bool
}

// Verdict is the store's answer on one key.
type Verdict uint8

const (
	// New means: the key had no entry; this attempt claimed it.
	New Verdict = iota
	// Mine means: an earlier attempt of this record, or of a later record of this
	// source from Batch.First on with the same fingerprint, claimed it. Whether
	// its row was written is not known.
	Mine
	// Duplicate means: another record owns the key and its run does not cover it yet.
	Duplicate
	// Settled means: a duplicate whose owner's run covered it at this very moment, or
	// whose owner's row is in the table for good.
	Settled
	// Conflict means: another record owns the key and its fingerprint differs.
	Conflict
	// Changed means: the entry is not, or no longer, what the call expected.
	Changed
)

func (v Verdict) String() string {
	return [...]string{"new", "mine", "duplicate", "settled", "conflict", "changed"}[v]
}

// Owner is what an entry says of the record that owns the key.
type Owner struct {
	batcher.Owner
	Nonce       uint32
	Fingerprint uint32
	Taken       bool
	// Settled means: the owner's row is in the table for good, its views included.
	Settled bool
}

func (o Owner) String() string {
	taken := ""
	if o.Taken {
		taken = " taken"
	}
	return fmt.Sprintf("%s nonce %08x fingerprint %08x%s", o.Owner, o.Nonce, o.Fingerprint, taken)
}

// Answer is the verdict on the item of the same index. Owner indexes
// Reply.Owners, -1 when there is none: it is set for Duplicate, Settled and
// Conflict, for Changed unless the entry is gone, and for Mine of a claim call:
// the entry as it was met, with the nonce that it held before. Nonce is what
// the entry holds now.
type Answer struct {
	Verdict Verdict
	Owner   int32
	Nonce   uint32
}

// Reply is the answer to a call on a batch. It may be reused: Answers and
// Owners are overwritten, Ticket is a value.
type Reply struct {
	Ticket  Ticket
	Verify  bool // a key found absent must be read in ClickHouse as well
	Answers []Answer
	Owners  []Owner
}

// GateItem is a duplicate that waits for its owner.
type GateItem struct {
	Item
	Owner Owner
}

// GateState is what the gate says of one duplicate.
type GateState uint8

const (
	// GateSettled means: the owner's run covers it.
	GateSettled GateState = iota
	// GateWaiting means: not yet.
	GateWaiting
	// GateChanged means: another owner holds the key now, see GateAnswer.Owner.
	GateChanged
	// GateAbsent means: the claim is gone, released or expired.
	GateAbsent
)

func (g GateState) String() string {
	return [...]string{"settled", "waiting", "changed", "absent"}[g]
}

// GateAnswer is the answer on the item of the same index. Owner is what the
// entry holds now, unless it is absent.
type GateAnswer struct {
	State GateState
	Owner Owner
}

// Run is an acked run: rows of owners at offsets [Lo, Hi) are in ClickHouse.
type Run struct {
	Lo, Hi int64
	Known  bool
}

// MaxGroups bounds the hash-tag groups of a domain.
const MaxGroups = 32

// Ticket names the epoch of every hash-tag group that a batch touched. It is a
// value; the zero ticket touched none.
type Ticket struct {
	epochs [MaxGroups]uint64
}

// Equal tells whether both touched the same groups under the same epochs.
func (t Ticket) Equal(o Ticket) bool { return t == o }

// Holds tells whether t covers everything o touched under the same epochs: what
// was read under t is then still true of claims made under o.
func (t Ticket) Holds(o Ticket) bool {
	for g, epoch := range o.epochs {
		if epoch != 0 && t.epochs[g] != epoch {
			return false
		}
	}
	return true
}

// Merge unites two tickets of one batch. It fails where they touched a group
// under different epochs: the older claims there are void.
func (t Ticket) Merge(o Ticket) (Ticket, bool) {
	for g, epoch := range o.epochs {
		if epoch == 0 {
			continue
		}
		if t.epochs[g] != 0 && t.epochs[g] != epoch {
			return t, false
		}
		t.epochs[g] = epoch
	}
	return t, true
}
