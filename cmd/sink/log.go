package main

import (
	"io"
	"log/slog"

	"github.com/oncesink/oncesink/internal/config"
)

// startLog makes the log that the configuration asks for; from here on errors are told there too.
func (env *environment) startLog(c config.Log) *slog.Logger {
	env.log = newLogger(env.stderr, c)
	return env.log
}

func newLogger(w io.Writer, c config.Log) *slog.Logger {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	o := &slog.HandlerOptions{Level: levels[c.Level]}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}
