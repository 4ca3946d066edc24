package notify

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/notify/guard"
	"github.com/ringback/ringback/policy"
)

// Bounds of an attempt.
const (
	// MaxRead is the most that is read of an answer's body, in bytes. A longer one is cut there, which costs the
	// connection.
	MaxRead = 64 << 10
	// DefaultTimeout limits an attempt whose request names no limit.
	DefaultTimeout = 10 * time.Second
)

// Options of a Sender. The zero value is complete.
type Options struct {
	// Guard decides which addresses may be dialled; nil: one that admits public addresses only.
	Guard *guard.Guard
	// Version is what User-Agent tells: Ringback/<Version>; empty: "dev".
	Version string
	// MaxIdleConns bounds the connections kept open for later attempts, and MaxIdleConnsPerHost those to one host and
	// port, of attempts with the same client certificate; those of package h1 and those of net/http count apart, and of the
	// latter those of one lane to a host. Zero: 1024 and 256. They are closed after 90 s without use.
	MaxIdleConns        int
	MaxIdleConnsPerHost int
	// Resolver looks names up; nil: net.DefaultResolver.
	Resolver *net.Resolver
	// Roots are the authorities that receivers' certificates must come from; nil: the system's. See RootsWith.
	Roots *x509.CertPool
	// ProxyFor names the forward proxy (http or https, perhaps with a name and a password) that leads to a target, of
	// which it is given the scheme, the host and the port, at each dial and at each attempt over http; a nil URL: none
	// does. Nil: there are no proxies.
	ProxyFor func(target *url.URL) (*url.URL, error)

	// dial replaces the guarded dial in tests.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Validate names every option out of range.
func (o Options) Validate() error {
	var errs []error
	if o.MaxIdleConns < 0 {
		errs = append(errs, errors.New("notify: MaxIdleConns is negative"))
	}
	if o.MaxIdleConnsPerHost < 0 {
		errs = append(errs, errors.New("notify: MaxIdleConnsPerHost is negative"))
	}
	if !validValue(o.Version) {
		errs = append(errs, errors.New("notify: Version has characters that a header cannot carry"))
	}
	return errors.Join(errs...)
}

// An attempt is the context of one request, and its body.
type attempt struct {
	conn.Progress

	payload *payload // nil: the body stays with the request
}

// A Sender delivers jobs over HTTP/1.1 and HTTP/2, and keeps connections open between attempts.
type Sender struct {
	agent  []string // the User-Agent value, shared by all requests
	pool   *conn.Pool
	relief relief
}

// New makes a Sender. It starts nothing.
func New(o Options) (*Sender, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Guard == nil {
		o.Guard = guard.New(guard.Options{})
	}
	if o.Roots == nil {
		// They are read once, and must not be missed for want of a descriptor when the first attempt needs them. An error shows
		// at that attempt.
		_, _ = x509.SystemCertPool()
	}
	agent := "Ringback/" + cmp.Or(o.Version, "dev")
	return &Sender{
		agent: []string{agent},
		pool: conn.NewPool(conn.Options{
			Guard: o.Guard, Agent: agent, MaxIdle: o.MaxIdleConns, MaxIdlePerHost: o.MaxIdleConnsPerHost,
			Resolver: o.Resolver, Roots: o.Roots, ProxyFor: o.ProxyFor, Dial: o.dial,
		}),
	}, nil
}

// Close closes idle connections and ends dials that no attempt waits for. Attempts under way go on.
func (s *Sender) Close() { s.pool.Close() }

// Deliver makes one attempt. It returns within req.Timeout, and soon after ctx is cancelled; the result is then of
// class shutdown.
func (s *Sender) Deliver(ctx context.Context, req job.Request) policy.Result {
	a := &attempt{Progress: conn.Progress{Context: ctx, Start: time.Now(), Limit: DefaultTimeout, Queue: req.Queue}}
	if req.Timeout > 0 {
		a.Limit = req.Timeout
	}
	defer a.End()
	if a.payload = takePayload(&req); a.payload != nil {
		a.OnWritten = a.payload.written
		defer a.payload.keep() // Sent is not called any more
	}
	transport := s.pool.Get(req.Certificate)
	defer s.pool.Put(transport)

	result := s.try(a, transport, req) //nolint:contextcheck // the attempt is the context
	s.relief.after(&result, s.Close)
	redact(&result, req.Header)
	result.StartedAt = a.Start
	result.Duration = time.Since(a.Start)
	return result
}

// try sends the request, a second time if the connection was dead, and reads the answer.
func (s *Sender) try(a *attempt, transport *conn.Transport, req job.Request) policy.Result {
	r, err := s.request(a, a.Start, a.payload.filled(req))
	if err != nil {
		return policy.Result{Class: policy.ClassInvalid, Error: err.Error()}
	}
	a.payload.feed(r)
	resp, err := transport.RoundTrip(r)
	if err != nil && a.SafeToResend() && a.payload.keep() {
		resp, err = s.resend(a, transport, req)
	}
	if a.Refused(err) && a.payload.keep() {
		resp, err = s.retryRefusedStream(a, transport, req, err)
	}
	if err != nil {
		return a.failed(err)
	}
	defer func() { _ = resp.Body.Close() }()
	a.SetPhase(conn.PhaseBody)
	return a.read(resp, req.KeepBody)
}
