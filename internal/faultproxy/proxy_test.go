package faultproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is a server that answers a line "X" with "ok X", keeps what it was told, and asks back once ("what?") for a line that begins with "ask".
type shop struct {
	addr string
	mu   sync.Mutex
	told []string
	news chan struct{}
}

func openShop(t *testing.T) *shop {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{addr: l.Addr().String(), news: make(chan struct{}, 1000)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return s
}

func (s *shop) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "ask") {
			_, _ = io.WriteString(c, "what?\n")
			if !lines.Scan() {
				return
			}
			line += " " + lines.Text()
		}
		s.mu.Lock()
		s.told = append(s.told, line)
		s.mu.Unlock()
		s.news <- struct{}{}
		_, _ = fmt.Fprintf(c, "ok %s\n", line)
	}
}

func (s *shop) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.told, ", ")
}

type customer struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
}

func visit(t *testing.T, addr string) *customer {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &customer{t, c, bufio.NewReader(c)}
}

func (c *customer) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.c, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *customer) hear() (string, error) {
	line, err := c.r.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

func (c *customer) mustHear(want string) {
	c.t.Helper()
	if got, err := c.hear(); err != nil || got != want {
		c.t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

func (c *customer) mustBeCut() {
	c.t.Helper()
	if got, err := c.hear(); err == nil || got != "" || errors.Is(err, context.DeadlineExceeded) {
		c.t.Fatalf("heard %q, %v; want a cut", got, err)
	}
}

// mustHearNothing proves silence by a short wait; too short a one can only let a fault of the proxy go unnoticed, never fail a right one.
func (c *customer) mustHearNothing() {
	c.t.Helper()
	_ = c.c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if got, err := c.hear(); err == nil {
		c.t.Fatalf("heard %q, want silence", got)
	}
	_ = c.c.SetReadDeadline(time.Now().Add(20 * time.Second))
}

func open(t *testing.T) (*shop, *Proxy) {
	t.Helper()
	s := openShop(t)
	p, err := Listen(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return s, p
}

func TestBytesPassBothWays(t *testing.T) {
	_, p := open(t)
	c := visit(t, p.Addr())
	for i := range 3 {
		c.say(fmt.Sprint(i))
		c.mustHear(fmt.Sprint("ok ", i))
	}
	if got := p.Stats(); got.Connections != 1 || got.Cuts != 0 || got.Bytes != [2]int64{6, 15} {
		t.Fatalf("%+v", got)
	}
}

func TestCutReplyHitsEveryNthAfterTheServerHasIt(t *testing.T) {
	s, p := open(t)
	rule := p.Add(RuleOptions{Fault: CutReply, Marker: "buy", Every: 3, Limit: 2})
	var cut []int
	for i := 1; i <= 12; i++ {
		c := visit(t, p.Addr())
		c.say(fmt.Sprint("look ", i))
		c.mustHear(fmt.Sprint("ok look ", i))
		c.say(fmt.Sprint("buy ", i))
		if _, err := c.hear(); err != nil {
			cut = append(cut, i)
			if want := fmt.Sprint("buy ", i); !strings.HasSuffix(s.heard(), want) {
				t.Fatalf("cut before the server had %q: %s", want, s.heard())
			}
		}
	}
	if fmt.Sprint(cut) != "[3 6]" {
		t.Errorf("cut %v, want 3 and 6", cut)
	}
	if got, want := rule.Account(), (Account{Matches: 12, Hits: 2, Faults: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestCutReplyOfTheSecondTurnLetsTheFirstPass(t *testing.T) {
	s, p := open(t)
	rule := p.Add(RuleOptions{Fault: CutReply, Marker: "ask", Every: 2, Turn: 2})
	c := visit(t, p.Addr())
	for _, last := range []bool{false, true} {
		c.say("ask price")
		c.mustHear("what?")
		c.say("of bread")
		if last {
			c.mustBeCut()
		} else {
			c.mustHear("ok ask price of bread")
		}
	}
	if got := s.heard(); got != "ask price of bread, ask price of bread" {
		t.Errorf("the server heard %q", got)
	}
	if got := rule.Account(); got.Matches != 2 || got.Faults != 1 {
		t.Errorf("%+v", got)
	}
}

func TestSparedReplyPassesAndIsNoFault(t *testing.T) {
	_, p := open(t)
	rule := p.Add(RuleOptions{Fault: CutReply, Done: func(reply []byte) Verdict {
		if strings.Contains(string(reply), "bad") {
			return Spare
		}
		return Complete
	}})
	c := visit(t, p.Addr())
	c.say("bad")
	c.mustHear("ok bad")
	c.say("good")
	c.mustBeCut()
	if got, want := rule.Account(), (Account{Matches: 2, Hits: 2, Faults: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestMarkerIsFoundAcrossReads(t *testing.T) {
	s, p := open(t)
	rule := p.Add(RuleOptions{Fault: CutReply, Marker: "MARK"})
	c := visit(t, p.Addr())
	for _, part := range []string{"xM", "A", "RK"} {
		sent := p.Stats().Bytes[ToServer] + int64(len(part))
		if _, err := io.WriteString(c.c, part); err != nil {
			t.Fatal(err)
		}
		if err := p.await(t.Context(), func() bool { return p.stats.Bytes[ToServer] == sent }); err != nil {
			t.Fatal(err)
		}
	}
	c.say("!")
	c.mustBeCut()
	if s.heard() != "xMARK!" || rule.Account().Faults != 1 {
		t.Fatalf("%q, %+v", s.heard(), rule.Account())
	}
}

func TestHeldRequestLandsAfterItsSenderHasGone(t *testing.T) {
	for _, turn := range []int{1, 2} {
		t.Run(fmt.Sprint("turn ", turn), func(t *testing.T) {
			s, p := open(t)
			lines := []string{"buy", "it"}[:turn]
			if turn == 2 {
				lines[0] = "ask"
			}
			rule := p.Add(RuleOptions{Fault: HoldRequest, Marker: lines[0], Every: 2, Turn: turn})
			c := visit(t, p.Addr())
			whole := strings.Join(lines, " ")
			speak := func() {
				t.Helper()
				for i, line := range lines {
					if i > 0 {
						c.mustHear("what?")
					}
					c.say(line)
				}
			}
			speak()
			c.mustHear("ok " + whole)
			speak()
			c.mustHearNothing()
			if s.heard() != whole || rule.Account().Holding != 1 {
				t.Fatalf("the held request has passed: %q, %+v", s.heard(), rule.Account())
			}
			_ = c.c.Close()
			rule.Release()
			<-s.news
			<-s.news
			if want := whole + ", " + whole; s.heard() != want {
				t.Fatalf("heard %q, want %q", s.heard(), want)
			}
			if err := rule.AwaitLateReply(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if got := string(rule.LateReplies()[0]); !strings.HasSuffix(got, "ok "+whole+"\n") {
				t.Errorf("late reply %q", got)
			}
		})
	}
}

func TestHeldRequestGoesOnWhenReleasedInTime(t *testing.T) {
	_, p := open(t)
	rule := p.Add(RuleOptions{Fault: HoldRequest, Marker: "ask", Every: 2, Turn: 2, For: 20 * time.Millisecond})
	c := visit(t, p.Addr())
	for range 3 {
		c.say("ask")
		c.mustHear("what?")
		c.say("it")
		c.mustHear("ok ask it")
	}
	if got, want := rule.Account(), (Account{Matches: 3, Hits: 1, Faults: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestHeldReplyWaitsForItsRelease(t *testing.T) {
	s, p := open(t)
	rule := p.Add(RuleOptions{Fault: HoldReply, Marker: "buy"})
	c := visit(t, p.Addr())
	c.say("buy")
	if err := rule.Await(t.Context(), func(a Account) bool { return a.Holding == 1 }); err != nil {
		t.Fatal(err)
	}
	if s.heard() != "buy" {
		t.Fatalf("the server heard %q", s.heard())
	}
	c.mustHearNothing()
	rule.Remove()
	c.mustHear("ok buy")
	c.say("buy")
	c.mustHear("ok buy")
}

func TestCutRequestPassesSomeBytes(t *testing.T) {
	s, p := open(t)
	p.Add(RuleOptions{Fault: CutRequest, Marker: "buy", After: len("buy 1\nbuy")})
	c := visit(t, p.Addr())
	c.say("x buy 1\nbuy 2")
	for {
		if _, err := c.hear(); err != nil {
			break
		}
	}
	<-s.news
	if got := s.heard(); !strings.HasPrefix(got, "x buy 1") || strings.Contains(got, "2") {
		t.Fatalf("the server heard %q", got)
	}
}

func TestSwallowedRequestLeavesTheConnectionSilent(t *testing.T) {
	s, p := open(t)
	p.Add(RuleOptions{Fault: Swallow, Marker: "buy", Limit: 1})
	c := visit(t, p.Addr())
	c.say("buy")
	c.say("look")
	c.mustHearNothing()
	if s.heard() != "" {
		t.Fatalf("the server heard %q", s.heard())
	}
	other := visit(t, p.Addr())
	other.say("buy")
	other.mustHear("ok buy")
}

func TestFaultsOfTheWholeProxy(t *testing.T) {
	s, p := open(t)
	c := visit(t, p.Addr())
	c.say("1")
	c.mustHear("ok 1")

	p.Stall(ToServer, true)
	c.say("2")
	c.mustHearNothing()
	p.Stall(ToServer, false)
	c.mustHear("ok 2")

	p.BlackHole(ToClient, true)
	c.say("3")
	c.mustHearNothing()
	p.BlackHole(ToClient, false)
	c.say("4")
	c.mustHearNothing() // bytes are missing: what comes later must not look like the answer

	p.Cut()
	c.mustBeCut()
	p.Refuse(true)
	if refused, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come before the dialling side looks
		(&customer{t, refused, bufio.NewReader(refused)}).mustBeCut()
		_ = refused.Close()
	}
	p.Refuse(false)

	p.CutAfter(ToClient, int64(len("ok 5\nok")))
	c = visit(t, p.Addr())
	c.say("5")
	c.mustHear("ok 5")
	c.say("6")
	if got, err := c.hear(); err == nil || got != "ok" {
		t.Fatalf("heard %q, %v; want two bytes and a cut", got, err)
	}
	if want := "1, 2, 3, 4, 5, 6"; s.heard() != want {
		t.Errorf("the server heard %q, want %q", s.heard(), want)
	}
}
