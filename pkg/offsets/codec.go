package offsets

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// The text form, version 1:
//
//	os1. base64url( body | CRC32C of "os1." and body, big endian )
//
//	body   L | tables: n, n x 16 bytes | replicas: n, n x (length, bytes)
//	       | base time (ms, signed) | n | entries
//	       | passed, left out when 0 and no epochs follow
//	       | epochs: n, n x (signed, from the epoch before), left out when none
//	entry  first, signed, from the entry before | last - first | late | n | sent
//	late   mode: 0 none; 1 count, gaps; 2 count of runs, (gap, length - 1)
//	sent   table index | rows | digest, 8 bytes | first attempt, signed, from
//	       base | deadline, signed, from first attempt
//	       | replica index + 1 (0: none) x 2 + mixed | attempt
//
// Where nothing is under way, the text is
//
//	ose1. base64url( epochs | CRC32C of "ose1." and epochs )
//
// for whatever version the intents are of: behind a clean stop an older program
// can go on. Numbers are varints, signed ones zigzag. Lists are in order of first use and
// of the two forms of late the shorter is taken, so an intent has exactly one
// text: Decode accepts nothing that Encode wouldn't have written.
const (
	version = 1
	prefix  = "os1."
	idle    = "ose1."
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// NewerError is an intent of ours in a version that this program doesn't know.
// The partition must stop (I4): the insert it describes can't be settled here.
type NewerError struct{ Version string }

func (e *NewerError) Error() string {
	return fmt.Sprintf("the committed offset carries an intent of version %s, this sink knows version %d: run a sink at least as new as the one that wrote it", e.Version, version)
}

// CorruptError is an intent of ours that can't be read. The partition must
// stop (I4): what was in flight is unknown.
type CorruptError struct{ Reason string }

func (e *CorruptError) Error() string {
	return "the committed offset carries a damaged intent: " + e.Reason
}

// Encode writes the intent as the metadata of a commit. Times are kept to the
// millisecond. An error names a value outside the format: a bug in the caller.
func (in *Intent) Encode() (string, error) {
	if err := in.validate(); err != nil {
		return "", err
	}
	if in.Empty() {
		return sealed(idle, appendEpochs(nil, in.Epochs)), nil
	}
	tables, replicas, err := in.lists()
	if err != nil {
		return "", err
	}
	b := make([]byte, 0, 64+80*len(in.Entries))
	b = binary.AppendUvarint(b, uint64(in.MaxPartitions))
	b = binary.AppendUvarint(b, uint64(len(tables)))
	for _, t := range tables {
		b = append(b, t[:]...)
	}
	b = binary.AppendUvarint(b, uint64(len(replicas)))
	for _, r := range replicas {
		b = binary.AppendUvarint(b, uint64(len(r)))
		b = append(b, r...)
	}
	base := in.base()
	b = binary.AppendVarint(b, base)
	b = binary.AppendUvarint(b, uint64(len(in.Entries)))
	var before int64
	for i := range in.Entries {
		e := &in.Entries[i]
		b = binary.AppendVarint(b, e.Range.First-before)
		before = e.Range.First
		b = binary.AppendUvarint(b, uint64(e.Range.Last-e.Range.First))
		b = appendLate(b, e.Range.First, e.Late)
		b = binary.AppendUvarint(b, uint64(len(e.Tables)))
		for j := range e.Tables {
			s := &e.Tables[j]
			first := s.FirstAttempt.UnixMilli()
			where := uint64(slices.Index(replicas, s.Replica)+1) << 2
			if s.Mixed {
				where |= 1
			}
			if s.Vouched {
				where |= 2
			}
			b = binary.AppendUvarint(b, uint64(slices.Index(tables, s.Table)))
			b = binary.AppendUvarint(b, uint64(s.Rows))
			b = binary.BigEndian.AppendUint64(b, s.Digest)
			b = binary.AppendVarint(b, first-base)
			b = binary.AppendVarint(b, s.Deadline.UnixMilli()-first)
			b = binary.AppendUvarint(b, where)
			b = binary.AppendUvarint(b, uint64(s.Attempt))
			b = binary.BigEndian.AppendUint32(b, s.Nonce)
		}
	}
	if in.Passed > 0 || len(in.Epochs) > 0 {
		b = binary.AppendUvarint(b, uint64(in.Passed))
	}
	if len(in.Epochs) > 0 {
		b = appendEpochs(b, in.Epochs)
	}
	return sealed(prefix, b), nil
}

func appendEpochs(b []byte, epochs []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(epochs)))
	last := uint64(0)
	for _, e := range epochs {
		b = binary.AppendVarint(b, int64(e)-int64(last))
		last = e
	}
	return b
}

func sealed(kind string, body []byte) string {
	return kind + base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(body, checksum(kind, body)))
}

func checksum(kind string, body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(kind), castagnoli), castagnoli, body)
}

// lists collects the distinct tables and replicas in order of first use.
func (in *Intent) lists() (tables [][16]byte, replicas []string, err error) {
	for i := range in.Entries {
		for _, s := range in.Entries[i].Tables {
			if !slices.Contains(tables, s.Table) {
				tables = append(tables, s.Table)
			}
			if s.Replica != "" && !slices.Contains(replicas, s.Replica) {
				replicas = append(replicas, s.Replica)
			}
		}
	}
	if len(tables) > maxList || len(replicas) > maxList {
		return nil, nil, fmt.Errorf("intent: %d tables and %d replicas, at most %d each", len(tables), len(replicas), maxList)
	}
	return tables, replicas, nil
}

func appendLate(b []byte, first int64, late []int64) []byte {
	if late == nil {
		return append(b, 0)
	}
	gaps := binary.AppendUvarint(nil, uint64(len(late)))
	var runs []byte
	n, next := 0, first // next: the offset that a gap of 0 means
	for i := 0; i < len(late); {
		j := i + 1
		for j < len(late) && late[j] == late[j-1]+1 {
			j++
		}
		runs = binary.AppendUvarint(runs, uint64(late[i]-next))
		runs = binary.AppendUvarint(runs, uint64(j-i-1))
		gaps = binary.AppendUvarint(gaps, uint64(late[i]-next))
		gaps = append(gaps, make([]byte, j-i-1)...)
		next = late[j-1] + 1
		n++
		i = j
	}
	runs = append(binary.AppendUvarint(nil, uint64(n)), runs...)
	if len(runs) < len(gaps) {
		return append(append(b, 2), runs...)
	}
	return append(append(b, 1), gaps...)
}

// Decode reads the metadata of a committed offset. Empty or foreign text (the
// member id that some clients write, another program's note) is no intent:
// nil, nil.
func Decode(metadata string) (*Intent, error) {
	kind := prefix
	if strings.HasPrefix(metadata, idle) {
		kind = idle
	}
	body, ok := strings.CutPrefix(metadata, kind)
	if !ok {
		if v, ours := otherVersion(metadata); ours {
			return nil, &NewerError{Version: v}
		}
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return nil, &CorruptError{Reason: "not base64url: " + err.Error()}
	}
	if len(raw) < 4 {
		return nil, &CorruptError{Reason: "too short"}
	}
	raw, sum := raw[:len(raw)-4], binary.BigEndian.Uint32(raw[len(raw)-4:])
	if checksum(kind, raw) != sum {
		return nil, &CorruptError{Reason: "the checksum is wrong"}
	}
	r := reader{b: raw}
	in := &Intent{}
	if kind == idle {
		in.Epochs = r.epochs()
	} else {
		in = r.intent()
	}
	if r.bad || len(r.b) > 0 {
		return nil, &CorruptError{Reason: "the checksum is right, but not the content"}
	}
	if again, err := in.Encode(); err != nil || again != metadata {
		return nil, &CorruptError{Reason: "it reads as an intent that this version would not have written"}
	}
	return in, nil
}

// otherVersion tells "os", digits, a dot: an intent of another version. A
// version is told by the text before the dot alone, and never starts with 0.
func otherVersion(s string) (string, bool) {
	v, ok := strings.CutPrefix(s, "os")
	v, _, dot := strings.Cut(v, ".")
	if !ok || !dot || v == "" || v[0] == '0' {
		return "", false
	}
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return "", false
		}
	}
	return v, true
}

// reader takes values off a byte slice; bad once one was missing.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > limit {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return make([]byte, n)
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) intent() *Intent {
	in := &Intent{MaxPartitions: int(r.uint(maxPartitions))}
	tables := make([][16]byte, r.uint(maxList))
	for i := range tables {
		copy(tables[i][:], r.bytes(16))
	}
	replicas := make([]string, r.uint(maxList)+1) // 0: none
	for i := range replicas[1:] {
		replicas[i+1] = string(r.bytes(int(r.uint(maxReplica))))
	}
	base := r.int()
	n := r.uint(uint64(len(r.b))) // an entry takes more than a byte
	var before int64
	for range n {
		e := Entry{Range: batcher.Range{First: before + r.int()}}
		before = e.Range.First
		e.Range.Last = e.Range.First + int64(r.uint(maxSpan))
		e.Late = r.late(e.Range)
		for range r.uint(maxList) {
			var s Sent
			table := r.uint(maxList)
			s.Rows = int(r.uint(maxRows))
			s.Digest = binary.BigEndian.Uint64(r.bytes(8))
			first := base + r.int()
			s.FirstAttempt = time.UnixMilli(first).UTC()
			s.Deadline = time.UnixMilli(first + r.int()).UTC()
			where := r.uint(4*maxList + 3)
			s.Mixed, s.Vouched = where&1 != 0, where&2 != 0
			s.Attempt = int(r.uint(maxAttempt))
			s.Nonce = binary.BigEndian.Uint32(r.bytes(4))
			if r.bad || table >= uint64(len(tables)) || where>>2 >= uint64(len(replicas)) {
				r.bad = true
				return in
			}
			s.Table, s.Replica = tables[table], replicas[where>>2]
			e.Tables = append(e.Tables, s)
		}
		if r.bad {
			return in
		}
		in.Entries = append(in.Entries, e)
	}
	if len(r.b) > 0 {
		in.Passed = int64(r.uint(math.MaxInt64))
	}
	if len(r.b) > 0 {
		in.Epochs = r.epochs()
	}
	return in
}

func (r *reader) epochs() []uint64 {
	out := make([]uint64, r.uint(maxEpochs))
	last := int64(0)
	for i := range out {
		if last += r.int(); last < 0 || last > maxEpoch {
			r.bad = true
			return nil
		}
		out[i] = uint64(last)
	}
	return out
}

// maxLate bounds what a few bytes of runs may unfold to: a sink's batches are
// smaller, and damaged text must not take all memory.
const maxLate = 1 << 22

func (r *reader) late(within batcher.Range) []int64 {
	mode := r.uint(2)
	if mode == 0 {
		return nil
	}
	late := []int64{}
	next := within.First
	for range r.uint(uint64(len(r.b))) {
		gap, more := r.uint(maxSpan), uint64(0)
		if mode == 2 {
			more = r.uint(maxLate)
		}
		if r.bad || len(late)+int(more) >= maxLate || next > math.MaxInt64-int64(gap) {
			r.bad = true
			return nil
		}
		next += int64(gap)
		for range more + 1 {
			late = append(late, next)
			next++
		}
	}
	return late
}

func uvarintLen(v uint64) int { return len(binary.AppendUvarint(nil, v)) }
