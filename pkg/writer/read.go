package writer

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
)

// read runs a SELECT whose columns are all of type String and returns its rows.
func (s *Server) read(ctx context.Context, r *replicaState, columns int, body string) ([][]string, error) {
	return s.on(r).read(ctx, columns, body)
}

func (do doer) read(ctx context.Context, columns int, body string) ([][]string, error) {
	cols := make([]proto.ColStr, columns)
	results := make(proto.Results, columns)
	for i := range cols {
		results[i].Data = &cols[i]
	}
	var out [][]string
	_, err := do(ctx, &request{body: body, settings: pinnedForReads, result: namedByServer(results), onBlock: func(rows int) error {
		for i := range rows {
			row := make([]string, columns)
			for k := range cols {
				row[k] = cols[k].Row(i)
			}
			out = append(out, row)
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// readAny is read on any replica that answers.
func (s *Server) readAny(ctx context.Context, columns int, body string) (rows [][]string, err error) {
	err = s.onAny(ctx, func(r *replicaState) error {
		rows, err = s.read(ctx, r, columns, body)
		return err
	})
	return rows, err
}

// value reads a result of one row and one column.
func (s *Server) value(ctx context.Context, r *replicaState, body string) (string, error) {
	row, err := s.on(r).readOne(ctx, 1, body)
	if err != nil {
		return "", err
	}
	return row[0], nil
}

// readOne is read for a result of one row.
func (do doer) readOne(ctx context.Context, columns int, body string) ([]string, error) {
	rows, err := do.read(ctx, columns, body)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("%d rows where one is wanted: %s", len(rows), body)
	}
	return rows[0], nil
}

// run is for statements without a result.
func (do doer) run(ctx context.Context, body string) error {
	_, err := do(ctx, &request{body: body, settings: pinnedForReads, result: discard{}})
	return err
}

// anyNames decodes results by place: column names don't matter.
type anyNames struct{ results proto.Results }

func namedByServer(results proto.Results) proto.Result { return &anyNames{results} }

func (a *anyNames) DecodeResult(r *proto.Reader, version int, b proto.Block) error {
	for i := range a.results {
		a.results[i].Name = "" // ch-go takes the name of the first block for the wanted one
	}
	return a.results.DecodeResult(r, version, b)
}

// discard reads a result and forgets it.
type discard struct{}

func (discard) DecodeResult(r *proto.Reader, version int, b proto.Block) error {
	var results proto.Results
	return results.Auto().DecodeResult(r, version, b)
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}

func parseUUID(text string) (id [16]byte) {
	h := strings.ReplaceAll(text, "-", "")
	if len(h) != 32 {
		return id
	}
	for i := range id {
		b, err := strconv.ParseUint(h[2*i:2*i+2], 16, 8)
		if err != nil {
			return [16]byte{}
		}
		id[i] = byte(b)
	}
	return id
}
