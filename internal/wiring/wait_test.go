package wiring

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncesink/oncesink/internal/status"
	"github.com/oncesink/oncesink/pkg/offsets"
)

// silent is a port that takes connections and never says a word, as another protocol's does.
func silent(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
	}()
	return l.Addr().String()
}

func testWaiter(timeout time.Duration) (*waiter, *lines) {
	log := &lines{}
	return newWaiter(timeout, slog.New(slog.NewTextHandler(log, nil)), status.New(status.Options{Group: "g"})), log
}

// startup_timeout: 3s took 17 s against a port that says nothing: the time was looked at between attempts only.
func TestNoAttemptLastsLongerThanTheStartupTimeout(t *testing.T) {
	w, _ := testWaiter(300 * time.Millisecond)
	attempts := 0
	err := w.until(t.Context(), "kafka", func(ctx context.Context) error {
		attempts++
		at, ok := ctx.Deadline()
		if !ok || at.After(w.deadline) {
			t.Fatalf("an attempt may last until %s, the start until %s", at, w.deadline)
		}
		if attempts == 1 {
			return errors.New("connection refused")
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if attempts != 2 || err == nil || !strings.Contains(err.Error(), "startup_timeout (300ms): connection refused") {
		t.Errorf("%d attempts: %v", attempts, err)
	}
	// Without a limit an attempt has one of its own.
	w, _ = testWaiter(0)
	if err := w.until(t.Context(), "kafka", func(ctx context.Context) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("an attempt without an end")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// A run that waits says so before its first attempt has failed.
func TestAServerThatSaysNothingIsToldWhileItIsWaitedFor(t *testing.T) {
	w, log := testWaiter(0)
	w.silence = time.Millisecond
	if err := w.until(t.Context(), "clickhouse and redis", func(ctx context.Context) error {
		for len(log.with("no answer yet")) == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		return ctx.Err()
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"waiting for a server", "clickhouse.addresses and clickhouse.tls", "redis.addresses and redis.tls", "answers now"} {
		if len(log.with(want)) != 1 {
			t.Errorf("%q isn't told once: %s", want, log)
		}
	}
}

// Kafka's address was another server's port: the run and a command that only asks end in time, and name what to look at.
func TestASilentPortIsNoKafka(t *testing.T) {
	r := newRig(t, 0)
	r.kafka = silent(t)
	cfg := r.config()
	cfg.Kafka.StartupTimeout = 300 * time.Millisecond
	l := r.startWith(cfg, nil)
	<-l.done
	if l.err == nil || !strings.Contains(l.err.Error(), "kafka could not be used within startup_timeout (300ms)") || !strings.Contains(l.err.Error(), "kafka.brokers and kafka.tls") {
		t.Errorf("the run says %v", l.err)
	}
	opts, err := KafkaOptions(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	err = reachKafka(t.Context(), cfg, offsets.NewCluster(cl), 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "kafka at "+r.kafka+" gave no answer within 50ms") || !strings.Contains(err.Error(), "kafka.tls") {
		t.Errorf("a command says %v", err)
	}
}
