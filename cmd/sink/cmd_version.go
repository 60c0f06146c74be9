package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
)

var versionCommand = &command{
	name: "version", summary: "which build this is",
	examples: []string{"sink version", "sink version --json"},
	run:      runVersion,
}

// version is set by the linker (-X main.version=…, see the Makefile); where it isn't, the toolchain's word counts.
var version string

// build is what the Go toolchain wrote into the program.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a tree with changes that are in no commit
	Go       string `json:"go"`
}

func readBuild() build {
	b := build{Version: cmp.Or(version, "(unknown)")}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version, b.Go = info.Main.Version, info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if version != "" {
		b.Version = version
	}
	return b
}

func runVersion(_ context.Context, env *environment, args []string) error {
	f, asJSON := env.options(), false
	f.flag(&asJSON, "json", "one JSON object")
	if _, err := f.parse(args, 0); err != nil {
		return err
	}
	b := readBuild()
	if asJSON {
		return json.NewEncoder(env.stdout).Encode(b)
	}
	text := "oncesink " + b.Version
	if b.Revision != "" && !strings.Contains(b.Version, b.Revision[:min(7, len(b.Revision))]) {
		text += " " + b.Revision[:min(12, len(b.Revision))]
	}
	if b.Modified && !strings.HasSuffix(b.Version, "-dirty") {
		text += " with uncommitted changes"
	}
	if b.Time != "" {
		text += " of " + b.Time
	}
	_, err := fmt.Fprintf(env.stdout, "%s, %s\n", text, b.Go)
	return err
}
