// Command ringback takes jobs over HTTP and sends each to its URL when it is due, again and again until it arrives.
//
//	ringback serve     the service
//	ringback dev       the service on an embedded database with an inbox beside it, to try things out
//	ringback listen    the inbox alone
//	ringback health    whether a running service is ready: exit code 0 when it is, 1 when not
//	ringback backup    copies a SQLite store, in use or not, and checks the copy
//	ringback restore   puts a copy in the place of a SQLite store that is not in use
//	ringback version   what this is
//
// Exit codes: 0 after an orderly stop; 1 when it failed, or could not have now what it needs to start (a port, a store, a
// file); 2 for a command line or environment that cannot be understood, is out of bounds or contradicts itself, which does
// not become better by being tried again. SIGINT and SIGTERM stop it in an orderly way; a second one ends it at once, and
// that is safe too.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/internal/logbuffer"
)

// Exit codes. What starts us again after exitFault may leave it at exitUsage.
const (
	exitOK    = 0
	exitFault = 1
	exitUsage = 2
)

func main() {
	// A stderr that nobody reads must delay neither deliveries nor the exit.
	stderr := logbuffer.New(os.Stderr, logbuffer.Options{})
	exit := func(code int) {
		stderr.Close(flushTime)
		os.Exit(code)
	}
	ctx := untilSignal(context.Background(), stderr, exit)
	limitMemory(os.DirFS("/"))
	kept := ballast()
	code := run(ctx, os.Args[1:], os.Stdout, stderr, os.Environ())
	runtime.KeepAlive(kept)
	exit(code)
}

// flushTime is how long an exit waits for the reader of the last log lines.
const flushTime = time.Second

// commands are the sub-commands and their flags.
type commands struct {
	Serve   serveCommand   `cmd:"" help:"Take jobs and deliver them."`
	Dev     devCommand     `cmd:"" help:"Serve on an embedded database, let jobs call this machine and private networks, and run an inbox to send them to."`
	Listen  listenCommand  `cmd:"" help:"Run the inbox alone: a receiver that prints what it gets."`
	Health  healthCommand  `cmd:"" help:"Ask a running service whether it is ready: exit code 0 when it is, 1 when not."`
	Backup  backupCommand  `cmd:"" help:"Copy a SQLite store, in use or not, and check the copy."`
	Restore restoreCommand `cmd:"" help:"Check a copy and put it in the place of a SQLite store that is not in use."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

// A process is what a command gets from its surroundings.
type process struct {
	stdout io.Writer
	stderr io.Writer
	token  string // RINGBACK_TOKEN

	secretKey string // RINGBACK_SECRET_KEY
}

// run does what args say and returns the exit code. It ends soon after ctx does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, environ []string) int {
	var (
		cli    commands
		helped bool
		env    = readEnvironment(environ)
	)
	parser := kong.Must(&cli,
		kong.Name("ringback"),
		kong.Description("Ringback delivers HTTP callbacks: when they are due, and again until they arrive."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }), // kong calls it after --help, and goes on parsing
		kong.Resolvers(env),
		kong.ValueFormatter(helpWithVariable),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if helped {
		return exitOK
	}
	if err == nil {
		err = env.unknown(parser.Model)
	}
	if err != nil {
		complain(stderr, err)
		fmt.Fprintln(stderr, "ringback: try ringback --help")
		return exitUsage
	}
	if err := command.Run(&process{stdout: stdout, stderr: stderr, token: env.token(), secretKey: env.secretKey()}); err != nil {
		complain(stderr, err)
		if _, ok := errors.AsType[*usageError](err); ok {
			return exitUsage
		}
		return exitFault
	}
	return exitOK
}

// A usageError is about settings that can be read and not be used, however often they are tried.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// complain prints an error as one line.
func complain(stderr io.Writer, err error) {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	fmt.Fprintf(stderr, "ringback: %s\n", text)
}

// errStopped is why a context ended by a signal.
var errStopped = errors.New("stopped by a signal")
