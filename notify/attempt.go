package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// errLimit is the cause with which an attempt's context ends when its own limit runs out. Any other end of that context
// is the caller's doing.
var errLimit = errors.New("the limit of the attempt ran out")

// A phase is how far an attempt has come.
type phase int32

// The phases, in order. An attempt in phaseNone has not asked for a connection.
const (
	phaseNone phase = iota
	phaseDial
	phaseTLS
	phaseSend
	phaseHeaders
	phaseBody
)

// timeout is the class of an attempt whose time ran out in the phase.
func (p phase) timeout() policy.ErrorClass {
	switch p {
	case phaseTLS:
		return policy.ClassTimeoutTLS
	case phaseSend:
		return policy.ClassTimeoutSend
	case phaseHeaders:
		return policy.ClassTimeoutHeaders
	case phaseBody:
		return policy.ClassTimeoutBody
	default:
		return policy.ClassTimeoutDial
	}
}

// String completes "… ran out while".
func (p phase) String() string {
	switch p {
	case phaseTLS:
		return "shaking hands over TLS"
	case phaseSend:
		return "sending the request"
	case phaseHeaders:
		return "waiting for the header of the answer"
	case phaseBody:
		return "reading the body of the answer"
	default:
		return "resolving the name or connecting"
	}
}

// An attempt is the context of one request, and what is observed of it on the way. It is a context itself (rather than
// a value in one) to spare an allocation, and never reused: a dial started for it may outlive it.
type attempt struct {
	context.Context //nolint:containedctx // it is one

	cancel context.CancelFunc // of the limit; nil: see bound
	start  time.Time
	limit  time.Duration
	queue  job.Queue // of the job
	target string    // host and port, where net/http sends the request

	phase       atomic.Int32
	headersSent atomic.Bool

	// What was written to the connection that the request went to, and before until then; nil for HTTP/2, whose
	// connections are shared. Only the goroutine in RoundTrip touches these.
	sent     counter
	before   int64
	conn     *countingConn // that of net/http's HTTP/1; nil otherwise
	shared   *tls.Conn     // that of HTTP/2; nil otherwise
	reused   bool
	replayed bool
	alone    bool // the next try goes to a connection of its own

	dials atomic.Int32 // connections over TLS that were opened for it

	payload *payload // nil: the body stays with the request

	// renew stamps the header of a request that is sent again; nil until one is.
	renew func(http.Header)
}

// A counter counts what is written to a connection.
type counter interface {
	Written() int64    // bytes
	WriteFailed() bool // a write was cut off
}

// attemptKey finds the attempt in a context derived from it.
type attemptKey struct{}

// Value is context.Context's.
func (a *attempt) Value(key any) any {
	if _, ok := key.(attemptKey); ok {
		return a
	}
	return a.Context.Value(key)
}

// attemptOf is the attempt for which a context was made; nil when there is none.
func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// bound has the context end with the attempt's limit. Package h1 needs no timer for that: its connections and
// dials have a deadline.
func (a *attempt) bound() {
	if a.cancel == nil {
		a.Context, a.cancel = context.WithDeadlineCause(a.Context, a.deadline(), errLimit)
	}
}

func (a *attempt) deadline() time.Time { return a.start.Add(a.limit) }

// over reports whether the attempt has no time left, or was given up.
func (a *attempt) over() bool { return a.Err() != nil || !time.Now().Before(a.deadline()) }

func (a *attempt) end() {
	if a.cancel != nil {
		a.cancel()
	}
}

// traced is the attempt's context with the hooks that tell how far its request comes. Dial and TLS are told by the
// dialer, so that these three are enough.
func (a *attempt) traced() context.Context {
	return httptrace.WithClientTrace(a, &httptrace.ClientTrace{
		GotConn:      a.gotConn,
		WroteHeaders: a.wroteHeaders,
		WroteRequest: a.wroteRequest,
	})
}

// gotConn notes the connection. net/http comes here a second time when it sends a request without a body again by
// itself: over HTTP/1 because nothing of it had been written, which is well; over HTTP/2 because the peer gave it back.
// There the attempt ends instead, before the replay is written.
func (a *attempt) gotConn(info httptrace.GotConnInfo) {
	if a.headersSent.Load() && !a.nothingWritten() {
		a.replayed = true
		a.cancel()
		return
	}
	a.conn, _ = info.Conn.(*countingConn)
	a.shared, _ = info.Conn.(*tls.Conn)
	if a.conn == nil {
		a.got(nil, info.Reused)
		return
	}
	if info.Reused {
		a.conn.settle(a.queue)
	} else {
		a.conn.queue = a.queue
	}
	a.got(a.conn, info.Reused)
}

// got notes what counts the bytes of the connection that the request goes to.
func (a *attempt) got(sent counter, reused bool) {
	a.reused, a.sent = reused, sent
	if sent != nil {
		a.before = sent.Written()
	}
	a.reach(phaseSend)
}

// wrote notes that package h1 has written the request, or as much of it as it could.
func (a *attempt) wrote(err error) {
	a.reach(phaseHeaders)
	if err == nil {
		a.payload.release()
	}
}

func (a *attempt) wroteHeaders() { a.headersSent.Store(true) }

func (a *attempt) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err != nil {
		return
	}
	a.reach(phaseHeaders)
	switch {
	case a.payload == nil:
	case a.shared != nil:
		a.payload.releaseLater()
	case a.sent != nil && !a.nothingWritten():
		a.payload.release()
	}
}

// reach moves the phase on, never back: a dial that is not needed any more may still report.
func (a *attempt) reach(p phase) {
	for {
		now := a.phase.Load()
		if now >= int32(p) || a.phase.CompareAndSwap(now, int32(p)) {
			return
		}
	}
}

// ended is the phase in which a failed attempt ended. net/http says that it wrote the request when that lies in its
// buffer, and has given up writing by the time that it reports a failure; package h1 looks for an answer even when
// the request was cut off.
func (a *attempt) ended() phase {
	p := phase(a.phase.Load())
	if p == phaseHeaders && a.sent != nil && a.sent.WriteFailed() {
		return phaseSend
	}
	return p
}

// safeToResend reports whether a failed request may be sent again within the attempt: it went to a connection from the pool,
// and not a byte of it was written. httptrace's WroteHeaders would not do: it tells of net/http's buffer, not of the
// connection. net/http has given up writing by the time that it reports a failure, so none can follow. Over HTTP/2
// nothing is known of the bytes of one request, so none is sent again.
func (a *attempt) safeToResend() bool {
	return a.reused && a.nothingWritten() && !a.over()
}

// refused reports whether a request over HTTP/2 was one too many, and not looked at: the receiver gave it back with
// REFUSED_STREAM, which RFC 9113 §8.7 lets a sender rely on, or net/http learned that the connection is full when it had
// the body in its hands, but had written nothing. Neither error has a type. A request without a body net/http sends again
// by itself, and does not say why, so gotConn ends that attempt.
func (a *attempt) refused(err error) bool {
	if err == nil || a.shared == nil || a.replayed || a.over() {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "; REFUSED_STREAM; received from peer") ||
		strings.Contains(text, "cannot rewind body after connection loss") && !a.headersSent.Load()
}

// nothingWritten reports whether nothing was written to the connection that the attempt was given.
func (a *attempt) nothingWritten() bool { return a.sent != nil && a.sent.Written() == a.before }

// again makes the attempt ready for the request to be sent anew: what is known of the last try, and stands for the error
// that it ended with, is lost.
func (a *attempt) again() {
	a.phase.Store(int32(phaseNone))
	a.headersSent.Store(false)
	a.sent, a.conn, a.shared, a.reused = nil, nil, nil, false
}
