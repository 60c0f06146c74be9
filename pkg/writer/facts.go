package writer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// facts is what a replica says about itself, read once per life of its process.
type facts struct {
	version   string
	timezone  string
	host      string
	settings  map[string]string // this user's values of the settings that matter here; absent: the server doesn't know them
	mergeTree map[string]string // defaults of tables' deduplication windows
	replMerge map[string]string // the same for replicated ones
	guessed   bool              // the user may not see those two
}

// leastDefaults are the smallest defaults that any version of the server has had.
var leastDefaults = map[string]string{"non_replicated_deduplication_window": "0", "replicated_deduplication_window": "100", "replicated_deduplication_window_seconds": "3600"}

func (s *Server) factsOf(ctx context.Context, r *replicaState) (*facts, error) {
	r.mu.Lock()
	f := r.facts
	r.mu.Unlock()
	if f != nil {
		return f, nil
	}
	row, err := s.readOne(ctx, r, 3, "SELECT version(), timezone(), hostName()")
	var ex *Exception
	if errors.As(err, &ex) && ex.Code == 164 {
		return nil, &Exception{Code: ex.Code, Replica: r.addr, Message: fmt.Sprintf("user %s is read-only (readonly = 1), so nothing can be written: ALTER USER %s SETTINGS readonly = 0", s.cfg.Username, quoteName(s.cfg.Username))}
	}
	if err != nil {
		return nil, err
	}
	f = &facts{version: row[0], timezone: row[1], host: row[2]}
	if f.settings, err = s.settingsFrom(ctx, r, "system.settings", "name IN ("+quoteTexts(settingsOfInterest())+")"); err != nil {
		return nil, err
	}
	for table, defaults := range map[string]*map[string]string{"system.merge_tree_settings": &f.mergeTree, "system.replicated_merge_tree_settings": &f.replMerge} {
		*defaults, err = s.settingsFrom(ctx, r, table, "name LIKE '%deduplication_window%'")
		if errors.As(err, &ex) && ex.Code == 497 {
			*defaults, f.guessed = leastDefaults, true
		} else if err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	r.facts = f
	r.mu.Unlock()
	return f, nil
}

func (s *Server) settingsFrom(ctx context.Context, r *replicaState, table, where string) (map[string]string, error) {
	rows, err := s.read(ctx, r, 2, "SELECT name, value FROM "+table+" WHERE "+where)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(rows))
	for _, row := range rows {
		out[row[0]] = row[1]
	}
	return out, nil
}

// window is what a table of that engine remembers: what its own SETTINGS say, else the server's default.
func (f *facts) window(engine, engineFull string) Window {
	if !strings.HasSuffix(engine, "MergeTree") {
		return Window{}
	}
	value := func(name string, defaults map[string]string) int64 {
		if own, ok := tableSetting(engineFull, name); ok {
			return own
		}
		return number(defaults[name])
	}
	if replicatedEngine(engine) {
		return Window{Blocks: value("replicated_deduplication_window", f.replMerge), Seconds: value("replicated_deduplication_window_seconds", f.replMerge)}
	}
	w := Window{Blocks: value("non_replicated_deduplication_window", f.mergeTree)}
	return w
}

// tableSetting reads a number from the SETTINGS of a table's engine clause.
func tableSetting(engineFull, name string) (int64, bool) {
	at := strings.LastIndex(engineFull, " SETTINGS ")
	if at < 0 {
		return 0, false
	}
	m := regexp.MustCompile(`(?:^|[ ,])` + regexp.QuoteMeta(name) + `\s*=\s*'?(\d+)`).FindStringSubmatch(engineFull[at+len(" SETTINGS "):])
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	return v, err == nil
}

// maxPartitions is L: how many partitions one block may meet. 0: no limit.
func (s *Server) maxPartitions(f *facts) int {
	if own, ok := s.cfg.Settings["max_partitions_per_insert_block"]; ok {
		return int(number(own))
	}
	return int(number(f.settings["max_partitions_per_insert_block"]))
}
