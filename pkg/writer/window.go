package writer

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Since is how much of a deduplication window has been used since a moment.
type Since struct {
	Target string // database.name of the table or of a view's target
	Blocks int    // written by all writers on all replicas
	Known  bool
	Why    string // it isn't known
	window Window
}

// BlocksSince counts the blocks that all writers have put into the table and into each view's target since a moment of the server's clock.
func (s *Server) BlocksSince(ctx context.Context, t *Table, from time.Time) ([]Since, error) {
	targets := t.targets()
	ids := make([]string, len(targets))
	for i, to := range targets {
		ids[i] = uuidText(to.uuid)
	}
	var mu sync.Mutex
	counts := map[string]int{}
	var unknown []string
	note := func(why string) { mu.Lock(); unknown = append(unknown, why); mu.Unlock() }
	err := s.onEvery(func(r *replicaState) error {
		state, err := s.logSince(ctx, r, "part_log", from)
		if err != nil {
			return err
		}
		if state.complete && !state.flushed {
			state.complete, state.why = false, "system.part_log of "+r.addr+" can't be flushed: GRANT SYSTEM FLUSH LOGS ON *.* TO "+quoteName(s.cfg.Username)
		}
		if !state.complete {
			note(state.why)
			return nil
		}
		source, err := s.everywhere(ctx, r, "system.part_log")
		if err != nil {
			return err
		}
		rows, err := s.read(ctx, r, 2, fmt.Sprintf("SELECT toString(table_uuid), toString(count()) FROM %s WHERE event_date >= toDate(%d) - 1 AND event_time >= toDateTime(%[2]d) "+
			"AND event_type = 'NewPart' AND error = 0 AND table_uuid IN (%s) GROUP BY table_uuid", source, from.Add(-restartMargin).Unix(), quoteTexts(ids)))
		if err != nil {
			if state, err = denied(state, err); err == nil {
				note(state.why)
			}
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, row := range rows {
			counts[row[0]] += int(number(row[1]))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count the blocks in %s: %w", t, err)
	}
	missing, err := s.replicasNotAsked(ctx, targets)
	if err != nil {
		return nil, fmt.Errorf("count the blocks in %s: %w", t, err)
	}
	out := make([]Since, len(targets))
	for i, to := range targets {
		out[i] = Since{Target: to.String(), Blocks: counts[ids[i]], window: to.window, Known: len(unknown) == 0, Why: strings.Join(unknown, "; ")}
		if why := missing[to.String()]; out[i].Known && why != "" {
			out[i].Known, out[i].Why = false, why
		}
		if out[i].Known && to.uuid == [16]byte{} {
			out[i].Known, out[i].Why = false, to.String()+" has no UUID to count by"
		}
	}
	return out, nil
}

// replicasNotAsked tells for replicated targets that have more replicas than are configured: blocks written there wouldn't be counted.
func (s *Server) replicasNotAsked(ctx context.Context, targets []target) (map[string]string, error) {
	why := map[string]string{}
	asked := int64(len(s.replicas))
	for _, to := range targets {
		if !to.replicated {
			continue
		}
		err := s.onAny(ctx, func(r *replicaState) error {
			if s.cfg.Balanced {
				cluster, err := s.cluster(ctx, r)
				if err != nil {
					return err
				}
				value, err := s.value(ctx, r, "SELECT toString(count()) FROM system.clusters WHERE cluster = "+quoteText(cluster))
				if err != nil {
					return err
				}
				asked = number(value)
			}
			rows, err := s.read(ctx, r, 1, fmt.Sprintf("SELECT toString(total_replicas) FROM system.replicas WHERE database = %s AND table = %s", quoteText(to.database), quoteText(to.name)))
			switch {
			case err != nil:
				state, err := denied(logState{}, err)
				why[to.String()] = state.why
				return err
			case len(rows) == 1 && number(rows[0][0]) > asked:
				why[to.String()] = fmt.Sprintf("%s has %s replicas and only %d are asked: name them all in clickhouse.addresses", to, rows[0][0], asked)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return why, nil
}

// SafeWindow tells whether a token used at the moment `from` is surely still remembered: less than half of the blocks and of the seconds of the window has been used, in
// the table and in every view's target. The other half is for what arrives between this answer and the repeat.
func (s *Server) SafeWindow(ctx context.Context, t *Table, from time.Time) (safe bool, why string, err error) {
	for _, v := range t.Views {
		switch {
		case v.Target == "":
			return false, fmt.Sprintf("the target of view %s isn't visible: GRANT SHOW TABLES, SHOW COLUMNS ON its database", v.Name), nil
		case !v.Windowed:
			return false, fmt.Sprintf("%s, which view %s feeds, is of engine %s and remembers nothing", v.Target, v.Name, v.Engine), nil
		}
	}
	for _, to := range t.targets() {
		if to.window.Blocks == 0 {
			return false, fmt.Sprintf("%s has no deduplication window", to), nil
		}
	}
	since, err := s.BlocksSince(ctx, t, from)
	if err != nil {
		return false, "", err
	}
	now, uncertainty, err := s.Clock(ctx, "")
	if err != nil {
		return false, "", err
	}
	age := now.Add(uncertainty).Sub(from)
	for _, used := range since {
		switch w := used.window; {
		case !used.Known:
			return false, fmt.Sprintf("the blocks written into %s since can't be counted: %s", used.Target, used.Why), nil
		case int64(used.Blocks)*2 >= w.Blocks:
			return false, fmt.Sprintf("%d blocks were written into %s since, and it remembers %d", used.Blocks, used.Target, w.Blocks), nil
		case w.Seconds > 0 && age*2 >= time.Duration(w.Seconds)*time.Second:
			return false, fmt.Sprintf("the first attempt was %s ago, and %s remembers %s", age.Round(time.Second), used.Target, time.Duration(w.Seconds)*time.Second), nil
		}
	}
	return true, "", nil
}

// Headroom is what is left of the narrowest deduplication window of a table and its views' targets for a token that was first used `back` ago: 1 when nothing was
// written since, 0 when it may be forgotten. It is for display: one cheap query about the parts that one replica has, where SafeWindow asks the logs of all of them.
func (s *Server) Headroom(ctx context.Context, t *Table, back time.Duration) (float64, error) {
	targets := t.targets()
	places := make([]string, len(targets))
	for i, to := range targets {
		places[i] = fmt.Sprintf("(%s, %s)", quoteText(to.database), quoteText(to.name))
	}
	// A block is a part of one block number, whatever its level, and stays listed for minutes after it was merged.
	rows, err := s.readAny(ctx, 3, fmt.Sprintf("SELECT database, table, toString(uniqExact(partition_id, min_block_number)) FROM system.parts "+
		"WHERE (database, table) IN (%s) AND min_block_number = max_block_number AND modification_time >= now() - %d GROUP BY database, table", strings.Join(places, ", "), int64(back.Seconds())+1))
	if err != nil {
		return 0, fmt.Errorf("look at the deduplication window of %s: %w", t, err)
	}
	blocks := map[string]int64{}
	for _, row := range rows {
		blocks[row[0]+"."+row[1]] = number(row[2])
	}
	left := 1.0
	for _, to := range targets {
		if to.window.Blocks == 0 {
			return 0, nil
		}
		left = min(left, 1-float64(blocks[to.String()])/float64(to.window.Blocks))
		if to.window.Seconds > 0 {
			left = min(left, 1-back.Seconds()/float64(to.window.Seconds))
		}
	}
	return max(left, 0), nil
}
