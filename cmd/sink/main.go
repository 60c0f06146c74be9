// Command sink leads Kafka topics into ClickHouse tables, each business key exactly once. `sink help` lists what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/embedded"
	"github.com/oncesink/oncesink/internal/progress"
)

func main() {
	embedded.MaybeRunChild() // the ClickHouse engine of `dev` and `demo` is a second process of this program
	os.Exit(process())
}

// process runs one command under signals. The first signal asks it to stop: its context is cancelled, it finishes what must not be cut. The second
// one doesn't wait.
func process() int {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan int, 1)
	go func() {
		done <- exitCode(run(ctx, os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
	}()
	for {
		select {
		case code := <-done:
			return code
		case s := <-signals:
			if ctx.Err() != nil {
				return exitFailed
			}
			if progress.IsTerminal(os.Stderr) {
				_, _ = fmt.Fprintf(os.Stderr, "\nsink: stopping; %s again to exit at once\n", s)
			}
			stop(fmt.Errorf("signal: %s", s))
		}
	}
}

// environment is everything of the outside world that a command may touch.
type environment struct {
	lookup         config.Lookup
	stdin          io.Reader
	stdout, stderr io.Writer // results; logs and progress

	command *command     // the one that runs
	log     *slog.Logger // nil until a configuration says how to log
}

// run does one command and tells its error, once.
func run(ctx context.Context, args []string, lookup config.Lookup, stdin io.Reader, stdout, stderr io.Writer) error {
	env := &environment{lookup: lookup, stdin: stdin, stdout: stdout, stderr: stderr}
	err := dispatch(ctx, env, args)
	if errors.Is(err, errHelp) {
		return nil
	}
	env.report(err)
	return err
}

// report tells an error in the way of the command: as a log line where logs are machines' food, else as a sentence.
func (env *environment) report(err error) {
	var (
		no      *noError
		invalid *config.Invalid
	)
	switch {
	case err == nil, errors.As(err, &no) && no.why == "":
	case env.log != nil:
		env.log.Error(err.Error())
	case errors.As(err, &invalid) && errors.Unwrap(err) == nil: // its lines begin with the file's name
		_, _ = fmt.Fprintln(env.stderr, err)
	default:
		_, _ = fmt.Fprintf(env.stderr, "sink: %s\n", err)
	}
}
