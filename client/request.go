package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client/internal/wire"
)

// Bounds of answers.
const (
	maxAnswer  = 64 << 20
	maxProblem = 1 << 20
)

// Waits between tries.
const (
	firstWait     = 100 * time.Millisecond
	longestWait   = 10 * time.Second
	maxRetryAfter = 5 * time.Minute
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
	read func(*http.Response) error
}

// path returns an escaped path of literal and variable parts: those in even places are literal.
func path(parts ...string) (string, error) {
	var b strings.Builder
	for i, p := range parts {
		if i%2 == 0 {
			b.WriteString(p)
			continue
		}
		if p == "" || p == "." || p == ".." {
			return "", fmt.Errorf("client: %q is not a name that can be in a path", p)
		}
		b.WriteString(url.PathEscape(p))
	}
	return b.String(), nil
}

// do makes a call, and repeats it while that can help.
func (c *Client) do(ctx context.Context, r call) error {
	var pause backoff
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

// send is do with a body that is encoded and a path that is built, for calls that need no more.
func (c *Client) send(ctx context.Context, method string, parts []string, body any, into any, conditions ...Condition) error {
	r := call{method: method, header: conditionHeader(conditions), into: into}
	r.once = r.header != nil || method == http.MethodDelete // the repeat of what was applied would fail
	return c.sendCall(ctx, r, parts, body)
}

// sendCall completes a call and makes it.
func (c *Client) sendCall(ctx context.Context, r call, parts []string, body any) (err error) {
	if r.path, err = path(parts...); err != nil {
		return err
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
	limited, cancel := context.WithTimeoutCause(ctx, c.opts.Timeout+r.wait, errNoAnswer)
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
		return fmt.Errorf("client: %s %s: %w within %s", r.method, r.path, errNoAnswer, c.opts.Timeout+r.wait)
	}
	return err
}

var errNoAnswer = errors.New("no answer")

// readAnswer reads a response within bounds.
func readAnswer(res *http.Response, r call) error {
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return readProblem(res)
	}
	switch {
	case r.read != nil:
		return r.read(res)
	case r.into == nil || res.StatusCode == http.StatusNoContent:
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxProblem)) // so that the connection can be used again
		return nil
	}
	data, err := readBounded(res.Body, maxAnswer)
	if err != nil {
		return fmt.Errorf("client: read the answer of %s %s: %w", r.method, r.path, err)
	}
	if err := wire.Decode(data, r.into); err != nil {
		return &answerError{fmt.Errorf("client: the answer of %s %s cannot be read: %w", r.method, r.path, err)}
	}
	return nil
}

// answerError is an answer that came whole, but is not as it should be: asking again does not help.
type answerError struct{ err error }

func (e *answerError) Error() string { return e.err.Error() }
func (e *answerError) Unwrap() error { return e.err }

func readBounded(from io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the request
	}
	if int64(len(data)) > most {
		return nil, &answerError{fmt.Errorf("it is larger than %d B", most)}
	}
	return data, nil
}

// readProblem returns the problem that a response is.
func readProblem(res *http.Response) error {
	p := &Problem{Status: res.StatusCode, Title: http.StatusText(res.StatusCode)}
	if 300 <= res.StatusCode && res.StatusCode <= 399 {
		p.Detail = "redirects are not followed, as they would take the token along: set the server's URL to where it leads"
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
		*p = Problem{Status: res.StatusCode, Title: http.StatusText(res.StatusCode), Detail: http.StatusText(res.StatusCode) + ", and the answer is not Ringback's: is there a proxy in front of it?"}
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
		switch p.Status {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	if _, ok := errors.AsType[*answerError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		_, isNetwork := errors.AsType[net.Error](u.Err)
		return isNetwork || errors.Is(u.Err, io.EOF) || errors.Is(u.Err, io.ErrUnexpectedEOF) || isBroken(u.Err)
	}
	return errors.Is(err, errNoAnswer) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isBroken(err)
}

// isBroken reports whether a connection broke.
func isBroken(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

// isUnprocessed reports whether the server has surely not begun with the request.
func isUnprocessed(err error) bool {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Status == http.StatusTooManyRequests || p.Code == "overloaded"
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// backoff grows from try to try.
type backoff struct {
	wait    time.Duration
	retries int
}

// waitBefore waits before a repeat. It returns why there is none: the context would end before, or there were enough.
func (c *Client) waitBefore(ctx context.Context, b *backoff, cause error) error {
	if b.retries++; c.opts.MaxRetries != 0 && b.retries > max(c.opts.MaxRetries, 0) {
		return cause
	}
	b.wait = min(max(2*b.wait, firstWait), longestWait)
	wait := b.wait/2 + rand.N(b.wait/2)
	if p, ok := errors.AsType[*Problem](cause); ok && p.RetryAfter() > 0 {
		after := min(p.RetryAfter(), maxRetryAfter)
		wait = after + rand.N(after/4+firstWait)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), cause)
	}
	if end, has := ctx.Deadline(); has && time.Until(end) < wait {
		return fmt.Errorf("%w, before the next try in %s: %w", context.DeadlineExceeded, wait.Round(time.Millisecond), cause)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", context.Cause(ctx), cause)
	}
}
