package sign

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"time"
)

// DefaultMaxBody is how much of a body the middleware reads, in bytes. Ringback sends at most 256 KiB of a job unless its
// --max-body says otherwise; a callback that includes such a body takes up to six times as much, escaped as JSON.
const DefaultMaxBody = 4 << 20

// MiddlewareOptions of Middleware. The zero value is complete.
type MiddlewareOptions struct {
	// MaxBody is the largest body that is read, in bytes; zero: DefaultMaxBody. It is held in memory, since nothing of a
	// body may be believed before all of it was verified.
	MaxBody int64
	// Now is the receiver's clock; nil: time.Now.
	Now func() time.Time
}

// Middleware lets requests pass that v verifies. The handler gets the request with a body that it can read from the
// start, the same bytes that were verified. Others are answered with a line of text that tells nothing of the keys:
//
//	401  not signed, signed with another key, changed on the way, or out of the tolerance
//	400  the timestamp is no number, or the body could not be read
//	413  the body is larger than MaxBody
//
// All of these are failures to a sender, which then tries again; with Ringback each attempt has a timestamp of its own.
// Nothing of the body is read when the headers alone are reason enough to refuse.
//
// The handler sees a request again that comes again: how to tell is said in the package's documentation. Middleware
// panics when v is nil, or MaxBody is negative.
func Middleware(v *Verifier, o MiddlewareOptions) func(http.Handler) http.Handler {
	if v == nil {
		panic("sign: Middleware needs a Verifier")
	}
	if o.MaxBody < 0 {
		panic("sign: MaxBody is negative")
	}
	o.MaxBody = cmp.Or(o.MaxBody, DefaultMaxBody)
	if o.Now == nil {
		o.Now = time.Now
	}
	return func(next http.Handler) http.Handler {
		return &gate{verifier: v, options: o, next: next}
	}
}

// A gate is the handler in front of a handler.
type gate struct {
	verifier *Verifier
	options  MiddlewareOptions
	next     http.Handler
}

// ServeHTTP verifies the request and passes it on, or refuses it.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := g.verifier.read(r.Header, g.options.Now())
	if err != nil {
		refuse(w, err)
		return
	}
	body, err := g.body(w, r)
	if err != nil {
		refuse(w, err)
		return
	}
	if err := g.verifier.match(c, body); err != nil {
		refuse(w, err)
		return
	}
	verified := r.WithContext(r.Context()) // a copy: a handler must not change what it was given
	verified.Body = io.NopCloser(bytes.NewReader(body))
	verified.ContentLength = int64(len(body))
	verified.TransferEncoding = nil
	g.next.ServeHTTP(w, verified)
}

// body reads the whole body.
func (g *gate) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	if r.ContentLength > g.options.MaxBody {
		return nil, &http.MaxBytesError{Limit: g.options.MaxBody}
	}
	// A length that is only claimed reserves no memory: what comes does.
	return io.ReadAll(http.MaxBytesReader(w, r.Body, g.options.MaxBody))
}

// refuse answers a request that was not verified. The errors of this package hold nothing of keys; those of a
// connection are not shown.
func refuse(w http.ResponseWriter, err error) {
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
