// Package child runs a server as a child process that can't outlive its parent.
//
// A child is in a process group of its own, so that Ctrl-C on the terminal reaches only the parent, which then stops its
// children in its own order. When the parent dies without a chance to do that (kill -9), the kernel sends the child its death signal.
// Not promised: that grandchildren die too; none of the servers here has any.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options describe the process to start.
type Options struct {
	Name        string // for messages: "engine", "redis-server", …
	Path        string
	Args        []string
	Env         []string // nil: the parent's
	Dir         string
	Output      io.Writer      // gets what the child prints on stdout and stderr; nil: nobody. The tail is kept for messages in any case
	DeathSignal syscall.Signal // sent by the kernel when the parent dies; 0: SIGKILL
}

// Process is a started child. Its methods are safe for concurrent use.
type Process struct {
	name    string
	pid     int
	stdin   io.Closer
	tail    *tail
	exited  chan struct{}
	waitErr error // readable once exited is closed
}

// Start starts the process and returns as soon as it exists.
func Start(o Options) (*Process, error) {
	cmd := exec.Command(o.Path, o.Args...)
	cmd.Env, cmd.Dir = o.Env, o.Dir
	p := &Process{name: o.Name, tail: &tail{next: o.Output}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.tail, p.tail
	cmd.WaitDelay = 2 * time.Second
	death := o.DeathSignal
	if death == 0 {
		death = syscall.SIGKILL
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death}
	// The child's standard input is a pipe that nobody writes to: its end tells the child that the parent is gone.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	p.stdin = stdin

	started := make(chan error)
	go func() {
		// The kernel's death signal follows the *thread* that started the child, so this thread has to live as long as the child does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.waitErr = cmd.Wait()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.pid }

// Exited is closed when the process has ended and was waited for.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Running tells whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Failure describes an unexpected end: how the process ended and what it printed last.
func (p *Process) Failure() error {
	<-p.exited
	how := "ended"
	if p.waitErr != nil {
		how = "ended with " + p.waitErr.Error()
	}
	if last := p.tail.String(); last != "" {
		return fmt.Errorf("%s (pid %d) %s; it printed last:\n%s", p.name, p.pid, how, last)
	}
	return fmt.Errorf("%s (pid %d) %s and printed nothing", p.name, p.pid, how)
}

// Stop asks the process to end (SIGTERM), waits for it until ctx is done, and then kills it. A forced end is an error, a missing process is not.
func (p *Process) Stop(ctx context.Context) error {
	if !p.Running() {
		return nil
	}
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT) // a paused process would never see the request
	select {
	case <-p.exited:
		_ = p.stdin.Close()
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("%s (pid %d) did not stop in time and was killed: %w", p.name, p.pid, ctx.Err())
	}
}

// Kill ends the process at once (SIGKILL) and waits for it.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
	_ = p.stdin.Close()
}

// Pause freezes the process (SIGSTOP): its connections stay open and nobody answers on them.
func (p *Process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on (SIGCONT).
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

// signal is never sent to a process that was waited for: its id may belong to somebody else by then.
func (p *Process) signal(s syscall.Signal) {
	if p.Running() {
		if err := syscall.Kill(p.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			panic(fmt.Sprintf("signal %v to %s (pid %d): %v", s, p.name, p.pid, err))
		}
	}
}

// tail keeps the end of what was written to it and passes everything on.
type tail struct {
	mu   sync.Mutex
	buf  []byte
	next io.Writer
}

const tailSize = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	if t.next != nil {
		// A writer that fails (a closed log) must not block or end the child.
		_, _ = t.next.Write(b)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.buf))
}
