// Package testenv gives a test the real servers that it needs: the ClickHouse engine, redis-server (alone, with sentinels, as a cluster),
// Apache Kafka, and kfake. A server listens on free loopback ports, keeps its data in the test's temporary folder and ends with the test.
//
// A missing component fails the test and names the command that installs it: a test that silently did not run proves nothing.
//
// Starting costs 0.2 s (engine), 0.05 s (Redis), 3-5 s (Kafka). The Shared… functions start one server a test binary, each test gets a database or a
// topic name of its own in it; the package's TestMain has to be [Main] then. Tests that stop, kill or pause a server take one of their own.
package testenv

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncesink/oncesink/internal/embedded"
)

// A test binary that starts the engine is started again as the engine. In an init, so that no package can forget it: its child would run the tests instead.
func init() { embedded.MaybeRunChild() }

const (
	startDeadline = 60 * time.Second // a machine with busy cores; a server that is broken says so earlier
	stopDeadline  = 20 * time.Second
	setupHint     = "run `make setup` first"
)

// Main runs the tests and then stops the shared servers. Call it from TestMain. What the package itself leaves behind it clears away in last.
func Main(m *testing.M, last ...func()) {
	shared.enabled = true
	code := m.Run()
	shared.stopAll()
	for _, f := range last {
		f()
	}
	os.Exit(code)
}

// Server is what all servers of this package have in common. Every method fails the test when it doesn't succeed.
// The address and the data stay the same over Stop, Kill and Start.
type Server struct {
	Addr string

	name    string
	t       testing.TB
	running process
	start   func(ctx context.Context) (process, error)
}

// process is a running server.
type process interface {
	Stop(ctx context.Context) error
	Kill()
	Pause()
	Resume()
}

// launch starts the server for the first time and sees to its end.
func (s *Server) launch() {
	s.t.Helper()
	s.Start()
	s.t.Cleanup(func() {
		if s.running != nil {
			s.running.Kill() // the data is the test's and goes with it
		}
	})
}

// Start starts the server again after Stop or Kill, and returns when it serves.
func (s *Server) Start() {
	s.t.Helper()
	if s.running != nil {
		s.t.Fatalf("start %s on %s: it is running", s.name, s.Addr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	running, err := s.start(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	s.running = running
}

// Stop stops the server in its own good order.
func (s *Server) Stop() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stopDeadline)
	defer cancel()
	err := s.mustRun("stop").Stop(ctx)
	s.running = nil
	if err != nil {
		s.t.Fatal(err)
	}
}

// Kill is kill -9.
func (s *Server) Kill() {
	s.t.Helper()
	s.mustRun("kill").Kill()
	s.running = nil
}

// Pause freezes the server: connections stay open, nobody answers.
func (s *Server) Pause() {
	s.t.Helper()
	s.mustRun("pause").Pause()
}

// Resume ends a Pause.
func (s *Server) Resume() {
	s.t.Helper()
	s.mustRun("resume").Resume()
}

func (s *Server) mustRun(verb string) process {
	s.t.Helper()
	if s.running == nil {
		s.t.Fatalf("%s %s on %s: it is not running", verb, s.name, s.Addr)
	}
	return s.running
}

// output passes a server's output to the test's log, line by line, as long as the test runs.
type output struct {
	mu   sync.Mutex
	t    testing.TB
	name string
	done bool
}

func newOutput(t testing.TB, name string) *output {
	o := &output{t: t, name: name}
	t.Cleanup(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.done = true
	})
	return o
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done {
		o.t.Logf("%s: %s", o.name, strings.TrimRight(string(b), "\n"))
	}
	return len(b), nil
}

// freePort is a free port, or the end of the test.
func freePort(t testing.TB) int {
	t.Helper()
	port, err := embedded.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
