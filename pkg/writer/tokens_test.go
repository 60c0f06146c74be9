package writer

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/oncesink/oncesink/internal/embedded"
)

// An insert that met several table partitions was written to the first and failed at the next. Its repeat under the same token adds what is missing, in
// the table and in its views, and nothing else (field case A12).
func TestAPartlyWrittenInsertIsCompletedByItsRepeat(t *testing.T) {
	for name, c := range map[string]struct{ fails, mend string }{
		"the index of one partition":  {", INDEX i toUInt8(if(n = 5, 'a', '1')) TYPE minmax", "ALTER TABLE $ DROP INDEX i"},
		"the index of the last":       {", INDEX i toUInt8(if(n = 8, 'a', '1')) TYPE minmax", "ALTER TABLE $ DROP INDEX i"},
		"the index of the first":      {", INDEX i toUInt8(if(n = 0, 'a', '1')) TYPE minmax", "ALTER TABLE $ DROP INDEX i"},
		"a projection of a partition": {", PROJECTION p (SELECT toUInt8(if(n = 5, 'a', '1')) AS x, count() GROUP BY x)", "ALTER TABLE $ DROP PROJECTION p"},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t)
			n := tableName()
			exec(t, s, "CREATE TABLE "+n+" (n UInt64"+c.fails+") ENGINE = MergeTree PARTITION BY n % 3 ORDER BY n SETTINGS non_replicated_deduplication_window = 100",
				"CREATE TABLE "+n+"_t (n UInt64) ENGINE = MergeTree PARTITION BY n % 2 ORDER BY n SETTINGS non_replicated_deduplication_window = 100",
				"CREATE MATERIALIZED VIEW "+n+"_v TO "+n+"_t AS SELECT n FROM "+n)
			table := describe(t, s, n)
			if r := s.Insert(t.Context(), "", statement(table, "token", numbers(0, 9))); r.Outcome != Unknown {
				t.Fatalf("%v: %v, want unknown: a part may be there", r.Outcome, r.Err())
			}
			t.Logf("the first try left %s rows", one(t, s, "SELECT count() FROM "+n))
			exec(t, s, regexp.MustCompile(`\$`).ReplaceAllString(c.mend, n))
			for range 2 {
				if r := s.Insert(t.Context(), "", statement(table, "token", numbers(0, 9))); r.Outcome != Written {
					t.Fatal(r.Err())
				}
				if got := one(t, s, fmt.Sprintf("SELECT count(), uniqExact(n), (SELECT count() FROM %[1]s_t), (SELECT uniqExact(n) FROM %[1]s_t) FROM %[1]s", n)); got != "9\t9\t9\t9" {
					t.Errorf("table and view hold %q, want each row once", got)
				}
			}
		})
	}
}

// Inserts that a server coalesces register a token in each partition of the flush, so that rows of another partition under it are dropped. Whatever the
// profile asks for, a token counts for the partitions that it wrote (field case A2).
func TestATokenCountsForThePartitionsThatItWrote(t *testing.T) {
	admin, s := as(t, "default"), as(t, "hostile")
	n := tableName()
	exec(t, admin, "CREATE TABLE "+n+" (n UInt64) ENGINE = MergeTree ORDER BY n PARTITION BY n % 2 SETTINGS non_replicated_deduplication_window = 100")
	table := describe(t, s, n)
	even, odd := proto.ColUInt64{0, 2, 4}, proto.ColUInt64{1, 3, 5}
	insert := func(token string, values *proto.ColUInt64) {
		if r := s.Insert(t.Context(), "", statement(table, token, proto.Input{{Name: "n", Data: values}})); r.Outcome != Written {
			t.Error(r.Err())
		}
	}
	var both sync.WaitGroup
	both.Go(func() { insert("t1", &even) })
	both.Go(func() { insert("t2", &odd) })
	both.Wait()
	insert("t1", &proto.ColUInt64{7, 9})
	insert("t2", &proto.ColUInt64{6, 8})
	insert("t1", &even)
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, rows(t, admin, "SELECT toString(n) FROM "+n+" ORDER BY n")); diff != "" {
		t.Error(diff)
	}
}

// A proxy that strips settings, or a server that does not know them, takes the token from an insert without a word. The canary sends a row twice and
// counts it (field case A16).
func TestTheCanaryNoticesAPathThatLosesTokens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var lost atomic.Int64
	token := regexp.MustCompile("\x06canary")
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", engine(t).TCPAddr)
			if err != nil {
				_ = client.Close()
				continue
			}
			all.Go(func() {
				defer func() { _ = server.Close() }()
				buf := make([]byte, 64<<10)
				for {
					n, err := client.Read(buf)
					said := token.ReplaceAllFunc(buf[:n], func([]byte) []byte { return fmt.Appendf(nil, "\x06%06d", lost.Add(1)) })
					if _, werr := server.Write(said); err != nil || werr != nil {
						return
					}
				}
			})
			all.Go(func() {
				_, _ = io.Copy(client, server)
				_ = client.Close()
			})
		}
	})
	s, err := Open(Config{Addresses: []string{l.Addr().String()}, Database: embedded.DefaultDatabase, Compression: "none"}, Events{})
	if err != nil {
		t.Fatal(err)
	}
	findings, err := s.Canary(t.Context(), embedded.DefaultDatabase)
	s.Close()
	_ = l.Close()
	all.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"token_ignored"}, codesOf(findings, SeverityError)); diff != "" || lost.Load() < 2 {
		t.Errorf("%d tokens were lost: %s\n%+v", lost.Load(), diff, findings)
	}
}
