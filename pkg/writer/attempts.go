package writer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncesink/oncesink/pkg/batcher"
)

// Attempts is what the query logs say about earlier statements.
type Attempts struct {
	// Known: the logs are complete: flushed, every replica asked, none restarted since. Finished is sound without it, and sets it.
	Known bool
	// Finished: every piece of the row set ended well.
	Finished bool
	// OnlyRejected: every statement that may have written one of the rows ended in a way that proves that it wrote nothing, or there was none.
	OnlyRejected bool
	// NoneCut: every statement that may have written one of the rows ended well or proved that it wrote nothing. None was cut between the table and its views.
	NoneCut bool
	Why     string // it isn't Known
}

// Attempts reads the query logs. stem: what all statements of the group, source and table share (see Stem); exact: the row set (see BatchPrefix, or QueryIDPrefix of a
// whole batch); pieces: the number of its statements; from: the first attempt, on the server's clock; deadline: the last one's. replica: where Finished is looked for,
// "" is everywhere; OnlyRejected always asks all.
func (s *Server) Attempts(ctx context.Context, stem, exact string, pieces int, from, deadline time.Time, replica string) (Attempts, error) {
	exact, first, err := splitExact(stem, exact)
	if err != nil {
		return Attempts{}, err
	}
	var mu sync.Mutex
	var unknown []string
	done := map[int]bool{}
	onlyRejected, noneCut := true, true
	err = s.onEvery(func(r *replicaState) error {
		state, err := s.logSince(ctx, r, "query_log", from)
		if err != nil {
			return err
		}
		if state.complete && !state.flushed {
			if err := s.waitUntil(ctx, r, deadline.Add(twoFlushIntervals)); err != nil {
				return err
			}
		}
		entries, err := s.queryLog(ctx, r, stem, from)
		if err != nil {
			if state, err = denied(state, err); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if !state.complete {
			unknown = append(unknown, state.why)
		}
		for _, e := range entries {
			if e.finished && strings.HasPrefix(e.id, exact) && (replica == "" || replica == r.addr) {
				if piece, ok := e.piece(exact); ok {
					done[piece] = true
				}
			}
			if e.last >= first && !e.rejected {
				onlyRejected = false
			}
			if e.last >= first && !e.rejected && !e.finished {
				noneCut = false
			}
		}
		return nil
	})
	complete := err == nil && len(unknown) == 0
	a := Attempts{Finished: allPieces(done, pieces), NoneCut: complete && noneCut}
	switch {
	case a.Finished: // other attempts at some of the rows may still be in doubt: that is NoneCut's to tell
		a.Known = true
		return a, nil
	case err != nil:
		return a, fmt.Errorf("read the query logs for %s*: %w", exact, err)
	}
	a.Known, a.Why = complete, strings.Join(unknown, "; ")
	a.OnlyRejected = a.Known && onlyRejected
	return a, nil
}

// splitExact takes the range's first offset from a row set's prefix. An attempt at rows before it can't have written any of these: an owner never lies before the batch.
func splitExact(stem, exact string) (prefix string, first int64, err error) {
	rest, ok := strings.CutPrefix(exact, stem)
	parts := strings.Split(rest, "/") // range, digest, perhaps a piece
	if !ok || len(parts) < 2 {
		return "", 0, fmt.Errorf("query id prefix %q doesn't begin with the stem %q", exact, stem)
	}
	r, err := parseRange(parts[0])
	if err != nil {
		return "", 0, fmt.Errorf("query id prefix %q: %w", exact, err)
	}
	return stem + parts[0] + "/" + parts[1] + "/", r.First, nil
}

func parseRange(text string) (batcher.Range, error) {
	a, b, ok := strings.Cut(text, "-")
	first, err1 := strconv.ParseInt(a, 10, 64)
	last, err2 := strconv.ParseInt(b, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return batcher.Range{}, fmt.Errorf("%q is no range of offsets", text)
	}
	return batcher.Range{First: first, Last: last}, nil
}

func allPieces(done map[int]bool, pieces int) bool {
	for i := range max(pieces, 1) {
		if !done[i] {
			return false
		}
	}
	return true
}

// loggedQuery is the end of one statement as the log has it.
type loggedQuery struct {
	id       string
	last     int64 // of its range of offsets
	finished bool
	rejected bool
}

// piece reads the piece from a query id that begins with the row set's prefix.
func (q loggedQuery) piece(exact string) (int, bool) {
	text, _, ok := strings.Cut(strings.TrimPrefix(q.id, exact), "/")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil
}

// queryLog reads the statements with the stem since from, each once. One that has started and whose end isn't logged is neither finished nor rejected.
func (s *Server) queryLog(ctx context.Context, r *replicaState, stem string, from time.Time) ([]loggedQuery, error) {
	source, err := s.everywhere(ctx, r, "system.query_log")
	if err != nil {
		return nil, err
	}
	since := from.Add(-restartMargin).Unix()
	rows, err := s.read(ctx, r, 4, fmt.Sprintf("SELECT query_id, toString(type), toString(exception_code), exception FROM %s "+
		"WHERE event_date >= toDate(%d) - 1 AND event_time >= toDateTime(%[2]d) AND startsWith(query_id, %s) AND is_initial_query ORDER BY query_id", source, since, quoteText(stem)))
	if err != nil {
		return nil, err
	}
	// The statement's own table is in the stem; whether views depend on it isn't, so they are assumed.
	table := &Table{Views: []View{{}}}
	if parts := strings.Split(stem, "/"); len(parts) > 1 {
		table.UUID = parseUUID(parts[1])
	}
	byID := map[string]*loggedQuery{}
	order := []string{}
	for _, row := range rows {
		id := row[0]
		q := byID[id]
		if q == nil {
			q = &loggedQuery{id: id}
			rangeText, _, _ := strings.Cut(strings.TrimPrefix(id, stem), "/")
			if r, err := parseRange(rangeText); err == nil {
				q.last = r.Last
			} else {
				q.last = 1<<63 - 1 // not one of ours to judge: it counts
			}
			byID[id] = q
			order = append(order, id)
		}
		switch row[1] {
		case "QueryFinish":
			q.finished = true
		case "ExceptionBeforeStart":
			q.rejected = true
		case "ExceptionWhileProcessing":
			q.rejected = provesNothingWritten(int32(number(row[2])), row[3], table)
		}
	}
	out := make([]loggedQuery, 0, len(order))
	for _, id := range order {
		out = append(out, *byID[id])
	}
	return out, nil
}

// waitUntil waits until the replica's clock surely shows t.
func (s *Server) waitUntil(ctx context.Context, r *replicaState, t time.Time) error {
	for {
		now, uncertainty, err := s.clockOf(ctx, r)
		if err != nil {
			return err
		}
		left := t.Sub(now.Add(-uncertainty))
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(fmt.Errorf("wait until the query log of %s is flushed", r.addr), ctx.Err())
		}
	}
}
