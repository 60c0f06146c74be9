package main

import (
	"errors"
	"fmt"

	"github.com/oncesink/oncesink/internal/config"
	"github.com/oncesink/oncesink/internal/progress"
)

// The exit codes that scripts rely on.
const (
	exitDone   = 0
	exitFailed = 1 // at run time
	exitUsage  = 2 // wrong usage or configuration
	exitNo     = 3 // the answer is no
)

// errHelp is what a command returns after it has printed its help.
var errHelp = errors.New("help was asked for")

// usageError is the caller's mistake.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// noError is a result, not a failure: the target is unfit, the ledger doesn't balance. The result itself is on stdout; why may add a sentence.
type noError struct{ why string }

func (e *noError) Error() string { return e.why }

func no(format string, args ...any) error { return &noError{fmt.Sprintf(format, args...)} }

// exitCode maps an error's type. An error of another package may bring its own code.
func exitCode(err error) int {
	var (
		usage   *usageError
		invalid *config.Invalid
		answer  *noError
		coded   interface{ ExitCode() int }
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.As(err, &invalid):
		return exitUsage
	case errors.As(err, &answer):
		return exitNo
	case errors.As(err, &coded):
		return coded.ExitCode()
	}
	return exitFailed
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return progress.Thousands(int64(n)) + " " + thing + "s"
}
