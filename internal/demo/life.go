package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oncesink/oncesink/internal/embedded/child"
)

// bounds are where a life of the sink cuts its batches.
type bounds struct {
	rows int
	age  time.Duration
}

// insertDeadline is short, so that what follows a crash or a cut is quick.
const insertDeadline = 2 * time.Second

// configuration is the sink.yaml of a life. Static membership lets a killed sink's successor take its place at once.
func configuration(kafka, clickhouse, redis string, b bounds) string {
	return fmt.Sprintf(`kafka: {brokers: [%q], group: %s, instance_id: demo}
clickhouse: {addresses: [%q], database: %s, insert_deadline: %s, insert_timeout: 20s}
redis: {addresses: [%q]}
routes:
  - topics: [%s]
    table: %s
    key: [settle_ms, id, rev]
    event_time: settle_ms
    ignore: [create_time]
    dead_letter: %s
batch: {max_rows: %d, max_age: %s, max_inserts_per_second: 60}
http: {listen: ""}
log: {format: text}
`, kafka, group, clickhouse, database, insertDeadline, redis, topic, table, deadLetters, b.rows, b.age)
}

// life is one sink process, from its start to its end.
type life struct {
	proc  *child.Process
	trace *trace
	log   *os.File
}

func (r *run) logPath() string { return filepath.Join(r.dir, "sink.log") }

func (r *run) startLife(b bounds) (_ *life, err error) {
	r.mu.Lock()
	r.lives = append(r.lives, time.Now())
	n := len(r.lives)
	r.mu.Unlock()
	config := filepath.Join(r.dir, fmt.Sprintf("sink-%d.yaml", n))
	text := configuration(r.stack.Kafka.Addr, r.proxy.Addr(), r.stack.Redis.Addr, b)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	l := &life{}
	if l.log, err = os.OpenFile(r.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(l.log, "--- sink process %d, batches of %d rows or %s\n", n, b.rows, b.age)
	if l.trace, err = openTrace(filepath.Join(r.dir, "steps")); err != nil {
		_ = l.log.Close()
		return nil, err
	}
	l.proc, err = child.Start(child.Options{
		Name: fmt.Sprintf("sink process %d", n), Path: r.o.Sink, Args: []string{"run", "-c", config, "--trace-steps", l.trace.path}, Output: l.log,
	})
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// errEnded is that a sink process ended without being asked to.
var errEnded = errors.New("the sink ended by itself")

// watch returns a context that ends when the process does.
func (l *life) watch(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-l.proc.Exited():
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (l *life) close() error { return errors.Join(l.trace.close(), l.log.Close()) }

// end stops the process in its good order; one that can't is killed.
func (l *life) end(ctx context.Context) error {
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(l.proc.Stop(stopping), l.close())
}

// logs is where the sink's log is, and its last lines.
func (r *run) logs() string {
	const lines, bytes = 12, 16 << 10
	f, err := os.Open(r.logPath())
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > bytes {
		_, _ = f.Seek(-bytes, 2)
	}
	text := make([]byte, bytes)
	n, _ := f.Read(text)
	all := strings.Split(strings.TrimSpace(string(text[:n])), "\n")
	return fmt.Sprintf("\nthe sink's log is %s; its last lines:\n  %s", r.logPath(), strings.Join(all[max(len(all)-lines, 0):], "\n  "))
}
