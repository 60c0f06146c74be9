package embedded

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/ebitengine/purego"
)

// childEnv carries the engine's parameters to the child; that it is set makes a process the child.
const childEnv = "ONCESINK_ENGINE_CHILD"

// childParams is what the parent tells the engine process.
type childParams struct {
	Lib, DataDir, Config string
	TCPPort, HTTPPort    int
	User, Password       string // the engine's own user, for the clean stop
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

	lib, err := purego.Dlopen(p.Lib, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return fmt.Errorf("load %s: %w", p.Lib, err)
	}
	var setSignalHandlers func(int32)
	var queryCmdline func(argc int32, argv **byte) uintptr
	purego.RegisterLibFunc(&setSignalHandlers, lib, "chdb_set_signal_handlers_enabled")
	purego.RegisterLibFunc(&queryCmdline, lib, "chdb_query_cmdline")
	setSignalHandlers(0) // Go's stay: with the library's, a nil dereference in Go would hang the process

	if err := persistSystemDatabase(p.DataDir); err != nil {
		return err
	}
	// The last statement reads a pipe: it ends, and with it the engine, when the pipe is closed.
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	args := []string{
		"clickhouse", "--config-file=" + p.Config, "--path=" + p.DataDir, "--listen_host=127.0.0.1",
		fmt.Sprintf("--tcp_port=%d", p.TCPPort), fmt.Sprintf("--http_port=%d", p.HTTPPort),
		fmt.Sprintf("--query=SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; SELECT * FROM file('/proc/self/fd/%d', 'LineAsString', 'line String') FORMAT Null", pipe[0]),
	}
	// Listening happens long after this check, but a port that is taken is told here in words; the engine would say it on stderr and go on.
	for _, port := range []int{p.TCPPort, p.HTTPPort} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Errorf("port %d is not free: %w", port, err)
		}
		_ = l.Close()
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
		return fmt.Errorf("the engine ended by itself; its message is above")
	case <-parentGone:
	case <-stop:
	}
	// Without this a running query delays the end by 5 s, and then the engine ends the process by force.
	killQueries(p)
	_ = syscall.Close(pipe[1])
	<-ended
	return nil
}

// killQueries asks all running queries to end. It is best effort: an engine that doesn't listen yet has none.
func killQueries(p childParams) {
	client := &http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true}, // an idle connection of ours would delay the end by 5 s too
	}
	q := url.Values{"query": {"KILL QUERY WHERE user != '' AND query_id != queryID() ASYNC"}}
	req, err := http.NewRequest(http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/?%s", p.HTTPPort, q.Encode()), strings.NewReader(""))
	if err != nil {
		return
	}
	req.Header.Set("X-ClickHouse-User", p.User)
	req.Header.Set("X-ClickHouse-Key", p.Password)
	if resp, err := client.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}

// persistSystemDatabase keeps the system database on disk, so that query_log and part_log outlive a restart. Written once: its UUID names the tables' folders.
func persistSystemDatabase(dataDir string) error {
	meta := filepath.Join(dataDir, "metadata")
	if err := os.MkdirAll(meta, 0o755); err != nil {
		return fmt.Errorf("create data folder: %w", err)
	}
	file := filepath.Join(meta, "system.sql")
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	const attach = "ATTACH DATABASE _ UUID '5f0d1f3a-7c7e-4b57-9f1b-0e1f9d6a0001'\nENGINE = Atomic\n"
	if err := os.WriteFile(file, []byte(attach), 0o644); err != nil {
		return fmt.Errorf("create system database: %w", err)
	}
	return nil
}
