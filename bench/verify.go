package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"
	"github.com/redis/go-redis/v9"

	"github.com/oncesink/oncesink/bench/load"
)

// asker puts questions to the servers with clients of its own: what the sink
// believes plays no part. Not safe for concurrent use.
type asker struct {
	table *ch.Client
	store *redis.Client
}

func newAsker(ctx context.Context, s *stack) (*asker, error) {
	table, err := ch.Dial(ctx, ch.Options{Address: s.ClickHouse, Database: database, ClientName: "oncesink bench"})
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	return &asker{table, redis.NewClient(&redis.Options{Addr: s.Redis})}, nil
}

func (a *asker) close() {
	_ = a.table.Close()
	_ = a.store.Close()
}

func (a *asker) exec(ctx context.Context, sql string) error {
	if err := a.table.Do(ctx, ch.Query{Body: sql}); err != nil {
		return fmt.Errorf("clickhouse: %s: %w", strings.SplitN(sql, "\n", 2)[0], err)
	}
	return nil
}

// numbers asks for one row of whole numbers.
func (a *asker) numbers(ctx context.Context, from string, expressions ...string) ([]int64, error) {
	cols := make([]proto.ColInt64, len(expressions))
	var results proto.Results
	var list []string
	for i, e := range expressions {
		name := fmt.Sprintf("c%d", i)
		list = append(list, fmt.Sprintf("toInt64(%s) AS %s", e, name))
		results = append(results, proto.ResultColumn{Name: name, Data: &cols[i]})
	}
	if err := a.table.Do(ctx, ch.Query{Body: "SELECT " + strings.Join(list, ", ") + " FROM " + from, Result: results}); err != nil {
		return nil, fmt.Errorf("clickhouse: read %s: %w", from, err)
	}
	out := make([]int64, len(expressions))
	for i := range cols {
		if cols[i].Rows() != 1 {
			return nil, fmt.Errorf("clickhouse: read %s: %d rows came back, want one", from, cols[i].Rows())
		}
		out[i] = cols[i].Row(0)
	}
	return out, nil
}

// once compares a table of the full path with what was produced.
func (a *asker) once(ctx context.Context, table string, t load.Truth) error {
	n, err := a.numbers(ctx, table, "count()", "uniqExact(settle_ms, id, rev)", "sum(amount) * 10000", "sum(qty)")
	if err != nil {
		return err
	}
	if n[0] != t.Keys || n[1] != t.Keys || n[2] != t.Amount || n[3] != t.Qty {
		return fmt.Errorf("%s is not exact: %d rows, %d keys, amount %d, qty %d; produced were %d keys, amount %d, qty %d", table, n[0], n[1], n[2], n[3], t.Keys, t.Amount, t.Qty)
	}
	return nil
}

// all compares a table of the bare path: every record is a row there.
func (a *asker) all(ctx context.Context, table string, records int, t load.Truth) error {
	n, err := a.numbers(ctx, table, "count()", "uniqExact(settle_ms, id, rev)")
	if err != nil {
		return err
	}
	if n[0] != int64(records) || n[1] != t.Keys {
		return fmt.Errorf("%s is not exact: %d rows, %d keys; produced were %d records of %d keys", table, n[0], n[1], records, t.Keys)
	}
	return nil
}

// memory is what Redis uses, in bytes.
func (a *asker) memory(ctx context.Context) (int64, error) {
	v, err := a.info(ctx, "memory", "used_memory")
	return int64(v), err
}

// busy is the CPU time that Redis has taken so far.
func (a *asker) busy(ctx context.Context) (time.Duration, error) {
	user, err := a.info(ctx, "cpu", "used_cpu_user")
	if err != nil {
		return 0, err
	}
	system, err := a.info(ctx, "cpu", "used_cpu_sys")
	return time.Duration((user + system) * float64(time.Second)), err
}

func (a *asker) info(ctx context.Context, section, field string) (float64, error) {
	text, err := a.store.Info(ctx, section).Result()
	if err != nil {
		return 0, fmt.Errorf("redis: INFO %s: %w", section, err)
	}
	for _, l := range strings.Split(text, "\r\n") {
		if v, found := strings.CutPrefix(l, field+":"); found {
			return strconv.ParseFloat(v, 64)
		}
	}
	return 0, fmt.Errorf("redis: INFO %s tells no %s", section, field)
}

// emptyStore drops all keys and scripts, and tells what Redis uses then.
func (a *asker) emptyStore(ctx context.Context) (int64, error) {
	if err := a.store.FlushAll(ctx).Err(); err != nil {
		return 0, fmt.Errorf("redis: FLUSHALL: %w", err)
	}
	if err := a.store.ScriptFlush(ctx).Err(); err != nil {
		return 0, fmt.Errorf("redis: SCRIPT FLUSH: %w", err)
	}
	time.Sleep(200 * time.Millisecond) // buffers of clients that are gone are freed by a timer of Redis
	return a.memory(ctx)
}
