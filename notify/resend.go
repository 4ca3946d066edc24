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

// resends is how often the resender tries again after its own first request: with the attempt's first one that makes
// three dead connections in a row before the attempt fails.
const resends = 1

// newResender makes the client for requests whose first connection was dead before a byte was written. It is kept off
// the usual way, which needs none of its wrapping.
func newResender(transport http.RoundTripper) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     bare{transport},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		RetryMax:     resends,
		CheckRetry:   checkRetry,
		Backoff:      func(time.Duration, time.Duration, int, *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

// bare hides the transport's CloseIdleConnections: a retryablehttp.Client calls it after every failure, and would close
// the connections to all other receivers.
type bare struct{ http.RoundTripper }

// checkRetry allows another try only where nothing of the last one was written.
func checkRetry(ctx context.Context, _ *http.Response, err error) (bool, error) {
	a := attemptOf(ctx)
	if err == nil || a == nil || !a.stale() {
		return false, nil
	}
	a.again()
	return true, nil
}

// resend sends the attempt's request anew.
func (s *Sender) resend(a *attempt, req job.Request) (*http.Response, error) {
	a.again()
	r, err := s.request(a.traced(), a.start, req)
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
	resp, err := s.resender.Do(again)
	// http.Client's error repeats the URL.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return resp, err
}
