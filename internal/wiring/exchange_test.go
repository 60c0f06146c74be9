package wiring

import (
	"testing"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"
	"github.com/redis/go-redis/v9"

	"github.com/oncesink/oncesink/internal/testenv"
)

// Each run met one store only: nothing but what the group has committed could
// tell the third one that the first store has not got what the second run claimed.
func TestAStoreThatComesBackBetweenTwoRunsIsFoundOut(t *testing.T) {
	r := newRig(t, 1)
	r.redis = testenv.Redis(t).Addr // its databases are swapped below
	r.tables()
	store := redis.NewClient(&redis.Options{Addr: r.redis})
	defer func() { _ = store.Close() }()
	swap := func() {
		if err := store.Do(t.Context(), "SWAPDB", 0, 1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	drain := func() *life {
		l := r.start(func(o *RunOptions) { o.Drain = true })
		l.end(false)
		return l
	}
	r.produce(0, 10)
	drain()
	swap()
	r.produce(10, 10)
	drain()
	swap()
	r.produce(10, 10)
	last := drain()
	if n := r.count("SELECT toInt64(count()) AS n FROM orders"); n != 20 {
		t.Errorf("%d rows of 20 keys", n)
	}
	if n := r.count("SELECT sum(amount) AS n FROM sums"); n != 20 {
		t.Errorf("the view counts %d", n)
	}
	if said := last.log.with("was exchanged for another one"); len(said) == 0 {
		t.Errorf("nothing is said of it:\n%s", last.log)
	}

	// Nothing was exchanged since: no further raise.
	r.produce(20, 1)
	if said := drain().log.with("new epoch"); len(said) > 0 {
		t.Errorf("raised once more: %s", said)
	}
}

func (r *rig) count(query string) int64 {
	r.t.Helper()
	conn, err := ch.Dial(r.t.Context(), ch.Options{Address: r.engine, Database: r.database})
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var n proto.ColInt64
	if err := conn.Do(r.t.Context(), ch.Query{Body: query, Result: proto.Results{{Name: "n", Data: &n}}}); err != nil {
		r.t.Fatal(err)
	}
	return n.Row(0)
}
