package embedded

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ClickHouse/ch-go"

	"github.com/oncesink/oncesink/internal/embedded/child"
)

// EngineOptions say where and how the ClickHouse engine runs. The zero value is an engine on free ports over a folder that goes with it.
type EngineOptions struct {
	Lib      string // libchdb.so; "": see [FindEngineLib]
	DataDir  string // "": a temporary folder, removed at Stop and Kill
	TCPPort  int    // native protocol on loopback; 0: a free one
	HTTPPort int    // 0: a free one
	Database string // an Atomic database that is created when missing; "": DefaultDatabase
	UsersXML string // a whole users file, see [DefaultUsersXML]; "": that one. Its users need <default_database>default</default_database>
	Stderr   io.Writer
}

// DefaultDatabase is the database that the engine creates beside ClickHouse's own `default`.
const DefaultDatabase = "oncesink"

// Engine is a running ClickHouse engine: a child process that serves the real native and HTTP protocols on loopback ports.
type Engine struct {
	TCPAddr  string
	HTTPAddr string
	DataDir  string

	proc     *child.Process
	ownsData bool
}

// engineUser is who the engine's owner is for the engine; its password is new at each start, so it also proves that it is ours that answers.
const engineUser = "oncesink_engine"

// StartEngine starts the engine and returns when it answers on both ports. The process must call [MaybeRunChild] first thing.
func StartEngine(ctx context.Context, o EngineOptions) (*Engine, error) {
	if _, isChild := os.LookupEnv(childEnv); isChild {
		return nil, errors.New("start engine: this process is the engine's child and did not call embedded.MaybeRunChild first: do so at the top of main or TestMain")
	}
	lib, err := FindEngineLib(o.Lib)
	if err != nil {
		return nil, err
	}
	e := &Engine{DataDir: o.DataDir}
	if e.DataDir == "" {
		if e.DataDir, err = os.MkdirTemp("", "oncesink-engine-"); err != nil {
			return nil, fmt.Errorf("start engine: %w", err)
		}
		e.ownsData = true
	}
	if e.DataDir, err = filepath.Abs(e.DataDir); err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	if o.Database == "" {
		o.Database = DefaultDatabase
	}
	if err := withPort(o.TCPPort == 0 || o.HTTPPort == 0, func() error { return e.start(ctx, o, lib) }); err != nil {
		e.cleanUp()
		return nil, fmt.Errorf("start engine: %w", err)
	}
	return e, nil
}

func (e *Engine) start(ctx context.Context, o EngineOptions, lib string) error {
	params := childParams{Lib: lib, DataDir: e.DataDir, TCPPort: o.TCPPort, HTTPPort: o.HTTPPort, User: engineUser, Password: rand.Text(),
		Parent: os.Getpid(), RemoveData: e.ownsData}
	var err error
	if params.TCPPort, err = portOr(o.TCPPort); err != nil {
		return err
	}
	if params.HTTPPort, err = portOr(o.HTTPPort); err != nil {
		return err
	}
	if params.Config, err = writeEngineConfig(e.DataDir, o.UsersXML, params.Password); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	e.TCPAddr = fmt.Sprintf("127.0.0.1:%d", params.TCPPort)
	e.HTTPAddr = fmt.Sprintf("127.0.0.1:%d", params.HTTPPort)
	e.proc, err = child.Start(child.Options{
		Name: "engine", Path: self, Dir: e.DataDir, Output: o.Stderr, DeathSignal: syscall.SIGTERM,
		Env: append(os.Environ(), childEnv+"="+string(raw)),
	})
	if err != nil {
		return err
	}
	if err := e.waitReady(ctx, params, o.Database); err != nil {
		e.proc.Kill()
		return err
	}
	return nil
}

// waitReady returns when it is this engine that answers on both ports, and it has the database.
func (e *Engine) waitReady(ctx context.Context, p childParams, database string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := e.createDatabase(ctx, p, database)
		if err == nil {
			err = p.postQuery(ctx, "SELECT 1")
		}
		if err == nil {
			return nil
		}
		select {
		case <-e.proc.Exited():
			return e.proc.Failure()
		case <-ctx.Done():
			return fmt.Errorf("not ready on %s and %s: %w (last: %w)", e.TCPAddr, e.HTTPAddr, ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func (e *Engine) createDatabase(ctx context.Context, p childParams, database string) error {
	conn, err := ch.Dial(ctx, ch.Options{Address: e.TCPAddr, User: p.User, Password: p.Password, Database: "system", ClientName: "oncesink engine"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	quoted := "`" + strings.ReplaceAll(strings.ReplaceAll(database, `\`, `\\`), "`", "\\`") + "`"
	return conn.Do(ctx, ch.Query{Body: "CREATE DATABASE IF NOT EXISTS " + quoted + " ENGINE = Atomic"})
}

// PID is the process id of the engine.
func (e *Engine) PID() int { return e.proc.PID() }

// Exited is closed when the engine's process has ended, for whatever reason.
func (e *Engine) Exited() <-chan struct{} { return e.proc.Exited() }

// Failure describes how the engine ended; call it once Exited is closed.
func (e *Engine) Failure() error { return e.proc.Failure() }

// Stop ends the engine: running queries are killed, then it shuts down. When ctx ends first, the process is killed.
func (e *Engine) Stop(ctx context.Context) error {
	defer e.cleanUp()
	return e.proc.Stop(ctx)
}

// Kill is kill -9: what was acknowledged is on disk, nothing is tidied up. Use the same DataDir to start again.
func (e *Engine) Kill() {
	e.proc.Kill()
	e.cleanUp()
}

// Pause freezes the engine: open connections get no answer any more.
func (e *Engine) Pause() { e.proc.Pause() }

// Resume ends a Pause.
func (e *Engine) Resume() { e.proc.Resume() }

func (e *Engine) cleanUp() {
	if e.ownsData {
		_ = os.RemoveAll(e.DataDir)
	}
}
