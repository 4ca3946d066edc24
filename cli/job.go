package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli/explain"
	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/cli/request"
	"github.com/ringback/ringback/client"
)

// moment is a time of a filter: as the API has it, or how long ago it was.
type moment string

// Decode is part of kong.MapperValue.
func (m *moment) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	*m = moment(text)
	if ago, err := parseDuration(text); err == nil {
		*m = moment(time.Now().Add(-ago).UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// newJobFields are the fields of a new job that cannot be changed later.
type newJobFields struct {
	ID          string `name:"id" placeholder:"ID" help:"Id of the job: the same id registers it once, however often it is repeated. Default: a new one."`
	Topic       string `placeholder:"TOPIC" help:"Topic of the job. Default: default."`
	Lane        string `placeholder:"LANE" help:"Lane of the job. Default: the host and the port of the URL."`
	Method      string `short:"X" placeholder:"METHOD" help:"POST, PUT, PATCH, GET or DELETE. Default: POST."`
	OnDelivered string `placeholder:"URL" help:"Called when the job is delivered."`
	OnDead      string `placeholder:"URL" help:"Called when the job dies."`
	jobFields
}

// waitFlags are the flags of commands that wait for the end of a job.
type waitFlags struct {
	Timeout time.Duration `name:"wait-timeout" in:"none" placeholder:"DURATION" help:"Give up waiting after this time, and exit with 124. Default: never."`
}

// sendCommand is ringback send.
type sendCommand struct {
	URL string `arg:"" field:"url" help:"URL to send the request to."`
	newJobFields
	Wait bool `in:"none" help:"Wait until the job has ended. Exits 0 if it was delivered, else 1."`
	waitFlags
	connection
}

// Run registers the job, and waits if it shall.
func (c *sendCommand) Run(ctx context.Context, k *kong.Context, e *Environment) error {
	s, err := c.open(e)
	if err != nil {
		return err
	}
	if c.TargetURL != "" {
		return usage("--url cannot be combined with the argument URL")
	}
	r, err := s.newJob(k.Selected())
	if err != nil {
		return err
	}
	r.Body.Set("url", c.URL)
	answer, err := s.register(ctx, r)
	if err != nil {
		return err
	}
	if c.Wait {
		return s.wait(ctx, output.Texts(answer)["id"], c.Timeout)
	}
	return s.registered(answer)
}

// newJob returns the request of a registration. The job gets its id here, so that the request can be repeated.
func (s *session) newJob(command *kong.Node) (*request.Request, error) {
	r, err := s.requestOf(command)
	if err != nil {
		return nil, err
	}
	r.Method, r.Path = http.MethodPost, "/v1/jobs"
	r.Query = url.Values{}
	if r.Body["id"] == nil && s.out.Format() != output.Curl {
		r.Body.Set("id", client.NewID())
	}
	return r, nil
}

// registered prints a job that was registered.
func (s *session) registered(answer json.RawMessage) error {
	if !s.out.ForPeople() {
		return s.out.One(answer)
	}
	job := output.Texts(answer)
	_, err := fmt.Fprintf(s.Stdout, "registered %s\n", job["id"])
	s.say("ringback explain %s says what becomes of it", job["id"])
	return err
}

// registrations is how often a registration is tried.
const registrations = 4

// register registers jobs that have ids. It repeats what may not have arrived: under the same id nothing is registered twice.
func (s *session) register(ctx context.Context, r *request.Request) (json.RawMessage, error) {
	for try, wait := 1, 250*time.Millisecond; ; try, wait = try+1, 2*wait {
		answer, err := s.do(ctx, r)
		if err == nil || exitCode(err) != ExitUnavailable || try == registrations {
			return answer, err
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// pause waits, and reports whether the command goes on.
func pause(ctx context.Context, d time.Duration) bool { return sleep(ctx, d) == nil }

// sleep waits, or returns why the context ended.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// addCommand is ringback job add.
type addCommand struct {
	newJobFields
	File string `short:"f" in:"none" placeholder:"FILE" help:"Register the jobs in a file, one JSON object a line; - is the standard input. Jobs without an id get one."`
	connection
}

// Run registers a job, or those of a file.
func (c *addCommand) Run(ctx context.Context, k *kong.Context, e *Environment) error {
	s, err := c.open(e)
	if err != nil {
		return err
	}
	r, err := s.newJob(k.Selected())
	if err != nil {
		return err
	}
	if c.File != "" {
		if delete(r.Body, "id"); len(r.Body) > 0 || c.ID != "" {
			return usage("--file cannot be combined with the fields of a job")
		}
		return s.registerFile(ctx, c.File)
	}
	answer, err := s.register(ctx, r)
	if err != nil {
		return err
	}
	return s.registered(answer)
}

// batchJobs is the number of lines of a file that are registered together.
const batchJobs = 500

// registerFile registers the jobs of a file in batches, and prints the results of those that were refused.
func (s *session) registerFile(ctx context.Context, name string) error {
	in, err := s.input(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxInput)
	var total, refused, line int
	var batch []string
	var numbers []int
	flush := func() error {
		bad, err := s.registerBatch(ctx, batch, numbers)
		total, refused = total+len(batch), refused+bad
		batch, numbers = batch[:0], numbers[:0]
		return err
	}
	for lines.Scan() {
		line++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var job request.Fields
		if err := json.Unmarshal(text, &job); err != nil {
			return usage("%s: line %d is not a JSON object: %w; %d jobs before it are registered", name, line, err, total-refused)
		}
		if job["id"] == nil {
			job.Set("id", client.NewID())
		}
		batch, numbers = append(batch, string(job.Encode())), append(numbers, line)
		if len(batch) == batchJobs {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if len(batch) > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	s.say("%d registered, %d refused", total-refused, refused)
	if refused > 0 {
		return &codeError{code: ExitFailed}
	}
	return nil
}

// input opens a file; - is the standard input.
func (s *session) input(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(s.Stdin), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, &UsageError{err}
	}
	return file, nil
}

// registerBatch registers jobs, and prints the results of those that were refused, whose number it returns. Those that the server
// could not take yet are sent again.
func (s *session) registerBatch(ctx context.Context, jobs []string, lines []int) (refused int, err error) {
	for try, wait := 1, 250*time.Millisecond; len(jobs) > 0; try, wait = try+1, 2*wait {
		r := &request.Request{Method: http.MethodPost, Path: "/v1/batch", Body: request.Fields{"jobs": json.RawMessage("[" + strings.Join(jobs, ",\n") + "]")}}
		answer, err := s.register(ctx, r)
		if err != nil {
			return refused, err
		}
		var results struct {
			Results []struct {
				ID    string          `json:"id"`
				Error *client.Problem `json:"error"`
			} `json:"results"`
		}
		if err := json.Unmarshal(answer, &results); err != nil || len(results.Results) != len(jobs) {
			return refused, fmt.Errorf("the answer has no result for each job: %w", err)
		}
		var later []string
		var laterLines []int
		for i, result := range results.Results {
			switch p := result.Error; {
			case p == nil:
			case try < registrations && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable):
				later, laterLines = append(later, jobs[i]), append(laterLines, lines[i])
				wait = max(wait, min(p.RetryAfter(), longestPause))
			default:
				refused++
				s.sayRefused(lines[i], result.ID, p)
			}
		}
		if jobs, lines = later, laterLines; len(jobs) > 0 {
			if err := sleep(ctx, wait); err != nil {
				return refused, err
			}
		}
	}
	return refused, nil
}

// sayRefused prints why a line of a file was refused.
func (s *session) sayRefused(line int, id string, p *client.Problem) {
	texts := []string{problemText(p)}
	for _, field := range p.Errors {
		texts = append(texts, field.Field+" "+field.Detail)
	}
	s.say("line %d, %s: %s", line, output.Printable(id), output.Printable(strings.Join(texts, "; ")))
}

// waitCommand is ringback wait.
type waitCommand struct {
	ID      string        `arg:"" help:"Id of the job."`
	Timeout time.Duration `in:"none" placeholder:"DURATION" help:"Give up after this time, and exit with 124. Default: never."`
	connection
}

// Run waits for the end of the job.
func (c *waitCommand) Run(ctx context.Context, e *Environment) error {
	s, err := c.open(e)
	if err != nil {
		return err
	}
	return s.wait(ctx, c.ID, c.Timeout)
}

// longestWait is how long a request waits for the end of a job.
const longestWait = time.Minute

// The pauses between two requests while a server is away.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// wait waits until a job has ended, and prints what became of it. A server that is away for a while does not end it.
func (s *session) wait(ctx context.Context, id string, timeout time.Duration) error {
	began, away := time.Now(), firstPause
	for answered := false; ; {
		left := longestWait
		if timeout > 0 {
			left = min(left, timeout-time.Since(began))
		}
		r := &request.Request{Method: http.MethodGet, Path: "/v1/jobs/" + url.PathEscape(id), Query: url.Values{}}
		r.Query.Set("wait", fmt.Sprintf("%dms", max(left.Milliseconds(), 0)))
		answer, err := s.do(ctx, r)
		if err != nil && (!answered || exitCode(err) != ExitUnavailable) {
			return err
		}
		if err == nil {
			answered, away = true, firstPause
			if state := output.Texts(answer)["state"]; state == "delivered" || state == "dead" || state == "cancelled" {
				return s.ended(answer)
			}
		}
		if timeout > 0 && time.Since(began) >= timeout {
			return timeoutError("%s has not ended within %s: ringback explain %s says what it waits for", id, timeout, id)
		}
		if err != nil {
			if err := sleep(ctx, away); err != nil {
				return err
			}
			away = min(2*away, longestPause)
		}
	}
}

// ended prints a job that has ended, and returns an error unless it was delivered.
func (s *session) ended(answer json.RawMessage) error {
	var j explain.Job
	if err := json.Unmarshal(answer, &j); err != nil {
		return err
	}
	if !s.out.ForPeople() {
		if err := s.out.One(answer); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(s.Stdout, j.Headline()); err != nil {
		return err
	}
	if j.State != "delivered" {
		return &codeError{code: ExitFailed}
	}
	return nil
}
