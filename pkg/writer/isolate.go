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
	err = s.onAny(ctx, func(r *replicaState) error {
		bad = nil
		return s.probe(ctx, r, t, in, 0, rows, take, &bad)
	})
	if err != nil {
		return nil, fmt.Errorf("look for the rows that %s refuses: %w", t, err)
	}
	return bad, nil
}

// probe halves a refused range until single rows are left. in is the range when it is at hand; otherwise take is asked.
func (s *Server) probe(ctx context.Context, r *replicaState, t *Table, in proto.Input, lo, hi int, take func(lo, hi int) proto.Input, bad *[]BadRow) error {
	if in == nil {
		in = take(lo, hi)
	}
	refused, err := s.try(ctx, r, t, in)
	if err != nil || refused == nil {
		return err
	}
	if hi-lo == 1 {
		*bad = append(*bad, BadRow{Row: lo, Code: refused.Code, Message: refused.Message})
		return nil
	}
	middle := lo + (hi-lo)/2
	if err := s.probe(ctx, r, t, nil, lo, middle, take, bad); err != nil {
		return err
	}
	return s.probe(ctx, r, t, nil, middle, hi, take, bad)
}

// try inserts rows into a temporary table. refused is set when it is the rows that the server doesn't take.
func (s *Server) try(ctx context.Context, r *replicaState, t *Table, in proto.Input) (refused *Exception, err error) {
	names, structure, err := structureOf(t, in)
	if err != nil {
		return nil, &inputError{err}
	}
	err = s.session(ctx, r, false, func(do doer) error {
		if err := s.createScratch(ctx, do, t); err != nil {
			return err
		}
		st, err := do(ctx, &request{
			body: fmt.Sprintf("INSERT INTO %s (%s) SELECT %[2]s FROM input(%s) FORMAT Native", scratchTable, names, quoteText(structure)),
			settings: []proto.Setting{
				{Key: "async_insert", Value: "0", Important: true}, {Key: "max_partitions_per_insert_block", Value: "0"}, {Key: "limit", Value: "0"}, {Key: "offset", Value: "0"},
			},
			input: in,
		})
		var ex *Exception
		if errors.As(err, &ex) && st.sent && causeOf(ex.Code, ex.Message, true) == Data {
			refused = ex
			return nil
		}
		return err
	})
	return refused, err
}

// createScratch makes a temporary table like t in the session.
func (s *Server) createScratch(ctx context.Context, do doer, t *Table) error {
	order := "tuple()"
	if t.SortingKey != "" {
		order = "(" + t.SortingKey + ")"
	}
	partition := ""
	if t.partitioned() {
		partition = " PARTITION BY " + t.PartitionKey
	}
	like := fmt.Sprintf("CREATE TEMPORARY TABLE %s AS %s ENGINE = ", scratchTable, t.quoted())
	err := do.run(ctx, like+"MergeTree"+partition+" ORDER BY "+order+" SETTINGS allow_nullable_key = 1")
	var ex *Exception
	if errors.As(err, &ex) {
		err = do.run(ctx, like+"Memory") // older servers, or only that is granted: keys and indexes aren't tried then
	}
	if errors.As(err, &ex) && ex.Code == 497 {
		err = fmt.Errorf("%w: GRANT CREATE ARBITRARY TEMPORARY TABLE ON *.* TO %s", err, quoteName(s.cfg.Username))
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
