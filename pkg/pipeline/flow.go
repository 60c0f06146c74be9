package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/oncesink/oncesink/pkg/batcher"
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
			return halt(err.Error(), "run the newer version until nothing is under way (sink offsets show lists no intent), and stop it with SIGTERM: from there an older one can go on; nothing of the partition is touched until then")
		}
		return halt(err.Error(), fmt.Sprintf("`sink offsets show` prints it; once the range was checked, this sets it aside: sink offsets resolve -c CONFIG --topic %s --partition %d --drop-intent --apply", w.topic, w.partition))
	}
	if intent != nil {
		w.target.Store.Learn(intent.Epochs)
	}
	if b := w.elsewhere(intent); b != nil {
		return halt(b.Reason, b.Cure)
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
			"retention or a deletion removed them before they were read: once you have accepted the loss or have another source for them, stop the sink and go on behind the gap: "+w.goOnAt(logStart))
	}
	if start < 0 {
		start = logStart
	}
	w.step(Assigned{Committed: start, Intent: intent, End: logEnd})
	return w.machine.Halted() == nil
}

// elsewhere stops a partition whose intent lists inserts into a table of
// another route. A table that took the place of ours by its name is no such:
// the store has met this partition then. What was under way would be written
// here too, and nobody could tell which table has it.
func (w *worker) elsewhere(in *offsets.Intent) *Broken {
	if in == nil {
		return nil
	}
	for _, e := range in.Entries {
		if len(e.Tables) == 0 || e.Tables[0].Table == w.target.Table.UUID {
			continue
		}
		known := false
		lives, err := w.until("ask the store whether it has met this partition", broken, func() (err error) {
			known, err = w.target.Store.Knows(w.ctx, w.source)
			return err
		})
		if !lives || err != nil || known {
			return nil // an error that lasts is met again, and told there
		}
		name := w.target.Server.NameOf(w.ctx, e.Tables[0].Table)
		return &Broken{
			Reason: fmt.Sprintf("inserts into another table, %s, were under way for %s, and this route writes %s: the rows would be in both", name, e.Range, w.target.Table),
			Cure: fmt.Sprintf("start the sink with the route into the old table, drain it (sink run --drain), and change the route then; or, where rows in both tables do no harm or the old one is gone: sink offsets resolve -c CONFIG --topic %s --partition %d --drop-intent --apply",
				w.topic, w.partition),
		}
	}
	return nil
}

// forgotten judges a partition without a committed offset by the run that the
// store knows of it: the group has been here, and its offsets expired or were
// deleted. Where it had reached the start of the log, nothing is lost by
// beginning there: that is a first start which committed nothing. Otherwise
// somebody has to say where to go on.
func (w *worker) forgotten(reached, start int64) *Broken {
	before := fmt.Sprintf("the group has no committed offset for %s/%d, so it expired or was deleted: the dedup store knows that it had reached %d", w.topic, w.partition, reached)
	switch {
	case reached > start:
		return &Broken{
			Reason: before + fmt.Sprintf(", and the log starts at %d", start),
			Cure:   fmt.Sprintf("stop the sink and say where to go on. Where it was: %s. From the start, to look at all again (keys that are remembered or carry their event time stay single): %s", w.goOnAt(reached), w.goOnAt(start)),
		}
	case reached < start:
		return &Broken{
			Reason: before + fmt.Sprintf(", and offsets [%d..%d] are gone: the log starts at %d", reached, start-1, start),
			Cure:   "retention or a deletion removed them before they were read: once you have accepted the loss or have another source for them, stop the sink and go on behind the gap: " + w.goOnAt(start),
		}
	}
	return nil
}

// goOnAt is the command that sets where a stopped partition goes on.
func (w *worker) goOnAt(offset int64) string {
	return fmt.Sprintf("sink offsets resolve -c CONFIG --topic %s --partition %d --to %d --apply", w.topic, w.partition, offset)
}

// send brings news from outside to the worker.
func (w *worker) send(ev Event) {
	select {
	case w.inbox <- ev:
	case <-w.ctx.Done():
	case <-w.done:
	}
}

// watchDrain closes drained when every partition that this drain covers is
// committed up to its end, whoever of the group did it, or is stopped.
func (s *Shell) watchDrain(ctx context.Context, drained chan struct{}) {
	defer s.guard(nil)
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for n := 1; ; n++ {
		if n%20 == 0 && s.standsStill() {
			close(drained)
			return
		}
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

// stillMost is how long a drain waits, in insert deadlines, for partitions
// whose gates wait for one that is stopped. A gate takes over what it can
// before that.
const stillMost = 2 * takeAfter

// standsStill: a partition is stopped, and all that are not done have waited
// behind their gates for long, without an offset that moved. Nobody but an
// operator can help, so that the drain ends and says so.
func (s *Shell) standsStill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, stopped, waiting := int64(0), 0, 0
	var deadline time.Duration
	for p, w := range s.workers {
		sum += w.committed.Load()
		switch end := s.Drain[p.topic][p.partition]; {
		case w.halted.Load():
			stopped++
		case w.committed.Load() >= end:
		case w.closedBy.Load() == nil:
			s.stillSince = time.Time{}
			return false
		default:
			waiting++
			deadline = max(deadline, w.target.Deadline)
		}
	}
	now := s.clock()
	if stopped == 0 || waiting == 0 || sum != s.stillAt || s.stillSince.IsZero() {
		s.stillAt, s.stillSince = sum, now
		return false
	}
	if now.Sub(s.stillSince) < stillMost*deadline {
		return false
	}
	for _, w := range s.workers {
		if reason := w.closedBy.Load(); reason != nil && !w.halted.Load() {
			w.reason.Store(&Halt{Reason: *reason + ", and nothing moves while another partition is stopped", Cure: "resolve the partition that is stopped, then drain again"})
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
		return "the next offset is not in the log", "retention or a deletion removed it before it was read, or the log lost its tail: stop the sink, see where the log starts and ends with `sink offsets show`, and once you have accepted the loss go on there: `sink offsets resolve --to`", true
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
		return "the topic that was consumed is gone; one created again under its name is consumed from its start", "", false
	case errors.Is(err, kerr.FencedInstanceID):
		return "another process has joined the group under this instance id", "give every process its own kafka.instance_id", false
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return err.Error(), "grant READ and DESCRIBE on the topic to this user", false
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return err.Error(), "grant READ on the group to this user", false
	}
	return err.Error(), "", false
}

// replaced: the topic that is consumed is gone, and another one bears its name.
// Its offsets mean other records, so that it is another source.
func (s *Shell) replaced(ctx context.Context, topic string, why error) bool {
	if s.TopicNow == nil || !errors.Is(why, kerr.UnknownTopicID) && !errors.Is(why, kerr.UnknownTopicOrPartition) && !errors.Is(why, kerr.InconsistentTopicID) {
		return false
	}
	// Polling waits for the answer: it is asked for rarely, and not for long.
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	was, err := s.TopicID(topic)
	if err != nil {
		return false
	}
	now, err := s.TopicNow(ctx, topic)
	return err == nil && now != was && now != batcher.TopicID{}
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

// TopicReplaced ends a run because the topic was deleted and created again. A
// new run reads the new one from its start.
type TopicReplaced struct{ Topic string }

func (e *TopicReplaced) Error() string {
	return fmt.Sprintf("topic %s was deleted and created again: its offsets mean other records", e.Topic)
}
