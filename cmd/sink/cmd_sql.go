package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/oncesink/oncesink/internal/wiring"
	"github.com/oncesink/oncesink/pkg/writer"
)

var sqlCommand = &command{
	name: "sql", usage: `["SELECT …"]`, summary: "runs statements on the configured ClickHouse",
	about: "Rows are printed with tabs between the values, or as JSON, one object a line. Several statements are separated by semicolons and end at the first\n" +
		"that fails. Without a statement and --file, they are read from stdin.",
	examples: []string{
		"sink sql -c sink.yaml 'SELECT count(), uniqExact(settle_ms, id, rev), sum(amount) FROM events'",
		"sink sql -c sink.yaml --json 'SELECT tenant, sum(amount) AS amount FROM report GROUP BY tenant'",
		"sink sql -c sink.yaml --file examples/settlements.sql",
		"echo 'SELECT 1' | sink sql -c sink.yaml",
	},
	run: runSQL,
}

func runSQL(ctx context.Context, env *environment, args []string) error {
	f, path, format, asJSON := env.options(), "", writer.TSV, false
	load := f.config()
	f.text(&path, "f,file", "FILE", "a script instead of a statement; -: stdin")
	f.flag(&asJSON, "json", "JSON, one object a line")
	given, err := f.parse(args, 1)
	if err != nil {
		return err
	}
	if len(given) > 0 && path != "" {
		return f.usage("a statement and --file: one of them")
	}
	c, err := load()
	if err != nil {
		return err
	}
	script, err := readScript(env, given, path)
	if err != nil {
		return err
	}
	statements := splitStatements(script)
	if len(statements) == 0 {
		return f.usage("there is no statement")
	}
	if asJSON {
		format = writer.JSONLines
	}
	server, err := wiring.Server(c, writer.Events{})
	if err != nil {
		return err
	}
	defer server.Close()
	for i, statement := range statements {
		if err := server.Query(ctx, statement, format, env.stdout); err != nil {
			if len(statements) > 1 {
				return fmt.Errorf("statement %d of %d: %w", i+1, len(statements), err)
			}
			return err
		}
	}
	return nil
}

func readScript(env *environment, given []string, path string) (string, error) {
	if len(given) > 0 && given[0] != "-" {
		return given[0], nil
	}
	if path == "" || path == "-" {
		text, err := io.ReadAll(env.stdin)
		if err != nil {
			return "", fmt.Errorf("read statements from stdin: %w", err)
		}
		return string(text), nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", usagef("sql: file %s does not exist", path)
	}
	if err != nil {
		return "", fmt.Errorf("read statements: %w", err)
	}
	return string(text), nil
}
