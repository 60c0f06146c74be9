package embedded

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

// handedOut are the ports that this process was given as free: the kernel may well hand out the same one twice before its server listens.
var handedOut = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// FreePort is a TCP port of the loopback interface that was free a moment ago, and another one at each call.
func FreePort() (int, error) {
	handedOut.Lock()
	defer handedOut.Unlock()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		if !handedOut.ports[port] {
			handedOut.ports[port] = true
			return port, nil
		}
	}
}

// portOr is the given port, when it is free, or a free one for 0.
func portOr(port int) (int, error) {
	if port == 0 {
		return FreePort()
	}
	l, err := listenSoon(port)
	if err != nil {
		return 0, fmt.Errorf("port %d can't be used, choose another one: %w", port, err)
	}
	return port, l.Close()
}

// PortPatience is how long a port may still be held by a child of a process that was killed a moment ago: it ends by itself, but in order.
const PortPatience = 2 * time.Second

func listenSoon(port int) (net.Listener, error) {
	for until := time.Now().Add(PortPatience); ; time.Sleep(50 * time.Millisecond) {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(until) {
			return l, err
		}
	}
}

// withPort runs start, and again with other ports when a free one was taken by a stranger before the server listened on it.
func withPort(chosen bool, start func() error) error {
	const tries = 3
	for try := 1; ; try++ {
		err := start()
		taken := err != nil && (errors.Is(err, syscall.EADDRINUSE) || strings.Contains(err.Error(), "Address already in use"))
		if !taken || !chosen || try == tries {
			return err
		}
	}
}
