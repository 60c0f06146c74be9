package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/progress"
	"github.com/oncesink/oncesink/internal/wiring"
)

var warmCommand = &command{
	name: "warm", summary: "rebuilds what the dedup store remembers from the tables",
	about: `A store that may have lost writes can't say that a key is new: until a horizon has gone by, every new key is looked up in ClickHouse as well. warm reads
the keys of the last horizon from each table (all keys where a route has no event_time), remembers them as written, and ends that. Sinks may run
meanwhile. It costs about 36 bytes of Redis a key. What else a warmed row's record said is not known, so a later record of its key is a duplicate
whatever its other fields are.`,
	examples: []string{
		"sink warm -c sink.yaml",
		"sink warm -c sink.yaml --table events --json   # one object a table: {table, rows_read, keys_added, rows_skipped}",
	},
	run: runWarm,
}

func runWarm(ctx context.Context, env *environment, args []string) error {
	f, asJSON, only := env.options(), false, ""
	load := f.config()
	f.text(&only, "table", "NAME", "only the routes into this table")
	f.flag(&asJSON, "json", "one JSON object a table")
	if _, err := f.parse(args, 0); err != nil {
		return err
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for i := range cfg.Routes {
		r := &cfg.Routes[i]
		if only != "" && r.Table != only || done[r.Table] {
			continue
		}
		done[r.Table] = true
		if err := warmTable(ctx, env, cfg, r, asJSON); err != nil {
			return fmt.Errorf("warm %s: %w", r.Table, err)
		}
	}
	if only != "" && !done[only] {
		return usagef("--table %s: no route writes into it", only)
	}
	return nil
}

func warmTable(ctx context.Context, env *environment, cfg *config.Config, r *config.Route, asJSON bool) error {
	bar := (*progress.Bar)(nil)
	begun := time.Now()
	w, err := wiring.Warm(ctx, cfg, r, wiring.WarmEvents{
		Waits: func(reason string) { _, _ = fmt.Fprintf(env.stderr, "%s: waiting: %s\n", r.Table, reason) },
		Total: func(rows int64) {
			bar = progress.Start(progress.Options{W: env.stderr, Label: r.Table, Unit: "rows", Total: rows, Terminal: progress.IsTerminal(env.stderr)})
		},
		Done: func(rows int64) { bar.Set(rows) },
	})
	if bar != nil {
		bar.Done()
	}
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(env.stdout).Encode(w)
	}
	_, err = fmt.Fprintf(env.stdout, "%s: %s rows read in %s: %s keys remembered, %s known already, %s older than the horizon; the store's word counts again\n", w.Table,
		progress.Thousands(w.Rows), time.Since(begun).Round(time.Millisecond), progress.Thousands(w.Added), progress.Thousands(w.Rows-w.Added-w.Older), progress.Thousands(w.Older))
	return err
}
