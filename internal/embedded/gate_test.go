package embedded

import (
	"context"
	"net"
	"runtime"
	"testing"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"
)

// keepConn lets a test at the connection below a client.
type keepConn struct{ conn net.Conn }

func (k *keepConn) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	var err error
	k.conn, err = new(net.Dialer).DialContext(ctx, network, addr)
	return k.conn, err
}

func (k *keepConn) reset(t *testing.T) {
	t.Helper()
	if err := k.conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	_ = k.conn.Close()
}

// Without the gate the first reset on any connection aborts the engine.
func TestClientsThatBreakOffDoNotEndTheEngine(t *testing.T) {
	e := startEngine(t, EngineOptions{})
	watch := dial(t, e.TCPAddr, ch.Options{})
	exec1(t, watch, "CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a")

	var idle keepConn
	dial(t, e.TCPAddr, ch.Options{Dialer: &idle})
	idle.reset(t)

	// In the middle of an answer that nobody takes.
	var reading keepConn
	conn := dial(t, e.TCPAddr, ch.Options{Dialer: &reading})
	ended := make(chan error, 1)
	go func() {
		var n proto.ColUInt64
		ended <- conn.Do(context.Background(), ch.Query{
			Body:     "SELECT number AS n FROM numbers(1000000000)",
			Result:   proto.Results{{Name: "n", Data: &n}},
			OnResult: func(context.Context, proto.Block) error { reading.reset(t); return nil },
		})
	}()
	if err := <-ended; err == nil {
		t.Fatal("a query survived the reset of its connection")
	}

	// In the middle of an insert.
	var writing keepConn
	conn = dial(t, e.TCPAddr, ch.Options{Dialer: &writing})
	col := make(proto.ColInt64, 100_000)
	blocks := 0
	err := conn.Do(t.Context(), ch.Query{
		Body: "INSERT INTO t (a) VALUES", Input: proto.Input{{Name: "a", Data: &col}},
		OnInput: func(context.Context) error {
			if blocks++; blocks == 3 {
				writing.reset(t)
			}
			return nil
		},
	})
	if err == nil {
		t.Fatal("an insert survived the reset of its connection")
	}

	web := keepConn{}
	if _, err := web.DialContext(t.Context(), "tcp", e.HTTPAddr); err != nil {
		t.Fatal(err)
	}
	if _, err := web.conn.Write([]byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nSELECT")); err != nil {
		t.Fatal(err)
	}
	web.reset(t)

	// The killed query ends although nobody reads: its connection is known to be gone.
	for count(t, watch, "SELECT count() AS n FROM system.processes WHERE user != ''") > 1 {
		runtime.Gosched()
	}
	if !e.proc.Running() {
		t.Fatal(e.Failure())
	}
}
