package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/oncesink/oncesink/pkg/decode"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// begin starts the machine with what the group had committed. False: the
// partition is stopped before it began.
func (w *worker) begin(c offsets.Committed) bool {
	halt := func(reason, cure string) bool {
		w.step(Broken{Reason: reason, Cure: cure})
		w.halted.Store(true)
		return false
	}
	intent, err := offsets.Decode(c.Metadata)
	if err != nil {
		var newer *offsets.NewerError
		if errors.As(err, &newer) {
			return halt(err.Error(), "a newer version of the sink wrote it: run that version, or one as new, until the partition is idle")
		}
		return halt(err.Error(), "`sink offsets show` prints it; `sink offsets resolve` sets it aside after the range was checked")
	}
	start := c.Offset
	w.startedFresh = start < 0
	var logStart, logEnd int64
	lives, err := w.until("read the bounds of the log", nil, func() (err error) {
		logStart, logEnd, err = w.shell.LogBounds(w.ctx, w.topic, w.partition)
		return err
	})
	if err != nil || !lives {
		return true // the assignment is over; run sees it
	}
	if start >= 0 && start < logStart {
		return halt(fmt.Sprintf("offsets [%d..%d] of %s/%d are gone: the log starts at %d, the group had committed %d", start, logStart-1, w.topic, w.partition, logStart, start),
			"retention or a deletion removed them before they were read; `sink offsets resolve` goes on behind the gap once you have accepted the loss or have another source for it")
	}
	if start < 0 {
		start = logStart
	}
	w.step(Assigned{Committed: start, Intent: intent, End: logEnd})
	return w.machine.Halted() == nil
}

// send brings news from outside to the worker.
func (w *worker) send(ev Event) {
	select {
	case w.inbox <- ev:
	case <-w.ctx.Done():
	case <-w.done:
	}
}

// share is how many bytes one partition may buffer: an even part of half the
// budget. The other half is for what was fetched and not handed over yet, the
// columns, and what the collector has not come to; and records that wait for
// less time are still in the processor's caches when their turn comes.
func (s *Shell) share() int64 {
	s.mu.Lock()
	n := len(s.workers)
	s.mu.Unlock()
	if s.MemoryLimit <= 0 {
		return 1 << 40
	}
	return s.MemoryLimit / 2 / int64(max(n, 1))
}

// mayPause stops fetching a partition that buffers more than its share; the
// others go on.
func (s *Shell) mayPause(w *worker) {
	if w.buffered.Load() > s.share() && w.paused.CompareAndSwap(false, true) {
		s.client.PauseFetchPartitions(map[string][]int32{w.topic: {w.partition}})
		if w.buffered.Load() <= s.share()/2 {
			s.mayResume(w)
		}
	}
}

// mayResume fetches again once half the share is free.
func (s *Shell) mayResume(w *worker) {
	if w.paused.Load() && w.buffered.Load() <= s.share()/2 && w.paused.CompareAndSwap(true, false) {
		s.client.ResumeFetchPartitions(map[string][]int32{w.topic: {w.partition}})
	}
}

// watchDrain closes drained when every partition that this drain covers is
// committed up to its end, whoever of the group did it, or is stopped.
func (s *Shell) watchDrain(ctx context.Context, drained chan struct{}) {
	defer s.guard(nil)
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for n := 1; ; n++ {
		if s.drainedHere() && (s.DrainedElsewhere == nil || s.DrainedElsewhere(ctx, s.held())) {
			close(drained)
			return
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Shell) held() map[string]map[int32]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]map[int32]bool{}
	for p := range s.workers {
		if out[p.topic] == nil {
			out[p.topic] = map[int32]bool{}
		}
		out[p.topic][p.partition] = true
	}
	return out
}

// drainedHere: the partitions that this process holds are done.
func (s *Shell) drainedHere() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.workers) == 0 {
		for _, ends := range s.Drain {
			if len(ends) > 0 {
				return false // not yet assigned, or all elsewhere: asked there
			}
		}
	}
	for p, w := range s.workers {
		if end := s.Drain[p.topic][p.partition]; w.committed.Load() < end && !w.halted.Load() {
			return false
		}
	}
	return true
}

func (s *Shell) tellWaits(w *worker, reason string) {
	s.events.State(w.topic, w.partition, Waiting, reason, "")
}

func (s *Shell) tellPassed(w *worker) {
	s.events.State(w.topic, w.partition, Running, "", "")
}

// tableSwapped ends the run: the table is to be read anew.
func (s *Shell) tableSwapped(err error) { s.fail(&TableSwapped{err}) }

// TableSwapped ends a run because the target table was replaced. A new run
// reads the new table; what was in flight is claimed afresh for it.
type TableSwapped struct{ Err error }

func (e *TableSwapped) Error() string { return e.Err.Error() }
func (e *TableSwapped) Unwrap() error { return e.Err }

// explainFetch words an error of a fetch. lost: the position is gone, so the
// partition stops.
func explainFetch(err error) (text, cure string, lost bool) {
	switch {
	case errors.Is(err, kerr.OffsetOutOfRange):
		return "the next offset is no longer in the log", "retention or a deletion removed it before it was read; `sink offsets resolve` goes on behind the gap once you have accepted the loss", true
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return err.Error(), "grant READ and DESCRIBE on the topic to this user", false
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return err.Error(), "grant READ on the group to this user", false
	}
	return err.Error(), "", false
}

// setDefaults has the server evaluate the columns' DEFAULT expressions for one
// batch, so that a repeat of it can't differ.
func (t *Target) setDefaults(ctx context.Context, b *decode.Block) error {
	if len(t.Decoder.NeedsDefaults()) == 0 {
		return nil
	}
	d := t.Decoder.NewDefaults()
	if err := t.Defaults.Evaluate(ctx, d); err != nil {
		return err
	}
	b.SetDefaults(d)
	return nil
}
