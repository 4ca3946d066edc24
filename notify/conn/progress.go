package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/job"
)

// ErrLimit is the cause with which the context of a Progress ends when its limit runs out. Any other end of that context is
// its caller's doing.
var ErrLimit = errors.New("the limit of the attempt ran out")

// A Phase is how far a request has come.
type Phase int32

// The phases, in order. A request in PhaseNone has not asked for a connection.
const (
	PhaseNone Phase = iota
	PhaseDial
	PhaseTLS
	PhaseSend
	PhaseHeaders
	PhaseBody
)

// String completes "… ran out while".
func (p Phase) String() string {
	switch p {
	case PhaseTLS:
		return "shaking hands over TLS"
	case PhaseSend:
		return "sending the request"
	case PhaseHeaders:
		return "waiting for the header of the answer"
	case PhaseBody:
		return "reading the body of the answer"
	default:
		return "resolving the name or connecting"
	}
}

// A Progress is the context of one request, and records how far it came. It is a context itself (rather than a value in one)
// to spare an allocation, and never reused for another job: a dial started for it may outlive it.
type Progress struct {
	context.Context //nolint:containedctx // it is one

	Start time.Time
	Limit time.Duration // from Start to the last byte of the response
	Queue job.Queue     // connections over HTTP/1 are shared by its requests alone
	// OnWritten is called when the request was written to its connection; nil: nobody asks. Over HTTP/2 the receiver may
	// still refuse it unread.
	OnWritten func(http2 bool)

	cancel context.CancelFunc // of the limit; nil: see bound
	target string             // host and port, where net/http sends the request

	phase       atomic.Int32
	headersSent atomic.Bool

	// What was written to the connection that the request went to, and before until then; nil for HTTP/2, whose
	// connections are shared. Only the goroutine in RoundTrip touches these.
	sent     counter
	before   int64
	http2    bool
	reused   bool
	replayed bool

	dials atomic.Int32 // connections over TLS that were opened for it
}

// A counter counts what is written to a connection.
type counter interface {
	Written() int64    // bytes
	WriteFailed() bool // a write was cut off
}

// progressKey finds the Progress in a context derived from it.
type progressKey struct{}

// Value is context.Context's.
func (p *Progress) Value(key any) any {
	if _, ok := key.(progressKey); ok {
		return p
	}
	return p.Context.Value(key)
}

// progressOf returns the Progress that a context was derived from, or a new one of 10 s.
func progressOf(ctx context.Context) *Progress {
	if p, ok := ctx.Value(progressKey{}).(*Progress); ok {
		return p
	}
	return &Progress{Context: ctx, Start: time.Now(), Limit: 10 * time.Second}
}

// bound has the context end with the limit. Package h1 needs no timer for that: its connections and dials have a deadline.
func (p *Progress) bound() {
	if p.cancel == nil {
		p.Context, p.cancel = context.WithDeadlineCause(p.Context, p.deadline(), ErrLimit)
	}
}

func (p *Progress) deadline() time.Time { return p.Start.Add(p.Limit) }

// isOver reports whether no time is left, or the caller gave up.
func (p *Progress) isOver() bool { return p.Err() != nil || !time.Now().Before(p.deadline()) }

// End releases what the context holds. It must be called when the request is over.
func (p *Progress) End() {
	if p.cancel != nil {
		p.cancel()
	}
}

// traced is the context with the hooks that record how far a request of net/http comes. The dialer records dials and
// handshakes.
func (p *Progress) traced() context.Context {
	return httptrace.WithClientTrace(p, &httptrace.ClientTrace{
		GotConn:      p.gotConn,
		WroteHeaders: func() { p.headersSent.Store(true) },
		WroteRequest: p.wroteRequest,
	})
}

// gotConn notes the connection. net/http comes here a second time when it sends a request without a body again by
// itself: over HTTP/1 because nothing of it had been written, which is well; over HTTP/2 because the peer refused it. There
// the request ends instead, before the replay is written.
func (p *Progress) gotConn(info httptrace.GotConnInfo) {
	if p.headersSent.Load() && !p.nothingWritten() {
		p.replayed = true
		p.cancel()
		return
	}
	_, p.http2 = info.Conn.(*tls.Conn)
	conn, ok := info.Conn.(*countingConn)
	if !ok {
		p.got(nil, info.Reused)
		return
	}
	if info.Reused {
		conn.settle(p.Queue)
	} else {
		conn.queue = p.Queue
	}
	p.got(conn, info.Reused)
}

// got notes what counts the bytes of the connection that the request goes to.
func (p *Progress) got(sent counter, reused bool) {
	p.reused, p.sent = reused, sent
	if sent != nil {
		p.before = sent.Written()
	}
	p.SetPhase(PhaseSend)
}

// wrote notes that package h1 has written the request, or as much of it as it could.
func (p *Progress) wrote(err error) {
	p.SetPhase(PhaseHeaders)
	if err == nil && p.OnWritten != nil {
		p.OnWritten(false)
	}
}

func (p *Progress) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err != nil {
		return
	}
	p.SetPhase(PhaseHeaders)
	if p.OnWritten != nil && (p.http2 || p.sent != nil && !p.nothingWritten()) {
		p.OnWritten(p.http2)
	}
}

// SetPhase moves the phase on, never back: a dial that is not needed any more may still report.
func (p *Progress) SetPhase(phase Phase) {
	for {
		now := p.phase.Load()
		if now >= int32(phase) || p.phase.CompareAndSwap(now, int32(phase)) {
			return
		}
	}
}

// Phase is how far the request came. net/http says that it wrote a request when that is in its buffer, and has given up
// writing by the time that it reports a failure; package h1 looks for a response even when the request was cut off.
func (p *Progress) Phase() Phase {
	phase := Phase(p.phase.Load())
	if phase == PhaseHeaders && p.sent != nil && p.sent.WriteFailed() {
		return PhaseSend
	}
	return phase
}

// SafeToResend reports whether a failed request may be sent again: it went to a connection from the pool, and not a byte of
// it was written. httptrace's WroteHeaders would not do: it tells of net/http's buffer, not of the connection. net/http has
// given up writing by the time that it reports a failure, so none can follow. Over HTTP/2 nothing is known of the bytes of
// one request, so none is safe.
func (p *Progress) SafeToResend() bool { return p.reused && p.nothingWritten() && !p.isOver() }

// nothingWritten reports whether nothing was written to the connection that the request was given.
func (p *Progress) nothingWritten() bool { return p.sent != nil && p.sent.Written() == p.before }

// Refused reports whether the receiver refused a request over HTTP/2 unread, and time is left: with REFUSED_STREAM, which RFC
// 9113 §8.7 lets a sender rely on, or net/http learned that the connection is full when it had the body in its hands, but
// had written nothing. Neither error has a type. A request without a body net/http sends again by itself, and does not say
// why, so that ends with Replayed.
func (p *Progress) Refused(err error) bool {
	if err == nil || !p.http2 || p.replayed || p.isOver() {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "; REFUSED_STREAM; received from peer") ||
		strings.Contains(text, "cannot rewind body after connection loss") && !p.headersSent.Load()
}

// Replayed reports whether the request ended because net/http was about to send it again after a receiver refused it.
func (p *Progress) Replayed() bool { return p.replayed }

// Reset makes the Progress ready for the request to be sent again. What is known of the last try is lost.
func (p *Progress) Reset() {
	p.phase.Store(int32(PhaseNone))
	p.headersSent.Store(false)
	p.sent, p.http2, p.reused = nil, false, false
}
