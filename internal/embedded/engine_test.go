package embedded

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	MaybeRunChild()
	os.Exit(m.Run())
}

func TestEngineStartsAndStops(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	start := time.Now()
	e, err := StartEngine(ctx, EngineOptions{Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("ready after", time.Since(start), e.TCPAddr, e.HTTPAddr, e.PID())
	if d := os.Getenv("HOLD"); d != "" {
		dd, _ := time.ParseDuration(d)
		time.Sleep(dd)
	}
	start = time.Now()
	if err := e.Stop(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	t.Log("stopped after", time.Since(start))
}
