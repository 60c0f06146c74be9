package embedded

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// gate stands before one of the engine's ports, in the engine's process, and takes the blow of clients that break off.
//
// A reset that reaches a connection of clickhouse-local ends the whole process: its handler of uncaught exceptions is a terminal program's, where a
// server's would log and go on. So the engine only ever sees orderly ends: what a client sent before its reset, then the end of the stream, and its own
// answers are taken to their end even if nobody wants them any more. For the engine a client that was killed looks like one that has left.
//
// A login that fails on the native port ends it in the same way, and so does what is no login at all. So there the gate reads a client's first two packets
// itself, whole and within bounds, asks the engine by HTTP whether the user, the password and the database are good, and gives the engine's own answer if
// they aren't. What comes after them the engine survives, and the gate doesn't look at it.
type gate struct {
	listener net.Listener
	backend  string
	doorman  *doorman // nil: no logins to look at

	mu     sync.Mutex
	closed bool
	open   map[*net.TCPConn]struct{} // connections to the engine
}

// openGate listens for clients and forwards each to the backend. With a doorman they are clients of the native protocol.
func openGate(port, backendPort int, d *doorman) (*gate, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("port %d can't be used, choose another one: %w", port, err)
	}
	g := &gate{listener: l, backend: fmt.Sprintf("127.0.0.1:%d", backendPort), doorman: d, open: map[*net.TCPConn]struct{}{}}
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
	var said *prologue
	version := 0
	if g.doorman != nil {
		said = &prologue{from: bufio.NewReader(client)}
		h, ok := g.admit(client, said)
		if !ok {
			return
		}
		version = h.ProtocolVersion
	}
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
		if said == nil || g.passPrologue(engine, client, said, version) == nil {
			_, _ = io.Copy(engine, client)
		}
		_ = engine.CloseWrite()
	})
	if _, err := io.Copy(client, engine); err != nil {
		_, _ = io.Copy(io.Discard, engine) // the client has gone; the engine must not notice while it speaks
	}
	_ = client.Close() // the engine has ended the conversation
	up.Wait()
}

// admit reads the first packet and lets the engine judge it.
func (g *gate) admit(client *net.TCPConn, said *prologue) (h proto.ClientHello, ok bool) {
	_ = client.SetReadDeadline(time.Now().Add(g.doorman.patience))
	h, err := said.hello()
	if err != nil {
		if said.web() {
			g.answer(client, []byte(wrongPort))
		}
		return h, false
	}
	no, err := g.doorman.refusal(h)
	if err != nil {
		return h, false // it doesn't answer yet, or no more
	}
	if no != nil {
		g.answer(client, exceptionPacket(no))
	}
	return h, no == nil
}

// passPrologue hands the packets of the login on: the second one, too, only when it is there as a whole.
func (g *gate) passPrologue(engine, client *net.TCPConn, said *prologue, version int) error {
	if _, err := engine.Write(said.take()); err != nil {
		return err
	}
	_ = client.SetReadDeadline(time.Now().Add(g.doorman.patience))
	if err := said.addendum(version); err != nil {
		return err
	}
	_ = client.SetReadDeadline(time.Time{})
	early, _ := said.from.Peek(said.from.Buffered())
	_, err := engine.Write(append(said.take(), early...))
	return err
}

// answer says a last word, and takes what the client still sends: a connection that is closed with bytes unread is reset, and the word may be lost.
func (g *gate) answer(client *net.TCPConn, word []byte) {
	_ = client.SetDeadline(time.Now().Add(g.doorman.patience))
	if _, err := client.Write(word); err != nil {
		return
	}
	_ = client.CloseWrite()
	_, _ = io.CopyN(io.Discard, client, prologueMost)
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
