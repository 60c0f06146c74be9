package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/ops"
	"github.com/oncesink/oncesink/internal/wiring"
)

var checkCommand = &command{
	name: "check", summary: "asks whether this configuration can keep its promises: Kafka, ClickHouse, Redis, table, views, windows",
	about: `Each finding has a severity, the reason, and the exact statement that mends it; exit 3 when one of them is an error. A canary in a scratch
table proves that the server drops a repeated token and refuses a late insert. With --config-only no server is asked.`,
	examples: []string{
		"sink check -c sink.yaml",
		"sink check -c sink.yaml --json                 # one object: {fit, findings: [{severity, code, about, reason, cure}]}",
		"sink check --config-only -c sink.yaml",
		"sink check --config-only -c sink.yaml --json   # one object: {file, fit, problems: [{line, field, message}]}",
	},
	run: runCheck,
}

func runCheck(ctx context.Context, env *environment, args []string) error {
	f, asJSON, configOnly := env.options(), false, false
	load := f.config()
	f.flag(&configOnly, "config-only", "only the file, and the files it names")
	f.flag(&asJSON, "json", "one JSON object")
	if _, err := f.parse(args, 0); err != nil {
		return err
	}
	if configOnly {
		return checkConfig(env, load, asJSON)
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	if err := cfg.CheckFiles(); err != nil {
		return err
	}
	return tellFindings(env, ops.Check(ctx, cfg), asJSON)
}

// tellFindings prints what a check found, worst first, and says no when there
// is an error among it.
func tellFindings(env *environment, found []wiring.Finding, asJSON bool) error {
	rank := map[string]int{wiring.SeverityError: 0, wiring.SeverityWarning: 1, wiring.SeverityInfo: 2}
	slices.SortStableFunc(found, func(a, b wiring.Finding) int { return rank[a.Severity] - rank[b.Severity] })
	count := map[string]int{}
	for _, f := range found {
		count[f.Severity]++
	}
	fit := count[wiring.SeverityError] == 0
	if asJSON {
		if found == nil {
			found = []wiring.Finding{}
		}
		if err := json.NewEncoder(env.stdout).Encode(map[string]any{"fit": fit, "findings": found}); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			if _, err := fmt.Fprintf(env.stdout, "%-7s %s: %s\n", f.Severity, f.About, f.Reason); err != nil {
				return err
			}
			if f.Cure != "" {
				_, _ = fmt.Fprintf(env.stdout, "        cure: %s\n", f.Cure)
			}
		}
		verdict := "fit"
		if !fit {
			verdict = "unfit"
		}
		if _, err := fmt.Fprintf(env.stdout, "%s: %d errors, %d warnings, %d notes\n", verdict, count[wiring.SeverityError], count[wiring.SeverityWarning], count[wiring.SeverityInfo]); err != nil {
			return err
		}
	}
	if !fit {
		return no("")
	}
	return nil
}

// checkConfig tells what is wrong with the file, on stdout where machines read it.
func checkConfig(env *environment, load func() (*config.Config, error), asJSON bool) error {
	c, err := load()
	if err == nil {
		err = c.CheckFiles()
	}
	var invalid *config.Invalid
	if err != nil && !errors.As(err, &invalid) {
		return err
	}
	if asJSON {
		result := struct {
			File     string           `json:"file"`
			Fit      bool             `json:"fit"`
			Problems []config.Problem `json:"problems"`
		}{Fit: err == nil, Problems: []config.Problem{}}
		if invalid != nil {
			result.File, result.Problems = invalid.File, invalid.Problems
		} else {
			result.File = c.File()
		}
		return errors.Join(json.NewEncoder(env.stdout).Encode(result), err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.stdout, "%s: good (%d routes)\n", c.File(), len(c.Routes))
	return err
}
