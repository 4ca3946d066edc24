package sign

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"time"
)

// DefaultMaxBody is the largest body that the middleware reads by default, in bytes. Ringback sends at most 256 KiB
// (see its --max-body); a callback that includes such a body, escaped as JSON, takes up to six times as much.
const DefaultMaxBody = 4 << 20

// MiddlewareOptions configures Middleware. Zero fields take their defaults.
type MiddlewareOptions struct {
	// MaxBody is the largest body in bytes; zero: DefaultMaxBody. The whole body is in memory until it is verified.
	MaxBody int64
	// Now returns the current time; nil: time.Now.
	Now func() time.Time
}

// Middleware passes requests that v verifies to the handler, with the verified body. Others get a one-line text
// response that reveals nothing about the keys:
//
//	401  unsigned, signed with another key, modified, or out of the tolerance
//	400  the timestamp is not a number, or the body could not be read
//	413  the body is larger than MaxBody
//
// Senders treat all of these as failures and retry; Ringback gives each attempt a new timestamp. The body is not read
// when the headers are invalid.
//
// Replays reach the handler: see the package documentation. Middleware panics if v is nil or MaxBody is negative.
func Middleware(v *Verifier, o MiddlewareOptions) func(http.Handler) http.Handler {
	if v == nil {
		panic("sign: Middleware requires a Verifier")
	}
	if o.MaxBody < 0 {
		panic("sign: MaxBody is negative")
	}
	o.MaxBody = cmp.Or(o.MaxBody, DefaultMaxBody)
	if o.Now == nil {
		o.Now = time.Now
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := verifiedBody(v, o, w, r)
			if err != nil {
				reject(w, err)
				return
			}
			verified := r.WithContext(r.Context()) // a copy: handlers must not modify their request
			verified.Body = io.NopCloser(bytes.NewReader(body))
			verified.ContentLength = int64(len(body))
			verified.TransferEncoding = nil
			next.ServeHTTP(w, verified)
		})
	}
}

// verifiedBody reads the whole body of a request and verifies it.
func verifiedBody(v *Verifier, o MiddlewareOptions, w http.ResponseWriter, r *http.Request) (body []byte, err error) {
	headers, err := v.read(r.Header, o.Now())
	if err != nil {
		return nil, err
	}
	if r.ContentLength > o.MaxBody {
		return nil, &http.MaxBytesError{Limit: o.MaxBody}
	}
	if r.Body != nil {
		// Content-Length does not reserve memory; received bytes do.
		if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, o.MaxBody)); err != nil {
			return nil, err
		}
	}
	return body, v.match(headers, body)
}

// reject responds to a request that was not verified. Errors of this package contain no keys; those of the connection
// are not shown.
func reject(w http.ResponseWriter, err error) {
	status, text := http.StatusBadRequest, "the body could not be read"
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		status, text = http.StatusRequestEntityTooLarge, "the body is too large"
	case errors.Is(err, ErrMissing), errors.Is(err, ErrSignature), errors.Is(err, ErrTooOld), errors.Is(err, ErrTooNew):
		status, text = http.StatusUnauthorized, err.Error()
	case errors.Is(err, ErrTimestamp):
		text = err.Error()
	}
	http.Error(w, text, status)
}
