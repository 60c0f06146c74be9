package demo_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/demo"
	"github.com/oncesink/oncesink/internal/embedded"
)

func TestMain(m *testing.M) {
	embedded.MaybeRunChild()
	dir, err := os.MkdirTemp("", "oncesink-demo-test-")
	if err != nil {
		panic(err)
	}
	built = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// built is where the program is, beside the tests' own folders.
var built string

// program is the sink, built once.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "sink")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/sink").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the sink: %w\n%s", err, out)
	}
	return path, nil
})

// start gives the options of a small run whose folders are the test's.
func start(t *testing.T) (demo.Options, *words) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	w := &words{}
	return demo.Options{Rows: 20_000, Seed: 3, Sink: path, Progress: w}, w
}

// words is what the demo says, safe to read meanwhile.
type words struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// nothingLeft checks that a run has no folder and no process left.
func nothingLeft(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tasks {
		if children, err := os.ReadFile(file); err == nil && len(children) > 0 {
			t.Errorf("processes are left: %s", children)
		}
	}
}

func TestTheWholeDemoBalances(t *testing.T) {
	o, w := start(t)
	a, err := demo.Run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, w)
	}
	if !a.Balanced {
		t.Fatalf("%s%s\n%s", a.Verdict(), a.Logs, w)
	}
	nothingLeft(t)
	if len(a.Crashes) != a.Planned.Crashes || a.Table.Rows != a.True.Keys || a.Records != a.Produced+a.SentAgain || len(a.Doors.ByHand) == 0 {
		t.Errorf("%+v", a)
	}
	if !strings.Contains(w.String(), "of 19,") || !strings.Contains(w.String(), "crashes") {
		t.Errorf("the progress says: %s", w)
	}
}

func TestAStopInTheMiddleLeavesNothingBehind(t *testing.T) {
	o, w := start(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		// A sink process is running by then, and the next is about to be killed.
		for ctx.Err() == nil && !strings.Contains(w.String(), "crashes") {
			time.Sleep(10 * time.Millisecond)
		}
		stop()
	}()
	if a, err := demo.Run(ctx, o); err == nil || a != nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("%+v, %v", a, err)
	}
	nothingLeft(t)
}

func TestASinkThatCannotRunIsToldWithItsLastWords(t *testing.T) {
	o, _ := start(t)
	o.Stall = 2 * time.Second
	o.Sink = filepath.Join(t.TempDir(), "no-sink")
	if err := os.WriteFile(o.Sink, []byte("#!/bin/sh\necho no such sink >&2\nexit 1\n"), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	a, err := demo.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if a.Balanced || a.Table.Rows != 0 || !strings.Contains(a.Verdict(), "settlements are lost") || !strings.Contains(a.Logs, "no such sink") {
		t.Errorf("%s%s", a.Verdict(), a.Logs)
	}
}
