package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"

	"github.com/oncesink/oncesink/bench/load"
)

// asker puts questions to the engine, past the proxy and with a client of its own: what the sink believes plays no part. Not safe for concurrent use.
type asker struct{ client *ch.Client }

func connect(ctx context.Context, addr string) (*asker, error) {
	client, err := ch.Dial(ctx, ch.Options{Address: addr, Database: database, ClientName: "oncesink demo"})
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	return &asker{client}, nil
}

func (a *asker) close() { _ = a.client.Close() }

func (a *asker) create(ctx context.Context) error {
	for _, sql := range append([]string{load.Table(table, window)}, load.Report(table, report, window)...) {
		if err := a.client.Do(ctx, ch.Query{Body: sql}); err != nil {
			return fmt.Errorf("clickhouse: %s: %w", strings.SplitN(sql, "\n", 2)[0], err)
		}
	}
	return nil
}

// numbers asks for one row of whole numbers.
func (a *asker) numbers(ctx context.Context, from string, expressions ...string) ([]int64, error) {
	var body strings.Builder
	cols := make([]proto.ColInt64, len(expressions))
	var results proto.Results
	for i, e := range expressions {
		name := fmt.Sprintf("c%d", i)
		if i > 0 {
			body.WriteString(", ")
		}
		fmt.Fprintf(&body, "toInt64(%s) AS %s", e, name)
		results = append(results, proto.ResultColumn{Name: name, Data: &cols[i]})
	}
	if err := a.client.Do(ctx, ch.Query{Body: "SELECT " + body.String() + " FROM " + from, Result: results}); err != nil {
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

// table reads the target. Amounts are whole numbers of 0.0001, so that nothing is rounded.
func (a *asker) table(ctx context.Context) (Table, error) {
	n, err := a.numbers(ctx, table, "count()", "uniqExact(settle_ms, id, rev)", "sum(amount) * 10000", "sum(qty)")
	if err != nil {
		return Table{}, err
	}
	return Table{Rows: n[0], Keys: n[1], Amount: Amount(n[2]), Qty: n[3]}, nil
}

func (a *asker) report(ctx context.Context) (Totals, error) {
	n, err := a.numbers(ctx, report, "sum(events)", "sum(amount) * 10000", "sum(qty)")
	if err != nil {
		return Totals{}, err
	}
	return Totals{Events: n[0], Amount: Amount(n[1]), Qty: n[2]}, nil
}

// present tells how many of these settlements, which were made one after another, are in the table.
func (a *asker) present(ctx context.Context, list []load.Settlement) (int, error) {
	first, last := list[0], list[len(list)-1]
	n, err := a.numbers(ctx, fmt.Sprintf("%s WHERE settle_ms BETWEEN %d AND %d AND id BETWEEN '%s' AND '%s'",
		table, first.SettleMs, last.SettleMs, first.ID, last.ID), "count()")
	if err != nil {
		return 0, err
	}
	return int(n[0]), nil
}

// statement is an INSERT as the engine's query log has it.
type statement struct {
	id      string
	rows    int64 // that reached the engine
	started time.Time
}

// statements are the sink's INSERTs into the table that brought rows and were not refused for their deadline, in the order of their start.
func (a *asker) statements(ctx context.Context) ([]statement, error) {
	if err := a.client.Do(ctx, ch.Query{Body: "SYSTEM FLUSH LOGS"}); err != nil {
		return nil, fmt.Errorf("clickhouse: flush the logs: %w", err)
	}
	var (
		id            proto.ColStr
		rows, started proto.ColInt64
		out           []statement
	)
	err := a.client.Do(ctx, ch.Query{
		Body: `SELECT query_id AS id, toInt64(read_rows) AS n, toUnixTimestamp64Micro(query_start_time_microseconds) AS t FROM system.query_log
WHERE type != 'QueryStart' AND read_rows > 0 AND exception_code != 395 AND query_kind = 'Insert' AND startsWith(query_id, 'oncesink/' || (SELECT toString(uuid) FROM system.tables
WHERE database = currentDatabase() AND name = '` + table + `') || '/') ORDER BY t`,
		Result: proto.Results{{Name: "id", Data: &id}, {Name: "n", Data: &rows}, {Name: "t", Data: &started}},
		OnResult: func(context.Context, proto.Block) error {
			for i := range id.Rows() {
				out = append(out, statement{id.Row(i), rows.Row(i), time.UnixMicro(started.Row(i))})
			}
			return nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("clickhouse: read the query log: %w", err)
	}
	return out, nil
}
