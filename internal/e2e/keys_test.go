package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncesink/oncesink/internal/faultproxy"
	"github.com/oncesink/oncesink/internal/testenv"
)

// made is a row with another create_time, which the route ignores: it tells which record's row is in the table.
func made(n int, ms int64) []byte {
	before, _, _ := strings.Cut(string(row{n: n}.json()), `"create_time":`)
	return fmt.Appendf(nil, `%s"create_time":%d}`, before, ms)
}

// Of records with one key in one batch the first is the row, also when the batch is cut elsewhere on the repeat (field case D14): the kill leaves an
// insert unanswered, and the next life's bounds run through the midst of them.
func TestAKeyTwiceInABatchIsTheFirstRecordsRow(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
	const n = 500
	var values [][]byte
	for i := range n {
		values = append(values, made(2*i, settled), row{n: 2*i + 1}.json(), made(2*i, settled+1))
	}
	values = append(values, made(0, settled+1), made(2, settled+1)) // and once more in another batch
	w.send(values...)
	w.killUnacknowledgedIn(settings{rows: 400, member: "-"})
	if said := w.mustDrain(settings{member: "-", rows: 70}); !strings.Contains(said, " conflicts 0 + dead letters 0 ") {
		t.Errorf("the drain said %q", said)
	}
	w.holds(2*n, 2*n)
	if got := w.s.sql(t, "SELECT countIf(create_time = fromUnixTimestamp64Milli(%d)), countIf(create_time = fromUnixTimestamp64Milli(%d)) FROM %s", settled, settled+1, w.table); got != fmt.Sprintf("%d\t0", n) {
		t.Errorf("rows of first and of later records: %q", got)
	}
}

// The store's word that a batch is done comes behind its insert. Lost there, for a while or for good with the sink itself, it must cost neither a row nor
// a second one (field cases D1, D2): the offset waits for it, and the next life finds out.
func TestAStoreThatIsLostBehindTheInsertHoldsTheOffset(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed meanwhile %t", killed), func(t *testing.T) {
			w := newWorld(t, sharedStack(t), design{partitions: 1, report: true})
			proxy := w.proxy()
			rule := w.insertRule(proxy, faultproxy.RuleOptions{Fault: faultproxy.HoldReply, Every: 3, Limit: 1})
			store, err := faultproxy.Listen(w.s.redis)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			w.send(numbered(0, 500)...)
			p := w.start(settings{member: "-", rows: 100, clickhouse: proxy.Addr(), redis: fmt.Sprintf("addresses: [%q]", store.Addr())})
			w.await(p, rule, func(a faultproxy.Account) bool { return a.Holding > 0 })
			store.Refuse(true)
			store.Cut()
			rule.Release()
			w.awaitMoving(p, "the partition waits for the store", func() (int64, bool) {
				said := p.said(1000)
				return int64(len(said)), strings.Contains(said, "publish")
			})
			table, err := w.inTable()
			if err != nil {
				t.Fatal(err)
			}
			if o := w.offsets()[0]; o.committed >= table.rows {
				t.Errorf("committed %d of %d rows, past those of which the store was never told", o.committed, table.rows)
			}
			if killed {
				p.kill()
			}
			store.Refuse(false)
			if !killed {
				w.awaitSettled(p)
				p.stop()
			}
			w.send(numbered(0, 500)...)
			w.mustDrain(settings{member: "-", rows: 90})
			w.holds(500, 500)
		})
	}
}

// A key that the store has forgotten, because its event lies further back than the horizon, is read in the table before it counts as new; what was
// forgotten twice is found twice (field case D16).
func TestAKeyOlderThanTheHorizonIsReadInTheTable(t *testing.T) {
	w := newWorld(t, sharedStack(t), design{partitions: 2, report: true})
	srv := testenv.Redis(t)
	set := settings{member: "-", rows: 60, redis: fmt.Sprintf("addresses: [%q]", srv.Addr), edits: []string{"redis: {", "redis: {horizon: 1h, "}}
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr})
	defer func() { _ = rdb.Close() }()
	month := time.Now().Add(-30 * 24 * time.Hour).UnixMilli()
	var old [][]byte
	for i := range 200 {
		old = append(old, []byte(strings.Replace(string(row{n: i}.json()), fmt.Sprint(settled+int64(i)), fmt.Sprint(month+int64(i)), 1)))
	}
	w.send(old...)
	w.accounted(w.mustDrain(set), 200, 200, 0, 0, 0)
	for range 2 {
		forgetClaims(t, rdb)
		w.send(old...)
		w.send(numbered(1000, 1)...)
		w.mustDrain(set)
		w.holds(201, 201)
	}
}

// forgetClaims removes what expires of the store: the claims, and not what it knows of the domain.
func forgetClaims(t *testing.T, rdb *redis.Client) {
	t.Helper()
	removed := 0
	it := rdb.Scan(context.Background(), 0, "osink:*", 1000).Iterator()
	for it.Next(context.Background()) {
		if key := it.Val(); len(key[strings.IndexByte(key, '}'):]) > len("}:m") {
			removed++
			if err := rdb.Del(context.Background(), key).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := it.Err(); err != nil || removed == 0 {
		t.Fatalf("%d claims to forget, %v", removed, err)
	}
}
