// This part of the package has the errors of commands, the texts that are printed of them, and their exit codes.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
)

// Exit codes.
const (
	ok          = 0
	failed      = 1   // the job died, the work failed, or another failure
	Usage       = 2   // the command line or the settings are not valid
	notFound    = 3   // 404
	conflict    = 4   // 409, 412
	refused     = 5   // every other 4xx: the token, its role, invalid fields, a quota
	Unavailable = 6   // no answer, or 5xx: repeat it later
	Timeout     = 124 // --timeout passed
)

// usageError is an error in the command line or the settings.
type usageError struct{ Err error }

func (e *usageError) Error() string { return e.Err.Error() }
func (e *usageError) Unwrap() error { return e.Err }

// usagef returns a usageError.
func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// ExitError is an error with an exit code; without a text nothing is printed.
type ExitError struct {
	Code int
	Text string
}

func (e *ExitError) Error() string { return e.Text }

// unavailableError wraps a fault between client and server.
type unavailableError struct {
	Err error
	// Unsent: there was no connection, so the server has nothing of the request.
	Unsent bool
}

func (e *unavailableError) Error() string { return e.Err.Error() }
func (e *unavailableError) Unwrap() error { return e.Err }

// ReportError prints an error of a command with what to do about it, and returns the exit code. The command may be nil.
func ReportError(stderr io.Writer, command *kong.Node, err error) int {
	code := codeOf(err)
	if p, ok := errors.AsType[*client.Problem](err); ok {
		fmt.Fprintf(stderr, "ringback: %s\n", output.Printable(problemText(p)))
		for _, field := range p.Errors {
			fmt.Fprintf(stderr, "  %s %s\n", output.Printable(fieldName(command, field.Field)),
				output.Printable(field.Detail))
		}
		if remedy := remedies[p.Code]; remedy != "" {
			fmt.Fprintf(stderr, "  %s\n", remedy)
		}
		return code
	}
	if text := err.Error(); text != "" {
		for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
			fmt.Fprintf(stderr, "%s%s\n", []string{"ringback: ", "  "}[min(i, 1)], output.Printable(line))
		}
	}
	if _, ok := errors.AsType[*usageError](err); ok && command != nil {
		fmt.Fprintf(stderr, "  try %s --help\n", command.FullPath())
	}
	return code
}

// codeOf returns the exit code of a command that ended with an error.
func codeOf(err error) int {
	if e, ok := errors.AsType[*ExitError](err); ok {
		return e.Code
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return Usage
	}
	if _, ok := errors.AsType[*unavailableError](err); ok {
		return Unavailable
	}
	if p, ok := errors.AsType[*client.Problem](err); ok {
		switch {
		case p.Status == http.StatusNotFound:
			return notFound
		case p.Status == http.StatusConflict || p.Status == http.StatusPreconditionFailed:
			return conflict
		case p.Status >= http.StatusInternalServerError:
			return Unavailable
		default:
			return refused
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Timeout
	}
	return failed
}

// problemText is a problem on one line, without its fields.
func problemText(p *client.Problem) string {
	text := cmp.Or(p.Detail, p.Title, http.StatusText(p.Status))
	if p.Code == "" {
		return fmt.Sprintf("%s (%d)", text, p.Status)
	}
	return fmt.Sprintf("%s (%d %s)", text, p.Status, p.Code)
}

// remedies are what to do about problems whose detail does not say it.
var remedies = map[string]string{
	"token_missing": "pass --token-file, or set RINGBACK_TOKEN, or choose a context that has a token: ringback " +
		"context list",
	"token_malformed":   "the token is mistyped or cut off: ringback context show says where it is from",
	"token_unknown":     "the token is revoked, or of another server: ringback context show says where it is from",
	"token_expired":     "an admin makes a new one: ringback token create NAME --role ROLE",
	"forbidden":         "ringback whoami shows what the token may do",
	"revision_mismatch": "it has changed since it was read: read it again, and repeat the change with its revision",
	"store_unavailable": "repeat it later; ringback check shows whether the server is ready",
}

// fieldName returns the flag of a field of a problem, and the field.
func fieldName(command *kong.Node, field string) string {
	if command == nil {
		return field
	}
	name := strings.TrimPrefix(strings.TrimLeft(field, "/?"), "where/")
	name, _, _ = strings.Cut(name, "/")
	for _, v := range slices.Backward(valuesOf(command)) { // flags before arguments
		if fieldOf(v) == name && v.Tag.Get("in") != "none" {
			return fmt.Sprintf("%s (%s)", flagName(v), field)
		}
	}
	return field
}

// FirstLine is the first line of an error's text: the others are hints.
func FirstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
