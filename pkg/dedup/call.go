package dedup

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// op is what one call asks of one hash-tag group.
type op uint8

const (
	opClaim op = iota
	opRenew
	opFind
	opTake
	opRelease
	opAcked
	opPublish
	opNames
	opRaise
	opOpen
	ops
)

var opText = [ops]string{"claim", "renew", "gate", "takeover", "release", "acked", "publish", "names", "raise", "open"}

// status is how the group took the call.
type status uint8

const (
	stOK         status = iota
	stMissing           // no marker
	stMoved             // another server process or replication history
	stSwapped           // the marker names another table
	stEpoch             // not the expected epoch
	stQuarantine        // claims are refused
	stShape             // another domain name, route or number of groups
	stVersion           // a format that this build does not know
)

// head is what every call of a domain announces.
type head struct {
	table   [16]byte
	name    string // database and table, escaped
	route   string // the route's definition
	groups  int
	d       int64 // insert deadline, ms
	h       int64 // horizon, ms
	cutoff  int64 // ms a cut-off master may still answer
	slack   int64 // ms
	slot    int64 // slot length of a new domain, ms
	arrival bool  // slots are of arrival, not of event time
}

func (h *head) tableText() string { return hex.EncodeToString(h.table[:]) }

// row is one item on its way, in the order (group, slot, key).
type row struct {
	key       batcher.Key
	slot      int64
	offset    int64
	fp, nonce uint32
	index     int32 // in the caller's list
	want      int32 // take: in call.wants
}

// want is the entry that a take-over expects.
type want struct {
	owner  int32 // in call.owners
	taken  bool
	offset int64
	nonce  uint32
}

// entry is what a claim stores under its key.
type entry struct {
	id           uint32 // of the interned owner
	fresh, taken bool
	offset       int64
	fp, nonce    uint32
}

// Codes of verdicts between client and store; see lua/claim.lua. codeMineMet,
// and 2 to 5, come with the entry that was met.
const (
	codeNew       = '0'
	codeMine      = '1'
	codeDuplicate = '2'
	codeSettled   = '3'
	codeConflict  = '4'
	codeChanged   = '5'
	codeAbsent    = '6'
	codeMineMet   = '7'
	codeNewAgain  = '8'
)

// released tells an entry that a release left behind.
func (e *entry) released() bool { return e.id == 0 }

// doneNonce is the nonce of a claim whose row is in the table for good.
func doneNonce(table [16]byte) uint32 { return binary.BigEndian.Uint32(table[:4]) | 1<<31 }

func hasEntry(code byte) bool {
	return code >= codeDuplicate && code <= codeChanged || code == codeMineMet
}

// call is one operation on one hash-tag group, and its answer.
type call struct {
	op    op
	group int
	head  *head
	epoch uint64 // the expected one, 0: any (raise: the one seen, 0: no marker)
	known uint64 // the largest one that the client knows

	owner  string
	nonce  uint32
	first  int64
	late   bool
	done   bool // release: the row is in the table for good
	rows   []row
	wants  []want
	owners []string
	lo, hi int64
	ids    []uint32

	swapped   bool // raise: because the table was swapped,
	seen      [16]byte
	endHold   bool // open: end the quarantine,
	endVerify bool // and verify mode

	err      error
	status   status
	got      uint64 // epoch
	verify   bool
	now      int64 // the store's clock, ms
	q        int64
	d        int64
	h        int64
	cutoff   int64
	table    [16]byte
	said     string // stShape, stVersion: what the marker says
	verdicts []byte
	entries  []entry
	run      Run
	met      bool // opAcked: the owner is known, with a run or without
	names    []string
}

// reset makes the call ready for another operation, keeping its buffers.
func (c *call) reset(o op, group int, h *head) {
	*c = call{op: o, group: group, head: h, verdicts: c.verdicts[:0], entries: c.entries[:0], wants: c.wants[:0], owners: c.owners[:0], names: c.names[:0], ids: c.ids[:0]}
}

// answerless clears what an earlier try of the same call answered.
func (c *call) answerless() {
	c.err, c.status, c.got, c.verdicts, c.entries, c.names = nil, stOK, 0, c.verdicts[:0], c.entries[:0], c.names[:0]
	c.run, c.met = Run{}, false
}

// backend runs calls, each of another hash-tag group, and sets either their
// err or their answer. Calls that answer an err are unknown: done or not.
type backend interface {
	exec(ctx context.Context, calls []*call)
	// settled tells that no migration of the group's slot is under way.
	settled(ctx context.Context, group int) (bool, string, error)
	close() error
}

func parseRun(text string) Run {
	for i := 0; i < len(text); i++ {
		if text[i] != ',' {
			continue
		}
		lo, err1 := strconv.ParseInt(text[:i], 10, 64)
		hi, err2 := strconv.ParseInt(text[i+1:], 10, 64)
		return Run{Lo: lo, Hi: hi, Known: err1 == nil && err2 == nil}
	}
	return Run{}
}
