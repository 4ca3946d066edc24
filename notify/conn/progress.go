package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/h1"
)

// ErrLimit is the cause of a Progress's context that ended at its limit. Any other cause comes from the caller.
var ErrLimit = errors.New("the limit of the attempt ran out")

// RaceWindow is the time after the start of a request in which the end of its reused connection is taken for that of an
// idle connection: the receiver closed it while the request was on its way. The request may then be sent again.
const RaceWindow = time.Second

// A Phase is a stage of a request.
type Phase int32

// The phases, in order. PhaseNone is before a connection is requested.
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

// A Progress is the context of one request and records its phase. It is a context, rather than a value in one, to save
// an allocation. It must not be reused for another job: a dial started for it may outlive it.
type Progress struct {
	context.Context //nolint:containedctx // a Progress is a context

	Start time.Time
	Limit time.Duration // from Start to the last byte of the response
	Queue job.Queue     // requests of one queue share HTTP/1 connections
	// OnWritten is called when the request was written to its connection; may be nil. It is final unless the request
	// may have to be sent again: over HTTP/2 and over a reused connection.
	OnWritten func(final bool)

	cancel context.CancelFunc // of the limit; nil: see bound
	target string             // host and port, where net/http sends the request

	phase       atomic.Int32
	headersSent atomic.Bool
	answering   atomic.Bool // the first byte of a response was read

	// The counter of the request's connection, nil for HTTP/2, whose connections are shared, and its count at the start
	// of the request. Only used by the goroutine in RoundTrip.
	sent     *h1.WriteCounter
	counting *countingConn // of net/http over HTTP/1, else nil
	before   int64
	http2    bool
	reused   bool

	dials   atomic.Int32               // connections over TLS that were opened for it
	dialing atomic.Pointer[dialRecord] // of its last dial; nil: none

	// The dial of the request's connection, when the request began on it, and when it was answered. Only used by the
	// goroutine in RoundTrip.
	dialled         *dialRecord
	begun, answered time.Time
}

// progressKey is the key of a Progress in contexts derived from it.
type progressKey struct{}

// Value implements context.Context.
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

// bound makes the context end at the limit. Package h1 does not need it: its connections and dials have deadlines.
func (p *Progress) bound() {
	if p.cancel == nil {
		p.Context, p.cancel = context.WithDeadlineCause(p.Context, p.deadline(), ErrLimit)
	}
}

func (p *Progress) deadline() time.Time { return p.Start.Add(p.Limit) }

// isOver reports whether the limit passed or the context ended.
func (p *Progress) isOver() bool { return p.Err() != nil || !time.Now().Before(p.deadline()) }

// End releases the context. It must be called after the request.
func (p *Progress) End() {
	if p.cancel != nil {
		p.cancel()
	}
}

// traced returns the request with the hooks that record its phases in net/http. The dialer records dials and
// handshakes.
//
// Over HTTP/2 net/http replays a request without a body that the receiver gave back: with the old signature, and also
// after errors that do not tell that it was unread. It does not replay a body, so the request gets one that nobody
// reads when the fields of its header are written: net/http has found by then that it has none. net/http reads the
// field beside that only if the receiver answers, or the attempt ends, before the header is written; it then compares
// it with nil, and acts on either alike.
func (p *Progress) traced(r *http.Request) *http.Request {
	trace := &httptrace.ClientTrace{
		GotConn:              p.gotConn,
		WroteHeaders:         func() { p.headersSent.Store(true) },
		WroteRequest:         p.wroteRequest,
		GotFirstResponseByte: p.setAnswering,
	}
	var traced *http.Request
	if r.Body == nil {
		trace.WroteHeaderField = func(string, []string) {
			if p.http2 {
				traced.Body = unread
			}
		}
	}
	traced = r.WithContext(httptrace.WithClientTrace(p, trace))
	return traced
}

// unread is an empty body.
var unread = io.NopCloser(strings.NewReader(""))

// gotConn records the connection. net/http calls it again when nothing of the request was written to the last one.
func (p *Progress) gotConn(info httptrace.GotConnInfo) {
	secured, http2 := info.Conn.(*tls.Conn)
	p.http2 = http2
	conn, ok := info.Conn.(*countingConn)
	if !ok {
		var dialled *dialRecord
		if http2 {
			if below, ok := secured.NetConn().(*handshakeConn); ok {
				dialled = below.dialled
			}
		}
		p.got(nil, dialled, info.Reused)
		return
	}
	if info.Reused {
		conn.settle(p.Queue)
	} else {
		conn.queue = p.Queue
	}
	p.got(&conn.WriteCounter, conn.dialled, info.Reused)
	p.counting = conn
}

// got sets the counter and the dial of the request's connection.
func (p *Progress) got(sent *h1.WriteCounter, dialled *dialRecord, reused bool) {
	p.reused, p.sent, p.counting, p.dialled, p.begun = reused, sent, nil, dialled, time.Now()
	if reused {
		p.dialing.Store(nil)
	}
	if sent != nil {
		p.before = sent.Written()
	}
	p.SetPhase(PhaseSend)
}

// wrote records that package h1 has written the request, or as much of it as it could.
func (p *Progress) wrote(err error) {
	p.SetPhase(PhaseHeaders)
	if err == nil && p.OnWritten != nil {
		p.OnWritten(!p.reused)
	}
}

func (p *Progress) setAnswering() { p.answering.Store(true) }

func (p *Progress) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err != nil {
		return
	}
	p.SetPhase(PhaseHeaders)
	if p.OnWritten != nil && (p.http2 || p.sent != nil && !p.nothingWritten()) {
		p.OnWritten(!p.http2 && !p.reused)
	}
}

// SetAnswered records that the header of the response was read.
func (p *Progress) SetAnswered() {
	p.answered = time.Now()
	p.SetPhase(PhaseBody)
}

// SetPhase advances the phase, never back: an abandoned dial may still report.
func (p *Progress) SetPhase(phase Phase) {
	for {
		now := p.phase.Load()
		if now >= int32(phase) || p.phase.CompareAndSwap(now, int32(phase)) {
			return
		}
	}
}

// Phase returns the phase of the request. net/http reports a request as written when it is in its buffer, and stops
// writing before it reports a failure; package h1 reads a response even when the request could not be written whole.
func (p *Progress) Phase() Phase {
	phase := Phase(p.phase.Load())
	if phase == PhaseHeaders && p.sent != nil && p.sent.WriteFailed() {
		return PhaseSend
	}
	return phase
}

// SafeToResend reports whether a failed request may be sent again: it used an idle connection, and no byte of it was
// written. httptrace's WroteHeaders reports writes to net/http's buffer, not to the connection. net/http stops writing
// before it reports a failure. Over HTTP/2 the bytes of one request are unknown, so the result is false.
func (p *Progress) SafeToResend() bool { return p.reused && p.nothingWritten() && !p.isOver() }

// OverHTTP2 reports whether the request used an HTTP/2 connection.
func (p *Progress) OverHTTP2() bool { return p.http2 }

// LostUnanswered reports whether a failed request may be sent once more, over a new connection, although the receiver
// may have read it: its reused connection ended within RaceWindow, before any byte of a response. Nearly always the
// receiver had closed the connection as idle. If it had not, it recognises the request by its webhook-id, as in any
// later attempt.
//
// A GOAWAY that includes the request shows that the receiver did read it, so the result is false.
func (p *Progress) LostUnanswered(err error) bool {
	return p.reused && !p.answering.Load() && time.Since(p.begun) < RaceWindow && isLost(err) && !p.isOver()
}

// isLost reports whether an error is the end of a connection.
func isLost(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, end) {
			return true
		}
	}
	return err != nil && (strings.Contains(err.Error(), "server closed idle connection") ||
		strings.Contains(err.Error(), "http2: client conn"))
}

// nothingWritten reports whether nothing was written to the request's connection.
func (p *Progress) nothingWritten() bool { return p.sent != nil && p.sent.Written() == p.before }

// refusals are parts of net/http's untyped errors for a request that the receiver certainly did not handle.
var refusals = []string{
	"; REFUSED_STREAM; received from peer",       // RFC 9113 §8.7
	"received Server's graceful shutdown GOAWAY", // its stream is above the last one that the receiver handles (§6.8)
	"received GOAWAY from server ErrCode:",       // the same, for the first request of a connection
}

// Refused reports whether the receiver gave a request back over HTTP/2 unread, and time is left: see refusals. Or
// net/http found the connection full or closed before it wrote anything.
func (p *Progress) Refused(err error) bool {
	if err == nil || !p.http2 || p.isOver() {
		return false
	}
	text := err.Error()
	return slices.ContainsFunc(refusals, func(part string) bool { return strings.Contains(text, part) }) ||
		strings.Contains(text, "cannot rewind body after connection loss") && !p.headersSent.Load()
}

// Reset prepares the Progress for sending the request again.
func (p *Progress) Reset() {
	p.phase.Store(int32(PhaseNone))
	p.headersSent.Store(false)
	p.answering.Store(false)
	p.sent, p.counting, p.http2, p.reused = nil, nil, false, false
	p.dialing.Store(nil)
	p.dialled, p.begun, p.answered = nil, time.Time{}, time.Time{}
}
