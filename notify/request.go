package notify

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
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
// net/http replays a written request if it has no body or a GetBody, and its method is GET or it has an idempotency
// key. So GetBody stays nil, header renames the key, and a GET without a body gets an empty one, whose unknown length
// must not make it chunked. net/http knows the body types to be in memory, and sends them in one write with the header.
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

// header returns the header of a request that is sent now.
func (s *Sender) header(now time.Time, req job.Request) (http.Header, error) {
	sent, err := req.HeaderAt(now)
	if err != nil {
		return nil, err
	}
	h := http.Header(sent)
	if _, present := h["User-Agent"]; !present {
		h["User-Agent"] = s.agent
	}
	if _, present := h["Accept-Encoding"]; !present {
		h["Accept-Encoding"] = accept
	}
	return h, nil
}

// validQuery reports whether s may be in a request line: no spaces and no control characters.
func validQuery(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) < 0
}
