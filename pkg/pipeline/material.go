package pipeline

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/decode"
	"github.com/oncesink/oncesink/pkg/dedup"
)

// material is what a batch is made of: the raw records, kept until the offset
// is committed past them, and the columns of the rows that are to be sent.
type material struct {
	raw   []*kgo.Record // of Batch.Records[i]
	block *decode.Block
	rows  []int32 // Batch.Records index of each row of block, ascending
	bytes int
}

// filling is a batch being put together.
type filling struct {
	batch *Batch
	mat   *material
	want  batcher.Want
	state batcher.Filling
}

// take decodes a record into the batch. A record that can't be decoded stays
// in the batch with its reason.
func (w *worker) take(f *filling, r *kgo.Record, now int64) {
	f.state.Next = r.Offset + 1
	if f.state.Rows == 0 && f.state.SinceMs == 0 {
		f.state.SinceMs = now
	}
	if r.Attrs.IsControl() {
		w.discard(r) // a transaction's end: it covers an offset, nothing else
		return
	}
	i := int32(len(f.batch.Records))
	rec := Record{Offset: r.Offset}
	row, reject := w.reader.decode(f.mat.block, r)
	if reject == nil {
		rec.Key, rec.EventMs = row.Key, row.EventTimeMs
		rec.Fingerprint = dedup.Fold(row.Fingerprint)
		rec.Cold = w.target.EventTime && rec.EventMs < f.state.SinceMs-w.target.Horizon.Milliseconds()
		f.mat.rows = append(f.mat.rows, i)
	} else {
		rec.Status = Rejected
		if f.batch.Rejects == nil {
			f.batch.Rejects = map[int32]Reject{}
		}
		f.batch.Rejects[i] = Reject{Class: reject.Class, Detail: reject.Error()}
	}
	f.batch.Records = append(f.batch.Records, rec)
	f.mat.raw = append(f.mat.raw, r)
	n := weight(r)
	f.mat.bytes += n
	if f.want.Exact {
		w.exact.Add(int64(n))
		w.shell.mayResume(w)
	}
	f.state.Bytes += n
	f.state.Rows++
}

// recordOverhead is what a buffered record costs beside its bytes.
const recordOverhead = 224

// reader decodes records for one goroutine.
type reader struct {
	decoder *decode.JSON
	current *kgo.Record
	header  func(name string) ([]byte, bool)
}

func newReader(d *decode.JSON) *reader {
	r := &reader{decoder: d}
	r.header = func(name string) ([]byte, bool) {
		for i := range r.current.Headers {
			if r.current.Headers[i].Key == name {
				return r.current.Headers[i].Value, true
			}
		}
		return nil, false
	}
	return r
}

func (d *reader) decode(b *decode.Block, r *kgo.Record) (decode.Row, *decode.Reject) {
	d.current = r
	rec := decode.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, TimestampMs: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
	if len(r.Headers) > 0 {
		rec.Headers = d.header
	}
	return d.decoder.Append(b, &rec)
}

// block returns columns with exactly the rows of the set, in its order. The
// block of the batch itself serves when the set lies in one batch; what was
// dropped from it before is decoded again from the raw records. fresh tells
// that the block is the caller's to give back.
func (w *worker) block(s Set) (b *decode.Block, fresh bool, err error) {
	if len(s.Parts) == 1 {
		p := s.Parts[0]
		m := p.Batch.Data.(*material)
		if same(m.rows, p.Rows) {
			return m.block, false, nil
		}
		if keep := w.subset(m.rows, p.Rows); keep != nil {
			m.block.Keep(keep)
			m.rows = append(m.rows[:0], p.Rows...)
			return m.block, false, nil
		}
	}
	return w.decoded(s)
}

// decoded decodes the rows of the set again, into a block of its own.
func (w *worker) decoded(s Set) (b *decode.Block, fresh bool, err error) {
	if b, err = w.columns(); err != nil {
		return nil, false, err
	}
	d := newReader(w.target.Decoder)
	s.Each(func(_ int, batch *Batch, row int32) {
		if err != nil {
			return
		}
		m := batch.Data.(*material)
		if _, reject := d.decode(b, m.raw[row]); reject != nil {
			err = &changedError{fmt.Errorf("record %s@%d could be decoded before and now can't: %w", w.source, m.raw[row].Offset, reject)}
		}
	})
	if err != nil {
		w.pool.put(b)
		return nil, false, err
	}
	return b, true, nil
}

// changedError: the same bytes decoded before and do not now.
type changedError struct{ error }

func changed(err error) bool { return errors.As(err, new(*changedError)) }

func same(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// subset tells which of the rows to keep so that want is left; nil when some
// of want is not there.
func (w *worker) subset(rows, want []int32) []bool {
	keep := w.keep[:0]
	j := 0
	for _, r := range rows {
		hit := j < len(want) && want[j] == r
		if hit {
			j++
		}
		keep = append(keep, hit)
	}
	w.keep = keep
	if j != len(want) {
		return nil
	}
	return keep
}

// release gives the memory of a committed batch back.
func (w *worker) release(b *Batch) int {
	m := b.Data.(*material)
	for _, r := range m.raw {
		r.Recycle()
	}
	if m.block != nil {
		w.pool.put(m.block)
	}
	n := m.bytes
	b.Data = nil
	clear(m.raw)
	m.raw, m.rows, m.block, m.bytes = m.raw[:0], m.rows[:0], nil, 0
	if len(w.idle) < idleMaterials {
		w.idle = append(w.idle, m)
	}
	return n
}

// idleMaterials is how many a worker keeps: one fills up while one is sent and
// one waits for its commit.
const idleMaterials = 3

func (w *worker) newMaterial(block *decode.Block) *material {
	if n := len(w.idle); n > 0 {
		m := w.idle[n-1]
		w.idle = w.idle[:n-1]
		m.block = block
		return m
	}
	return &material{block: block, raw: make([]*kgo.Record, 0, w.usual), rows: make([]int32, 0, w.usual)}
}

// claimItems lists the keys of a claim. The main lane has one effect under way
// at a time, so its list is used again.
func (w *worker) claimItems(e Claim) []dedup.Item {
	if e.Lane != LaneMain {
		return items(e.Set, 0)
	}
	out := slices.Grow(w.items[:0], e.Set.Len())
	for _, p := range e.Set.Parts {
		for _, row := range p.Rows {
			out = append(out, p.Batch.item(row))
		}
	}
	w.items = out
	return out
}
