package notify

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/conn"
)

// maxRefusals bounds the resends of a request that the receiver gave back unread over HTTP/2. The first resend is
// immediate: the receiver's limit of streams is known by then, or the connection is no longer used. The second waits
// for refusalWait, which doubles each time.
const (
	maxRefusals = 5
	refusalWait = 50 * time.Millisecond
)

// freshTransport sends the last try of a request over a new connection, so that closed connections in the pool cost no
// attempt. It has no CloseIdleConnections, nor has conn.Transport: retryablehttp.Client would call it after every
// failure and close the connections to all other receivers.
type freshTransport struct{ *conn.Transport }

func (t freshTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.RoundTripFresh(r)
}

// mayRepeat reports whether a failed request is sent again over a new connection: nothing of it was written, or, once
// in an attempt, its reused connection was lost without a response.
func (a *attempt) mayRepeat(err error) bool {
	switch {
	case err == nil:
		return false
	case a.SafeToResend():
		return true
	case a.repeated || !a.LostUnanswered(err):
		return false
	}
	// All requests of an HTTP/2 connection are lost with it. One new connection serves their repetitions.
	a.repeated, a.fresh = true, !a.OverHTTP2()
	return true
}

// resend sends the attempt's request again, at most twice, the second time over a new connection if it may be repeated.
// Each request has the time of its sending and a signature of that time.
func (s *Sender) resend(a *attempt, transport *conn.Transport, req job.Request) (*http.Response, error) {
	// The request that was lost may have been read, so its only repetition does not meet another dead connection.
	first := http.RoundTripper(transport)
	if a.fresh {
		first = freshTransport{transport}
	}
	a.Reset()
	req = a.payload.filled(req)
	r, err := s.request(a, time.Now(), req)
	if err != nil {
		return nil, err
	}
	hasBody := r.Body != nil
	r.Body = nil
	again, err := retryablehttp.FromRequest(r)
	if err != nil {
		return nil, err
	}
	if hasBody {
		read := retryablehttp.ReaderFunc(func() (io.Reader, error) { return bytes.NewReader(req.Body), nil })
		if err := again.SetBody(read); err != nil {
			return nil, err
		}
	}
	again.GetBody = nil // set by SetBody; net/http would replay the request
	sender := &http.Client{
		Transport:     first,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	client := &retryablehttp.Client{
		HTTPClient: sender,
		RetryMax:   1,
		CheckRetry: func(_ context.Context, _ *http.Response, err error) (bool, error) {
			return a.mayRepeat(err), nil
		},
		PrepareRetry: func(r *http.Request) error {
			a.Reset()
			sender.Transport = freshTransport{transport}
			r.Header = r.Header.Clone() // net/http owns the last one
			req.Stamp(r.Header, make([]string, 1), time.Now())
			return nil
		},
		Backoff:      func(time.Duration, time.Duration, int, *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	resp, err := client.Do(again)
	if e, ok := errors.AsType[*url.Error](err); ok { // its text contains the URL
		err = e.Err
	}
	return resp, err
}

// retryRefused resends the request while the receiver refuses it unread, at most maxRefusals times.
func (s *Sender) retryRefused(
	a *attempt, transport *conn.Transport, req job.Request, err error,
) (resp *http.Response, _ error) {
	for n := 0; n < maxRefusals && a.Refused(err); n++ {
		if n > 0 && !a.wait(refusalWait<<(n-1)) {
			break
		}
		resp, err = s.resend(a, transport, req)
	}
	return resp, err
}

// wait waits for d, and reports whether the attempt has time left.
func (a *attempt) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.Done():
		return false
	}
}
