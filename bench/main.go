// Command bench measures what the sink costs beside a bare path that does the
// least one can do: consume with pools, decode, insert one block a batch.
//
//	bench            a topic, then full, bare, full, bare, full, then the latency
//	bench bare …     the bare path; bench starts it as a process of its own
//
// Both paths read the same topic with a group and a table of their own, in
// processes of their own; the servers are processes too, so that a figure of
// CPU is that of the consuming process and of nothing else. Every run ends with
// its table compared with what was produced; one that is off has no figures.
//
// Not promised: figures that compare between machines, or between hours of a
// shared one. The ratio of runs side by side does; where the full runs differ
// by more than 15 % among themselves, no verdict is given.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintf(os.Stderr, "bench: %s\n", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

type options struct {
	rows       int
	seed       uint64
	duplicates float64
	elsewhere  float64
	partitions int
	asJSON     bool
	sink       string
	profile    string
	fulls      int
	verbose    bool
	rate       int // records a second of the latency run; 0: no such run
	seconds    int
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "bare" {
		return runBare(ctx, args[1:], stderr)
	}
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.rows, "rows", 1_000_000, "records of the topic, duplicates included; 6000000 for a figure to go by")
	f.Uint64Var(&o.seed, "seed", 1, "of the records")
	f.Float64Var(&o.duplicates, "duplicates", 0.05, "share of the records that repeat an earlier one")
	f.Float64Var(&o.elsewhere, "elsewhere", 0.2, "share of the duplicates that come by another partition")
	f.IntVar(&o.partitions, "partitions", 8, "of the topic")
	f.IntVar(&o.fulls, "fulls", 3, "full runs; a bare one is between each two")
	f.BoolVar(&o.verbose, "verbose", false, "what the measured processes print, on stderr")
	f.BoolVar(&o.asJSON, "json", false, "the results as one JSON object")
	f.StringVar(&o.sink, "sink", "bin/sink", "the program to measure")
	f.StringVar(&o.profile, "profile", "", "write a CPU profile of the last full run to this `file`, and print its top ten")
	f.IntVar(&o.rate, "rate", 20_000, "records a second of the latency run; 0: leave it out")
	f.IntVar(&o.seconds, "seconds", 10, "length of the latency run")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 || o.rows < 1 || o.partitions < 1 || o.fulls < 1 || o.rate < 0 || o.seconds < 1 {
		return errors.New("rows, partitions, fulls and seconds are at least 1, rate at least 0, and there are no other arguments; --help lists the options")
	}
	r, err := measure(ctx, o, func(format string, args ...any) { _, _ = fmt.Fprintf(stderr, format+"\n", args...) })
	if err != nil {
		return err
	}
	if o.asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.print(stdout)
}
