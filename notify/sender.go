package notify

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"time"

	"github.com/ringback/ringback/job"
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

	// dialContext replaces the guarded dialer in tests.
	dialContext func(ctx context.Context, network, addr string) (net.Conn, error)
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

// A Sender delivers jobs over HTTP/1.1 and HTTP/2, and keeps connections open between attempts.
type Sender struct {
	agent  []string // the User-Agent value, shared by all requests
	routes *routes
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
		routes: newRoutes(func(certificate *tls.Certificate) *route {
			return newRoute(o, &dialer{
				guard:       o.Guard,
				dial:        o.dialContext,
				net:         net.Dialer{Resolver: o.Resolver, KeepAlive: 30 * time.Second},
				tls:         newTLS(o.Roots),
				certificate: certificate,
				proxyFor:    o.ProxyFor,
				agent:       agent,
				http1:       newHostSet(maxKnownHosts),
			})
		}),
	}, nil
}

// Close closes idle connections and ends dials that no attempt waits for. Attempts under way go on.
func (s *Sender) Close() { s.routes.close() }

// Deliver makes one attempt. It returns within req.Timeout, and soon after ctx is cancelled; the result is then of
// class shutdown.
func (s *Sender) Deliver(ctx context.Context, req job.Request) policy.Result {
	a := &attempt{Context: ctx, start: time.Now(), limit: DefaultTimeout, queue: req.Queue}
	if req.Timeout > 0 {
		a.limit = req.Timeout
	}
	defer a.end()
	a.payload = takePayload(&req)
	defer a.payload.keep() // Sent is not called any more
	taken := s.routes.take(req.Certificate)
	defer s.routes.give(taken)

	result := s.try(a, taken, req) //nolint:contextcheck // the attempt is the context
	s.relief.after(&result, s.Close)
	hide(&result, req.Header)
	result.StartedAt = a.start
	result.Duration = time.Since(a.start)
	return result
}

// try sends the request, a second time if the connection was dead, and reads the answer.
func (s *Sender) try(a *attempt, by *route, req job.Request) policy.Result {
	r, err := s.request(a, a.start, a.payload.filled(req))
	if err != nil {
		return policy.Result{Class: policy.ClassInvalid, Error: err.Error()}
	}
	a.payload.feed(r)
	resp, err := by.transport.RoundTrip(r)
	if err != nil && a.safeToResend() && a.payload.keep() {
		resp, err = s.resend(a, by, req)
	}
	if a.refused(err) && a.payload.keep() {
		resp, err = s.retryRefusedStream(a, by, req, err)
	}
	if err != nil {
		return a.failed(err)
	}
	defer func() { _ = resp.Body.Close() }()
	a.reach(phaseBody)
	return a.read(resp, req.KeepBody)
}
