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
)

// resends is how often the resender tries again after its own first request, which goes to a connection from the pool as
// the attempt's first one did. The last goes to a connection of its own: a receiver that closes connections soon must not
// cost its jobs an attempt, however many closed ones lie in the pool.
const resends = 1

// maxRefusals is how often a request is sent anew that the receiver gave back unread over HTTP/2, and refusalWait what is
// waited before the second time, twice as long each time after. The first time needs no wait: by then it is known how many
// requests the receiver admits.
const (
	maxRefusals = 5
	refusalWait = 50 * time.Millisecond
)

// newResender makes the client for requests whose first connection was dead before a byte was written. It is kept off
// the usual way, which needs none of its wrapping.
func newResender(pooled, alone http.RoundTripper) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     retryTransport{pooled: pooled, alone: alone},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		RetryMax:     resends,
		CheckRetry:   checkRetry,
		PrepareRetry: prepareRetry,
		Backoff:      func(time.Duration, time.Duration, int, *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

// retryTransport sends the tries of the resender. It has no CloseIdleConnections: a retryablehttp.Client calls that after every
// failure, and would close the connections to all other receivers.
type retryTransport struct{ pooled, alone http.RoundTripper }

func (t retryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if a := attemptOf(r.Context()); a != nil && a.alone {
		return t.alone.RoundTrip(r)
	}
	return t.pooled.RoundTrip(r)
}

// checkRetry allows another try only where nothing of the last one was written. It is asked after the last try as well,
// so it leaves the attempt as it is: that alone says how far it came.
func checkRetry(ctx context.Context, _ *http.Response, err error) (bool, error) {
	a := attemptOf(ctx)
	return err != nil && a != nil && a.safeToResend(), nil
}

// prepareRetry readies the attempt for its last try, and gives the request the time at which it is sent, and a signature
// of that time.
func prepareRetry(r *http.Request) error {
	if a := attemptOf(r.Context()); a != nil {
		a.again()
		a.alone = true
		r.Header = r.Header.Clone() // the one before is net/http's
		a.renew(r.Header)
	}
	return nil
}

// retryRefusedStream sends the attempt's request anew for as long as the receiver gives it back unread.
func (s *Sender) retryRefusedStream(a *attempt, by *route, req job.Request, err error) (resp *http.Response, _ error) {
	for n := 0; n < maxRefusals && a.refused(err); n++ {
		if n > 0 && !a.rest(refusalWait<<(n-1)) {
			break
		}
		resp, err = s.resend(a, by, req)
	}
	return resp, err
}

// rest waits, and reports whether the attempt has time left.
func (a *attempt) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.Done():
		return false
	}
}

// resend sends the attempt's request anew.
func (s *Sender) resend(a *attempt, by *route, req job.Request) (*http.Response, error) {
	a.again()
	req = a.payload.filled(req)
	a.renew = func(h http.Header) { stamp(h, make([]string, 1), time.Now(), req) }
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
		if err := again.SetBody(retryablehttp.ReaderFunc(func() (io.Reader, error) {
			return bytes.NewReader(req.Body), nil
		})); err != nil {
			return nil, err
		}
	}
	again.GetBody = nil // SetBody sets it, and net/http would replay: see setBody
	resp, err := by.resender.Do(again)
	// http.Client's error repeats the URL.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return resp, err
}
