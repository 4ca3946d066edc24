// Command ringback accepts jobs over HTTP, sends each to its URL when it is due, and retries until it is delivered.
//
//	ringback serve     runs the service
//	ringback dev       runs the service with an embedded database and an inbox, to try things out
//	ringback listen    runs the inbox alone
//	ringback health    checks whether a running service is ready: exit code 0 or 1
//	ringback backup    copies a SQLite store, in use or not, and verifies the copy
//	ringback restore   replaces a SQLite store that is not in use by a copy
//	ringback verify    checks the data of stores, in use or not, and repairs faults
//	ringback doctor    looks for what is wrong with stores, clocks, limits, rights and settings, and says what to do
//	ringback export    writes the jobs and settings of stores that are not in use to a file
//	ringback import    stores what an export has written
//	ringback version   prints the version
//
// The commands that call a server are those of package cli, with exit codes of their own. Exit codes of the others: 0
// after an orderly stop; 1 after a failure that a retry may fix, such as a taken port or an unreachable store; 2 for an
// invalid command line or environment, which a retry does not fix. SIGINT, SIGTERM and SIGHUP start an orderly stop; a
// second SIGINT or SIGTERM exits at once, which loses no accepted job.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli"
	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/internal/logs"
)

// Exit codes. A supervisor should restart after exitFault, not after exitUsage.
const (
	exitOK    = 0
	exitFault = 1
	exitUsage = 2
)

func main() {
	// A blocked stderr must delay neither deliveries nor the exit.
	stderr := logs.NewBuffer(os.Stderr)
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

// flushTime is how long an exit waits until the last log lines are written.
const flushTime = time.Second

// commands are the subcommands and their flags.
type commands struct {
	cli.Commands    `envprefix:"-"` // without variables for their flags
	serviceCommands `embed:""`
	Man             manCommand `cmd:"" name:"__man" group:"service" hidden:""`
}

// serviceCommands run and maintain a server. A supervisor starts them often, so they do not wait for the grammar of the
// others.
type serviceCommands struct {
	// Run the service.
	Serve serveCommand `cmd:"" group:"service"`
	// Serve on an embedded database, let jobs call this machine and private networks, and run an inbox to send them to.
	Dev devCommand `cmd:"" group:"service"`
	// Run the inbox alone: a receiver that prints requests.
	Listen listenCommand `cmd:"" group:"service"`
	// Print the settings in force and where each comes from.
	Config configCommand `cmd:"" group:"service"`
	// Check whether a running service is ready. Exits 0 if it is, else 1.
	Health healthCommand `cmd:"" group:"service"`
	// Copy a SQLite store, in use or not, and verify the copy.
	Backup backupCommand `cmd:"" group:"service"`
	// Verify a copy and replace a SQLite store that is not in use by it.
	Restore restoreCommand `cmd:"" group:"service"`
	// Check the data of stores, in use or not, and repair faults. Exits 1 if faults are left.
	Verify verifyCommand `cmd:"" group:"service"`
	// Look for what is wrong with stores, clocks, limits, rights and settings, and say what to do. Exits 1 if something
	// is.
	Doctor doctorCommand `cmd:"" group:"service"`
	// Write the jobs and settings of stores that are not in use to a file of JSON lines.
	Export exportCommand `cmd:"" group:"service"`
	// Store what an export has written in stores that are not in use.
	Import importCommand `cmd:"" group:"service"`
	// Print the version.
	Version versionCommand `cmd:"" group:"service"`

	// Print the version.
	ShowVersion bool `name:"version" hidden:"" variable:"-"`
}

// grammar returns the commands among which a command line chooses.
func grammar(args []string) any {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[serviceCommands]()) {
		if len(args) > 0 && args[0] == strings.ToLower(field.Name) {
			return new(serviceCommands)
		}
	}
	return new(commands)
}

// checkArguments refuses arguments of the commands of a client that are not UTF-8: the parser and JSON would change
// them. Those of the other commands may be paths.
func checkArguments(model any, args []string) error {
	if _, ok := model.(*serviceCommands); ok {
		return nil
	}
	for i, arg := range args {
		if !utf8.ValidString(arg) { // it may be a secret
			return fmt.Errorf("argument %d after ringback is not UTF-8: give texts in UTF-8, and bytes in a file", i+1)
		}
	}
	return nil
}

// process is a command's environment.
type process struct {
	stdout   io.Writer
	stderr   io.Writer
	settings settings
}

// run runs the command line and returns the exit code. It returns soon after ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, environ []string) int {
	set := &settings{env: readEnvironment(environ), from: map[string]string{}}
	model := grammar(args)
	parser := kong.Must(model,
		kong.Name("ringback"),
		kong.Description("Ringback sends HTTP callbacks when they are due, and retries them until they arrive."),
		kong.Writers(stdout, stderr),
		kong.Resolvers(set),
		kong.ValueFormatter(helpWithVariable),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ExplicitGroups(append(cli.Groups, kong.Group{Key: "service", Title: "Run a server:"})),
		kong.PostBuild(cli.Describe),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	var command *kong.Context
	err := checkArguments(model, args)
	if err == nil {
		command, err = cli.Parse(parser, args, func(c *kong.Context) error {
			if hasVersionFlag(c) {
				if _, err := fmt.Fprintln(stdout, versionLine()); err != nil {
					return err
				}
				return cli.ErrPrinted
			}
			return set.readFile(c)
		})
	}
	if errors.Is(err, cli.ErrPrinted) {
		return exitOK
	}
	if err != nil {
		err = set.locate(err)
		printError(stderr, err)
		of := "ringback"
		if command != nil && command.Selected() != nil {
			of = command.Selected().FullPath()
		}
		fmt.Fprintf(stderr, "ringback: try %s --help\n", of)
		if args[0] == "check" { // its line is what monitoring shows
			fmt.Fprintln(stdout, cli.CheckLine(cli.CheckUnknown, output.Printable(cli.FirstLine(err))))
			return int(cli.CheckUnknown)
		}
		return exitUsage
	}
	set.warnOfUnknown(command, stderr)
	client := &cli.Environment{
		Stdin: os.Stdin, Stdout: stdout, Stderr: unbuffered(stderr), Variables: set.env,
		Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", Version: versionName(),
	}
	if err := cli.Run(command, &process{stdout: stdout, stderr: stderr, settings: *set}, client); err != nil {
		if isClientCommand(command.Selected()) {
			return cli.ReportError(stderr, command.Selected(), err)
		}
		printError(stderr, set.locate(err))
		if _, ok := errors.AsType[*usageError](err); ok {
			return exitUsage
		}
		return exitFault
	}
	return exitOK
}

// unbuffered returns the stderr of commands that people run: what they print comes before they read an answer.
func unbuffered(stderr io.Writer) io.Writer {
	if _, is := stderr.(*logs.Buffer); is {
		return os.Stderr
	}
	return stderr
}

// usageError wraps an error in the settings, which a retry does not fix.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// printError prints err, each of its lines with the name of the program.
func printError(stderr io.Writer, err error) {
	for line := range strings.Lines(strings.TrimSpace(err.Error())) {
		fmt.Fprintf(stderr, "ringback: %s\n", strings.TrimSuffix(line, "\n"))
	}
}

// errStopped is the cause of a context that was ended by a signal.
var errStopped = errors.New("stopped by a signal")
