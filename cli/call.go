package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/job/units"
)

// call is a command that makes the request of its tags.
type call struct{ connection }

// page is the flag of lists.
type page struct {
	// Number of items to list; 0: all.
	Limit int `default:"50" in:"none" placeholder:"N"`
}

// confirmed is the flag of commands that ask.
type confirmed struct {
	// Do not ask.
	Yes bool `short:"y" in:"none"`
}

// conditional is the flag of commands that change what has a revision.
type conditional struct {
	// Change it only if it has this revision, else exit with 4.
	IfRevision *int `in:"revision" placeholder:"N"`
}

// RunCommand makes the request, and prints the answer.
func (c *call) RunCommand(ctx context.Context, k *kong.Context, s *session, r *apiRequest) error {
	command := k.Selected()
	s.warnManagedDelete(ctx, command, r)
	if question := textOf(command).asks; question != "" {
		if boolFlag(command, "purge") {
			question = "--purge: " + findFlag(command, "purge").Help + "\n" + question
		}
		if err := s.count(ctx, command); err != nil {
			return err
		}
		if err := s.confirm(ctx, fill(question, arguments(command)), boolFlag(command, "yes") ||
			boolFlag(command, "dry-run")); err != nil {
			return err
		}
	}
	member := command.Tag.Get("items")
	if view := command.Tag.Get("show"); view != "" && member == "" {
		printed, err := s.list(ctx, r, views[view], intFlag(command, "limit"))
		if err == nil && printed == 0 && s.out.ForPeople() {
			s.say("there are none")
		}
		return err
	}
	answer, err := s.do(ctx, r)
	if command.Tag.Has("create") && errors.Is(err, client.ErrNotFound) && r.Header.Get("If-Match") == "" {
		r.Method = http.MethodPut
		r.Header.Set("If-None-Match", "*")
		answer, err = s.do(ctx, r)
	}
	if err != nil {
		return err
	}
	if member != "" {
		return s.out.Items(answer, member, views[command.Tag.Get("show")])
	}
	s.warnManaged(r.Method, answer)
	return s.done(command, answer)
}

// count says how many jobs a command of the tag count would remove, unless it does not ask.
func (s *session) count(ctx context.Context, command *kong.Node) error {
	path := command.Tag.Get("count")
	if path == "" || boolFlag(command, "yes") || !boolFlag(command, "purge") || s.out.Format() == output.Curl {
		return nil
	}
	name, header := command.Positional[0].Target.String(), http.Header{}
	if !strings.Contains(path, "{}") {
		header.Set("Ringback-Namespace", name)
	}
	t, err := s.totals(ctx, strings.ReplaceAll(path, "{}", url.PathEscape(name)), header)
	if err != nil {
		return err
	}
	s.say("%12s  unfinished\n%12s  dead", words.Number(t.Scheduled+t.Ready+t.Running), words.Number(t.Dead))
	return nil
}

// done prints the answer to a command, or for people what it says.
func (s *session) done(command *kong.Node, answer json.RawMessage) error {
	text := textOf(command)
	if text.done == "" || len(answer) > 0 && !s.out.ForPeople() {
		return s.out.One(answer)
	}
	values := arguments(command)
	maps.Copy(values, output.Texts(answer))
	if text.running != "" && values["state"] == "running" {
		text.done = text.running
	}
	_, err := fmt.Fprintln(s.Stdout, fill(text.done, values))
	return err
}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// fill replaces the names in braces by values.
func fill(text string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string { return values[strings.Trim(name, "{}")] })
}

// arguments returns the arguments of a command by name.
func arguments(command *kong.Node) map[string]string {
	values := make(map[string]string)
	for _, p := range command.Positional {
		values[p.Name] = output.Printable(fmt.Sprint(p.Target.Interface()))
	}
	return values
}

func findFlag(command *kong.Node, name string) *kong.Flag {
	if i := slices.IndexFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == name }); i >= 0 {
		return command.Flags[i]
	}
	return nil
}

func boolFlag(command *kong.Node, name string) bool {
	f := findFlag(command, name)
	return f != nil && f.Target.Bool()
}

func intFlag(command *kong.Node, name string) int {
	if f := findFlag(command, name); f != nil {
		return int(f.Target.Int())
	}
	return 0
}

// maxPage is a length of pages that every list of the API allows.
const maxPage = 100

// list prints the items of a list, page after page, until there are limit of them; zero: all. It returns their number.
func (s *session) list(ctx context.Context, r *apiRequest, view output.View, limit int) (printed int, err error) {
	list := s.out.List(view)
	for {
		if size := limit - printed; limit > 0 {
			r.Query.Set("limit", strconv.Itoa(min(size, maxPage)))
		}
		answer, err := s.do(ctx, r)
		if err != nil {
			if printed == 0 {
				return 0, err
			}
			return printed, errors.Join(list.Close(), err)
		}
		var page struct {
			Items  []json.RawMessage `json:"items"`
			Cursor string            `json:"next_cursor"`
			Exact  *bool             `json:"exact"`
			Lanes  *int64            `json:"looked_at"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return printed, fmt.Errorf("the answer is not a list: %w", err)
		}
		if r.Complete != nil {
			if err := r.Complete(ctx, page.Items); err != nil {
				return printed, errors.Join(list.Close(), err)
			}
		}
		for _, item := range page.Items {
			if err := list.Add(item); err != nil {
				return printed, err
			}
		}
		printed += len(page.Items)
		more := page.Cursor != ""
		if more && (limit == 0 || printed < limit) {
			r.Query.Set("cursor", page.Cursor)
			continue
		}
		err = list.Close()
		switch {
		case page.Lanes != nil && page.Exact != nil && !*page.Exact:
			s.say("there may be more than these: only %s lanes were looked at", words.Number(*page.Lanes))
		case page.Exact != nil && !*page.Exact:
			s.say("there are more than these: the counts are those of the newest jobs")
		case more:
			s.say("there are more: --limit 0 lists all")
		}
		return printed, err
	}
}

// errPrinted ends a command whose request was printed instead of sent.
var errPrinted = &ExitError{Code: ok}

// requestTimeout bounds a request, in addition to the time for which the server is asked to wait.
const requestTimeout = 30 * time.Second

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// do makes a request and returns the answer. An answer that is an error is a *client.Problem.
func (s *session) do(ctx context.Context, r *apiRequest) (json.RawMessage, error) {
	if s.out.Format() == output.Curl {
		if err := s.printRequest(r); err != nil {
			return nil, err
		}
		return nil, errPrinted
	}
	limited, cancel := context.WithTimeout(ctx, requestTimeout+waitOf(r))
	defer cancel()
	resp, err := s.send(limited, r)
	if err != nil {
		return nil, s.unavailable(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, s.unavailable(ctx, err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, problemOf(resp.StatusCode, answer)
	}
	return answer, nil
}

// get makes a request that reads something, which what names.
func get[T any](ctx context.Context, s *session, what, path string, query url.Values) (*T, error) {
	answer, err := s.do(ctx, &apiRequest{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return nil, err
	}
	return as[T](answer, what)
}

// as reads an answer.
func as[T any](answer json.RawMessage, what string) (*T, error) {
	into := new(T)
	if err := json.Unmarshal(answer, into); err != nil {
		return nil, fmt.Errorf("the answer is not %s: %w", what, err)
	}
	return into, nil
}

// send makes a request.
func (s *session) send(ctx context.Context, r *apiRequest) (*http.Response, error) {
	content := r.Content()
	if content == nil {
		return s.client.Do(ctx, r.Method, r.Target(), nil, r.Header)
	}
	return s.client.Do(ctx, r.Method, r.Target(), bytes.NewReader(content), r.Header)
}

// failure is the error of a method of the client.
func (s *session) failure(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*client.Problem](err); ok {
		return err
	}
	return s.unavailable(ctx, err)
}

// unavailable says that the server did not answer, unless the command was stopped.
func (s *session) unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	op, isOp := errors.AsType[*net.OpError](err)
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err // without the URL
	}
	text := strings.TrimPrefix(err.Error(), "client: ")
	hint := "is ringback running there? ringback context show says where the address is from"
	return &unavailableError{
		Err:    fmt.Errorf("no answer from %s: %s\n%s", s.target.Server, text, hint),
		Unsent: isOp && op.Op == "dial",
	}
}

// longestWait is the longest wait that a server accepts.
const longestWait = time.Minute

// waitOf is the time that the server is asked to wait.
func waitOf(r *apiRequest) time.Duration {
	text := r.Query.Get("wait")
	if u, err := url.Parse(r.Path); text == "" && err == nil {
		text = u.Query().Get("wait")
	}
	if bytes.Contains(r.Raw, []byte(`"wait"`)) { // of a lease: a duration, or a number of seconds
		return longestWait
	}
	d, _ := units.ParseDuration(text)
	return min(max(d, 0), longestWait)
}

// problemOf reads an answer that is an error.
func problemOf(status int, answer []byte) error {
	var p client.Problem
	if json.Unmarshal(answer, &p) != nil || p.Code == "" {
		text := []rune(strings.Join(strings.Fields(string(answer)), " "))
		p = client.Problem{Detail: "the server answers as Ringback does not: " + string(text[:min(len(text), 200)])}
	}
	p.Status = status
	return &p
}

// printRequest prints the request as a command of curl.
func (s *session) printRequest(r *apiRequest) error {
	_, err := fmt.Fprintln(s.Stdout, r.Curl(s.target))
	return err
}
