package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/ebitengine/purego"
	"github.com/google/uuid"
)

// childEnv carries the engine's parameters to the child; that it is set makes a process the child.
const childEnv = "ONCESINK_ENGINE_CHILD"

// childParams is what the parent tells the engine process.
type childParams struct {
	Lib, DataDir, Config string
	TCPPort, HTTPPort    int
	User, Password       string // the engine's own user, for the clean stop
	Parent               int    // its process id
	RemoveData           bool   // when the parent is gone: the folder was the parent's to remove
}

// MaybeRunChild turns this process into the ClickHouse engine when it was started as such by [StartEngine], and never returns then.
// It has to be the first call of main and of any TestMain in whose process StartEngine is used.
func MaybeRunChild() {
	raw, isChild := os.LookupEnv(childEnv)
	if !isChild {
		return
	}
	var params childParams
	err := json.Unmarshal([]byte(raw), &params)
	if err == nil {
		err = runEngine(params)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runEngine is clickhouse-local serving its native and HTTP protocols until SIGTERM, or the end of standard input, which is the end of the parent.
func runEngine(p childParams) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	signal.Ignore(syscall.SIGPIPE) // the engine writes to its sockets from threads that are not Go's; an error is enough for it

	// Before anything that takes time: a port that is taken is told here in words.
	inner := p
	var err error
	if inner.TCPPort, err = FreePort(); err != nil {
		return err
	}
	if inner.HTTPPort, err = FreePort(); err != nil {
		return err
	}
	native, err := openGate(p.TCPPort, inner.TCPPort, newDoorman(inner.HTTPPort))
	if err != nil {
		return err
	}
	web, err := openGate(p.HTTPPort, inner.HTTPPort, nil)
	if err != nil {
		return err
	}

	lib, err := purego.Dlopen(p.Lib, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return fmt.Errorf("load %s: %w", p.Lib, err)
	}
	var setSignalHandlers func(int32)
	var queryCmdline func(argc int32, argv **byte) uintptr
	purego.RegisterLibFunc(&setSignalHandlers, lib, "chdb_set_signal_handlers_enabled")
	purego.RegisterLibFunc(&queryCmdline, lib, "chdb_query_cmdline")
	setSignalHandlers(0) // Go's stay: with the library's, a nil dereference in Go would hang the process

	if err := prepareDatabases(p.DataDir); err != nil {
		return err
	}
	// The last statement reads a pipe: it ends, and with it the engine, when the pipe is closed.
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	args := []string{
		"clickhouse", "--config-file=" + p.Config, "--path=" + p.DataDir, "--listen_host=127.0.0.1",
		fmt.Sprintf("--tcp_port=%d", inner.TCPPort), fmt.Sprintf("--http_port=%d", inner.HTTPPort),
		fmt.Sprintf("--query=SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; SELECT * FROM file('/proc/self/fd/%d', 'LineAsString', 'line String') FORMAT Null", pipe[0]),
	}
	argv := make([]*byte, len(args)+1)
	for i, a := range args {
		argv[i] = &append([]byte(a), 0)[0]
	}
	ended := make(chan struct{})
	go func() {
		queryCmdline(int32(len(args)), &argv[0])
		runtime.KeepAlive(argv)
		close(ended)
	}()
	parentGone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(parentGone)
	}()

	select {
	case <-ended:
		return errors.New("the engine ended by itself; its message is above")
	case <-parentGone:
	case <-stop:
	}
	native.close()
	web.close()
	killQueries(inner)
	_ = syscall.Close(pipe[1])
	awaitEnd(inner, ended)
	if p.RemoveData && os.Getppid() != p.Parent {
		_ = os.RemoveAll(p.DataDir)
	}
	return nil
}

// stopDeadline bounds the clean stop. The engine itself gives up after 5 s of waiting for queries and ends the process.
const stopDeadline = 8 * time.Second

// awaitEnd goes on killing queries until the engine has ended: one that a client starts meanwhile would delay the end by 5 s.
func awaitEnd(p childParams, ended <-chan struct{}) {
	deadline := time.NewTimer(stopDeadline)
	defer deadline.Stop()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-ended:
			return
		case <-deadline.C:
			return
		case <-again.C:
			killQueries(p)
		}
	}
}

// killQueries asks all running queries to end. It is best effort: an engine that doesn't listen yet has none.
func killQueries(p childParams) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = p.postQuery(ctx, "KILL QUERY WHERE user != '' AND query_id != queryID() ASYNC")
}

// postQuery runs a statement over HTTP as the engine's own user.
func (p childParams) postQuery(ctx context.Context, sql string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/", p.HTTPPort), strings.NewReader(sql))
	if err != nil {
		return err
	}
	req.Header.Set("X-ClickHouse-User", p.User)
	req.Header.Set("X-ClickHouse-Key", p.Password)
	req.Close = true // an idle connection of ours would delay the engine's end by 5 s
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body) // to its end: a client that leaves early makes an error in the engine
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("http status %d: %s", resp.StatusCode, said)
	}
	return err
}

// prepareDatabases puts two databases into a new data folder before the engine sees it: `system`, so that query_log and part_log outlive a restart, and
// `default` as on any server; clickhouse-local's own default is an overlay whose tables have no UUID, so it gets another name (see engineConfig).
func prepareDatabases(dataDir string) error {
	meta := filepath.Join(dataDir, "metadata")
	if err := os.MkdirAll(meta, 0o755); err != nil {
		return fmt.Errorf("create data folder: %w", err)
	}
	for _, database := range []string{"system", "default"} {
		file := filepath.Join(meta, database+".sql")
		if _, err := os.Stat(file); err == nil {
			continue // its UUID names the tables' folders, so it is written once
		}
		attach := fmt.Sprintf("ATTACH DATABASE _ UUID '%s'\nENGINE = Atomic\n", uuid.New())
		if err := os.WriteFile(file, []byte(attach), 0o644); err != nil {
			return fmt.Errorf("create database %s: %w", database, err)
		}
	}
	// The engine would take what this link names for the overlay's folder. It is made again when the database is attached.
	if err := os.Remove(filepath.Join(meta, "default")); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("prepare database default: %w", err)
	}
	return nil
}
