package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/nearmiss"
)

// options are a command's flags. They may stand before and after the other arguments, with one dash or two.
type options struct {
	env  *environment
	set  *flag.FlagSet
	list []option
}

type option struct {
	names    []string
	argument string // the placeholder of its value; "": it takes none
	doc      string
}

func (o option) spelling() string {
	names := make([]string, len(o.names))
	for i, n := range o.names {
		names[i] = "--" + n
		if len(n) == 1 {
			names[i] = "-" + n
		}
	}
	return strings.TrimSpace(strings.Join(names, ", ") + " " + o.argument)
}

// options of the command that runs.
func (env *environment) options() *options {
	set := flag.NewFlagSet(env.command.name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	return &options{env: env, set: set}
}

// add registers an option under all its names, "c,config". The default is told from the variable's value.
func (f *options) add(names, argument, doc string, register func(name string)) {
	o := option{names: strings.Split(names, ","), argument: argument, doc: doc}
	for _, n := range o.names {
		register(n)
	}
	if d := f.set.Lookup(o.names[0]).DefValue; argument != "" && d != "" {
		o.doc += fmt.Sprintf(" (%s)", d)
	}
	f.list = append(f.list, o)
}

func (f *options) text(p *string, names, argument, doc string) {
	f.add(names, argument, doc, func(n string) { f.set.StringVar(p, n, *p, "") })
}

func (f *options) flag(p *bool, names, doc string) {
	f.add(names, "", doc, func(n string) { f.set.BoolVar(p, n, *p, "") })
}

func (f *options) number(p *int, names, argument, doc string) {
	f.add(names, argument, doc, func(n string) { f.set.IntVar(p, n, *p, "") })
}

func (f *options) duration(p *time.Duration, names, argument, doc string) {
	f.add(names, argument, doc, func(n string) { f.set.DurationVar(p, n, *p, "") })
}

// config adds -c and returns what loads the file that it names.
func (f *options) config() func() (*config.Config, error) {
	path := "sink.yaml"
	f.text(&path, "c,config", "FILE", "the configuration")
	return func() (*config.Config, error) { return config.Load(path, f.env.lookup) }
}

// parse returns the arguments that are no options, at most most of them. --help prints the help and returns errHelp.
func (f *options) parse(args []string, most int) ([]string, error) {
	var others []string
	for len(args) > 0 {
		if err := f.set.Parse(args); err != nil {
			return nil, f.explain(err)
		}
		rest := f.set.Args()
		if len(rest) == 0 {
			break
		}
		if read := len(args) - len(rest); read > 0 && args[read-1] == "--" { // all that follows is meant literally
			others = append(others, rest...)
			break
		}
		others, args = append(others, rest[0]), rest[1:]
	}
	if len(others) > most {
		return nil, f.usage("unexpected argument %q", others[most])
	}
	return others, nil
}

func (f *options) explain(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		if err := f.env.command.writeHelp(f.env.stdout, f); err != nil {
			return err
		}
		return errHelp
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
		var known []string
		for _, o := range f.list {
			known = append(known, o.names[len(o.names)-1])
		}
		return f.usage("unknown option --%s%s", name, nearmiss.Hint(name, append(known, "help")))
	}
	return f.usage("%s", err)
}

// usage is a mistake in this command's arguments, with the way to its help.
func (f *options) usage(format string, args ...any) error {
	return usagef("%s: %s; `sink %s --help` tells more", f.env.command.name, fmt.Sprintf(format, args...), f.env.command.name)
}
