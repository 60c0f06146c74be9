// Package e2e kills, cuts and delays a real `sink run` against a real Kafka broker, redis-server and ClickHouse engine, and then counts: each key once in
// the table, each amount once in every view, every offset committed, nothing in the dead letters. What is expected comes from the generator alone, what is
// found from SQL and from Kafka.
//
// The moments of the kills are not repeatable. A failure prints what the last lives of the sink said; the rules themselves are proven where schedules
// repeat, by the simulation and the model.
//
// ONCESINK_E2E_KILLS and ONCESINK_E2E_RECORDS set the size of the crash test.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/oncesink/oncesink/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Main(m, func() {
		if built.dir != "" {
			_ = os.RemoveAll(built.dir)
		}
	})
}

var built struct {
	once sync.Once
	dir  string
	err  error
}

// sinkBinary builds the sink once a test binary, with the race detector when ONCESINK_E2E_RACE is set.
func sinkBinary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "oncesink-e2e-"); built.err != nil {
			return
		}
		args := []string{"build", "-o", built.dir}
		if os.Getenv("ONCESINK_E2E_RACE") != "" {
			args = append(args, "-race")
		}
		if said, err := exec.Command("go", append(args, "../../cmd/sink")...).CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build the sink: %w: %s", err, said)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "sink")
}

// size reads how big a test shall be.
func size(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a positive number", name, text)
	}
	return n
}
