package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		p := prober{s: s, r: r, t: t, take: take}
		defer p.close()
		return p.probe(ctx, in, 0, rows, &bad)
	})
	if err != nil {
		return nil, fmt.Errorf("look for the rows that %s refuses: %w", t, err)
	}
	return bad, nil
}

// prober keeps the session with the temporary table from one probe to the next.
type prober struct {
	s    *Server
	r    *replicaState
	t    *Table
	take func(lo, hi int) proto.Input

	do  doer
	end func()
}

func (p *prober) close() {
	if p.end != nil {
		p.end()
		p.do, p.end = nil, nil
	}
}

// probe halves a refused range until single rows are left. in is the range when it is at hand; otherwise take is asked.
func (p *prober) probe(ctx context.Context, in proto.Input, lo, hi int, bad *[]BadRow) error {
	if in == nil {
		in = p.take(lo, hi)
	}
	refused, err := p.try(ctx, in)
	if err != nil || refused == nil {
		return err
	}
	if hi-lo == 1 {
		*bad = append(*bad, BadRow{Row: lo, Code: refused.Code, Message: refused.Message})
		return nil
	}
	middle := lo + (hi-lo)/2
	if err := p.probe(ctx, nil, lo, middle, bad); err != nil {
		return err
	}
	return p.probe(ctx, nil, middle, hi, bad)
}

// try inserts rows into the temporary table. refused is set when it is the rows that the server doesn't take.
func (p *prober) try(ctx context.Context, in proto.Input) (refused *Exception, err error) {
	names, structure, err := structureOf(p.t, in)
	if err != nil {
		return nil, &inputError{err}
	}
	if p.do == nil {
		if p.do, p.end, err = p.s.openSession(ctx, p.r); err != nil {
			return nil, err
		}
		if err := p.s.createScratch(ctx, p.do, p.t); err != nil {
			return nil, err
		}
	}
	st, err := p.do(ctx, &request{
		body: fmt.Sprintf("INSERT INTO %s (%s) SELECT %[2]s FROM input(%s) FORMAT Native", scratchTable, names, quoteText(structure)),
		settingsFor: func(f *facts) []proto.Setting {
			types := typesOf(in)
			out := append([]proto.Setting{{Key: "async_insert", Value: "0", Important: true}}, pinnedForSelects...)
			if strings.Contains(types, "JSON") {
				out = append(out, f.known(pinnedForJSON)...)
			}
			return append(out, f.naming(types)...)
		},
		input: in, probing: true,
	})
	var ex *Exception
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &ex) && st.sent && causeOf(ex.Code, ex.Message, true) == Data:
		if ended := p.do.run(ctx, "SELECT 1"); ended != nil {
			p.close()
		}
		return ex, nil
	}
	return nil, err
}

// createScratch makes a temporary table like t in the session.
func (s *Server) createScratch(ctx context.Context, do doer, t *Table) error {
	// The partition key stands in ORDER BY: its expressions are tried all the same, and a probe writes one part, not one a partition.
	keys := splitExpressions(t.SortingKey)
	if t.partitioned() {
		for _, k := range splitExpressions(withoutParentheses(t.PartitionKey)) {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	like := fmt.Sprintf("CREATE TEMPORARY TABLE %s AS %s ENGINE = ", scratchTable, t.quoted())
	create := func(engine string) error {
		_, err := do(ctx, &request{body: like + engine, result: discard{}, settingsFor: func(f *facts) []proto.Setting {
			return append(f.naming(t.types()), pinnedForReads...)
		}})
		return err
	}
	err := create("MergeTree PARTITION BY tuple() ORDER BY (" + strings.Join(keys, ", ") + ") SETTINGS allow_nullable_key = 1")
	var ex *Exception
	if errors.As(err, &ex) {
		err = create("Memory") // an older server, or only that is granted: keys and indexes aren't tried then
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
