package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
)

// Environment is what commands use of their process.
type Environment struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Variables are those whose names begin with RINGBACK_.
	Variables map[string]string
	// Color allows colours on a terminal.
	Color   bool
	Version string
}

// OutputVariable has the default of --output.
const OutputVariable = "RINGBACK_OUTPUT"

// Variables are the variables that only commands of this package read.
var Variables = []string{serverVariable, contextVariable, namespaceVariable, OutputVariable}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// terminalWidth is the number of characters in a line of a terminal; 0: not known.
func terminalWidth(stream any) int {
	if file, ok := stream.(*os.File); ok {
		width, _, _ := term.GetSize(int(file.Fd()))
		return width
	}
	return 0
}

// formatFlags are the flags of what prints without a server.
type formatFlags struct {
	// Format: table, wide, json, jsonl, or curl, which prints the request and does not send it ($RINGBACK_OUTPUT).
	// Default: table on a terminal, else jsonl.
	Output output.Format `short:"o" formats:"table,wide,json,jsonl,curl" group:"output" in:"none" placeholder:"FORMAT"`
	// Filter for each thing, in the language of jq.
	JQ string `name:"jq" group:"output" in:"none" placeholder:"FILTER"`
}

// CheckLine refuses flags and arguments of the command that are empty.
func (f *formatFlags) CheckLine(command *kong.Node) error { return checkEmpty(command) }

// ProvidePrinter returns the printer of the flags, which Run gives to methods RunCommand.
func (f *formatFlags) ProvidePrinter(e *Environment) (*output.Printer, error) {
	format, from := f.Output, "--output"
	if format == "" {
		format, from = output.Format(e.Variables[OutputVariable]), OutputVariable
	}
	if format != "" && !slices.Contains(output.Formats, format) {
		return nil, usagef("%s: %q is not table, wide, json, jsonl or curl", from, format)
	}
	p, err := output.New(output.Options{
		Out: e.Stdout, Format: format, Filter: f.JQ, Terminal: isTerminal(e.Stdout), Color: e.Color,
		Width: terminalWidth(e.Stdout), Nested: nested, Now: time.Now,
	})
	if err != nil {
		return nil, &usageError{Err: err}
	}
	return p, nil
}

// connection are the flags of commands that call a server.
type connection struct {
	targetFlags
	formatFlags
}

// session is a command that runs.
type session struct {
	*Environment

	target serverTarget
	client *client.Client
	out    *output.Printer
}

// find returns the server that the flags, the variables and the contexts name.
func (c *connection) find(e *Environment) (serverTarget, error) {
	dir, err := settingsDir()
	if err != nil { // neither HOME nor XDG_CONFIG_HOME, as services have it: no contexts
		dir = ""
	}
	working, err := os.Getwd()
	if err != nil {
		return serverTarget{}, &usageError{Err: err}
	}
	target, err := findTarget(c.targetFlags, e.Variables, dir, working)
	if err != nil {
		return serverTarget{}, &usageError{Err: err}
	}
	return target, nil
}

// ProvideSession prepares the command. Run gives it to methods RunCommand.
func (c *connection) ProvideSession(e *Environment) (*session, error) {
	p, err := c.ProvidePrinter(e)
	if err != nil {
		return nil, err
	}
	target, err := c.find(e)
	if err != nil {
		return nil, err
	}
	if target.Warning != "" {
		fmt.Fprintf(e.Stderr, "ringback: warning: %s\n", target.Warning)
	}
	s := &session{Environment: e, target: target, out: p}
	s.client, err = s.newClient(0)
	return s, err
}

// ProvideRequest returns the request of the command's tags, which Run gives to methods RunCommand.
func (c *connection) ProvideRequest(k *kong.Context, e *Environment) (*apiRequest, error) {
	r, err := requestOf(k.Selected(), e.read)
	if err != nil {
		return nil, &usageError{Err: err}
	}
	return r, nil
}

// manyRequests are the flags of commands that make many requests, which cannot be printed instead: answers decide about
// them.
type manyRequests struct{ connection }

// ProvideSession is that of the connection, without curl.
func (c *manyRequests) ProvideSession(e *Environment) (*session, error) {
	s, err := c.connection.ProvideSession(e)
	if err == nil && s.out.Format() == output.Curl {
		return nil, usagef("--output curl: there are many requests, which answers decide about")
	}
	return s, err
}

// newClient returns a client of the server whose methods repeat a request so often, as client.Options say.
func (s *session) newClient(retries int) (*client.Client, error) {
	o := client.Options{
		Token: s.target.Token, Namespace: s.target.Namespace,
		UserAgent: "ringback/" + s.Version, MaxRetries: retries,
	}
	c, err := client.New(s.target.Server, o)
	if err != nil {
		return nil, &usageError{Err: err}
	}
	return c, nil
}

// errDeclined ends a command whose question was answered with no.
var errDeclined = errors.New("nothing was changed")

// confirm asks a question on the terminal. Yes answers it; without a terminal it is required.
func (s *session) confirm(ctx context.Context, question string, yes bool) error {
	if yes || s.out.Format() == output.Curl {
		return nil
	}
	if !isTerminal(s.Stdin) {
		return usagef("this asks before it changes anything, and there is no terminal: pass --yes")
	}
	fmt.Fprintf(s.Stderr, "%s:\n%s [y/N] ", place(s.target), question)
	answers := make(chan string, 1)
	go func() {
		var answer string
		_, _ = fmt.Fscanln(s.Stdin, &answer)
		answers <- answer
	}()
	select {
	case answer := <-answers:
		if answer = strings.ToLower(answer); answer == "y" || answer == "yes" {
			return nil
		}
		return errDeclined
	case <-ctx.Done():
		fmt.Fprintln(s.Stderr)
		return context.Cause(ctx)
	}
}

// place says where a command changes something.
func place(t serverTarget) string {
	text := "on " + t.Server
	if t.Context != "" {
		text += ", context " + t.Context
	}
	if t.Namespace != "" {
		text += ", namespace " + t.Namespace
	}
	return output.Printable(text)
}

// say prints a line for people beside the output.
func (s *session) say(format string, args ...any) { fmt.Fprintf(s.Stderr, format+"\n", args...) }

// maxInput bounds what is read from files and the standard input.
const maxInput = 64 << 20

// read returns a value of the command line: @FILE is the content of a file, @- the standard input.
func (e *Environment) read(value string) ([]byte, error) {
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		return []byte(value), nil
	}
	return e.readFile(name)
}

// readFile returns the content of a file; -: of the standard input.
func (e *Environment) readFile(name string) ([]byte, error) {
	in := e.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, &usageError{Err: err}
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxInput {
		return nil, usagef("%s is larger than %d MiB", name, maxInput>>20)
	}
	return text, nil
}
