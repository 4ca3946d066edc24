package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/job/units"
)

// duration is a duration of a flag, in the form of the API: 90s, 1h30m, 2d.
type duration struct{ time.Duration }

// UnmarshalText is part of encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) (err error) {
	if d.Duration, err = units.ParseDuration(string(text)); err == nil && d.Duration < 0 {
		return fmt.Errorf("%s must not be negative", text)
	}
	return err
}

// moment is a time of a filter: as the API has it, how long ago it was, or with + how far it is ahead.
type moment string

// Decode is part of kong.MapperValue.
func (m *moment) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	*m = moment(text)
	ahead, isAhead := strings.CutPrefix(text, "+")
	if d, err := units.ParseDuration(ahead); err == nil {
		if !isAhead {
			d = -d
		}
		*m = moment(time.Now().Add(d).UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// newJobFlags are the flags of a new job.
type newJobFlags struct {
	newFlags
	bodyFlag
}

// waitFlags are the flags of commands that wait for the end of a job.
type waitFlags struct {
	// Give up waiting after this time, and exit with 124. Default: never.
	Timeout duration `name:"wait-timeout" in:"none" placeholder:"DURATION"`
}

// sendCommand is ringback send.
type sendCommand struct {
	// URL to send the request to.
	URL string `arg:"" field:"url"`
	newJobFlags
	// Wait until the job has ended. Exits 0 if it was delivered, else 1.
	Wait bool `in:"none"`
	waitFlags
	connection
}

// RunCommand registers the job, and waits if it shall.
func (c *sendCommand) RunCommand(ctx context.Context, s *session, r *apiRequest) error {
	if c.newJobFlags.URL != "" {
		return usagef("--url cannot be combined with the argument URL")
	}
	s.completeJob(r)
	r.Body.Set("url", c.URL)
	answer, repeated, err := s.registerOne(ctx, r)
	if err != nil {
		return err
	}
	if c.Wait {
		id := output.Texts(answer)["id"]
		err := s.wait(ctx, id, c.Timeout.Duration, true)
		if _, ended := errors.AsType[*ExitError](err); err != nil && !ended {
			s.say("%s is registered: ringback wait %s waits for its end", output.Printable(id), output.Printable(id))
		}
		return err
	}
	return s.registered(answer, repeated)
}

// completeJob completes the request of a registration. The job gets its id here, so that the request can be repeated.
func (s *session) completeJob(r *apiRequest) {
	r.Method, r.Path, r.Query = http.MethodPost, "/v1/jobs", url.Values{}
	if r.Body["id"] == nil && s.out.Format() != output.Curl {
		r.Body.Set("id", client.NewID())
	}
}

// registered prints a job that was registered. repeated is as for endedText.
func (s *session) registered(answer json.RawMessage, repeated bool) error {
	job := output.Texts(answer)
	if state := client.State(job["state"]); state.Ended() {
		return s.out.OneLine(endedText(job["id"], state, repeated), answer)
	}
	err := s.out.OneLine("registered "+job["id"], answer)
	if s.out.ForPeople() {
		s.say("ringback explain %s says what becomes of it", job["id"])
	}
	return err
}

// endedText says that a job was registered before, and has ended. After a repeat by the command itself nobody knows
// whether it was registered before the command: then it says only that it is.
func endedText(id string, state client.State, repeated bool) string {
	id = output.Printable(id)
	registered := "was registered before"
	if repeated {
		registered = "is registered"
	}
	said := fmt.Sprintf("%s %s, and is %s", id, registered, state)
	if state == client.Dead {
		said += fmt.Sprintf(": ringback job revive %s sends it again", id)
	}
	return said
}

// registrations is how often a registration is tried.
const registrations = 4

// registerOne registers a job that has an id, and reports whether a try before the last may have registered it. If it
// may be registered in spite of an error, it says so.
func (s *session) registerOne(
	ctx context.Context, r *apiRequest,
) (answer json.RawMessage, repeated bool, err error) {
	answer, sent, err := s.register(ctx, r)
	if err != nil && sent > 0 && (ctx.Err() != nil || codeOf(err) == Unavailable) {
		var id string
		_ = json.Unmarshal(r.Body["id"], &id) // the server refuses what is not a text
		id = output.Printable(id)
		s.say("%s may be registered: the same command with --id %s registers it once", id, id)
	}
	return answer, sent > 1, err
}

// register registers a job that has an id. It repeats what may not have arrived: under the same id nothing is
// registered twice. It returns how many of its requests the server may have.
func (s *session) register(ctx context.Context, r *apiRequest) (answer json.RawMessage, sent int, err error) {
	for try, wait := 1, 250*time.Millisecond; ; try, wait = try+1, 2*wait {
		answer, err = s.do(ctx, r)
		if of, ok := errors.AsType[*unavailableError](err); !ok || !of.Unsent {
			sent++
		}
		if err == nil || codeOf(err) != Unavailable || try == registrations {
			return answer, sent, err
		}
		if err := sleep(ctx, wait/2+rand.N(wait)); err != nil {
			return nil, sent, err
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
	newJobFlags
	// Register the jobs in a file, one JSON object a line; - is the standard input. A job without an id gets one that
	// the content of the file decides, so that the command can be repeated; of the standard input, a new one.
	File string `short:"f" in:"none" placeholder:"FILE"`
	// Give the jobs of --file new ids: if the same file is registered twice, its jobs are made twice.
	NewIDs bool `name:"new-ids" in:"none"`
	connection
}

// RunCommand registers a job, or those of a file.
func (c *addCommand) RunCommand(ctx context.Context, s *session, r *apiRequest) error {
	s.completeJob(r)
	if c.File != "" {
		if delete(r.Body, "id"); len(r.Body) > 0 || c.ID != "" {
			return usagef("--file cannot be combined with the fields of a job")
		}
		return s.registerFile(ctx, c.File, c.NewIDs)
	}
	answer, repeated, err := s.registerOne(ctx, r)
	if err != nil {
		return err
	}
	return s.registered(answer, repeated)
}

// waitCommand is ringback wait.
type waitCommand struct {
	// Id of the job.
	ID string `arg:""`
	// Give up after this time, and exit with 124. Default: never.
	Timeout duration `in:"none" placeholder:"DURATION"`
	connection
}

// RunCommand waits for the end of the job.
func (c *waitCommand) RunCommand(ctx context.Context, s *session) error {
	return s.wait(ctx, c.ID, c.Timeout.Duration, false)
}

// wait waits until a job has ended, and prints what became of it. A server that has answered and is away for a while
// does not end it.
func (s *session) wait(ctx context.Context, id string, timeout time.Duration, answered bool) error {
	if s.out.Format() == output.Curl {
		return s.printRequest(&apiRequest{
			Method: http.MethodGet, Path: "/v1/jobs/" + url.PathEscape(id),
			Query: url.Values{"wait": {"60s"}},
		})
	}
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	from := s.client
	if !answered { // a server that is not there ends the command
		once, err := s.newClient(-1)
		if err != nil {
			return err
		}
		from = once
	}
	info, err := from.Wait(limited, id)
	if err != nil && info != nil { // it has answered, and is away
		info, err = s.client.Wait(limited, id)
	}
	switch {
	case err == nil:
		return s.ended(&job{*info})
	case timeout > 0 && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return &ExitError{Code: Timeout, Text: fmt.Sprintf("%s has not ended within %s: ringback explain %s "+
			"says what it waits for", id, timeout, id)}
	default:
		return s.failure(ctx, err)
	}
}

// ended prints a job that has ended, and returns an error unless it was delivered.
func (s *session) ended(j *job) error {
	if err := s.out.OneLine(j.Headline(), j.Raw); err != nil {
		return err
	}
	if j.State != client.Delivered {
		return &ExitError{Code: failed}
	}
	return nil
}
