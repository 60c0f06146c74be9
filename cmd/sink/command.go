package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/oncesink/oncesink/internal/nearmiss"
)

// command is one word after `sink`. Its file is cmd_<name>.go; its place in the list is commands().
type command struct {
	name, summary string
	usage         string // what follows `sink <name>`, without the options
	about         string // a paragraph, or none
	examples      []string
	reference     func(io.Writer) error // printed at the end of --help
	run           func(ctx context.Context, env *environment, args []string) error
}

// commands in the order of `sink help`.
func commands() []*command {
	return []*command{runCommand, checkCommand, offsetsCommand, warmCommand, sqlCommand, devCommand, demoCommand, healthCommand, versionCommand}
}

func dispatch(ctx context.Context, env *environment, args []string) error {
	if len(args) == 0 {
		_ = writeOverview(env.stderr)
		return usagef("no command")
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "--help", "-help", "-h":
		if len(rest) == 0 {
			if err := writeOverview(env.stdout); err != nil {
				return err
			}
			return errHelp
		}
		name, rest = rest[0], []string{"--help"}
	case "--version", "-version":
		name = "version"
	}
	all := commands()
	i := slices.IndexFunc(all, func(c *command) bool { return c.name == name })
	if i < 0 {
		names := []string{"help"}
		for _, c := range all {
			names = append(names, c.name)
		}
		what := "command"
		if strings.HasPrefix(name, "-") {
			what = "option before the command"
		}
		return usagef("unknown %s %q%s; `sink help` lists the commands", what, name, nearmiss.Hint(name, names))
	}
	env.command = all[i]
	return env.command.run(ctx, env, rest)
}

func writeOverview(w io.Writer) error {
	var b strings.Builder
	b.WriteString("sink leads Kafka topics into ClickHouse tables, each business key exactly once.\n\nUsage: sink <command> [options]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-9s %s\n", c.name, c.summary)
	}
	b.WriteString(`
sink <command> --help tells a command's options, with examples.
Exit codes: 0 done; 1 failed at run time; 2 wrong usage or configuration; 3 the answer is "no".
`)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeHelp is `sink <command> --help`.
func (c *command) writeHelp(w io.Writer, f *options) error {
	var b strings.Builder
	fmt.Fprintf(&b, "sink %s: %s\n\nUsage: sink %s\n", c.name, c.summary, strings.TrimSpace(c.name+" [options] "+c.usage))
	if c.about != "" {
		fmt.Fprintf(&b, "\n%s\n", c.about)
	}
	if len(f.list) > 0 {
		b.WriteString("\nOptions:\n")
	}
	for _, o := range f.list {
		fmt.Fprintf(&b, "  %-28s %s\n", o.spelling(), o.doc)
	}
	if len(c.examples) > 0 {
		fmt.Fprintf(&b, "\nExamples:\n  %s\n", strings.Join(c.examples, "\n  "))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if c.reference != nil {
		return c.reference(w)
	}
	return nil
}
