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
	about: `Each finding has a severity, the reason, and the exact statement that mends it; exit 3 when one of them is an error, 1 when a server could not be
asked and nothing else is wrong. A canary in a scratch table proves that the server drops a repeated token and refuses a late insert. With --config-only
no server is asked.`,
	examples: []string{
		"sink check -c sink.yaml",
		"sink check -c sink.yaml --json                 # one object: {fit, asked, findings: [{severity, code, about, reason, cure}]}",
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
	unasked, bad := 0, 0
	for _, f := range found {
		count[f.Severity]++
		switch {
		case f.Unasked:
			unasked++
		case f.Severity == wiring.SeverityError:
			bad++
		}
	}
	fit := bad == 0 && unasked == 0
	if asJSON {
		if found == nil {
			found = []wiring.Finding{}
		}
		if err := json.NewEncoder(env.stdout).Encode(map[string]any{"fit": fit, "asked": unasked == 0, "findings": found}); err != nil {
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
		switch {
		case bad > 0:
			verdict = "unfit"
		case unasked > 0:
			verdict = "not known"
		}
		if _, err := fmt.Fprintf(env.stdout, "%s: %s, %s, %s\n", verdict, plural(count[wiring.SeverityError], "error"),
			plural(count[wiring.SeverityWarning], "warning"), plural(count[wiring.SeverityInfo], "note")); err != nil {
			return err
		}
	}
	switch {
	case bad > 0:
		return no("")
	case unasked > 0:
		return fmt.Errorf("check: %s could not be asked", plural(unasked, "server"))
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
	_, err = fmt.Fprintf(env.stdout, "%s: good (%s)\n", c.File(), plural(len(c.Routes), "route"))
	return err
}
