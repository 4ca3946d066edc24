package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
)

// fileRetries is how often what is not registered is sent again before the command ends: for 3 to 6 s without progress.
const fileRetries = 6

// registerFile registers the jobs of a file, and prints the results of those that were refused.
func (s *session) registerFile(ctx context.Context, name string, newIDs bool) error {
	in, err := s.input(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	var seed []byte
	if file, is := in.(*os.File); is {
		if seed, err = examineJobs(name, file); err != nil {
			return err
		}
	}
	if newIDs {
		seed = nil
	}
	if s.out.Format() == output.Curl {
		return s.printFile(jobLines(name, in), seed)
	}
	var t lineTally
	if err = s.registerLines(ctx, jobLines(name, in), seed, &t); err != nil {
		s.say("%s", t.Progress(seed != nil))
		return err
	}
	s.say("%s", t.Summary())
	if t.Refused() > 0 {
		return &ExitError{Code: failed}
	}
	return nil
}

// registerLines registers lines, and prints why some were refused.
func (s *session) registerLines(
	ctx context.Context, lines iter.Seq2[jobLine, error], seed []byte, t *lineTally,
) error {
	to, err := s.newClient(fileRetries)
	if err != nil {
		return err
	}
	var invalid error
	texts := func(yield func([]byte) bool) {
		for l, err := range lines {
			if invalid = err; err != nil {
				return
			}
			t.Add(l.Number)
			if !yield(l.text(seed)) {
				return
			}
		}
	}
	for result, err := range to.RegisterLines(ctx, texts) {
		switch {
		case err != nil:
			return s.failure(ctx, err)
		case result.Err != nil:
			s.sayRefused(t.Finish(result.Index, lineRefused), result.ID, result.Err)
		default:
			line := t.Finish(result.Index, outcomeOf(&result))
			if result.State == client.Dead && !result.Created {
				s.say("line %d, %s", line, endedText(result.ID, result.State, result.Repeated))
			}
		}
	}
	return invalid
}

// outcomeOf returns what became of a line that was not refused. One that was sent again counts as registered by this
// command.
func outcomeOf(r *client.Result) lineOutcome {
	switch {
	case r.Created || r.Repeated:
		return registered
	case r.State.Ended():
		return ended
	default:
		return before
	}
}

// text returns the job of a line with an id.
func (l jobLine) text(seed []byte) []byte {
	if l.Job["id"] == nil {
		l.Job.Set("id", jobLineID(seed, l.Number))
	}
	return l.Job.Encode()
}

// maxPrinted is how many jobs are printed as a command of curl.
const maxPrinted = 500

// printFile prints the registration of a file as a command of curl.
func (s *session) printFile(lines iter.Seq2[jobLine, error], seed []byte) error {
	var texts []string
	for l, err := range lines {
		if err != nil {
			return err
		}
		if len(texts) == maxPrinted {
			return usagef("--output curl: the file has more than %d jobs, which are too many for one request",
				maxPrinted)
		}
		texts = append(texts, string(l.text(seed)))
	}
	return s.printRequest(&apiRequest{
		Method: http.MethodPost, Path: "/v1/batch",
		Body: requestFields{"jobs": json.RawMessage("[" + strings.Join(texts, ",\n") + "]")},
	})
}

// input opens a file; - is the standard input.
func (s *session) input(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(s.Stdin), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, &usageError{Err: err}
	}
	return file, nil
}

// sayRefused prints why a line of a file was refused.
func (s *session) sayRefused(line int, id string, err error) {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		_, text, _ := strings.Cut(strings.TrimPrefix(err.Error(), "client: "), ": ") // without the number of the job
		s.say("line %d: %s", line, output.Printable(text))
		return
	}
	texts := []string{problemText(p)}
	for _, field := range p.Errors {
		texts = append(texts, field.Field+" "+field.Detail)
	}
	s.say("line %d, %s: %s", line, output.Printable(id), output.Printable(strings.Join(texts, "; ")))
}
