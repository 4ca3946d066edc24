package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ringback/ringback/client/internal/stream"
	"github.com/ringback/ringback/client/internal/wire"
)

// Bounds of answers.
const (
	maxAnswer  = 64 << 20
	maxProblem = 1 << 20
)

// call is a request and where its answer goes.
type call struct {
	method string
	path   string // escaped
	query  url.Values
	header http.Header
	body   []byte // nil: none
	// wait is the time for which the server is asked to wait.
	wait time.Duration
	// once: a repeat is applied again, so it is repeated only if the server has surely not processed it.
	once bool
	into any // nil: the answer is not read
	// date, if set, gets the time of the answer by the server's clock.
	date *time.Time
}

// do makes a call, and repeats it while that can help.
func (c *Client) do(ctx context.Context, r call) error {
	var pause stream.Backoff
	for {
		err := c.try(ctx, r)
		if err == nil || !isTemporary(err) || r.once && !isUnprocessed(err) {
			return err
		}
		if err := c.waitBefore(ctx, &pause, err); err != nil {
			return err
		}
	}
}

// get is a call that reads.
func get() call { return call{method: http.MethodGet} }

// change is a call that changes something under conditions. With a condition it is not repeated: the change would have
// made it false.
func change(method string, conditions []Condition) call {
	h := conditionHeader(conditions)
	return call{method: method, header: h, once: h != nil}
}

// remove is a call that removes something. It is not repeated, as what was removed is not found.
func remove(conditions []Condition) call {
	return call{method: http.MethodDelete, header: conditionHeader(conditions), once: true}
}

// answer completes a call, makes it and returns its answer.
func answer[T any](ctx context.Context, c *Client, r call, body any, parts ...string) (*T, error) {
	into := new(T)
	r.into = into
	if err := c.send(ctx, r, body, parts...); err != nil {
		return nil, err
	}
	return into, nil
}

// send completes a call and makes it.
func (c *Client) send(ctx context.Context, r call, body any, parts ...string) (err error) {
	if r.path, err = wire.Path(parts...); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if body != nil {
		if r.body, err = wire.Encode(body); err != nil {
			return fmt.Errorf("client: %w", err)
		}
	}
	return c.do(ctx, r)
}

// try makes a call once.
func (c *Client) try(ctx context.Context, r call) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.opts.Timeout+r.wait, stream.ErrNoAnswer)
	defer cancel()
	target := r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	res, err := c.Do(limited, r.method, target, body, r.header)
	if err == nil {
		defer func() { _ = res.Body.Close() }()
		err = readAnswer(res, r)
	}
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("client: %s %s: %w within %s", r.method, r.path, stream.ErrNoAnswer, c.opts.Timeout+r.wait)
	}
	return err
}

// readAnswer reads a response within bounds.
func readAnswer(res *http.Response, r call) error {
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return ReadProblem(res)
	}
	if r.date != nil {
		*r.date, _ = http.ParseTime(res.Header.Get("Date"))
	}
	if r.into == nil || res.StatusCode == http.StatusNoContent {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxProblem)) // so that the connection can be used again
		return nil
	}
	data, err := readBounded(res.Body, maxAnswer)
	if err != nil {
		return fmt.Errorf("client: read the answer of %s %s: %w", r.method, r.path, err)
	}
	if raw, ok := r.into.(*[]byte); ok {
		*raw = data
		return nil
	}
	if err := wire.Decode(data, r.into); err != nil {
		return fmt.Errorf("client: the answer of %s %s %w: %w", r.method, r.path, errUnreadable, err)
	}
	return nil
}

func readBounded(from io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, stream.Incomplete(err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("it is larger than %d B", most)
	}
	return data, nil
}

// errUnreadable: a successful answer is not what the API answers, but perhaps what a proxy does.
var errUnreadable = errors.New("cannot be read")

// ReadProblem reads a response of Do that is no success. It returns a *Problem, or why the response cannot be read.
func ReadProblem(res *http.Response) error {
	p := &Problem{Status: res.StatusCode, Title: http.StatusText(res.StatusCode)}
	if 300 <= res.StatusCode && res.StatusCode <= 399 {
		p.Detail = "redirects are not followed, as they would take the token along: set the server's URL to where it " +
			"leads"
		if to, err := res.Location(); err == nil && to.Host != "" {
			p.Detail += ", " + to.Scheme + "://" + to.Host
		}
		return p
	}
	data, err := readBounded(res.Body, maxProblem)
	if err != nil {
		return fmt.Errorf("client: read a problem with status %d: %w", res.StatusCode, err)
	}
	if wire.Decode(data, p) != nil || p.Code == "" {
		*p = Problem{
			Status: res.StatusCode, Title: http.StatusText(res.StatusCode),
			Detail: http.StatusText(res.StatusCode) +
				", and the answer is not Ringback's: is there a proxy in front of it?",
		}
	}
	p.Status = res.StatusCode
	if p.RetryAfterMS == nil {
		if s, err := strconv.ParseInt(res.Header.Get("Retry-After"), 10, 32); err == nil && s > 0 {
			p.RetryAfterMS = new(s * 1000)
		}
	}
	return p
}

// isTemporary reports whether the same request may succeed later.
func isTemporary(err error) bool {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Status == http.StatusRequestTimeout || p.Status == http.StatusTooManyRequests ||
			isUnavailable(p.Status)
	}
	return stream.IsFault(err)
}

// isUnprocessed reports whether the server has surely not begun with the request.
func isUnprocessed(err error) bool {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Status == http.StatusTooManyRequests || p.Code == "overloaded"
	}
	return stream.IsUnsent(err)
}

// waitBefore waits before a repeat. It returns why there is none: the context would end before, or there were enough.
func (c *Client) waitBefore(ctx context.Context, b *stream.Backoff, cause error) error {
	if c.opts.MaxRetries != 0 && b.Retries >= max(c.opts.MaxRetries, 0) {
		return cause
	}
	var after time.Duration
	if p, ok := errors.AsType[*Problem](cause); ok {
		after = p.RetryAfter()
	}
	return b.Wait(ctx, after, cause) // it wraps the cause
}
