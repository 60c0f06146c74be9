package faultproxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/internal/testenv"
)

type insertFixture struct {
	t      *testing.T
	engine *testenv.EngineServer
	proxy  *faultproxy.Proxy
	direct *ch.Client
}

func newInsertFixture(t *testing.T) *insertFixture {
	t.Helper()
	e := testenv.Engine(t)
	p, err := faultproxy.Listen(e.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	f := &insertFixture{t: t, engine: e, proxy: p}
	f.direct = f.connect(e.Addr)
	f.do("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 100")
	return f
}

func (f *insertFixture) connect(addr string) *ch.Client {
	f.t.Helper()
	c, err := ch.Dial(f.t.Context(), ch.Options{Address: addr, Compression: ch.CompressionLZ4})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (f *insertFixture) do(sql string) {
	f.t.Helper()
	if err := f.direct.Do(f.t.Context(), ch.Query{Body: sql}); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
}

func (f *insertFixture) rows() uint64 {
	f.t.Helper()
	var n proto.ColUInt64
	if err := f.direct.Do(f.t.Context(), ch.Query{Body: "SELECT count() AS n FROM t", Result: proto.Results{{Name: "n", Data: &n}}}); err != nil {
		f.t.Fatal(err)
	}
	return n.Row(0)
}

// insert sends n rows through the proxy on a connection of its own, to be executed before the deadline.
func (f *insertFixture) insert(ctx context.Context, token string, n int, deadline time.Time) error {
	f.t.Helper()
	c := f.connect(f.proxy.Addr())
	col := make(proto.ColInt64, n)
	body := "INSERT INTO t (a) SELECT a FROM input('a Int64') WHERE NOT throwIf(now64(3) > fromUnixTimestamp64Milli(%d), 'insert deadline passed') FORMAT Native"
	return c.Do(ctx, ch.Query{
		Body:     fmt.Sprintf(body, deadline.UnixMilli()),
		Input:    proto.Input{{Name: "a", Data: &col}},
		Settings: []ch.Setting{{Key: "insert_deduplication_token", Value: token, Important: true}},
	})
}

func TestEveryNthInsertIsCutOnlyAfterTheServerHasIt(t *testing.T) {
	f := newInsertFixture(t)
	rule := f.proxy.Add(faultproxy.ClickHouseInsert(faultproxy.RuleOptions{Fault: faultproxy.CutReply, Every: 3}))
	const rows = 50_000 // more than one read of the proxy
	for i := 1; i <= 9; i++ {
		err := f.insert(t.Context(), fmt.Sprint(i), rows, time.Now().Add(time.Minute))
		if cut := i%3 == 0; (err != nil) != cut {
			t.Fatalf("insert %d: %v", i, err)
		}
		if got := f.rows(); got != uint64(i*rows) {
			t.Fatalf("%d rows after insert %d, want %d", got, i, i*rows)
		}
	}
	if got, want := rule.Account(), (faultproxy.Account{Matches: 9, Hits: 3, Faults: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestRefusedInsertIsNoCutAcknowledgement(t *testing.T) {
	f := newInsertFixture(t)
	rule := f.proxy.Add(faultproxy.ClickHouseInsert(faultproxy.RuleOptions{Fault: faultproxy.CutReply}))
	var exc *ch.Exception
	if err := f.insert(t.Context(), "late", 10, time.Now().Add(-time.Minute)); !errors.As(err, &exc) || exc.Code != proto.ErrFunctionThrowIfValueIsNonZero {
		t.Fatalf("got %v, want the server's refusal", err)
	}
	if got := rule.Account(); got.Hits != 1 || got.Faults != 0 {
		t.Errorf("%+v", got)
	}
}

func TestInsertLandsLateAfterItsSenderGaveUp(t *testing.T) {
	for _, c := range []struct {
		name     string
		deadline time.Duration
		rows     uint64
		answer   string
	}{
		{"within its deadline it is executed", time.Hour, 2, ""},
		{"after its deadline the server refuses it", 0, 1, "insert deadline passed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newInsertFixture(t)
			rule := f.proxy.Add(faultproxy.ClickHouseInsert(faultproxy.RuleOptions{Fault: faultproxy.HoldRequest, Every: 2}))
			if err := f.insert(t.Context(), "first", 1, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			ctx, giveUp := context.WithTimeout(t.Context(), time.Second)
			defer giveUp()
			if err := f.insert(ctx, "second", 1, time.Now().Add(500*time.Millisecond+c.deadline)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("the held insert ended with %v", err)
			}
			if got := f.rows(); got != 1 {
				t.Fatalf("%d rows before the release, want 1", got)
			}
			rule.Release()
			answered, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := rule.AwaitLateReply(answered, 1); err != nil {
				t.Fatal(err)
			}
			if got := f.rows(); got != c.rows {
				t.Errorf("%d rows after the release, want %d", got, c.rows)
			}
			if got := string(rule.LateReplies()[0]); !strings.Contains(got, c.answer) {
				t.Errorf("the server answered %q, want %q in it", got, c.answer)
			}
		})
	}
}
