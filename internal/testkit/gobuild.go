// This part of the package runs the go command for tests that compile Ringback, all with the same flags, so that each
// Package is compiled once for all of them.

package testkit

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"strings"
)

// flagLines are flags, one a line, that make the compiler take less processor time: without debug information, and
// without inlining except in the standard library and SQLite. The Makefile reads them, too.
//
//go:embed flags.txt
var flagLines string

var flags = strings.Split(strings.TrimSpace(flagLines), "\n")

// GoCommand returns the go command with a subcommand that compiles, build or test, and its arguments.
func GoCommand(ctx context.Context, subcommand string, args ...string) *exec.Cmd {
	//nolint:gosec // the arguments are of tests
	cmd := exec.CommandContext(ctx, "go", append(append([]string{subcommand}, flags...), args...)...)
	// of the compiler: half the processor time of its default
	cmd.Env = append(os.Environ(), "GOGC=off", "GOMEMLIMIT=1GiB")
	return cmd
}
