package writer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// facts is what a server says about itself.
type facts struct {
	version   string
	timezone  string
	host      string
	settings  map[string]string // this user's values of the settings that matter here; absent: the server doesn't know them
	mergeTree map[string]string // defaults of tables' deduplication windows
	replMerge map[string]string // the same for replicated ones
	guessed   bool              // the user may not see those two
	read      time.Time
}

// leastDefaults are the smallest defaults that any version of the server has had.
var leastDefaults = map[string]string{"non_replicated_deduplication_window": "0", "replicated_deduplication_window": "100", "replicated_deduplication_window_seconds": "3600"}

// factsMaxAge bounds how long a changed profile or limit goes unnoticed.
const factsMaxAge = 5 * time.Minute

// factsOf are those of the server that the address leads to now.
func (s *Server) factsOf(ctx context.Context, r *replicaState) (f *facts, err error) {
	err = s.session(ctx, r, true, func(do doer) error {
		_, err := do(ctx, &request{body: "SELECT 1", result: discard{}, settingsFor: func(known *facts) []proto.Setting { f = known; return pinnedForReads }})
		return err
	})
	return f, err
}

// factsOn are those of the server behind a connection. An upgraded server says so in its handshake, and has settings that need pinning.
func (s *Server) factsOn(ctx context.Context, r *replicaState, c *conn) (*facts, error) {
	who := c.hello.String()
	r.mu.Lock()
	f := r.facts[who]
	r.mu.Unlock()
	if f != nil && time.Since(f.read) < factsMaxAge {
		return f, nil
	}
	f, err := s.readFacts(ctx, s.with(r, c), r.addr)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	if r.facts == nil {
		r.facts = map[string]*facts{}
	}
	r.facts[who] = f
	r.mu.Unlock()
	return f, nil
}

func (s *Server) readFacts(ctx context.Context, do doer, addr string) (*facts, error) {
	row, err := do.readOne(ctx, 3, "SELECT version(), timezone(), hostName()")
	var ex *Exception
	if errors.As(err, &ex) && ex.Code == 164 {
		return nil, &Exception{Code: ex.Code, Replica: addr, Message: fmt.Sprintf("user %s is read-only (readonly = 1), so nothing can be written: ALTER USER %s SETTINGS readonly = 0", s.cfg.Username, quoteName(s.cfg.Username))}
	}
	if err != nil {
		return nil, err
	}
	f := &facts{version: row[0], timezone: row[1], host: row[2], read: time.Now()}
	if f.settings, err = do.settings(ctx, "system.settings", "name IN ("+quoteTexts(settingsOfInterest())+")"); err != nil {
		return nil, err
	}
	for table, defaults := range map[string]*map[string]string{"system.merge_tree_settings": &f.mergeTree, "system.replicated_merge_tree_settings": &f.replMerge} {
		*defaults, err = do.settings(ctx, table, "name LIKE '%deduplication_window%'")
		if errors.As(err, &ex) && ex.Code == 497 {
			*defaults, f.guessed = leastDefaults, true
		} else if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// settings reads names and values of settings.
func (do doer) settings(ctx context.Context, table, where string) (map[string]string, error) {
	rows, err := do.read(ctx, 2, "SELECT name, value FROM "+table+" WHERE "+where)
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
