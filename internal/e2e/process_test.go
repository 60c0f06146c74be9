package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sink is one process of the product.
type sink struct {
	t      testing.TB
	name   string
	cmd    *exec.Cmd
	trace  *trace
	stdout bytes.Buffer
	log    *os.File
	exited chan struct{}
	code   int
}

// start starts `sink run` and returns at once.
func (w *world) start(c settings, more ...string) *sink {
	w.t.Helper()
	w.lives++
	config := w.config(c)
	tr := newTrace(w.t, filepath.Join(w.dir, fmt.Sprintf("steps-%d", w.lives)))
	p := w.launchOf(c.binary, fmt.Sprintf("run-%d", w.lives), append([]string{"run", "-c", config, "--trace-steps", tr.path}, more...)...)
	p.trace = tr
	go func() {
		<-p.exited
		tr.wake(true)
	}()
	return p
}

// launch starts the binary. Its stderr is kept; its end is shown when the test fails.
func (w *world) launch(name string, args ...string) *sink {
	w.t.Helper()
	return w.launchOf("", name, args...)
}

// launchOf is launch of another program; "": of the present tree's.
func (w *world) launchOf(program, name string, args ...string) *sink {
	w.t.Helper()
	if program == "" {
		program = sinkBinary(w.t)
	}
	p := &sink{t: w.t, name: name, cmd: exec.Command(program, args...), exited: make(chan struct{})}
	var err error
	if p.log, err = os.Create(filepath.Join(w.dir, name+".log")); err != nil {
		w.t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The death signal follows the thread that started the process, so this one has to live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			p.code = p.cmd.ProcessState.ExitCode()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		w.t.Fatalf("start the sink: %v", err)
	}
	w.t.Cleanup(func() {
		p.kill()
		_ = p.log.Close()
		if w.t.Failed() {
			w.t.Logf("%s ended with %d and said last:\n%s", p.name, p.code, p.said(40))
		}
	})
	return p
}

// kill is kill -9; it returns when the process is gone. The returned moment lies just behind the signal.
func (p *sink) kill() time.Time {
	select {
	case <-p.exited:
		return time.Now()
	default:
	}
	_ = p.cmd.Process.Kill()
	at := time.Now()
	<-p.exited
	return at
}

// running tells whether the process has not ended by itself.
func (p *sink) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop ends the process in its own good order.
func (p *sink) stop() {
	p.t.Helper()
	if !p.running() {
		p.t.Fatalf("%s ended by itself with %d: %s", p.name, p.code, p.said(5))
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.wait(40 * time.Second); code != 0 {
		p.t.Fatalf("%s stopped with %d, want 0", p.name, code)
	}
}

// wait returns the exit code. A process that doesn't end shows its goroutines and fails the test.
func (p *sink) wait(patience time.Duration) int {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-p.exited:
		return p.code
	case <-ctx.Done():
	}
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	<-p.exited
	p.t.Fatalf("%s did not end within %s; it said:\n%s", p.name, patience, p.said(400))
	return 0
}

// said is the end of what the process wrote to stderr.
func (p *sink) said(lines int) string {
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "\n")
}

// drainPatience is for a machine whose cores others use too.
const drainPatience = 4 * time.Minute

// drain runs `sink run --drain` to its end and returns its exit code and what it said.
func (w *world) drain(c settings) (code int, stdout, stderr string) {
	w.t.Helper()
	p := w.start(c, "--drain")
	code = p.wait(drainPatience)
	return code, p.stdout.String(), p.said(1000)
}

// mustDrain is a drain that settles everything.
func (w *world) mustDrain(c settings) (stdout string) {
	w.t.Helper()
	code, stdout, stderr := w.drain(c)
	if code != 0 {
		w.t.Fatalf("the drain ended with %d, want 0:\n%s", code, stderr)
	}
	return stdout
}

// command runs another command of the sink.
func (w *world) command(args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	w.lives++
	p := w.launch(fmt.Sprintf("%s-%d", args[0], w.lives), args...)
	code = p.wait(time.Minute)
	return code, p.stdout.String(), p.said(1000)
}

var errEnded = errors.New("the sink ended")
