package embedded

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// A stack that is started again right after a kill met its own old servers, which were about to leave.
func TestAPortThatIsAboutToBeFreeIsWaitedFor(t *testing.T) {
	held, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := held.Addr().(*net.TCPAddr).Port
	first := held
	time.AfterFunc(200*time.Millisecond, func() { _ = first.Close() })
	if got, err := portOr(port); err != nil || got != port {
		t.Fatalf("%d, %v", got, err)
	}
	// One that stays taken is told.
	held, err = new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	if _, err := portOr(port); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port that is taken: %v", err)
	}
}
