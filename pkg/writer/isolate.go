package writer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
)

// BadRow is a row that the server doesn't take.
type BadRow struct {
	Row     int
	Code    int32
	Message string
}

const scratchTable = "oncesink_isolate"

// Isolate finds the rows that the server refuses, without touching the table: they are inserted into a temporary table with the same columns, constraints, indexes and
// keys. take gives the rows [lo, hi) as columns; what it returned before may be invalid afterwards. No bad row and no error means that the rows aren't refused for what
// is in them.
func (s *Server) Isolate(ctx context.Context, t *Table, in proto.Input, rows int, take func(lo, hi int) proto.Input) (bad []BadRow, err error) {
	p := &prober{s: s, t: t}
	defer p.close()
	err = s.onAny(ctx, func(r *replicaState) error {
		p.close()
		p.r, bad = r, nil
		return p.probe(ctx, in, 0, rows, take, &bad)
	})
	if err != nil {
		return nil, fmt.Errorf("look for the rows that %s refuses: %w", t, err)
	}
	return bad, nil
}

// prober keeps the connection whose session holds the temporary table.
type prober struct {
	s *Server
	t *Table
	r *replicaState
	c *conn
}

func (p *prober) close() {
	if p.c != nil {
		p.c.broken = true // the temporary table goes with the session
		p.s.release(p.r, p.c, nil)
		p.c = nil
	}
}

// probe halves a refused range until single rows are left. in is the range when it is at hand; otherwise take is asked.
func (p *prober) probe(ctx context.Context, in proto.Input, lo, hi int, take func(lo, hi int) proto.Input, bad *[]BadRow) error {
	if in == nil {
		in = take(lo, hi)
	}
	refused, err := p.insert(ctx, in)
	if err != nil || refused == nil {
		return err
	}
	if hi-lo == 1 {
		*bad = append(*bad, BadRow{Row: lo, Code: refused.Code, Message: refused.Message})
		return nil
	}
	middle := lo + (hi-lo)/2
	if err := p.probe(ctx, nil, lo, middle, take, bad); err != nil {
		return err
	}
	return p.probe(ctx, nil, middle, hi, take, bad)
}

// insert tries the rows on the temporary table. refused is set when it is the rows that the server doesn't take.
func (p *prober) insert(ctx context.Context, in proto.Input) (refused *Exception, err error) {
	if p.c == nil {
		if err := p.open(ctx); err != nil {
			return nil, err
		}
	}
	names, structure, err := structureOf(p.t, in)
	if err != nil {
		return nil, &inputError{err}
	}
	st, err := p.c.exchange(ctx, &request{
		body: fmt.Sprintf("INSERT INTO %s (%s) SELECT %[2]s FROM input(%s) FORMAT Native", scratchTable, names, quoteText(structure)),
		settings: []proto.Setting{
			{Key: "async_insert", Value: "0", Important: true}, {Key: "max_partitions_per_insert_block", Value: "0"}, {Key: "limit", Value: "0"}, {Key: "offset", Value: "0"},
		},
		input: in,
	})
	if err == nil {
		return nil, nil
	}
	p.close()
	var ex *Exception
	if errors.As(err, &ex) && st.sent && causeOf(ex.Code, ex.Message, true) == Data {
		return ex, nil
	}
	return nil, err
}

// open takes a connection and makes the temporary table in its session.
func (p *prober) open(ctx context.Context) error {
	c, err := p.s.connect(ctx, p.r)
	if err != nil {
		return err
	}
	p.c = c
	order := p.t.SortingKey
	if order == "" {
		order = "tuple()"
	} else {
		order = "(" + order + ")"
	}
	partition := ""
	if p.t.partitioned() {
		partition = " PARTITION BY " + p.t.PartitionKey
	}
	like := fmt.Sprintf("CREATE TEMPORARY TABLE %s AS %s ENGINE = ", scratchTable, p.t.quoted())
	_, err = c.exchange(ctx, &request{body: like + "MergeTree" + partition + " ORDER BY " + order + " SETTINGS allow_nullable_key = 1"})
	var ex *Exception
	if errors.As(err, &ex) && ex.Code != 497 && !c.broken {
		_, err = c.exchange(ctx, &request{body: like + "Memory"}) // older servers: keys and indexes aren't tried then
	}
	if errors.As(err, &ex) && ex.Code == 497 {
		err = fmt.Errorf("%w: GRANT CREATE TEMPORARY TABLE, CREATE ARBITRARY TEMPORARY TABLE ON *.* TO %s", err, quoteName(p.s.cfg.Username))
	}
	if err != nil {
		p.close()
	}
	return err
}

// structureOf is the list of the columns of a block, and the same with types for input().
func structureOf(t *Table, in proto.Input) (names, structure string, err error) {
	list := make([]string, len(in))
	typed := make([]string, len(in))
	for i, c := range in {
		column, err := t.column(c.Name)
		if err != nil {
			return "", "", err
		}
		list[i] = quoteName(c.Name)
		typed[i] = list[i] + " " + column.Type
	}
	return strings.Join(list, ", "), strings.Join(typed, ", "), nil
}
