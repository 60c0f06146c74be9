package embedded

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"
)

// usersWithPassword has a user with a password and a narrow view beside the default one.
var usersWithPassword = strings.Replace(DefaultUsersXML, "</users>", `<guarded>
  <password>p&amp;s: %ü</password><networks><ip>127.0.0.1</ip></networks>
  <profile>default</profile><quota>default</quota><default_database>default</default_database>
</guarded></users>`, 1)

// knock says something to the native port and returns all of what comes back.
func knock(t *testing.T, addr string, said []byte, leave bool) string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(said); err != nil {
		t.Fatal(err)
	}
	if leave {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the engine holds on to a client that said %q", said[:min(len(said), 40)])
	}
	return string(got)
}

func helloPacket(h proto.ClientHello, addendum ...any) []byte {
	var b proto.Buffer
	h.Encode(&b)
	for _, part := range addendum {
		switch v := part.(type) {
		case string:
			b.PutString(v)
		case int:
			b.PutUVarInt(uint64(v))
		}
	}
	return b.Buf
}

func mustAnswer(t *testing.T, e *Engine, after string) {
	t.Helper()
	conn, err := ch.Dial(t.Context(), ch.Options{Address: e.TCPAddr})
	if err == nil {
		err = conn.Ping(t.Context())
		_ = conn.Close()
	}
	if err != nil {
		t.Fatalf("after %s: %v; the engine runs: %v", after, err, e.proc.Running())
	}
}

// A login that fails used to end the engine, and with it the whole stack: one mistyped password was enough.
func TestFailedLoginsDoNotEndTheEngine(t *testing.T) {
	e := startEngine(t, EngineOptions{UsersXML: usersWithPassword})
	for name, c := range map[string]struct {
		o    ch.Options
		code proto.Error // 0: it gets in
		text string
	}{
		"right":               {o: ch.Options{User: "guarded", Password: "p&s: %ü", Database: "oncesink"}},
		"nothing said":        {},
		"wrong password":      {o: ch.Options{User: "default", Password: "foo"}, code: 194, text: "default: Authentication failed: password is incorrect"},
		"no password":         {o: ch.Options{User: "guarded"}, code: 516},
		"part of a password":  {o: ch.Options{User: "guarded", Password: "p"}, code: 516},
		"unknown user":        {o: ch.Options{User: "nobody\n&x=y"}, code: 516},
		"unknown database":    {o: ch.Options{Database: "nodb"}, code: 81, text: "DB::Exception: Database nodb does not exist"},
		"server's mark":       {o: ch.Options{User: " INTERSERVER SECRET "}, code: 516, text: "name and a password"},
		"database and quotes": {o: ch.Options{Database: "a`'b"}, code: 81},
	} {
		conn, err := ch.Dial(t.Context(), withAddress(c.o, e.TCPAddr))
		if err == nil {
			err = conn.Ping(t.Context())
			_ = conn.Close()
		}
		var ex *ch.Exception
		switch {
		case c.code == 0 && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.code != 0 && (!errors.As(err, &ex) || ex.Code != c.code || !strings.Contains(ex.Message, c.text)):
			t.Errorf("%s: %v", name, err)
		case c.code != 0 && (strings.Contains(ex.Message, "(version") || strings.HasPrefix(ex.Message, "Code:")):
			t.Errorf("%s: not as the native protocol words it: %q", name, ex.Message)
		}
		mustAnswer(t, e, name)
	}
}

func withAddress(o ch.Options, addr string) ch.Options {
	o.Address = addr
	return o
}

// So did everything that connects to the wrong port, and a client that was killed in its login.
func TestWhatIsNoLoginDoesNotEndTheEngine(t *testing.T) {
	e := startEngine(t, EngineOptions{})
	good := proto.ClientHello{Name: "probe", Major: 26, Minor: 7, ProtocolVersion: 54480, User: "default"}
	bare := good
	bare.User = ""
	whole := helloPacket(good)
	for name, c := range map[string]struct {
		said  []byte
		leave bool
		want  string // a part of the answer; "": there is none
	}{
		"TLS":                   {said: []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 500))},
		"PING":                  {said: []byte("PING\r\n"), want: "HTTP port"},
		"GET":                   {said: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), want: "HTTP port"},
		"ones":                  {said: []byte(strings.Repeat("\xff", 100))},
		"zeroes":                {said: make([]byte, 100), want: "\x02"},
		"Kafka":                 {said: []byte("\x00\x00\x00\x1a\x00\x12\x00\x03\x00\x00\x00\x01\x00\x04test"), leave: true},
		"nothing":               {leave: true},
		"an endless name":       {said: append([]byte{0}, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"...)},
		"a long name":           {said: helloPacket(proto.ClientHello{Name: strings.Repeat("x", prologueMost), User: "default"})},
		"many long texts":       {said: helloPacket(proto.ClientHello{Name: strings.Repeat("x", prologueMost/2), User: strings.Repeat("u", prologueMost/2)})},
		"no user":               {said: helloPacket(bare), want: "DB::Exception"},
		"old and wrong":         {said: helloPacket(proto.ClientHello{ProtocolVersion: 50000, User: "nobody"}), want: "DB::Exception"},
		"left after the hello":  {said: whole, leave: true, want: "ClickHouse"},
		"old, left":             {said: helloPacket(proto.ClientHello{ProtocolVersion: 54400, User: "default"}), leave: true, want: "ClickHouse"},
		"cut in the addendum":   {said: helloPacket(good, 9), leave: true, want: "ClickHouse"},
		"a huge quota key":      {said: helloPacket(good, 1<<40), want: "ClickHouse"},
		"another framing":       {said: helloPacket(good, "", "chunked", "chunked", 4), want: "ClickHouse"},
		"garbage when it is in": {said: helloPacket(good, "", "notchunked", "notchunked", 4, 99), want: "ClickHouse"},
	} {
		if got := knock(t, e.TCPAddr, c.said, c.leave); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s is answered %q", name, got)
		}
		mustAnswer(t, e, name)
	}
	for cut := range whole {
		knock(t, e.TCPAddr, whole[:cut], true)
	}
	mustAnswer(t, e, "a hello that was cut")
	// In one go with the first query's bytes: nothing of it may get lost on the way.
	if got := knock(t, e.TCPAddr, helloPacket(good, "", "notchunked", "notchunked", 4, int(proto.ClientCodePing)), true); !strings.HasSuffix(got, string([]byte{byte(proto.ServerCodePong)})) {
		t.Errorf("a hello with a ping behind it is answered %q", got)
	}
}

// Whoever says nothing, or a byte from time to time, doesn't keep a connection: for the engine a login that takes too long has failed.
func TestASlowLoginIsCutOff(t *testing.T) {
	e := startEngine(t, EngineOptions{})
	port := func(addr string) int {
		_, p, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(p)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	d := newDoorman(port(e.HTTPAddr))
	d.patience = 50 * time.Millisecond
	g, err := openGate(0, port(e.TCPAddr), d)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	addr := g.listener.Addr().String()
	whole := helloPacket(proto.ClientHello{Name: "slow", ProtocolVersion: 54480, User: "default"})
	knock(t, addr, nil, false)
	knock(t, addr, whole[:len(whole)-1], false)
	knock(t, addr, whole, false) // and never the second packet

	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for err = nil; err == nil; time.Sleep(5 * time.Millisecond) {
		_, err = conn.Write([]byte{0x80}) // a number that never ends, a byte at a time
	}
	mustAnswer(t, e, "slow logins")

	// Who is in may be silent for as long as it likes.
	in, err := ch.Dial(t.Context(), ch.Options{Address: addr})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	time.Sleep(4 * d.patience)
	if err := in.Ping(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("after a silence: %v", err)
	}
}
