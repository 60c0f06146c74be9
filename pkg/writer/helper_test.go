package writer

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/oncesink/oncesink/internal/embedded"
	"github.com/oncesink/oncesink/pkg/batcher"
)

var shared struct {
	once   sync.Once
	engine *embedded.Engine
	err    error
}

func TestMain(m *testing.M) {
	embedded.MaybeRunChild()
	code := m.Run()
	if sharedUsers.engine != nil {
		_ = sharedUsers.engine.Stop(context.Background())
	}
	if shared.engine != nil {
		_ = shared.engine.Stop(context.Background())
	}
	os.Exit(code)
}

// engine is one ClickHouse for all tests that don't stop it.
func engine(t testing.TB) *embedded.Engine {
	t.Helper()
	shared.once.Do(func() {
		shared.engine, shared.err = embedded.StartEngine(context.Background(), embedded.EngineOptions{})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.engine
}

// server is a Server over the shared engine.
func server(t testing.TB) *Server {
	t.Helper()
	return open(t, Config{Addresses: []string{engine(t).TCPAddr}, Database: embedded.DefaultDatabase})
}

func open(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := Open(cfg, Events{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// exec runs statements.
func exec(t testing.TB, s *Server, statements ...string) {
	t.Helper()
	for _, body := range statements {
		if err := s.do(context.Background(), s.replicas[0], &request{body: body}); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	}
}

// rows is the result of a SELECT, a line a row, with tabs between the values.
func rows(t testing.TB, s *Server, body string) []string {
	t.Helper()
	var out proto.ColStr
	var lines []string
	err := s.do(t.Context(), s.replicas[0], &request{
		body:   "SELECT formatRowNoNewline('TSV', *) AS line FROM (" + body + ")",
		result: proto.Results{{Name: "line", Data: &out}}, settings: pinnedForReads,
		onBlock: func(n int) error {
			for i := range n {
				lines = append(lines, out.Row(i))
			}
			return nil
		},
	})
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return lines
}

func one(t testing.TB, s *Server, body string) string {
	t.Helper()
	return strings.Join(rows(t, s, body), "\n")
}

var tableNumber atomic.Int64

// tableName is a name that no other test uses.
func tableName() string { return fmt.Sprintf("t%d", tableNumber.Add(1)) }

func describe(t testing.TB, s *Server, name string) *Table {
	t.Helper()
	table, err := s.Describe(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

var testSource = batcher.Source{Cluster: "c", Topic: batcher.TopicID{1}, Partition: 3}

var attemptNumber atomic.Int64

// statement is an insert with a deadline a minute away; numbers fills a column n of type UInt64.
func statement(table *Table, token string, input proto.Input) *Statement {
	return &Statement{
		Table: table, Input: input, Rows: input[0].Data.Rows(), Token: token, Deadline: time.Now().Add(time.Minute),
		QueryID: QueryID(table.UUID, "g", testSource, batcher.Range{First: 1, Last: 2}, 7, WholeBatch, Attempt{1, int(attemptNumber.Add(1))}),
	}
}

func numbers(from, to uint64) proto.Input {
	var n proto.ColUInt64
	for i := from; i < to; i++ {
		n.Append(i)
	}
	return proto.Input{{Name: "n", Data: &n}}
}
