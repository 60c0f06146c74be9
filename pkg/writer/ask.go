package writer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// RunningSince counts the statements whose query id begins with the prefix and that have been running for at least that long, on all replicas. A replica that
// can't be asked is an error: it may be running one.
func (s *Server) RunningSince(ctx context.Context, queryIDPrefix string, since time.Duration) (int, error) {
	var total atomic.Int64
	err := s.onEvery(func(r *replicaState) error {
		from, err := s.processesOf(ctx, r)
		if err != nil {
			return err
		}
		value, err := s.value(ctx, r, fmt.Sprintf("SELECT toString(count()) FROM %s WHERE startsWith(query_id, %s) AND is_initial_query AND elapsed >= %.3f",
			from, quoteText(queryIDPrefix), since.Seconds()))
		if err != nil {
			return err
		}
		total.Add(number(value))
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("look for running statements %s*: %w", queryIDPrefix, err)
	}
	return int(total.Load()), nil
}

// Empty tells whether the table has no row on any replica that answers first.
func (s *Server) Empty(ctx context.Context, t *Table) (bool, error) {
	rows, err := s.readAny(ctx, 1, "SELECT toString(count()) FROM (SELECT 1 FROM "+t.quoted()+" LIMIT 1)")
	if err != nil {
		return false, fmt.Errorf("look into %s: %w", t, err)
	}
	return len(rows) == 1 && rows[0][0] == "0", nil
}

// NameOf is the name of the table that has this UUID now, else the UUID.
func (s *Server) NameOf(ctx context.Context, id [16]byte) string {
	text := uuidText(id)
	rows, err := s.readAny(ctx, 2, "SELECT database, name FROM system.tables WHERE uuid = "+quoteText(text))
	if err != nil || len(rows) == 0 {
		return "UUID " + text
	}
	return rows[0][0] + "." + rows[0][1]
}

// Select runs a query of one block on any replica that answers and decodes it into results.
func (s *Server) Select(ctx context.Context, body string, results proto.Results) error {
	return s.doAny(ctx, func() *request {
		for i := range results {
			if r, ok := results[i].Data.(proto.Resettable); ok {
				r.Reset()
			}
		}
		return &request{body: body, result: namedByServer(results), settingsFor: func(f *facts) []proto.Setting {
			types := ""
			for _, r := range results {
				types += string(r.Data.Type()) + " "
			}
			return append(f.naming(types), pinnedForSelects...)
		}}
	})
}
