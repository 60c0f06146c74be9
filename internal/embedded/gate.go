package embedded

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// gate stands before one of the engine's ports, in the engine's process, and takes the blow of clients that break off.
//
// A reset that reaches a connection of clickhouse-local ends the whole process: its handler of uncaught exceptions is a terminal program's, where a
// server's would log and go on. So the engine only ever sees orderly ends: what a client sent before its reset, then the end of the stream, and its own
// answers are taken to their end even if nobody wants them any more. For the engine a client that was killed looks like one that has left.
type gate struct {
	listener net.Listener
	backend  string

	mu     sync.Mutex
	closed bool
	open   map[*net.TCPConn]struct{} // connections to the engine
}

// openGate listens for clients and forwards each to the backend.
func openGate(port, backendPort int) (*gate, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("port %d can't be used, choose another one: %w", port, err)
	}
	g := &gate{listener: l, backend: fmt.Sprintf("127.0.0.1:%d", backendPort), open: map[*net.TCPConn]struct{}{}}
	go g.serve()
	return g, nil
}

func (g *gate) serve() {
	for {
		client, err := g.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go g.forward(client.(*net.TCPConn))
		}
	}
}

func (g *gate) forward(client *net.TCPConn) {
	defer func() { _ = client.Close() }()
	conn, err := net.Dial("tcp", g.backend)
	if err != nil {
		return // the engine doesn't listen yet, or no more
	}
	engine := conn.(*net.TCPConn)
	if !g.enter(engine) {
		_ = engine.Close()
		return
	}
	defer g.leave(engine)

	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(engine, client)
		_ = engine.CloseWrite()
	})
	if _, err := io.Copy(client, engine); err != nil {
		_, _ = io.Copy(io.Discard, engine) // the client has gone; the engine must not notice while it speaks
	}
	_ = client.Close() // the engine has ended the conversation
	up.Wait()
}

func (g *gate) enter(engine *net.TCPConn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.open[engine] = struct{}{}
	}
	return !g.closed
}

func (g *gate) leave(engine *net.TCPConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, engine)
	_ = engine.Close()
}

// close takes no new clients and tells the engine that all have left, so that idle connections don't delay its end.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	_ = g.listener.Close()
	for engine := range g.open {
		_ = engine.CloseWrite()
	}
}
