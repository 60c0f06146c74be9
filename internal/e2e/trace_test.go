package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/oncesink/oncesink/pkg/pipeline"
)

// trace is what one life of the sink says of its steps. `--trace-steps` writes into a named pipe, so a kill needs no polling, and what was written before
// the kill is in the pipe.
type trace struct {
	pipe *os.File
	path string

	mu      sync.Mutex
	changed sync.Cond
	ended   bool // the process
	read    bool // everything it wrote
	counts  map[pipeline.Step]int
	stand   map[int32]pipeline.Step // where each partition's batch stands
	total   int
}

const endOfTrace = "the end"

func newTrace(t testing.TB, path string) *trace {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatalf("make the named pipe %s: %v", path, err)
	}
	// For writing too: opening doesn't wait for the sink then, and the sink's end is no end of file.
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trace{pipe: pipe, path: path, counts: map[pipeline.Step]int{}, stand: map[int32]pipeline.Step{}}
	tr.changed.L = &tr.mu
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		tr.listen()
	}()
	t.Cleanup(func() {
		_ = pipe.Close()
		<-listening
	})
	return tr
}

func (tr *trace) listen() {
	lines := bufio.NewScanner(tr.pipe)
	for lines.Scan() {
		if lines.Text() == endOfTrace {
			break
		}
		place, step, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			continue
		}
		_, number, _ := strings.Cut(place, "/")
		p, _ := strconv.ParseInt(number, 10, 32)
		tr.step(int32(p), pipeline.Step(step))
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.read = true
	tr.changed.Broadcast()
}

func (tr *trace) step(partition int32, step pipeline.Step) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.counts[step]++
	tr.total++
	// The commit that carries a batch's intent also moves past the batch before: that doesn't change where this one stands.
	if at := tr.stand[partition]; step != pipeline.StepCommitted || at != pipeline.StepIntent && at != pipeline.StepInserting {
		tr.stand[partition] = step
	}
	tr.changed.Broadcast()
}

func (tr *trace) wake(ended bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.ended = tr.ended || ended
	tr.changed.Broadcast()
}

// await returns when cond, which is called under the lock, is true.
func (tr *trace) await(ctx context.Context, cond func() bool) error {
	stop := context.AfterFunc(ctx, func() { tr.wake(false) })
	defer stop()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for !cond() {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case tr.ended:
			return errEnded
		}
		tr.changed.Wait()
	}
	return nil
}

// awaitStep returns when a step has been taken n times more.
func (tr *trace) awaitStep(ctx context.Context, step pipeline.Step, n int) error {
	tr.mu.Lock()
	want := tr.counts[step] + n
	tr.mu.Unlock()
	if err := tr.await(ctx, func() bool { return tr.counts[step] >= want }); err != nil {
		return fmt.Errorf("wait for step %s: %w", step, err)
	}
	return nil
}

// last is where each partition stood when the process had ended. Partitions that took no step are missing.
func (tr *trace) last() map[int32]pipeline.Step {
	_, _ = tr.pipe.WriteString(endOfTrace + "\n") // lines are written at once: the kill has cut none off
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for !tr.read {
		tr.changed.Wait()
	}
	out := map[int32]pipeline.Step{}
	for p, s := range tr.stand {
		out[p] = s
	}
	return out
}
