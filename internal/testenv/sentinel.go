package testenv

import (
	"os"
	"syscall"
	"testing"

	"github.com/oncesink/oncesink/internal/embedded"
	"github.com/oncesink/oncesink/internal/embedded/child"
)

// startSentinel starts redis-server in its sentinel mode and returns when it answers.
func startSentinel(t testing.TB, port int, config string) {
	t.Helper()
	proc, err := child.Start(child.Options{
		Name: "redis-sentinel", Path: embedded.FindRedis(), Args: []string{config, "--sentinel"}, Output: newOutput(t, "sentinel"), DeathSignal: syscall.SIGTERM,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proc.Kill)
	awaitRedis(t, loopback(port), "server", "redis_mode:sentinel")
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
