package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oncesink/oncesink/internal/embedded/child"
)

// stack is the embedded Kafka, Redis and ClickHouse, each a process that is not
// this one.
type stack struct {
	proc *child.Process

	Kafka      string `json:"kafka"`
	ClickHouse string `json:"clickhouse"`
	Redis      string `json:"redis"`
}

func startStack(ctx context.Context, sink string) (*stack, error) {
	first := newLine()
	proc, err := child.Start(child.Options{
		Name: "sink dev", Path: sink, Args: []string{"dev", "--kafka", "0", "--clickhouse", "0", "--clickhouse-http", "0", "--redis", "0", "--json"},
		Output: first,
	})
	if err != nil {
		return nil, fmt.Errorf("%w; `make build` makes the program", err)
	}
	s := &stack{proc: proc}
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	select {
	case <-first.found:
	case <-proc.Exited():
		return nil, proc.Failure()
	case <-deadline.C:
		err = errors.New("sink dev did not tell its addresses within two minutes")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		err = json.Unmarshal(first.text, s)
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("start the servers: %w", err)
	}
	return s, nil
}

func (s *stack) stop() {
	stopping, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = s.proc.Stop(stopping) // a forced end is as good: nothing is kept
}

// line catches the first line that is a JSON object.
type line struct {
	mu    sync.Mutex
	seen  []byte
	text  []byte
	found chan struct{}
}

func newLine() *line { return &line{found: make(chan struct{})} }

func (l *line) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text != nil {
		return len(p), nil
	}
	l.seen = append(l.seen, p...)
	for {
		one, rest, whole := bytes.Cut(l.seen, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.seen = rest
		if len(one) > 0 && one[0] == '{' {
			l.text = append([]byte(nil), one...)
			close(l.found)
			return len(p), nil
		}
	}
}
