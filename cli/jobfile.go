package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/exit"
	"github.com/ringback/ringback/cli/jobfile"
	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/cli/request"
	"github.com/ringback/ringback/client"
)

// Bounds of the lines of a file that are registered together.
const (
	batchJobs  = 500
	batchBytes = 4 << 20 // unless one line has more; the server takes 16 MiB
)

// fileJob is a line of a file.
type fileJob struct {
	line int
	text string
}

// fileBatch are jobs that are registered together.
type fileBatch struct {
	jobs  []fileJob
	bytes int
}

// registerFile registers the jobs of a file in batches, and prints the results of those that were refused.
func (s *session) registerFile(ctx context.Context, name string, newIDs bool) error {
	in, err := s.input(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	var seed []byte
	if file, is := in.(*os.File); is {
		if seed, err = jobfile.Examine(name, file); err != nil {
			return lineError(err)
		}
	}
	if newIDs {
		seed = nil
	}
	var t jobfile.Tally
	var batch fileBatch
	if err = s.registerLines(ctx, jobfile.Lines(name, in), seed, &batch, &t); err != nil {
		if !errors.Is(err, errPrinted) {
			s.say("%s", t.Progress(len(batch.jobs), seed != nil))
		}
		return err
	}
	s.say("%s", t.Summary())
	if t.Refused > 0 {
		return &exit.Error{Code: exit.Failed}
	}
	return nil
}

// registerLines registers lines in batches. If it fails, batch has those whose results are not known.
func (s *session) registerLines(ctx context.Context, lines iter.Seq2[int, jobfile.Line], seed []byte, batch *fileBatch, t *jobfile.Tally) error {
	flush := func() error {
		if len(batch.jobs) == 0 {
			return nil
		}
		if err := s.registerBatch(ctx, batch.jobs, t); err != nil {
			return err
		}
		t.Done = batch.jobs[len(batch.jobs)-1].line
		*batch = fileBatch{}
		return nil
	}
	for line, l := range lines {
		if l.Err != nil {
			if err := flush(); err != nil {
				return err
			}
			return lineError(l.Err)
		}
		if l.Job["id"] == nil {
			l.Job.Set("id", jobfile.ID(seed, line))
		}
		text := string(l.Job.Encode())
		if len(batch.jobs) == batchJobs || batch.bytes+len(text) > batchBytes {
			if err := flush(); err != nil {
				return err
			}
			t.Done = line - 1 // with empty lines
		}
		batch.jobs, batch.bytes = append(batch.jobs, fileJob{line, text}), batch.bytes+len(text)
	}
	return flush()
}

// lineError makes the error of a line that is no job a UsageError.
func lineError(err error) error {
	if errors.Is(err, jobfile.ErrInvalid) {
		return &exit.UsageError{Err: err}
	}
	return err
}

// input opens a file; - is the standard input.
func (s *session) input(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(s.Stdin), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return file, nil
}

// registerBatch registers jobs, and prints the results of those that were refused. Those that the server could not take yet are sent
// again.
func (s *session) registerBatch(ctx context.Context, jobs []fileJob, t *jobfile.Tally) error {
	for try, wait := 1, 250*time.Millisecond; len(jobs) > 0; try, wait = try+1, 2*wait {
		texts := make([]string, len(jobs))
		for i, j := range jobs {
			texts[i] = j.text
		}
		r := &request.Request{Method: http.MethodPost, Path: "/v1/batch", Body: request.Fields{"jobs": json.RawMessage("[" + strings.Join(texts, ",\n") + "]")}}
		answer, err := s.register(ctx, r)
		if err != nil {
			return err
		}
		var results struct {
			Results []struct {
				ID     string          `json:"id"`
				Status int             `json:"status"`
				Error  *client.Problem `json:"error"`
			} `json:"results"`
		}
		if err := json.Unmarshal(answer, &results); err != nil {
			return fmt.Errorf("the answer is not that of a batch: %w", err)
		}
		if len(results.Results) != len(jobs) {
			return fmt.Errorf("the answer has %d results for %d jobs: is there a proxy in front of Ringback?", len(results.Results), len(jobs))
		}
		var later []fileJob
		for i, result := range results.Results {
			switch p := result.Error; {
			case p == nil:
				t.Registered++
				if result.Status == http.StatusOK && try == 1 {
					t.Before++
				}
			case try < registrations && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable):
				later = append(later, jobs[i])
				wait = max(wait, min(p.RetryAfter(), longestPause))
			default:
				t.Refused++
				s.sayRefused(jobs[i].line, result.ID, p)
			}
		}
		if jobs = later; len(jobs) > 0 {
			if err := sleep(ctx, wait); err != nil {
				return err
			}
		}
	}
	return nil
}

// sayRefused prints why a line of a file was refused.
func (s *session) sayRefused(line int, id string, p *client.Problem) {
	texts := []string{exit.ProblemText(p)}
	for _, field := range p.Errors {
		texts = append(texts, field.Field+" "+field.Detail)
	}
	s.say("line %d, %s: %s", line, output.Printable(id), output.Printable(strings.Join(texts, "; ")))
}
