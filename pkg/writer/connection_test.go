package writer

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/oncesink/oncesink/internal/embedded"
	"github.com/oncesink/oncesink/internal/faultproxy"
)

// Wherever the connection is cut, only the packet that ends the stream counts as success, and a repeat under the same token makes one copy (field case A10).
func TestAConnectionCutAnywhereConvergesToOneCopy(t *testing.T) {
	direct := server(t)
	p := newProxy(t, engine(t).TCPAddr)
	s := open(t, Config{Addresses: []string{p.addr}, Database: embedded.DefaultDatabase, Compression: "none"})
	n := tableName()
	exec(t, direct, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 1000",
		"CREATE TABLE "+n+"_t (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 1000",
		"CREATE MATERIALIZED VIEW "+n+"_v TO "+n+"_t AS SELECT n FROM "+n)
	table := describe(t, s, n)
	const size = 100
	p.arm(0, 0)
	if r := s.Insert(t.Context(), "", statement(table, "measure         ", numbers(0, size))); r.Outcome != Written {
		t.Fatal(r.Err())
	}
	up, down := p.up.Load(), p.down.Load()
	from := uint64(size)
	unknown, rejected := 0, 0
	try := func(name string, cutUp, cutDown int64) {
		one(t, s, "SELECT 1") // so that the insert meets a connection that has shaken hands
		p.arm(cutUp, cutDown)
		r := s.Insert(t.Context(), "", statement(table, fmt.Sprintf("%-16s", name), numbers(from, from+size)))
		p.arm(0, 0)
		switch r.Outcome {
		case Unknown:
			unknown++
		case Rejected:
			rejected++
		case Written:
			t.Errorf("%s: written without the last packet", name)
		}
		waitUntilOver(t, direct, TablePrefix(table.UUID))
		if got := one(t, direct, fmt.Sprintf("SELECT count() FROM %s WHERE n >= %d", n, from)); r.Outcome == Rejected && got != "0" {
			t.Errorf("%s: rejected, and %s rows are there", name, got)
		}
		if r := s.Insert(t.Context(), "", statement(table, fmt.Sprintf("%-16s", name), numbers(from, from+size))); r.Outcome != Written {
			t.Errorf("%s: repeat: %v", name, r.Err())
		}
		from += size
	}
	for i := int64(1); i <= 11; i++ {
		try(fmt.Sprint("up ", i), max(1, up*i/12), 0)
	}
	for _, tail := range []int64{1, 2, 3, 12} { // the blank block that ends the data
		try(fmt.Sprint("up tail ", tail), up-tail, 0)
	}
	for i := int64(1); i <= 8; i++ {
		try(fmt.Sprint("down ", i), 0, max(1, down*i/9))
	}
	if unknown == 0 || rejected == 0 {
		t.Errorf("the cuts hit %d unknown and %d rejected: both are wanted", unknown, rejected)
	}
	want := fmt.Sprintf("%d\t%d\t%d\t%d", from, from, from, from)
	if got := one(t, direct, fmt.Sprintf("SELECT count(), uniqExact(n), (SELECT count() FROM %[1]s_t), (SELECT uniqExact(n) FROM %[1]s_t) FROM %[1]s", n)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A balancer that cuts idle connections is no reason to take an insert for unclear (field case I9).
func TestAnIdleConnectionThatWasCutIsReplacedSilently(t *testing.T) {
	p := newProxy(t, engine(t).TCPAddr)
	var stale atomic.Int64
	s, err := Open(Config{Addresses: []string{p.addr}, Database: embedded.DefaultDatabase}, Events{StaleConnection: func(string) { stale.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	n := tableName()
	exec(t, s, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 10")
	table := describe(t, s, n)
	for i := range uint64(3) {
		p.cutIdle()
		if r := s.Insert(t.Context(), "", statement(table, fmt.Sprint(i), numbers(i, i+1))); r.Outcome != Written {
			t.Errorf("insert after a cut: %v", r.Err())
		}
		p.cutIdle()
		present := make([]bool, 1)
		if err := s.ReadBack(t.Context(), table, []string{"n"}, numbers(i, i+1), present); err != nil || !present[0] {
			t.Errorf("read-back after a cut: %v %v", present, err)
		}
	}
	if stale.Load() == 0 {
		t.Error("no stale connection was met: the test proves nothing")
	}
}

// An engine that freezes after it got the block: the insert ends by its own deadline, unknown, and the connection isn't used again (field case A13).
func TestABlackHoleEndsByTheInsertTimeout(t *testing.T) {
	e, err := embedded.StartEngine(t.Context(), embedded.EngineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Kill() })
	s := open(t, Config{Addresses: []string{e.TCPAddr}, Database: embedded.DefaultDatabase, InsertTimeout: 400 * time.Millisecond})
	exec(t, s, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 10")
	table := describe(t, s, "t")
	e.Pause()
	probe := open(t, Config{Addresses: []string{e.TCPAddr}})
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := probe.do(ctx, probe.replicas[0], &request{body: "SELECT 1", result: discard{}})
		cancel()
		if err != nil {
			break // it has stopped
		}
	}
	r := s.Insert(t.Context(), "", statement(table, "a", numbers(0, 10)))
	if r.Outcome == Written || r.Cause != Timeout {
		t.Errorf("%+v", r)
	}
	e.Resume()
	waitUntilOver(t, s, TablePrefix(table.UUID))
	if r := s.Insert(t.Context(), "", statement(table, "a", numbers(0, 10))); r.Outcome != Written {
		t.Error(r.Err())
	}
	if got := one(t, s, "SELECT count() FROM t"); got != "10" {
		t.Errorf("%s rows", got)
	}
}

// A wrong port, protocol or password costs one sentence, not an hour (field case I1).
func TestAWrongPortOrPasswordIsNamed(t *testing.T) {
	// The embedded engine ends when a handshake fails, so those answers come from a server that only shakes hands.
	refuses := func(code proto.Error, message string) []string {
		var b proto.Buffer
		proto.ServerCodeException.Encode(&b)
		(&proto.Exception{Code: code, Name: "DB::Exception", Message: "DB::Exception: " + message}).EncodeAware(&b, proto.Version)
		return []string{listen(t, true, string(b.Buf))}
	}
	secure := tlsServer(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
	insecure := &tls.Config{InsecureSkipVerify: true}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for name, c := range map[string]struct {
		cfg  Config
		want string
		cure bool
	}{
		"HTTP port":              {Config{Addresses: []string{engine(t).HTTPAddr}}, "HTTP port", true},
		"HTTP port with TLS":     {Config{Addresses: []string{engine(t).HTTPAddr}, TLS: insecure}, "port 9", true},
		"native port with TLS":   {Config{Addresses: []string{listen(t, true, "")}, TLS: insecure}, "doesn't speak TLS", true},
		"HTTPS port":             {Config{Addresses: []string{secure}, TLS: insecure}, "HTTP port", true},
		"TLS port without TLS":   {Config{Addresses: []string{listen(t, true, "\x15\x03\x03\x00\x02\x02\x46")}}, "speaks TLS", true},
		"unknown authority":      {Config{Addresses: []string{secure}, TLS: &tls.Config{}}, "not trusted", true},
		"another protocol":       {Config{Addresses: []string{listen(t, true, "\x4aSQL")}}, "native protocol", true},
		"closed at once":         {Config{Addresses: []string{listen(t, false, "")}}, "closed the connection", false},
		"nobody there":           {Config{Addresses: []string{closed.Addr().String()}}, "connection refused", false},
		"no such host":           {Config{Addresses: []string{"nowhere.invalid:9000"}}, "nowhere.invalid can't be resolved", false},
		"wrong password":         {Config{Addresses: refuses(516, "secret: Authentication failed: password is incorrect, or there is no user with such name.")}, "clickhouse.password", true},
		"unknown user":           {Config{Addresses: refuses(192, "There is no user `nobody` in user directories")}, "clickhouse.username", true},
		"database doesn't exist": {Config{Addresses: refuses(81, "Database absent does not exist"), Database: "absent"}, "CREATE DATABASE `absent`", true},
	} {
		s := open(t, c.cfg)
		_, err := s.Describe(t.Context(), "t")
		var d *DialError
		if !errors.As(err, &d) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.cfg.Addresses[0]) || (d.Cure != "") != c.cure {
			t.Errorf("%s: %v (%+v)", name, err, d)
		}
		if strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%s: more than a sentence: %v", name, err)
		}
		r := s.Insert(t.Context(), "", &Statement{Table: &Table{Database: "d", Name: "t", Columns: []Column{{Name: "n", Type: "UInt64"}}}, Input: numbers(0, 1), Rows: 1, Token: "t", QueryID: "q", Deadline: time.Now()})
		want := Network
		if c.cure {
			want = Misconfigured
		}
		if r.Outcome != Rejected || r.Cause != want || r.Sent {
			t.Errorf("%s: insert %+v", name, r)
		}
	}
}

// tlsServer shakes hands with a certificate that nobody trusts and says one thing.
func tlsServer(t *testing.T, says string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 1024)
			if _, err := c.Read(buf); err == nil {
				_, _ = c.Write([]byte(says))
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// Whoever can't be asked may be running the insert.
func TestRunningFailsWhenAReplicaCanNotBeAsked(t *testing.T) {
	first := engine(t)
	second, err := embedded.StartEngine(t.Context(), embedded.EngineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.Kill() })
	var down, up atomic.Int64
	s, err := Open(Config{Addresses: []string{first.TCPAddr, second.TCPAddr}, Database: embedded.DefaultDatabase},
		Events{ReplicaDown: func(string, error) { down.Add(1) }, ReplicaUp: func(string) { up.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for i, r := range s.replicas {
		id := fmt.Sprintf("oncesink/both/%d", i)
		go func() {
			_ = s.do(context.Background(), r, &request{body: "SELECT sleepEachRow(0.1) FROM numbers(15) FORMAT Null", id: id, settings: nil, result: discard{}})
		}()
	}
	seen := 0
	for range 200 {
		n, err := s.Running(t.Context(), "oncesink/both/")
		if err != nil {
			t.Fatal(err)
		}
		if seen = max(seen, n); seen == 2 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if seen != 2 {
		t.Errorf("%d statements seen on two replicas", seen)
	}
	if n, err := s.Running(t.Context(), "oncesink/other/"); n != 0 || err != nil {
		t.Errorf("another prefix: %d %v", n, err)
	}
	waitUntilOver(t, s, "oncesink/both/")
	second.Kill()
	for range 2 {
		if _, err := s.Running(t.Context(), "oncesink/both/"); err == nil || !strings.Contains(err.Error(), second.TCPAddr) {
			t.Errorf("with %s down: %v", second.TCPAddr, err)
		}
	}
	if down.Load() != 1 {
		t.Errorf("told %d times that a replica is down", down.Load())
	}
	// What may go to any replica goes to the one that lives.
	for range 4 {
		if _, err := s.readAny(t.Context(), 1, "SELECT '1'"); err != nil {
			t.Error(err)
		}
	}
}

// A path that swallows packets leaves the connection open and silent. A worker asks without a deadline of its own, again and again: the first question would have
// hung for ever, and with it the partition and all that wait for its rows.
func TestAConnectionThatFallsSilentIsGivenUp(t *testing.T) {
	admin := as(t, "default")
	n := tableName()
	exec(t, admin, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100")
	p, err := faultproxy.Listen(sharedUsers.engine.TCPAddr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s := open(t, Config{Addresses: []string{p.Addr()}, Database: embedded.DefaultDatabase, silence: 2 * time.Second})
	table := describe(t, s, n) // the connection has served
	for name, ask := range map[string]func() error{
		"a statement": func() error {
			_, err := s.Running(t.Context(), TablePrefix(table.UUID))
			return err
		},
		"a session": func() error {
			return s.session(t.Context(), s.replicas[0], true, func(do doer) error {
				_, err := do(t.Context(), &request{body: "SELECT 1", result: discard{}})
				return err
			})
		},
	} {
		if err := ask(); err != nil { // a connection stays idle
			t.Fatalf("%s: %v", name, err)
		}
		p.BlackHole(faultproxy.ToClient, true)
		if err := ask(); err == nil {
			t.Errorf("%s without an answer was answered", name)
		}
		p.BlackHole(faultproxy.ToClient, false)
		if err := ask(); err != nil {
			t.Errorf("%s after that: %v", name, err)
		}
	}
	// Silence is no fault of a server that works on the statement: it tells of its progress.
	var out bytes.Buffer
	if err := s.Query(t.Context(), "SELECT sleepEachRow(1) FROM numbers(3) SETTINGS max_block_size = 3", TSV, &out); err != nil {
		t.Errorf("a slow statement of a user: %v", err)
	}
}

// A host that lost its power, or a network that holds packets back: the server waits for the rest of the block, and whoever has the partition next waits for
// the server, five minutes by default.
func TestAnInsertWhoseBlockNeverComesIsOverSoonAfterTheInsertTimeout(t *testing.T) {
	admin := as(t, "default")
	n := tableName()
	exec(t, admin, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100")
	p, err := faultproxy.Listen(sharedUsers.engine.TCPAddr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s := open(t, Config{Addresses: []string{p.Addr()}, Database: embedded.DefaultDatabase, InsertTimeout: time.Second})
	table := describe(t, admin, n)
	st := statement(table, "held", numbers(0, 3))
	body, err := insertSQL(st)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), s.cfg.InsertTimeout)
	defer cancel()
	if err := s.do(ctx, s.replicas[0], &request{
		body: body, id: st.QueryID, settingsFor: func(f *facts) []proto.Setting { return s.insertSettings(f, st, body) }, input: st.Input,
		header: func(proto.ColInfoInput) error { p.Stall(faultproxy.ToServer, true); return nil }, // the statement is there, the block is not
	}); err == nil {
		t.Fatal("an insert whose block is held was acknowledged")
	}
	if running, err := admin.Running(t.Context(), TablePrefix(table.UUID)); err != nil || running != 1 {
		t.Fatalf("%d inserts run, %v", running, err)
	}
	waitUntilOver(t, admin, TablePrefix(table.UUID))
	if got := one(t, admin, "SELECT count() FROM "+n); got != "0" {
		t.Errorf("%s rows", got)
	}
}
