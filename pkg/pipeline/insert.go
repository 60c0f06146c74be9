package pipeline

import (
	"context"
	"sort"
	"strconv"
	"time"

	"github.com/oncesink/oncesink/pkg/decode"
	"github.com/oncesink/oncesink/pkg/writer"
)

// insert sends the set of an effect: one native block a statement, in pieces
// where it meets more table partitions than one statement may.
func (w *worker) insert(e Insert) Event {
	b, fresh, err := w.block(e.Set)
	if err != nil {
		return w.cannotDecode(err)
	}
	if fresh {
		defer w.pool.put(b)
	}
	pieces, pieceOf, err := w.pieces(b, e.Set, e.Parts)
	if err != nil {
		return Inserted{Ref: e.Ref, Result: writer.Result{Outcome: writer.Rejected, Cause: writer.Network, Message: "ask for the table partitions of the rows: " + err.Error()}}
	}
	w.shell.events.Step(w.topic, w.partition, StepInserting)
	start := time.Now()
	var r writer.Result
	var written []int32
	for i, piece := range pieces {
		r = w.insertPiece(e, piece, i, len(pieces))
		if r.Outcome == writer.Written {
			continue
		}
		if i > 0 && r.Outcome == writer.Rejected && r.Cause == writer.Data {
			for row, p := range pieceOf {
				if p < i {
					written = append(written, int32(row))
				}
			}
		} else if i > 0 && r.Outcome == writer.Rejected {
			// Earlier pieces are in: nothing can be said of the whole but that.
			r.Outcome = writer.Unknown
			r.Message = "after " + plural(i, "piece") + " of the batch: " + r.Message
		}
		break
	}
	if len(pieces) > 1 {
		for _, p := range pieces {
			w.pool.put(p)
		}
	}
	if w.ctx.Err() != nil {
		return nil
	}
	w.shell.events.Insert(w.target.Table.String(), r.Outcome.String(), b.Rows(), time.Since(start))
	if r.Outcome == writer.Written {
		w.shell.events.Step(w.topic, w.partition, StepWritten)
	}
	return Inserted{Ref: e.Ref, Result: r, Written: written}
}

// columns is an empty block for an effect to decode into. Its defaults are the server's to
// evaluate: one that is away, or refuses, is waited out. An error says that the
// assignment is over.
func (w *worker) columns() (b *decode.Block, err error) {
	lives, err := w.until("evaluate the DEFAULT expressions of the columns", nil, func() (err error) {
		b, err = w.pool.get(w.ctx)
		return err
	})
	if !lives {
		return nil, err
	}
	return b, nil
}

// cannotDecode: see changedError.
func (w *worker) cannotDecode(err error) Event {
	if w.ctx.Err() != nil {
		return nil
	}
	return Broken{Reason: err.Error(), Cure: "the table's columns changed while rows were under way; start the sink again"}
}

func (w *worker) insertPiece(e Insert, b *decode.Block, piece, of int) writer.Result {
	number := writer.WholeBatch
	if of > 1 {
		number = piece
	}
	return w.target.Server.Insert(w.ctx, e.Replica, &writer.Statement{
		Table: w.target.Table, Input: b.Input(), Rows: b.Rows(),
		Token:    writer.Token(w.source, e.Range, e.Digest, number),
		QueryID:  writer.QueryID(w.target.Table.UUID, w.shell.group, w.source, e.Range, e.Digest, number, writer.Attempt{Generation: w.lease.Generation(), Number: e.Attempt}),
		Deadline: time.UnixMilli(e.Deadline).UTC(), Settings: w.limitFor(e.Parts),
	})
}

// limitFor lets pieces through that were cut by a larger L than ours: the
// intent of a sink that was set otherwise named it.
func (w *worker) limitFor(parts int) map[string]string {
	ours := w.target.PartitionMost
	if ours <= 0 || parts > 0 && parts <= ours {
		return nil
	}
	return map[string]string{"max_partitions_per_insert_block": strconv.Itoa(parts)}
}

// pieces cuts the rows of a block by table partition, ascending by partition
// id, so that each piece meets at most L of them. It follows from the rows and
// L alone. pieceOf tells the piece of each row; nil: there is one.
func (w *worker) pieces(b *decode.Block, s Set, most int) (pieces []*decode.Block, pieceOf []int, err error) {
	whole := []*decode.Block{b}
	if most <= 0 || w.target.PartitionMost > 0 && most >= w.target.PartitionMost && w.fewPartitions(s) {
		return whole, nil, nil
	}
	ids, err := w.target.Server.PartitionIDs(w.ctx, w.target.Table, b.Input(), b.Rows())
	if err != nil || ids == nil {
		return whole, nil, err
	}
	distinct := map[string]int{}
	for _, id := range ids {
		distinct[id] = 0
	}
	if len(distinct) <= most {
		return whole, nil, nil
	}
	order := make([]string, 0, len(distinct))
	for id := range distinct {
		order = append(order, id)
	}
	sort.Strings(order)
	for i, id := range order {
		distinct[id] = i / most
	}
	out := make([]*decode.Block, (len(order)+most-1)/most)
	for i := range out {
		out[i] = w.pool.bare()
	}
	for row, id := range ids {
		out[distinct[id]].AppendFrom(b, row)
		pieceOf = append(pieceOf, distinct[id])
	}
	return out, pieceOf, nil
}

// fewPartitions tells cheaply, from the event times, that one statement will do.
func (w *worker) fewPartitions(s Set) bool {
	if w.target.PartitionBy == nil {
		return false
	}
	first, last, some := int64(0), int64(0), false
	s.Each(func(_ int, b *Batch, row int32) {
		ms := b.Records[row].EventMs
		if !some || ms < first {
			first = ms
		}
		if !some || ms > last {
			last = ms
		}
		some = true
	})
	return w.target.PartitionBy(first, last)
}

// read looks the rows up in ClickHouse by key.
func (w *worker) read(e Read) Event {
	b, fresh, err := w.readBlock(e)
	if err != nil {
		return w.cannotDecode(err)
	}
	if fresh {
		defer w.pool.put(b)
	}
	present := make([]bool, b.Rows())
	lives, _ := w.until("read "+plural(len(present), "key")+" back from ClickHouse", nil, func() error {
		return w.target.Server.ReadBack(w.ctx, w.target.Table, w.target.Key, b.Columns(w.target.Key...), present)
	})
	if !lives {
		return nil
	}
	w.shell.events.ReadBack(len(present))
	return Found{Ref: e.Ref, Present: present}
}

// readBlock is a block of the set for reading. The gate lane reads batches that
// the main lane may be working on, so it takes a block of its own.
func (w *worker) readBlock(e Read) (*decode.Block, bool, error) {
	if e.Lane == LaneMain {
		return w.block(e.Set)
	}
	return w.decoded(e.Set)
}

// isolate finds the rows that the server refuses.
func (w *worker) isolate(e Isolate) Event {
	b, fresh, err := w.block(e.Set)
	if err != nil {
		return w.cannotDecode(err)
	}
	if fresh {
		defer w.pool.put(b)
	}
	scratch := w.pool.bare()
	defer w.pool.put(scratch)
	take := func(lo, hi int) decode.Input {
		scratch.Reset()
		for i := lo; i < hi; i++ {
			scratch.AppendFrom(b, i)
		}
		return scratch.Input()
	}
	var bad []writer.BadRow
	lives, _ := w.until("find the rows that ClickHouse refuses", nil, func() (err error) {
		bad, err = w.target.Server.Isolate(w.ctx, w.target.Table, b.Input(), b.Rows(), take)
		return err
	})
	if !lives {
		return nil
	}
	out := make([]Refusal, 0, len(bad))
	for _, r := range bad {
		out = append(out, Refusal{Pos: r.Row, Code: r.Code, Message: r.Message})
	}
	return Isolated{Ref: e.Ref, Bad: out}
}

// blockPool keeps columns of one table for reuse.
type blockPool struct {
	target *Target
	free   chan *decode.Block
}

func newBlockPool(t *Target) *blockPool {
	return &blockPool{target: t, free: make(chan *decode.Block, 64)}
}

// bare returns an empty block for rows of other blocks: nothing is to be
// decoded into it.
func (p *blockPool) bare() *decode.Block {
	select {
	case b := <-p.free:
		return b
	default:
		return p.target.Decoder.NewBlock()
	}
}

// get returns an empty block whose defaults were evaluated for it.
func (p *blockPool) get(ctx context.Context) (*decode.Block, error) {
	b := p.bare()
	if err := p.target.setDefaults(ctx, b); err != nil {
		p.put(b)
		return nil, err
	}
	return b, nil
}

func (p *blockPool) put(b *decode.Block) {
	b.Reset()
	select {
	case p.free <- b:
	default: // more than will be needed again
	}
}

// attempts asks the query log what became of the attempts at a set.
func (w *worker) attempts(e AskFacts, from, deadline time.Time) (writer.Attempts, error) {
	if e.Set.Len() == 0 {
		return w.asked(e, 1, from, deadline)
	}
	b, fresh, err := w.block(e.Set)
	if err != nil {
		return writer.Attempts{}, err
	}
	if fresh {
		defer w.pool.put(b)
	}
	pieces, _, err := w.pieces(b, e.Set, e.Parts)
	if err != nil {
		return writer.Attempts{}, err
	}
	if len(pieces) > 1 {
		defer func() {
			for _, p := range pieces {
				w.pool.put(p)
			}
		}()
	}
	return w.asked(e, len(pieces), from, deadline)
}

func (w *worker) asked(e AskFacts, pieces int, from, deadline time.Time) (writer.Attempts, error) {
	exact := writer.BatchPrefix(w.target.Table.UUID, w.shell.group, w.source, e.Range, e.Digest)
	return w.target.Server.Attempts(w.ctx, writer.Stem(w.target.Table.UUID, w.shell.group, w.source), exact, pieces, from, deadline, e.Replica)
}
