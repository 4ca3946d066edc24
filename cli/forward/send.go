package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify"
	"github.com/ringback/ringback/sign"
)

// Delivery is a request that was made, for the output.
type Delivery struct {
	At         time.Time `json:"at"`
	ID         string    `json:"id"`
	Topic      string    `json:"topic"`
	Lane       string    `json:"lane"`
	Attempt    int       `json:"attempt"`
	URL        string    `json:"url"`
	Status     int       `json:"status,omitempty"`
	DurationMS float64   `json:"duration_ms"`
	Error      string    `json:"error,omitempty"` // why there is no status, or it could not be reported
	Copy       bool      `json:"copy,omitempty"`
}

// unsentError: nothing was sent, because no connection could be made, or none of TLS.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// answer is what a receiver has answered.
type answer struct {
	status       int
	body         string
	after        time.Duration // its Retry-After; zero: none
	nonretryable bool
}

// newTransport returns the connections to receivers. Answers are read as they are, and no proxy is between.
func newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: 16,
		IdleConnTimeout: 30 * time.Second,
	}
}

// send sends a request, and reads the answer. The error is an unsentError if nothing was sent.
func (f *forwarder) send(ctx context.Context, method, target string, header http.Header, body []byte) (answer, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), method, target, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	// net/http replays a GET whose body it can read again; it must not become chunked either
	if method == http.MethodGet {
		if r.GetBody, r.Body = nil, io.NopCloser(bytes.NewReader(body)); len(body) == 0 {
			r.TransferEncoding = []string{"identity"}
		}
	}
	r.Header = header
	for name, values := range f.opts.Header {
		maps.DeleteFunc(r.Header, func(of string, _ []string) bool { return strings.EqualFold(of, name) })
		r.Header[job.SentHeader(name)] = values
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", f.opts.Agent)
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	resp, err := f.transport.RoundTrip(r) // redirects are answers
	if err != nil {
		if (!connected.Load() || isDial(err)) && ctx.Err() == nil {
			return answer{}, unsentError{err}
		}
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, notify.MaxRead))
	if err != nil {
		return answer{}, err
	}
	return answer{
		status: resp.StatusCode, body: strings.ToValidUTF8(string(text), "\ufffd"),
		after:        notify.AskedWait(resp.StatusCode, resp.Header, time.Now()),
		nonretryable: strings.EqualFold(strings.TrimSpace(resp.Header.Get("Ringback-Nonretryable")), "true"),
	}, nil
}

// isDial reports whether an error is of a connection that could not be made.
func isDial(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}

// headerOf returns a copy of a header with names as a push sends them, signed anew if there is a signer.
func (f *forwarder) headerOf(of client.Headers, id string, body []byte) http.Header {
	h := make(http.Header, len(of)+4)
	for name, values := range of {
		h[job.SentHeader(name)] = values
	}
	if f.opts.Signer != nil {
		now := time.Now()
		h.Set(sign.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
		h.Set(sign.HeaderSignature, f.opts.Signer.Sign(id, now, body))
	}
	return h
}
