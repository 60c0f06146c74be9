package sim

import (
	"fmt"
	"strings"

	"github.com/oncesink/oncesink/pkg/pipeline"
	"github.com/oncesink/oncesink/pkg/writer"
)

// row is a row as the table keeps it.
type row struct {
	key    int
	fp     uint32
	group  string
	part   int
	offset int64
	at     int64 // when it was written
}

// block is one entry of a deduplication window.
type block struct {
	token string
	at    int64
}

// target is a table that blocks go into: the table itself, or a view's.
type target struct {
	name   string
	rows   [][]row // by key
	window []block
}

// statement is one INSERT on its way or running.
type statement struct {
	id, token string
	stem      string
	deadline  int64
	rows      []row
	worker    *worker // who waits for it; nil: abandoned
	done      func(writer.Result)
	started   int64
	running   bool
	killed    bool // its connection is gone: it may be cancelled between two steps
	entry     *logged
	inTable   bool // some of its rows are
}

// logged is a line of the query log.
type logged struct {
	id      string
	started int64
	state   logState
}

type logState uint8

const (
	logRunning logState = iota
	logFinished
	logRefused // by a code on the allow-list
	logFailed
)

// house is ClickHouse: one server, a table, its views.
type house struct {
	w        *world
	up       bool
	table    *target
	views    []*target
	running  []*statement
	log      []*logged
	lostLog  int64 // what started before this is not in the log
	brokenTo int64 // pushes to views fail until then
	busyTo   int64
	foreign  int
}

func (w *world) newHouse() *house {
	h := &house{w: w, up: true}
	h.table = &target{name: "table", rows: make([][]row, w.p.Keys)}
	for i := range w.p.Views {
		h.views = append(h.views, &target{name: fmt.Sprintf("view%d", i+1), rows: make([][]row, w.p.Keys)})
	}
	return h
}

func (h *house) targets() []*target { return append([]*target{h.table}, h.views...) }

// known tells whether the window still holds the token, and forgets what has
// left it.
func (t *target) known(w *world, token string) bool {
	t.trim(w)
	for _, b := range t.window {
		if b.token == token {
			return true
		}
	}
	return false
}

func (t *target) trim(w *world) {
	for len(t.window) > w.p.Window || len(t.window) > 0 && t.window[0].at < w.now-w.p.WindowMs {
		t.window = t.window[1:]
	}
}

// write puts a block into a target unless its window knows the token.
func (h *house) write(t *target, token string, rows []row) {
	w := h.w
	if t.known(w, token) {
		w.logf("%s drops the block %s: known", t.name, short(token))
		return
	}
	t.window = append(t.window, block{token, w.now})
	t.trim(w)
	for _, r := range rows {
		r.at = w.now
		t.rows[r.key] = append(t.rows[r.key], r)
	}
	w.logf("%s takes %s %s", t.name, short(token), rowsText(rows))
	for _, r := range rows {
		if n := len(t.rows[r.key]); n > 1 {
			w.fail("I2", "%s holds %d rows of key %d: %s", t.name, n, r.key, rowsText(t.rows[r.key]))
		}
	}
}

// post is the way of a statement to the server. It may be held back; its
// client gives up meanwhile.
func (h *house) post(s *statement) {
	w := h.w
	wk := s.worker
	if w.spend(faultLateInsert, atFlight) {
		late := w.below(4 * deadline)
		w.logf("fault: insert %s is held back for %d ms, its client gives up", short(s.token), late)
		s.killed = true
		w.within(late, loosely, &task{kind: "lands late", what: s, run: func() { h.arrive(s) }})
		w.local(w.soon(), &task{worker: wk, kind: "gives up", what: s, run: func() {
			s.done(writer.Result{Outcome: writer.Unknown, Cause: writer.Timeout, Message: "timeout", Replica: "r1", Sent: true})
		}})
		return
	}
	t := &task{kind: "arrives", what: s, from: wk, run: func() { h.arrive(s) }}
	t.leave = t.run
	w.after(w.soon(), t)
}

// arrive starts the statement on the server.
func (h *house) arrive(s *statement) {
	w := h.w
	if !h.up {
		s.done(writer.Result{Outcome: writer.Rejected, Cause: writer.Network, Message: "refused connection"})
		return
	}
	s.started, s.running = w.now, true
	s.entry = &logged{id: s.id, started: w.now}
	h.log = append(h.log, s.entry)
	h.running = append(h.running, s)
	w.local(w.below(4), &task{kind: "is checked", what: s, run: func() { h.check(s) }})
}

func (h *house) end(s *statement, state logState, r writer.Result) {
	if !s.running {
		return
	}
	s.running = false
	s.entry.state = state
	for i, x := range h.running {
		if x == s {
			h.running = append(h.running[:i], h.running[i+1:]...)
			break
		}
	}
	w := h.w
	w.logf("server: insert %s ends: %s %s", short(s.token), r.Outcome, r.Cause)
	if s.worker == nil {
		return
	}
	if r.Outcome != writer.Unknown && w.spend(faultLostAck, atFlight) {
		w.logf("fault: the acknowledgement of insert %s is lost", short(s.token))
		r = writer.Result{Outcome: writer.Unknown, Cause: writer.Network, Message: "cut", Sent: true}
	}
	r.Replica = "r1"
	w.local(w.soon(), &task{worker: s.worker, kind: "is answered", what: &ended{s, r}, run: func() { s.done(r) }})
}

// check is what the server does before it writes: the deadline, its limits,
// the values.
func (h *house) check(s *statement) {
	w := h.w
	if !s.running {
		return
	}
	if w.now > s.deadline && !w.p.Break.NoDeadline {
		h.end(s, logRefused, writer.Result{Outcome: writer.Rejected, Cause: writer.Late, Code: 395, Message: "insert deadline passed"})
		return
	}
	if w.now < h.busyTo {
		h.end(s, logRefused, writer.Result{Outcome: writer.Rejected, Cause: writer.Busy, Code: 252, Message: "too many parts"})
		return
	}
	for _, r := range s.rows {
		if w.poisonous(r.fp) {
			h.end(s, logRefused, writer.Result{Outcome: writer.Rejected, Cause: writer.Data, Code: 469, Message: "constraint"})
			return
		}
	}
	var steps []func()
	for _, id := range w.tableParts(s.rows) {
		var rows []row
		for _, r := range s.rows {
			if r.key%w.p.Split == id {
				rows = append(rows, r)
			}
		}
		token := fmt.Sprintf("%s/%d", s.token, id)
		steps = append(steps, func() { h.write(h.table, token, rows) })
	}
	for _, v := range h.views {
		for _, id := range w.tableParts(s.rows) {
			var rows []row
			for _, r := range s.rows {
				if r.key%w.p.Split == id {
					rows = append(rows, r)
				}
			}
			token := fmt.Sprintf("%s/%d", s.token, id)
			steps = append(steps, func() {
				if w.now < h.brokenTo {
					cause := writer.ViewFailed
					out := writer.Unknown
					if w.p.Break.ViewErrorIsData {
						cause, out = writer.Data, writer.Rejected
					}
					h.end(s, logFailed, writer.Result{Outcome: out, Cause: cause, Message: v.name + " fails"})
					return
				}
				h.write(v, token, rows)
			})
		}
	}
	h.steps(s, steps)
}

// steps runs a statement to its end. One whose client is gone may be cancelled
// between two steps.
func (h *house) steps(s *statement, steps []func()) {
	w := h.w
	w.writes(s, &task{kind: "writes", what: &progress{s, len(steps)}, void: func() bool { return !s.running }, run: func() {
		if !s.running {
			return
		}
		if (s.worker == nil || s.killed) && !w.p.Finish && w.either(10) {
			w.logf("server: insert %s is cancelled, its client is gone", short(s.token))
			h.end(s, logFailed, writer.Result{Outcome: writer.Unknown, Cause: writer.Network})
			return
		}
		if len(steps) == 0 {
			h.end(s, logFinished, writer.Result{Outcome: writer.Written})
			return
		}
		steps[0]()
		s.inTable = true
		if w.small != nil && !w.small.Strict && w.left == 0 && s.running && h.attended(s) {
			// Nothing is left that could tell its steps apart.
			for _, step := range steps[1:] {
				step()
			}
			h.end(s, logFinished, writer.Result{Outcome: writer.Written})
			return
		}
		h.steps(s, steps[1:])
	}})
}

// ended is a statement's end on its way to the client, progress how many steps
// it has to go.
type (
	ended struct {
		s *statement
		r writer.Result
	}
	progress struct {
		s     *statement
		steps int
	}
)

// attended: its client waits for it.
func (h *house) attended(s *statement) bool { return s.worker != nil && !s.killed && !s.worker.gone }

// writes plans a statement's next step. One whose client does not wait for it
// may take long.
func (w *world) writes(s *statement, t *task) {
	ms := w.soon() / 2
	if !w.house.attended(s) {
		w.within(ms, loosely, t)
		return
	}
	w.after(ms, t)
}

// abandon: the worker is gone, its statements go on without it.
func (h *house) abandon(wk *worker) {
	for _, s := range h.running {
		if s.worker == wk {
			s.worker = nil
		}
	}
}

// crash ends the server between any two steps.
func (h *house) crash() {
	w := h.w
	h.up = false
	h.lostLog = w.now
	for _, s := range append([]*statement(nil), h.running...) {
		h.end(s, logFailed, writer.Result{Outcome: writer.Unknown, Cause: writer.Network, Message: "connection reset"})
	}
	w.within(w.below(3*deadline), loosely, &task{kind: "the server starts", run: func() {
		h.up = true
		h.lostLog = w.now
		w.logf("ClickHouse is back")
	}})
}

func (h *house) count(stem string) int {
	n := 0
	for _, s := range h.running {
		if strings.HasPrefix(s.id, stem) {
			n++
		}
	}
	return n
}

// awaitOver is the shell's: past the time, then until nothing runs.
func (wk *worker) awaitOver(e pipeline.AwaitOver) {
	w := wk.w
	var ask func()
	ask = func() {
		if w.now-wk.proc.skew <= e.Until {
			w.after(e.Until-(w.now-wk.proc.skew)+1, &task{worker: wk, kind: "waits", what: &e, run: ask})
			return
		}
		wk.request("AwaitOver", &e, wk.houseUp, func() (pipeline.Event, answer) {
			for _, stem := range e.Stems {
				if w.house.count(stem) > 0 {
					if w.p.Break.Kill {
						for _, s := range append([]*statement(nil), w.house.running...) {
							if strings.HasPrefix(s.id, stem) {
								w.house.end(s, logFailed, writer.Result{Outcome: writer.Unknown, Cause: writer.Network})
							}
						}
						continue
					}
					return nil, again
				}
			}
			return pipeline.Done{Ref: e.Ref}, answered
		})
	}
	w.local(w.below(3), &task{worker: wk, kind: "waits", what: &e, run: ask})
}

func (wk *worker) houseUp() bool { return wk.w.house.up }
