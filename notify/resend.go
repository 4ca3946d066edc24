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

// maxRefusals is how often a request is sent again that the receiver refused unread over HTTP/2. The first time needs no
// wait: by then it is known how many requests the receiver admits. Before the second time is a wait of refusalWait, which
// doubles each time after.
const (
	maxRefusals = 5
	refusalWait = 50 * time.Millisecond
)

// retryTransport sends the tries of a request that is sent again: the first one over a connection from the pool, the last one
// over a new connection. So a receiver that closes connections soon costs no attempt, however many closed ones are in the
// pool. It has no CloseIdleConnections: a retryablehttp.Client calls that after every failure, and would close the
// connections to all other receivers.
type retryTransport struct {
	transport *conn.Transport
	last      bool
}

func (t *retryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.last {
		return t.transport.RoundTripFresh(r)
	}
	return t.transport.RoundTrip(r)
}

// resend sends the attempt's request again, twice at most, and the second time only if nothing of it was written the first
// time. Each time it has the time at which it is sent, and a signature of that time.
func (s *Sender) resend(a *attempt, transport *conn.Transport, req job.Request) (*http.Response, error) {
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
	again.GetBody = nil // SetBody sets it, and net/http would replay: see setBody
	try := &retryTransport{transport: transport}
	client := &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     try,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		RetryMax: 1,
		CheckRetry: func(_ context.Context, _ *http.Response, err error) (bool, error) {
			return err != nil && a.SafeToResend(), nil
		},
		PrepareRetry: func(r *http.Request) error {
			a.Reset()
			try.last = true
			r.Header = r.Header.Clone() // the one before is net/http's
			stamp(r.Header, make([]string, 1), time.Now(), req)
			return nil
		},
		Backoff:      func(time.Duration, time.Duration, int, *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	resp, err := client.Do(again)
	if e, ok := errors.AsType[*url.Error](err); ok { // it repeats the URL
		err = e.Err
	}
	return resp, err
}

// retryRefusedStream sends the attempt's request again for as long as the receiver refuses it unread.
func (s *Sender) retryRefusedStream(a *attempt, transport *conn.Transport, req job.Request, err error) (resp *http.Response, _ error) {
	for n := 0; n < maxRefusals && a.Refused(err); n++ {
		if n > 0 && !a.wait(refusalWait<<(n-1)) {
			break
		}
		resp, err = s.resend(a, transport, req)
	}
	return resp, err
}

// wait reports whether the attempt still has time after d.
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
