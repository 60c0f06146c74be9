package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/oncesink/oncesink/internal/config"
)

var checkCommand = &command{
	name: "check", summary: "validates the configuration",
	about: "Every problem is told with its line and field. With --config-only no server is asked.",
	examples: []string{
		"sink check --config-only -c sink.yaml",
		"sink check --config-only -c sink.yaml --json   # one object: {file, fit, problems: [{line, field, message}]}",
	},
	run: runCheck,
}

func runCheck(_ context.Context, env *environment, args []string) error {
	f, asJSON, configOnly := env.options(), false, false
	load := f.config()
	f.flag(&configOnly, "config-only", "only the file, and the files it names")
	f.flag(&asJSON, "json", "one JSON object")
	if _, err := f.parse(args, 0); err != nil {
		return err
	}
	if !configOnly {
		return f.usage("--config-only is needed: servers are not asked in this version")
	}
	return checkConfig(env, load, asJSON)
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
