package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// cost is what a process took.
type cost struct {
	Wall   time.Duration `json:"wall_ns"`
	CPU    time.Duration `json:"cpu_ns"`
	RSSMax int64         `json:"rss_max_bytes"`
}

// costOf runs a process to its end. What it printed is in the error when it
// fails.
func costOf(ctx context.Context, log io.Writer, env []string, path string, args ...string) (cost, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // the programs that are measured
	cmd.Env = append(os.Environ(), env...)
	both := io.MultiWriter(&out, log)
	cmd.Stdout, cmd.Stderr = both, both
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if err != nil {
		return cost{}, fmt.Errorf("%s %s: %w; it printed\n%s", path, args[0], err, tail(out.String(), 30))
	}
	u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return cost{}, fmt.Errorf("%s: this system tells no usage of a process", path)
	}
	return cost{Wall: wall, CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), RSSMax: u.Maxrss * 1024}, nil
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// route is one way from the topic into a table.
type route struct {
	group, topic, table string
	age                 time.Duration
	inserts             int // a second, at most
}

// database holds all tables of a benchmark.
const database = "default"

// configure writes the sink.yaml of a route. What it does not name is at its default.
func configure(dir string, s *stack, r route) (string, error) {
	path := filepath.Join(dir, r.group+".yaml")
	text := fmt.Sprintf(`kafka: {brokers: [%q], group: %s}
clickhouse: {addresses: [%q], database: %s}
redis: {addresses: [%q]}
routes:
  - topics: [%s]
    table: %s
    key: [settle_ms, id, rev]
    event_time: settle_ms
    ignore: [create_time]
    dead_letter: %s.dlq
batch: {max_age: %s, max_inserts_per_second: %d}
http: {listen: ""}
log: {format: text}
`, s.Kafka, r.group, s.ClickHouse, database, s.Redis, r.topic, r.table, r.topic, r.age, r.inserts)
	return path, os.WriteFile(path, []byte(text), 0o600)
}
