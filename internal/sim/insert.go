package sim

import (
	"sort"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/pipeline"
	"github.com/oncesink/oncesink/pkg/writer"
)

func (wk *worker) rows(s pipeline.Set) []row {
	var rows []row
	s.Each(func(_ int, b *pipeline.Batch, i int32) {
		r := b.Records[i]
		rows = append(rows, row{key: int(r.Key.Lo), fp: r.Fingerprint, group: wk.proc.group.name, part: wk.part, offset: r.Offset})
	})
	return rows
}

// insert sends the set in pieces, as the shell does.
func (wk *worker) insert(e pipeline.Insert) {
	w := wk.w
	rows := wk.rows(e.Set)
	if len(rows) == 0 {
		w.fail("panic", "%s inserts nothing", wk.name)
	}
	pieces, pieceOf := w.pieces(rows, e.Parts)
	var written []int32
	src := wk.source
	if w.p.Break.NoTopicID {
		src.Topic = batcher.TopicID{}
	}
	var send func(i int)
	end := func(r writer.Result) {
		ev := pipeline.Inserted{Ref: e.Ref, Result: r, Written: written}
		w.local(w.soon(), &task{worker: wk, kind: "is answered", what: &ev, run: func() { wk.step(ev) }})
	}
	send = func(i int) {
		number := writer.WholeBatch
		if len(pieces) > 1 {
			number = i
		}
		s := &statement{
			token: writer.Token(src, e.Range, e.Digest, number),
			id: writer.QueryID(tableID, wk.proc.group.name, src, e.Range, e.Digest, number,
				writer.Attempt{Generation: wk.lease.generation, Number: e.Attempt}),
			stem: writer.Stem(tableID, wk.proc.group.name, src), deadline: e.Deadline, rows: pieces[i], worker: wk,
		}
		s.done = func(r writer.Result) {
			if s.worker == nil || wk.gone {
				return
			}
			s.worker = nil
			switch {
			case r.Outcome == writer.Written && i+1 < len(pieces):
				w.local(w.below(5), &task{worker: wk, kind: "sends on", what: s, run: func() { send(i + 1) }})
				return
			case i > 0 && r.Outcome == writer.Rejected && r.Cause == writer.Data:
				for at, p := range pieceOf {
					if p < i {
						written = append(written, int32(at))
					}
				}
			case i > 0 && r.Outcome == writer.Rejected:
				r.Outcome = writer.Unknown
			}
			end(r)
		}
		w.house.post(s)
	}
	w.local(w.below(3), &task{worker: wk, kind: "sends", what: &e, run: func() { send(0) }})
}

// pieces cuts rows so that each meets at most L table partitions.
func (w *world) pieces(rows []row, most int) (pieces [][]row, pieceOf []int) {
	ids := w.tableParts(rows)
	if most == 0 || len(ids) <= most {
		return [][]row{rows}, make([]int, len(rows))
	}
	pieces = make([][]row, (len(ids)+most-1)/most)
	for _, r := range rows {
		i := sort.SearchInts(ids, r.key%w.p.Split) / most
		pieces[i] = append(pieces[i], r)
		pieceOf = append(pieceOf, i)
	}
	return pieces, pieceOf
}

func (w *world) tableParts(rows []row) []int {
	var ids []int
	for _, r := range rows {
		id := r.key % w.p.Split
		if i := sort.SearchInts(ids, id); i == len(ids) || ids[i] != id {
			ids = append(ids, 0)
			copy(ids[i+1:], ids[i:])
			ids[i] = id
		}
	}
	return ids
}
