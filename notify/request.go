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

// identity makes net/http send a body of unknown length without chunks; see setBody.
var identity = []string{"identity"}

// accept requests an uncompressed response, so that its stored part is readable.
var accept = []string{"identity"}

// request builds the HTTP request of an attempt. The error is one line without the URL.
func (s *Sender) request(ctx context.Context, now time.Time, req job.Request) (*http.Request, error) {
	if !job.IsFieldName(req.Method) {
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
	case !validQuery(r.URL.RawQuery): // the path is escaped later
		return nil, errors.New("the URL's query has a blank or a control character")
	}
	r.URL.User = nil
	if r.Header, err = s.header(now, req); err != nil {
		return nil, err
	}
	setBody(r, req.Body)
	return r, nil
}

// setBody sets a request's body in a form that net/http cannot replay.
//
// net/http replays a written request if it has no body or a GetBody, and its method is GET or it has an idempotency key. So
// GetBody stays nil, header renames the key, and a GET without a body gets an empty one, whose unknown length must not make
// it chunked. net/http knows the body types to be in memory, and sends them in one write with the header.
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

// header returns the job's header with ours added.
func (s *Sender) header(now time.Time, req job.Request) (http.Header, error) {
	h := make(http.Header, len(req.Header)+10)
	for name, values := range req.Header {
		if !job.IsFieldName(name) {
			return nil, errors.New("a header's name is not one that HTTP can carry")
		}
		for _, v := range values {
			if !job.IsFieldValue(v) {
				return nil, fmt.Errorf("the header %s has a value that HTTP cannot carry", name)
			}
		}
		if name, ok := sendable(name); ok && len(values) > 0 {
			h[name] = values
		}
	}
	// One array for all our values.
	own := [7]string{
		req.Ref.ID,
		req.Queue.Topic,
		strconv.Itoa(req.Attempt),
		strconv.Itoa(req.RetriesLeft),
		strconv.FormatInt(req.DueAt.UnixMilli(), 10),
		req.ContentType,
	}
	if !job.IsFieldValue(own[0]) || !job.IsFieldValue(own[1]) || !job.IsFieldValue(own[5]) {
		return nil, errors.New("the id, topic or content type is not one that a header can carry")
	}
	values := own[:]
	h["Webhook-Id"] = values[0:1:1]
	h["Ringback-Topic"] = values[1:2:2]
	h["Ringback-Attempt"] = values[2:3:3]
	h["Ringback-Retries-Left"] = values[3:4:4]
	h["Ringback-Due-At"] = values[4:5:5]
	if at, ok := job.ScheduledAt(req.Ref.ID, req.Queue); ok {
		h["Ringback-Scheduled-At"] = []string{strconv.FormatInt(at.UnixMilli(), 10)}
	}
	if req.ContentType != "" {
		h["Content-Type"] = values[5:6:6]
	}
	stamp(h, values[6:7:7], now, req)
	if signature := h["Webhook-Signature"]; signature != nil && !job.IsFieldValue(signature[0]) {
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

// stamp sets the header with the time of sending, and the signature of that time and the body.
func stamp(h http.Header, at []string, now time.Time, req job.Request) {
	at[0] = strconv.FormatInt(now.Unix(), 10)
	h["Webhook-Timestamp"] = at
	if req.Signer != nil {
		h["Webhook-Signature"] = []string{req.Signer.Sign(req.Ref.ID, now, req.Body)}
	}
}

// sendable returns the name under which a job's header is sent, and whether it is sent: headers of the connection and our
// own are dropped if validation let them pass.
func sendable(name string) (string, bool) {
	if job.ReservedHeader(name) {
		return "", false
	}
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Idempotency-Key":
		return "idempotency-key", true // equal for receivers, but net/http checks the canonical form only
	case "X-Idempotency-Key":
		return "x-idempotency-key", true
	}
	return name, true
}

// validQuery reports whether s may be in a request line: no spaces and no control characters.
func validQuery(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) < 0
}
