package testenv

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/oncesink/oncesink/internal/embedded"
)

// EngineServer is a ClickHouse engine of one test. Addr is the native protocol's.
type EngineServer struct {
	Server
	HTTPAddr string
	Database string // an Atomic database beside `default`
}

// Engine starts a ClickHouse engine for this test alone.
func Engine(t testing.TB) *EngineServer {
	t.Helper()
	return EngineWith(t, embedded.EngineOptions{})
}

// EngineWith is Engine with a users file, a database name, …; ports and data folder are chosen when not given.
func EngineWith(t testing.TB, o embedded.EngineOptions) *EngineServer {
	t.Helper()
	if _, err := embedded.FindEngineLib(o.Lib); err != nil {
		t.Fatalf("%v (%s)", err, setupHint)
	}
	if o.DataDir == "" {
		o.DataDir = filepath.Join(t.TempDir(), "clickhouse")
	}
	if o.Database == "" {
		o.Database = embedded.DefaultDatabase
	}
	if o.TCPPort == 0 {
		o.TCPPort = freePort(t)
	}
	if o.HTTPPort == 0 {
		o.HTTPPort = freePort(t)
	}
	if o.Stderr == nil {
		o.Stderr = newOutput(t, "engine")
	}
	s := &EngineServer{
		Server:   Server{Addr: loopback(o.TCPPort), name: "engine", t: t},
		HTTPAddr: loopback(o.HTTPPort),
		Database: o.Database,
	}
	s.start = func(ctx context.Context) (process, error) { return started(embedded.StartEngine(ctx, o)) }
	s.launch()
	return s
}

// started keeps a nil pointer from becoming a process that is not nil.
func started[P process](p P, err error) (process, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}
