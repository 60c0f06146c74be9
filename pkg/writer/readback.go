package writer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// ReadBack tells for each of the given keys whether the table has a row of it. keys has the key columns only; present is filled row by row. It reads a replica that has
// caught up with everything that was acknowledged when it was asked.
func (s *Server) ReadBack(ctx context.Context, t *Table, key []string, keys proto.Input, present []bool) error {
	if len(present) == 0 {
		return nil
	}
	err := s.onAny(ctx, func(r *replicaState) error {
		return s.session(ctx, r, true, func(do doer) error {
			if err := s.caughtUp(ctx, do, r, t); err != nil {
				return err
			}
			return readBack(ctx, do, t, key, keys, present)
		})
	})
	if err != nil {
		return fmt.Errorf("read %d keys back from %s: %w", len(present), t, err)
	}
	return nil
}

// readBack sends the keys as an external table with their row numbers and lets the server compare: values compared here would need every type's notion of equality twice.
// The inner IN prunes the table by its sorting key; the outer one turns the keys that were found into row numbers.
func readBack(ctx context.Context, do doer, t *Table, key []string, keys proto.Input, present []bool) error {
	if len(keys) != len(key) || len(key) == 0 {
		return &inputError{fmt.Errorf("the key has %d columns, %d are given", len(key), len(keys))}
	}
	names := make([]string, len(keys))
	external := make(proto.Input, 0, len(keys)+1)
	for i, k := range keys {
		if _, err := t.column(k.Name); err != nil {
			return &inputError{err}
		}
		if n := k.Data.Rows(); n != len(present) {
			return &inputError{fmt.Errorf("column %s has %d rows", k.Name, n)}
		}
		names[i] = quoteName(k.Name)
		external = append(external, k)
	}
	external = append(external, rowNumbers(len(present)))
	list := strings.Join(names, ", ")
	body := fmt.Sprintf("SELECT %s FROM %s WHERE (%s) IN (SELECT %[3]s FROM %[4]s WHERE (%[3]s) IN (SELECT %[3]s FROM %[2]s))", rowColumn, rowsTable, list, t.quoted())
	settings := append([]proto.Setting{{Key: "final", Value: "0"}}, pinnedForReads...)
	if strings.HasPrefix(t.Engine, "Shared") {
		settings = append(settings, proto.Setting{Key: "select_sequential_consistency", Value: "1"})
	}
	clear(present)
	var found proto.ColUInt32
	_, err := do(ctx, &request{
		body: body, external: map[string]proto.Input{rowsTable: external}, settings: settings,
		result: namedByServer(proto.Results{{Data: &found}}),
		onBlock: func(int) error {
			for _, i := range found {
				if int(i) >= len(present) {
					return fmt.Errorf("row %d of %d", i, len(present))
				}
				present[i] = true
			}
			return nil
		},
	})
	return err
}

// catchUpPoll is how often a replica that lags is asked again.
const catchUpPoll = 100 * time.Millisecond

// caughtUp waits until the replica has every part that the others had acknowledged when it was asked. One that isn't replicated has nothing to wait for.
func (s *Server) caughtUp(ctx context.Context, do doer, r *replicaState, t *Table) error {
	if !strings.HasPrefix(t.Engine, "Replicated") {
		return nil
	}
	err := do.run(ctx, "SYSTEM SYNC REPLICA "+t.quoted()+" LIGHTWEIGHT")
	var ex *Exception
	if err == nil || !errors.As(err, &ex) {
		return err
	}
	// Not granted, or a server that doesn't know LIGHTWEIGHT: watch the queue. What is in Keeper's log now has to be in the queue, and no insert as old as now in it.
	goal, start := int64(-1), int64(0)
	for {
		row, err := do.readOne(ctx, 6, fmt.Sprintf("SELECT toString(log_max_index), toString(log_pointer), toString(inserts_in_queue), toString(toUnixTimestamp(inserts_oldest_time)), "+
			"toString(is_readonly OR is_session_expired), toString(toUnixTimestamp(now())) FROM system.replicas WHERE database = %s AND table = %s", quoteText(t.Database), quoteText(t.Name)))
		if err != nil {
			return fmt.Errorf("see whether the replica has caught up: %w", err)
		}
		if row[4] == "0" {
			if goal < 0 {
				goal, start = number(row[0]), number(row[5])
			}
			copied, waiting, oldest := number(row[1]) > goal, number(row[2]), number(row[3])
			if copied && (waiting == 0 || oldest > start) {
				return nil
			}
		}
		timer := time.NewTimer(catchUpPoll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s hasn't caught up with the other replicas of %s: %w", r.addr, t, ctx.Err())
		}
	}
}
