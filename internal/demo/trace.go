package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

// trace is what a sink process says of its steps, as it takes them: `--trace-steps` writes into a named pipe, so that a kill needs no polling.
type trace struct {
	pipe *os.File
	path string
	read sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	counts  map[pipeline.Step]int
	last    map[string]pipeline.Step // by partition
}

func openTrace(path string) (*trace, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("make the named pipe %s: %w", path, err)
	}
	// For writing too: opening doesn't wait for the sink then, and its end is no end of file.
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	t := &trace{pipe: pipe, path: path, counts: map[pipeline.Step]int{}, last: map[string]pipeline.Step{}}
	t.changed.L = &t.mu
	t.read.Go(t.listen)
	return t, nil
}

func (t *trace) listen() {
	lines := bufio.NewScanner(t.pipe)
	for lines.Scan() {
		place, step, _ := strings.Cut(lines.Text(), " ")
		t.mu.Lock()
		t.counts[pipeline.Step(step)]++
		t.last[place] = pipeline.Step(step)
		t.changed.Broadcast()
		t.mu.Unlock()
	}
}

func (t *trace) close() error {
	err := t.pipe.Close()
	t.read.Wait()
	return errors.Join(err, os.Remove(t.path))
}

func (t *trace) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed.Broadcast()
}

// await returns when the step has been taken n times more.
func (t *trace) await(ctx context.Context, step pipeline.Step, n int) error {
	stop := context.AfterFunc(ctx, t.wake)
	defer func() { stop() }()
	t.mu.Lock()
	defer t.mu.Unlock()
	for want := t.counts[step] + n; t.counts[step] < want; t.changed.Wait() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// inserting is how many partitions have sent an insert and have no answer.
func (t *trace) inserting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, s := range t.last {
		if s == pipeline.StepInserting {
			n++
		}
	}
	return n
}

// awaitAnswers returns when the inserts that are without an answer now have got one, from this or a later attempt.
func (t *trace) awaitAnswers(ctx context.Context) error {
	stop := context.AfterFunc(ctx, t.wake)
	defer func() { stop() }()
	t.mu.Lock()
	defer t.mu.Unlock()
	var open []string
	for place, s := range t.last {
		if s == pipeline.StepInserting {
			open = append(open, place)
		}
	}
	for _, place := range open {
		for ; t.last[place] == pipeline.StepInserting; t.changed.Wait() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}
