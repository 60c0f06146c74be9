package wiring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/status"
	"github.com/oncesink/oncesink/pkg/dedup"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// ErrStopped is that a run was stopped before it had begun.
var ErrStopped = errors.New("stopped while waiting")

const (
	attemptMost = 30 * time.Second // of one attempt
	silenceMost = 3 * time.Second  // of an attempt, without a word to the operator
)

// waiter waits for servers that are away, and says so once a change.
type waiter struct {
	timeout  time.Duration
	deadline time.Time // zero: for ever
	silence  time.Duration
	log      *slog.Logger
	status   *status.Status
}

func newWaiter(timeout time.Duration, log *slog.Logger, st *status.Status) *waiter {
	w := &waiter{timeout: timeout, silence: silenceMost, log: log, status: st}
	if timeout > 0 {
		w.deadline = time.Now().Add(timeout)
	}
	return w
}

// until repeats f while its error may pass. What only an operator mends ends it at once. No attempt lasts beyond the deadline: a port that takes a connection
// and says nothing would hold it for as long as the client has patience.
func (w *waiter) until(ctx context.Context, what string, f func(context.Context) error) error {
	pause := 100 * time.Millisecond
	told := ""
	var last error
	for {
		try, cancel := context.WithDeadline(ctx, w.stepEnd(attemptMost))
		first, silent := told == "", make(chan struct{})
		word := time.AfterFunc(w.silence, func() {
			defer close(silent)
			if first {
				w.log.Warn("waiting for a server", "server", what, "reason", "no answer yet"+hint(what))
				w.status.Store(what, false, "no answer yet")
			}
		})
		err := f(try)
		cancel()
		spoke := !word.Stop()
		if spoke {
			<-silent
		}
		if err == nil {
			if told != "" || spoke {
				w.log.Info("answers now", "server", what)
			}
			w.status.Store(what, true, "")
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w for %s: %w", ErrStopped, what, err)
		}
		if lasting(err) {
			return err
		}
		if last == nil || !unanswered(err) {
			last = err // a reason says more than the end of the time for it
		}
		if w.over() {
			return w.tooLate(what, last)
		}
		if told != err.Error() {
			told = err.Error()
			w.log.Warn("waiting for a server", "server", what, "reason", told)
		}
		w.status.Store(what, false, told)
		t := time.NewTimer(time.Until(w.stepEnd(pause)))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
		if w.over() && ctx.Err() == nil {
			return w.tooLate(what, last)
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// stepEnd is when a step of this length ends: at the deadline at the latest.
func (w *waiter) stepEnd(length time.Duration) time.Time {
	at := time.Now().Add(length)
	if !w.deadline.IsZero() && w.deadline.Before(at) {
		return w.deadline
	}
	return at
}

func (w *waiter) over() bool { return !w.deadline.IsZero() && !time.Now().Before(w.deadline) }

func (w *waiter) tooLate(what string, err error) error {
	more := ""
	if unanswered(err) {
		more = hint(what)
	}
	return fmt.Errorf("%s could not be used within startup_timeout (%s): %w%s", what, w.timeout, err, more)
}

// unanswered tells errors of a server that took the connection and said nothing, or left at the first word.
func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF)
}

// hint is what to look at when a server gives no answer.
func hint(what string) string {
	var settings []string
	for _, server := range []struct{ name, settings string }{
		{"kafka", "kafka.brokers and kafka.tls"}, {"clickhouse", "clickhouse.addresses and clickhouse.tls"}, {"redis", "redis.addresses and redis.tls"},
	} {
		if strings.Contains(what, server.name) {
			settings = append(settings, server.settings)
		}
	}
	if settings == nil {
		return ""
	}
	return "; another server's port, or TLS on one side only, is silent like this: look at " + strings.Join(settings, ", ")
}

// oneShot is how long a command that only asks waits for Kafka.
const oneShot = 10 * time.Second

// ReachKafka tells soon and clearly that Kafka gives no answer, where a command has no reason to wait for it.
func ReachKafka(ctx context.Context, cfg *config.Config, cluster *offsets.Cluster) error {
	return reachKafka(ctx, cfg, cluster, oneShot)
}

func reachKafka(ctx context.Context, cfg *config.Config, cluster *offsets.Cluster, most time.Duration) error {
	try, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := cluster.Reach(try)
	switch {
	case err == nil || ctx.Err() != nil || lasting(err):
		return err
	case unanswered(err):
		return fmt.Errorf("kafka at %s gave no answer within %s: %w%s", strings.Join(cfg.Kafka.Brokers, ", "), most, err, hint("kafka"))
	}
	return fmt.Errorf("kafka at %s: %w", strings.Join(cfg.Kafka.Brokers, ", "), err)
}

// lasting tells errors that time does not mend.
func lasting(err error) bool {
	var usage *Usage
	var unfit *dedup.Unfit
	var route *dedup.RouteChanged
	var verdict *Unfit
	return errors.As(err, &usage) || errors.As(err, &unfit) || errors.As(err, &route) || errors.As(err, &verdict) || lastingKafka(err) || lastingClickHouse(err) || lastingLetters(err)
}
