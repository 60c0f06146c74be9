package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/pkg/batcher"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
	"github.com/oncesink/oncesink/pkg/writer"
)

// OnAssigned is the callback of assignments with one to follow it. It replaces
// the one among Callbacks, for those who care for a member without partitions:
// kgo tells an empty assignment too, and no worker does.
func (s *Shell) OnAssigned(joined func()) kgo.Opt {
	return kgo.OnPartitionsAssigned(func(ctx context.Context, cl *kgo.Client, added map[string][]int32) {
		s.assigned(ctx, cl, added)
		joined()
	})
}

// do runs one effect and returns its answer; nil when the assignment ended
// before there was one. Errors that pass are waited out here, so that the
// machine sees answers only.
func (w *worker) do(e Effect) Event {
	switch e := e.(type) {
	case ReadAcked:
		return w.readAcked(e)
	case StartRun:
		return w.storeCall(e.Ref, "start a run", func() error { return w.target.Store.StartRun(w.ctx, w.source, e.At) })
	case Claim:
		return w.claim(e)
	case Renew:
		return w.renew(e)
	case TakeOver:
		return w.takeOver(e)
	case Release:
		return w.releaseClaims(e)
	case Settle:
		return w.storeCall(e.Ref, "settle claims", func() error {
			return w.target.Store.Settle(w.ctx, e.Ticket, w.source, settled(e))
		})
	case Publish:
		return w.publish(e)
	case AskGate:
		return w.askGate(e)
	case AskOwners:
		return w.askOwners(e)
	case Commit:
		return w.commit(e)
	case Insert:
		return w.insert(e)
	case AwaitOver:
		return w.awaitOver(e)
	case AskFacts:
		return w.askFacts(e)
	case Read:
		return w.read(e)
	case Isolate:
		return w.isolate(e)
	case DeadLetter:
		return w.deadLetter(e)
	case Sleep:
		jitter := time.Duration(rand.Int64N(e.Millis/4+1)) * time.Millisecond //nolint:gosec // spreads retries, keeps no secret
		if !w.sleep(time.Duration(e.Millis)*time.Millisecond + jitter) {
			return nil
		}
		return Done{e.Ref}
	}
	panic(fmt.Sprintf("effect %T is not known", e))
}

func (w *worker) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// until repeats f while it fails with something that passes, telling why.
// Only an error that final accepts is returned. False: the assignment ended.
func (w *worker) until(doing string, final func(error) bool, f func() error) (lives bool, err error) {
	pause := 20 * time.Millisecond
	told := false
	for {
		err = f()
		if err == nil || final != nil && final(err) {
			if told {
				w.shell.tellPassed(w)
			}
			return true, err
		}
		if w.ctx.Err() != nil {
			return false, err
		}
		told = true
		w.shell.tellWaits(w, doing+": "+err.Error())
		if !w.sleep(pause + time.Duration(rand.Int64N(int64(pause)))) { //nolint:gosec // spreads retries
			return false, err
		}
		pause = min(pause*2, 2*time.Second)
	}
}

// void tells errors that make the verdicts of a ticket void.
func void(err error) bool {
	var e *dedup.EpochChanged
	return errors.As(err, &e)
}

// broken tells errors that only an operator ends.
func broken(err error) bool {
	var s *dedup.Swapped
	var r *dedup.RouteChanged
	return errors.As(err, &s) || errors.As(err, &r)
}

func voidOrBroken(err error) bool { return void(err) || broken(err) }

// storeAnswer turns the end of a store call into an event.
func (w *worker) storeAnswer(ref Ref, err error, lives bool, ok Event) Event {
	switch {
	case !lives:
		return nil
	case err == nil:
		return ok
	case void(err):
		return Refused{ref}
	}
	var s *dedup.Swapped
	if errors.As(err, &s) {
		w.shell.tableSwapped(err)
		return Broken{Reason: err.Error(), Cure: "the table was replaced: the sink has to read it anew; it restarts by itself or is to be started again"}
	}
	return Broken{Reason: err.Error(), Cure: "give all routes into the table the same key, event_time and ignore, in every sink"}
}

func (w *worker) storeCall(ref Ref, doing string, f func() error) Event {
	lives, err := w.until(doing, voidOrBroken, f)
	return w.storeAnswer(ref, err, lives, Done{ref})
}

func (w *worker) readAcked(e ReadAcked) Event {
	var run dedup.Run
	var ticket dedup.Ticket
	lives, err := w.until("read the acked run", voidOrBroken, func() (err error) {
		// The run counts under the epochs that held before and after it was read.
		if ticket, err = w.target.Store.Epochs(w.ctx); err != nil {
			return err
		}
		if run, err = w.target.Store.Acked(w.ctx, w.source); err != nil {
			return err
		}
		after, err := w.target.Store.Epochs(w.ctx)
		if err == nil && !after.Equal(ticket) {
			run = dedup.Run{}
		}
		return err
	})
	if err == nil && w.startedFresh {
		start := w.machine.committed
		if b := w.forgotten(run.Hi, start); run.Known && b != nil {
			return *b
		}
		// Before the store hears of this partition, so that a run without a
		// committed offset always tells of one that is gone.
		if failed, ok := w.commitAt(start, ""); !ok {
			return failed
		}
	}
	return w.storeAnswer(e.Ref, err, lives, AckedRun{Ref: e.Ref, Run: run, Ticket: ticket})
}

func items(s Set, nonce uint32) []dedup.Item {
	out := make([]dedup.Item, 0, s.Len())
	s.Each(func(_ int, b *Batch, row int32) {
		it := b.item(row)
		it.Nonce = nonce
		out = append(out, it)
	})
	return out
}

func settled(e Settle) []dedup.Item {
	out := items(e.Set, 0)
	for i := range out {
		out[i].Nonce = e.Nonces[i]
	}
	return out
}

func (w *worker) claim(e Claim) Event {
	batch := dedup.Batch{Source: w.source, First: e.First, Nonce: e.Nonce, Late: e.Late, Items: w.claimItems(e)}
	reply := &dedup.Reply{}
	start := time.Now()
	lives, err := w.until("claim "+plural(len(batch.Items), "key"), voidOrBroken, func() error { return w.target.Store.Claim(w.ctx, &batch, reply) })
	if err == nil {
		if took := time.Since(start); !e.Late {
			w.claimed.Store(&claimTime{rows: len(batch.Items), took: took})
		}
		w.shell.events.Claim(len(batch.Items), time.Since(start))
		w.shell.events.Step(w.topic, w.partition, StepClaimed)
	}
	return w.storeAnswer(e.Ref, err, lives, Claimed{Ref: e.Ref, Reply: reply})
}

func (w *worker) renew(e Renew) Event {
	batch := dedup.Batch{Source: w.source, First: e.First, Nonce: e.Nonce, Late: e.Late, Items: items(e.Set, e.Old)}
	reply := &dedup.Reply{}
	lives, err := w.until("renew "+plural(len(batch.Items), "claim"), voidOrBroken, func() error { return w.target.Store.Renew(w.ctx, e.Ticket, &batch, reply) })
	return w.storeAnswer(e.Ref, err, lives, Claimed{Ref: e.Ref, Reply: reply})
}

func gateItems(s Set, owners []dedup.Owner) []dedup.GateItem {
	out := make([]dedup.GateItem, 0, len(owners))
	s.Each(func(i int, b *Batch, row int32) {
		it := dedup.GateItem{Item: b.item(row), Owner: owners[i]}
		it.Nonce = owners[i].Nonce
		out = append(out, it)
	})
	return out
}

func (w *worker) takeOver(e TakeOver) Event {
	reply := &dedup.Reply{}
	lives, err := w.until("take claims over", voidOrBroken, func() error {
		return w.target.Store.TakeOver(w.ctx, w.source, e.Nonce, gateItems(e.Set, e.Owners), reply)
	})
	return w.storeAnswer(e.Ref, err, lives, Claimed{Ref: e.Ref, Reply: reply})
}

func (w *worker) releaseClaims(e Release) Event {
	return w.storeCall(e.Ref, "release claims", func() error {
		return w.target.Store.Release(w.ctx, e.Ticket, w.source, items(e.Set, e.Nonce))
	})
}

func (w *worker) publish(e Publish) Event {
	ev := w.storeCall(e.Ref, "publish the acked run", func() error {
		return w.target.Store.Publish(w.ctx, w.source, e.Lo, e.Hi, e.Ticket, e.All)
	})
	w.shell.events.Step(w.topic, w.partition, StepPublished)
	return ev
}

func (w *worker) askGate(e AskGate) Event {
	out := make([]dedup.GateAnswer, len(e.Owners))
	lives, err := w.until("ask the commit gate", voidOrBroken, func() error {
		return w.target.Store.Gate(w.ctx, gateItems(e.Set, e.Owners), out)
	})
	return w.storeAnswer(e.Ref, err, lives, GateAnswers{Ref: e.Ref, Answers: out})
}

func (w *worker) askOwners(e AskOwners) Event {
	fates := make([]Fate, len(e.Owners))
	known := map[batcher.Owner]Fate{}
	lives, _ := w.until("ask Kafka whether owners of claims can still come", nil, func() error {
		for i, o := range e.Owners {
			f, ok := known[o.Owner]
			if !ok {
				var err error
				if f, err = w.shell.owners.Gone(w.ctx, o); err != nil {
					return err
				}
				known[o.Owner] = f
			}
			fates[i] = f
		}
		return nil
	})
	if !lives {
		return nil
	}
	return OwnersGone{Ref: e.Ref, Fates: fates}
}

func (w *worker) commit(e Commit) Event {
	in := *e.Intent
	in.Epochs = w.target.Store.Known()
	meta, err := in.Encode()
	if err != nil {
		return Broken{Reason: "the intent can't be written: " + err.Error(), Cure: "this is a defect of the sink; nothing was sent"}
	}
	start := time.Now()
	if failed, ok := w.commitAt(e.Offset, meta); !ok {
		return failed
	}
	w.shell.events.Commit(time.Since(start))
	if !in.Empty() {
		w.shell.events.Step(w.topic, w.partition, StepIntent)
	} else {
		w.shell.events.Step(w.topic, w.partition, StepCommitted)
	}
	return Done{e.Ref}
}

// commitAt commits. Not ok: failed is the answer, nil where the partition is
// another's by now; the callback ends this worker then.
func (w *worker) commitAt(offset int64, meta string) (failed Event, ok bool) {
	err := w.shell.committer.Commit(w.ctx, offsets.Commit{
		Topic: w.topic, TopicID: w.source.Topic, Partition: w.partition, Lease: w.lease,
		Offset: offset, LeaderEpoch: -1, Metadata: meta,
	})
	var refused *offsets.RefusedError
	switch {
	case err == nil:
		return nil, true
	case errors.As(err, &refused):
		return Broken{Reason: err.Error(), Cure: refused.Cure}, false
	case errors.Is(err, offsets.ErrFenced), w.ctx.Err() != nil:
		return nil, false
	}
	return Broken{Reason: err.Error(), Cure: "see the error; what is in ClickHouse is safe and stays once"}, false
}

// awaitOver waits until the server refuses whatever has not started, and then
// until nothing that has started still runs. It never kills.
func (w *worker) awaitOver(e AwaitOver) Event {
	w.shell.events.Recovery(w.topic, w.partition, "earlier attempts must be over")
	first := true
	lives, _ := w.until("wait until earlier inserts are over", nil, func() error {
		left := time.UnixMilli(e.Until).Sub(w.target.Clock.Now())
		if left >= 0 {
			if first {
				first = false
				if !w.sleep(left + time.Millisecond) {
					return w.ctx.Err()
				}
				left = time.UnixMilli(e.Until).Sub(w.target.Clock.Now())
			}
			if left >= 0 {
				return fmt.Errorf("the insert deadline passes in %s", left.Round(time.Millisecond))
			}
		}
		for _, stem := range e.Stems {
			n, err := w.target.Server.Running(w.ctx, stem)
			if err != nil {
				return err
			}
			if n > 0 {
				return fmt.Errorf("%s of %s still run in ClickHouse", plural(n, "insert"), stem)
			}
		}
		return nil
	})
	if !lives {
		return nil
	}
	return Done{e.Ref}
}

func (w *worker) askFacts(e AskFacts) Event {
	f := Facts{Ref: e.Ref}
	from, deadline := time.UnixMilli(e.FirstAttempt), time.UnixMilli(e.Deadline)
	lives, err := w.until("ask ClickHouse for the fate of an earlier insert", changed, func() error {
		var err error
		if f.Safe, f.Why, err = w.target.Server.SafeWindow(w.ctx, w.target.Table, from); err != nil {
			return err
		}
		if f.Attempts, err = w.attempts(e, from, deadline); err != nil || len(w.target.Table.Views) == 0 {
			return err
		}
		f.Ended, err = w.target.Server.Ended(w.ctx, writer.Stem(w.target.Table.UUID, w.shell.group, w.source), from)
		return err
	})
	if !lives {
		return nil
	}
	if err != nil {
		return w.cannotDecode(err)
	}
	for _, v := range w.target.Table.Views {
		f.Views = append(f.Views, v.Name)
	}
	return f
}

func (w *worker) deadLetter(e DeadLetter) Event {
	out := make([]OutLetter, 0, len(e.Letters))
	classes := map[string]int{}
	for _, l := range e.Letters {
		m := l.Row.Batch.Data.(*material)
		r := m.raw[l.Row.Index]
		o := OutLetter{
			Letter: l, Topic: r.Topic, Source: w.source, Offset: r.Offset, TimestampMs: r.Timestamp.UnixMilli(),
			Key: r.Key, Value: r.Value, Fingerprint: l.Row.Batch.Records[l.Row.Index].Fingerprint,
		}
		for _, h := range r.Headers {
			o.Headers = append(o.Headers, Header{Key: h.Key, Value: h.Value})
		}
		out = append(out, o)
		classes[l.Class]++
	}
	lives, _ := w.until("send "+plural(len(out), "record")+" to the dead-letter topic", nil, func() error { return w.shell.letters.Send(w.ctx, out) })
	if !lives {
		return nil
	}
	for class, n := range classes {
		w.shell.events.Letters(w.topic, class, n)
	}
	return Done{e.Ref}
}
