package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli/manifest"
	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
)

// applyCommand is ringback apply, and with DryRun ringback diff.
type applyCommand struct {
	manifest.Flags
	// Only show what would change.
	DryRun bool `in:"none"`
	confirmed
	manyRequests
}

// RunCommand shows the differences, asks before it removes something, and makes the changes.
func (c *applyCommand) RunCommand(ctx context.Context, s *session) error {
	plan, err := c.Compare(ctx, s.manifestCall, s.readFile, s.out, !c.DryRun)
	if err != nil || c.DryRun || len(plan.Changes) == 0 {
		return manifestError(err)
	}
	if question := plan.Question(); question != "" {
		if err := s.confirm(ctx, question, c.Yes); err != nil {
			return err
		}
	}
	return manifestError(plan.Apply(ctx, s.manifestCall,
		func(change *manifest.Change) { s.say("%s", output.Printable(change.Done())) }))
}

// diffCommand is ringback diff.
type diffCommand struct {
	manifest.Flags
	manyRequests
}

// RunCommand prints the differences. It exits with 1 only if there are some.
func (c *diffCommand) RunCommand(ctx context.Context, s *session) error {
	plan, err := c.Compare(ctx, s.manifestCall, s.readFile, s.out, false)
	switch err = manifestError(err); {
	case err != nil && codeOf(err) == failed: // such as an answer that cannot be read
		return &ExitError{Code: Usage, Text: err.Error()}
	case err == nil && len(plan.Changes) > 0:
		return &ExitError{Code: failed}
	}
	return err
}

// dumpCommand is ringback dump.
type dumpCommand struct {
	// Only what the files of this name manage. Default: everything.
	ManagedBy string `in:"none" placeholder:"NAME"`
	manyRequests
}

// RunCommand prints the settings as a file.
func (c *dumpCommand) RunCommand(ctx context.Context, s *session) error {
	text, left, err := manifest.Dump(ctx, s.manifestCall, c.ManagedBy)
	for _, name := range left {
		s.say("%s is left out: the server cannot read it", output.Printable(name))
	}
	if err == nil {
		_, err = s.Stdout.Write(text)
	}
	return manifestError(err)
}

// manifestCall is a manifest.Server.
func (s *session) manifestCall(ctx context.Context, r client.Request) (json.RawMessage, error) {
	return s.do(ctx, &apiRequest{Method: r.Method, Path: r.Path, Header: r.Header, Raw: r.Body})
}

// manifestError returns an error of files with its exit code.
func manifestError(err error) error {
	if errors.Is(err, manifest.ErrNoBodies) {
		return &ExitError{Code: refused, Text: err.Error()}
	}
	if of, ok := errors.AsType[*manifest.Error](err); ok {
		return &ExitError{Code: []int{Usage, refused, conflict}[of.Reason], Text: err.Error()}
	}
	if of, ok := errors.AsType[*manifest.ApplyError](err); ok {
		return &ExitError{Code: codeOf(of.Err), Text: err.Error()}
	}
	return err
}

// warnManagedDelete says that files undo the removal of what a request of the tag managed removes. If it cannot be
// read, the removal says why.
func (s *session) warnManagedDelete(ctx context.Context, command *kong.Node, r *apiRequest) {
	if !command.Tag.Has("managed") || s.out.Format() == output.Curl {
		return
	}
	answer, err := s.do(ctx, &apiRequest{Method: http.MethodGet, Path: r.Path})
	if err != nil {
		return
	}
	if by := managedBy(answer); by != "" {
		s.say("it is managed by %s: the next ringback apply of its files makes it again", by)
	}
}

func managedBy(answer json.RawMessage) string {
	by := output.Texts(answer)["managed_by"]
	if by == "null" {
		return ""
	}
	return by
}

// warnManaged says that files undo a change.
func (s *session) warnManaged(method string, answer json.RawMessage) {
	if by := managedBy(answer); (method == http.MethodPut || method == http.MethodPatch) && by != "" {
		s.say("it is managed by %s: the next ringback apply of its files undoes this change", by)
	}
}
