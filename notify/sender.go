package notify

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/notify/guard"
	"github.com/ringback/ringback/policy"
)

// Bounds of an attempt.
const (
	// MaxRead is the number of bytes read of a response's body. A longer body is truncated, and the connection is
	// closed.
	MaxRead = 64 << 10
	// defaultTimeout limits an attempt whose request names no limit.
	defaultTimeout = 10 * time.Second
)

// Options of a Sender are those of its connections. Without a Guard it calls public addresses only.
type Options = conn.Options

// attempt is the context of one request, and its body.
type attempt struct {
	conn.Progress

	payload  *payload // nil: the body stays with the request
	repeated bool     // sent again although it may have been read
	fresh    bool     // and over a connection of its own
}

// A Sender delivers jobs over HTTP/1.1 and HTTP/2, and keeps connections open between attempts.
type Sender struct {
	agent []string // the User-Agent value, shared by all requests
	pool  *conn.Pool
	freed atomic.Int64 // when a shortage last closed idle connections, in nanoseconds
}

// New returns a Sender. It starts nothing.
func New(o Options) (*Sender, error) {
	o.Agent = cmp.Or(o.Agent, "Ringback/dev")
	switch {
	case o.MaxIdle < 0:
		return nil, errors.New("notify: MaxIdle is negative")
	case !job.IsFieldValue(o.Agent):
		return nil, errors.New("notify: Agent has characters that a header cannot carry")
	}
	if o.Guard == nil {
		o.Guard = guard.New(guard.Options{})
	}
	if o.Roots == nil {
		// Read now, so that the first attempt does not fail for want of a descriptor. An error shows at that attempt.
		_, _ = x509.SystemCertPool()
	}
	return &Sender{agent: []string{o.Agent}, pool: conn.NewPool(o)}, nil
}

// SetRoots replaces Options.Roots. Open connections are used on, for two minutes at most.
func (s *Sender) SetRoots(roots *x509.CertPool) { s.pool.SetRoots(roots) }

// Close closes idle connections and ends dials that no attempt waits for. Attempts under way go on.
func (s *Sender) Close() { s.pool.Close() }

// Deliver makes one attempt. It returns within req.Timeout, and soon after ctx is cancelled; the result is then of
// class shutdown.
func (s *Sender) Deliver(ctx context.Context, req job.Request) policy.Result {
	a := &attempt{Progress: conn.Progress{Context: ctx, Start: time.Now(), Limit: defaultTimeout, Queue: req.Queue}}
	if req.Timeout > 0 {
		a.Limit = req.Timeout
	}
	defer a.End()
	if a.payload = takePayload(&req); a.payload != nil {
		a.OnWritten = a.payload.written
		defer a.payload.keep() // Sent is not called after the attempt
	}
	transport := s.pool.Get(req.Certificate)
	defer s.pool.Put(transport)

	result := s.try(a, transport, req)
	if result.Class == policy.ClassLocalResources {
		s.freeIdle()
	}
	redact(&result, &req)
	result.StartedAt = a.Start
	result.Duration = time.Since(a.Start)
	timing := a.Timing()
	result.Phases = policy.Phases{
		DNS: timing.DNS, Connect: timing.Connect, TLS: timing.TLS,
		FirstByte: timing.FirstByte,
	}
	result.RemoteAddr = timing.RemoteAddr
	return result
}

// try sends the request, again where that is safe, and reads the response.
func (s *Sender) try(a *attempt, transport *conn.Transport, req job.Request) policy.Result {
	r, err := s.request(a, a.Start, a.payload.filled(req))
	if err != nil {
		return policy.Result{Class: policy.ClassInvalid, Error: err.Error()}
	}
	a.payload.feed(r)
	resp, err := transport.RoundTrip(r)
	if a.mayRepeat(err) && a.payload.keep() {
		resp, err = s.resend(a, transport, req)
	}
	if a.Refused(err) && a.payload.keep() {
		resp, err = s.retryRefused(a, transport, req, err)
	}
	if err != nil {
		class, text := a.classify(err)
		return policy.Result{Class: class, Error: text}
	}
	defer func() { _ = resp.Body.Close() }()
	a.SetAnswered()
	return a.read(resp, req.KeepBody)
}
