package writer

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a Server and an engine and breaks connections where a test wants it.
type proxy struct {
	addr    string
	backend string

	// cutUp ends a connection once that many bytes have come from the client since arm; 0: never. cutDown likewise for bytes of the server.
	cutUp, cutDown atomic.Int64
	up, down       atomic.Int64 // bytes since arm
	accepted       atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]bool
	l     net.Listener
	wg    sync.WaitGroup
}

func newProxy(t testing.TB, backend string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), backend: backend, conns: map[net.Conn]bool{}, l: l}
	p.wg.Go(p.serve)
	t.Cleanup(func() { p.stop() })
	return p
}

func (p *proxy) serve() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		server, err := net.Dial("tcp", p.backend)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.wg.Go(func() { p.copy(server, client, &p.up, &p.cutUp) })
		p.wg.Go(func() { p.copy(client, server, &p.down, &p.cutDown) })
	}
}

// copy forwards byte for byte up to the cut.
func (p *proxy) copy(to, from net.Conn, seen, cut *atomic.Int64) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
		p.mu.Lock()
		delete(p.conns, to)
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if limit := cut.Load(); limit > 0 && seen.Load()+int64(n) >= limit {
				_, _ = to.Write(buf[:max(0, limit-seen.Load())])
				return
			}
			seen.Add(int64(n))
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// arm counts from here on.
func (p *proxy) arm(up, down int64) {
	p.up.Store(0)
	p.down.Store(0)
	p.cutUp.Store(up)
	p.cutDown.Store(down)
}

// cutIdle closes all connections, as a balancer does with idle ones.
func (p *proxy) cutIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) stop() {
	_ = p.l.Close()
	p.cutIdle()
	p.wg.Wait()
}

// listen is a server that reads what a client says first, or doesn't, answers one thing and hangs up.
func listen(t testing.TB, reads bool, says string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if reads {
				_, _ = c.Read(make([]byte, 4096))
			}
			_, _ = io.WriteString(c, says)
			_ = c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}
