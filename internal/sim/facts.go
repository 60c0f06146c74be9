package sim

import (
	"strconv"
	"strings"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/pipeline"
	"github.com/oncesink/oncesink/pkg/writer"
)

// askFacts asks for the windows, and in a later step for the log.
func (wk *worker) askFacts(e pipeline.AskFacts) {
	w := wk.w
	f := pipeline.Facts{Ref: e.Ref, Views: viewNames(w)}
	rest := &asked{e, &f}
	wk.requestQuietly(rest, func() answer {
		f.Safe, f.Why = w.house.safe(e.FirstAttempt)
		return answered
	}, func() {
		wk.request("AskFacts", rest, wk.houseUp, func() (pipeline.Event, answer) {
			f.Attempts = w.house.attempts(wk, e)
			f.Ended = w.house.ended(wk, e.FirstAttempt)
			return f, answered
		})
	})
}

// asked is what a question for facts goes by.
type asked struct {
	e pipeline.AskFacts
	f *pipeline.Facts
}

// requestQuietly is a first half whose answer goes on with then.
func (wk *worker) requestQuietly(what any, apply func() answer, then func()) {
	w := wk.w
	var arrive func()
	arrive = func() {
		if !w.house.up || apply() == again {
			w.within(50, deadline+1, &task{worker: wk, kind: "repeats", what: what, run: arrive})
			return
		}
		w.local(w.soon(), &task{worker: wk, kind: "goes on", what: what, run: then})
	}
	w.after(w.soon(), &task{worker: wk, kind: "arrives", what: what, from: wk, leave: arrive, run: arrive})
}

// safe: little of the blocks and seconds of every window has been used since
// then. The rest is for what arrives before the repeat does: up to two deadlines.
func (h *house) safe(from int64) (bool, string) {
	w := h.w
	if w.now-from > w.p.WindowMs/2 {
		return false, "the window's time is over"
	}
	for _, t := range h.targets() {
		n := 0
		for _, b := range t.window {
			if b.at >= from-1 { // our clock may be behind
				n++
			}
		}
		if n*4 >= w.p.Window {
			return false, "the window of " + t.name + " may be over"
		}
	}
	return true, ""
}

func (h *house) attempts(wk *worker, e pipeline.AskFacts) writer.Attempts {
	w := h.w
	var a writer.Attempts
	a.Known = h.lostLog == 0 || e.FirstAttempt > h.lostLog
	if w.spend(faultNoLog, atJudge) {
		w.logf("fault: the query log can't be read for %s", wk.name)
		a.Known = false
	}
	if !a.Known {
		return a
	}
	stem := writer.Stem(tableID, wk.proc.group.name, wk.source)
	prefix := writer.BatchPrefix(tableID, wk.proc.group.name, wk.source, e.Range, e.Digest)
	a.OnlyRejected, a.NoneCut = true, true
	finished := map[int]bool{}
	for _, l := range h.log {
		if l.started < e.FirstAttempt || !strings.HasPrefix(l.id, stem) {
			continue
		}
		if l.state != logRefused {
			a.OnlyRejected = false
		}
		if l.state != logRefused && l.state != logFinished {
			a.NoneCut = false
		}
		if strings.HasPrefix(l.id, prefix) && l.state == logFinished {
			piece, _, _ := strings.Cut(strings.TrimPrefix(l.id, prefix), "/")
			n, _ := strconv.Atoi(piece)
			finished[n] = true
		}
	}
	pieces, _ := w.pieces(wk.rows(e.Set), e.Parts)
	a.Finished = true
	for i := range pieces {
		a.Finished = a.Finished && finished[i]
	}
	return a
}

// ended lists the ranges of statements that ended well.
func (h *house) ended(wk *worker, from int64) []batcher.Range {
	stem := writer.Stem(tableID, wk.proc.group.name, wk.source)
	var out []batcher.Range
	for _, l := range h.log {
		if l.started < from || l.state != logFinished || !strings.HasPrefix(l.id, stem) {
			continue
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(l.id, stem), "/")
		first, last, _ := strings.Cut(text, "-")
		a, _ := strconv.ParseInt(first, 10, 64)
		b, _ := strconv.ParseInt(last, 10, 64)
		out = append(out, batcher.Range{First: a, Last: b})
	}
	return out
}

// read looks rows up by key.
func (wk *worker) read(e pipeline.Read) {
	w := wk.w
	wk.request("Read", &e, wk.houseUp, func() (pipeline.Event, answer) {
		present := make([]bool, e.Set.Len())
		e.Set.Each(func(i int, b *pipeline.Batch, r int32) {
			rows := w.house.table.rows[b.Records[r].Key.Lo]
			present[i] = len(rows) > 0 && (!w.p.Break.StaleRead || rows[0].at < w.now-2*deadline)
		})
		return pipeline.Found{Ref: e.Ref, Present: present}, answered
	})
}

func (wk *worker) isolate(e pipeline.Isolate) {
	w := wk.w
	wk.request("Isolate", &e, wk.houseUp, func() (pipeline.Event, answer) {
		var bad []pipeline.Refusal
		e.Set.Each(func(i int, b *pipeline.Batch, r int32) {
			rec := b.Records[r]
			if w.poisonous(rec.Fingerprint) {
				bad = append(bad, pipeline.Refusal{Pos: i, Code: 469, Message: "constraint"})
			}
		})
		return pipeline.Isolated{Ref: e.Ref, Bad: bad}, answered
	})
}

func viewNames(w *world) []string {
	var out []string
	for _, v := range w.house.views {
		out = append(out, v.name)
	}
	return out
}
