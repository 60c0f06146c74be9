package wiring

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/status"
)

// A drain that says nothing for an hour looks like one that hangs. What an earlier run has settled is no part of the work.
func TestADrainIsToldFromItsStartToItsEnd(t *testing.T) {
	r := newRig(t, 2)
	r.tables()
	r.produce(0, 40)
	r.start(func(o *RunOptions) { o.Drain = true }).end(false)
	r.produce(40, 60)
	var mu sync.Mutex
	var told [][2]int64
	r.start(func(o *RunOptions) {
		o.Drain = true
		o.Progress = func(done, total int64) { mu.Lock(); defer mu.Unlock(); told = append(told, [2]int64{done, total}) }
	}).end(false)
	first, last := told[0], told[len(told)-1]
	if first != [2]int64{0, 60} || last != [2]int64{60, 60} {
		t.Errorf("told from %v to %v, want from 0 to 60 of 60", first, last)
	}
	for i := range told[1:] {
		if told[i+1][0] < told[i][0] {
			t.Errorf("it goes back: %v", told)
		}
	}
}

// Whoever stops a sink reads in one line why it ended and what it leaves behind.
func TestTheEndIsToldInOneLine(t *testing.T) {
	r := newRig(t, 2)
	r.tables()
	r.produce(0, 10)
	log := &lines{}
	ctx, stop := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	st := status.New(status.Options{Group: "g"})
	go func() {
		_, err := Run(ctx, r.config(), RunOptions{Log: slog.New(slog.NewTextHandler(log, nil)), Status: st, Patience: 10 * time.Second})
		done <- err
	}()
	l := &life{t: t, status: st, log: log, done: make(chan struct{})}
	l.await("done with its records", func() (bool, string) {
		_, text := l.get("/metrics")
		return strings.Contains(text, `sink_records_settled_total{class="inserted"} 10`), "10 are not yet settled"
	})
	stop(errors.New("signal: terminated"))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want := `msg=stopped reason="signal: terminated" committed="orders/0 at 10, orders/1 at 0" account="consumed 10 = inserted 10 + duplicates 0 + conflicts 0 + dead letters 0 + filtered 0"`
	if got := log.with("msg=stopped"); len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("got %q, want %q once", got, want)
	}
}
