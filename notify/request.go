package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
)

// identity tells net/http to send a body of unknown length as it is: see body.
var identity = []string{"identity"}

// accept asks for an answer as it is, so that its kept part is readable.
var accept = []string{"identity"}

// request builds the HTTP request of an attempt. The error is one line that tells nothing of the URL.
func (s *Sender) request(ctx context.Context, now time.Time, req job.Request) (*http.Request, error) {
	if !validToken(req.Method) {
		return nil, errors.New("the method is not one that HTTP can carry")
	}
	r, err := http.NewRequestWithContext(ctx, req.Method, req.URL, nil)
	if err != nil {
		return nil, errors.New("the URL cannot be read")
	}
	switch {
	case r.URL.Scheme != "http" && r.URL.Scheme != "https":
		return nil, errors.New("the URL is neither http nor https")
	case r.URL.Hostname() == "":
		return nil, errors.New("the URL names no host")
	case !validQuery(r.URL.RawQuery): // the path is escaped when it is written
		return nil, errors.New("the URL's query has a blank or a control character")
	}
	r.URL.User = nil
	if r.Header, err = s.header(now, req); err != nil {
		return nil, err
	}
	setBody(r, req.Body)
	return r, nil
}

// setBody gives a request its body in a form that net/http cannot replay.
//
// net/http sends a request again by itself, though it was written, when it has no body or can rewind it (GetBody) and
// either its method is GET or it carries an idempotency key. So GetBody stays nil; the key is redacted by header; and a
// GET without a body gets an empty one, whose unknown length must then not make it chunked. The types are those that
// net/http knows to be in memory: it sends them in one write with the header.
func setBody(r *http.Request, body []byte) {
	switch {
	case len(body) > 0:
		r.ContentLength = int64(len(body))
	case r.Method == http.MethodGet:
		r.TransferEncoding = identity
	default:
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
}

// header is the job's header with ours over it.
func (s *Sender) header(now time.Time, req job.Request) (http.Header, error) {
	h := make(http.Header, len(req.Header)+9)
	for name, values := range req.Header {
		if !validToken(name) {
			return nil, errors.New("a header's name is not one that HTTP can carry")
		}
		for _, v := range values {
			if !validValue(v) {
				return nil, fmt.Errorf("the header %s has a value that HTTP cannot carry", name)
			}
		}
		if name, ok := sendable(name); ok && len(values) > 0 {
			h[name] = values
		}
	}
	// One array for all values of ours.
	own := [7]string{
		req.Ref.ID,
		req.Queue.Topic,
		strconv.Itoa(req.Attempt),
		strconv.Itoa(req.RetriesLeft),
		strconv.FormatInt(req.DueAt.UnixMilli(), 10),
		req.ContentType,
	}
	if !validValue(own[0]) || !validValue(own[1]) || !validValue(own[5]) {
		return nil, errors.New("the id, topic or content type is not one that a header can carry")
	}
	values := own[:]
	h["Webhook-Id"] = values[0:1:1]
	h["Ringback-Topic"] = values[1:2:2]
	h["Ringback-Attempt"] = values[2:3:3]
	h["Ringback-Retries-Left"] = values[3:4:4]
	h["Ringback-Due-At"] = values[4:5:5]
	if req.ContentType != "" {
		h["Content-Type"] = values[5:6:6]
	}
	stamp(h, values[6:7:7], now, req)
	if signature := h["Webhook-Signature"]; signature != nil && !validValue(signature[0]) {
		return nil, errors.New("the signature is not one that a header can carry")
	}
	if _, present := h["User-Agent"]; !present {
		h["User-Agent"] = s.agent
	}
	if _, present := h["Accept-Encoding"]; !present {
		h["Accept-Encoding"] = accept
	}
	return h, nil
}

// stamp tells when a request is sent, in at, and signs that together with the body's bytes as they are.
func stamp(h http.Header, at []string, now time.Time, req job.Request) {
	at[0] = strconv.FormatInt(now.Unix(), 10)
	h["Webhook-Timestamp"] = at
	if req.Signer != nil {
		h["Webhook-Signature"] = []string{req.Signer.Sign(req.Ref.ID, now, req.Body)}
	}
}

// sendable is the form in which a job's header is sent, and whether it is sent at all: what belongs to the connection or
// to us is left out, should it have come past validation.
func sendable(name string) (string, bool) {
	if job.ReservedHeader(name) {
		return "", false
	}
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Idempotency-Key":
		return "idempotency-key", true // the same to a receiver; net/http looks for the canonical form only
	case "X-Idempotency-Key":
		return "x-idempotency-key", true
	}
	return name, true
}

// validToken reports whether s is a token of RFC 9110 §5.6.2: a method or a header's name.
func validToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// validQuery reports whether s can be a part of a request's first line: no blanks and no control characters.
func validQuery(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) < 0
}

// validValue reports whether s can be a header's value: no control characters but the tab.
func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\t') || c == 0x7f {
			return false
		}
	}
	return true
}
