package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/notify/guard"
	"github.com/ringback/ringback/notify/h1"
	"github.com/ringback/ringback/policy"
)

// maxText bounds an error's text, in bytes.
const maxText = 300

// classify returns the class of an attempt's error and a one-line description.
//
// Order matters. An error that only this process, the peer or the network can cause counts even if the limit passed at
// the same time. Any other error after the end of the context is its consequence.
func (a *attempt) classify(err error) (policy.ErrorClass, string) {
	class, text := a.classOf(err)
	return class, policy.OneLine(text, maxText)
}

func (a *attempt) classOf(err error) (policy.ErrorClass, string) {
	if text, ok := asShortage(err); ok {
		return policy.ClassLocalResources, text
	}
	if class, text := byPeer(err); class != policy.ClassNone {
		return class, text
	}
	if errors.Is(err, h1.ErrHeaderTooLarge) {
		return policy.ClassTooLarge, tooLargeText
	}
	if errors.Is(err, h1.ErrSpokeFirst) {
		return policy.ClassReset, err.Error()
	}
	at, after := a.Phase(), time.Since(a.Start)
	timeout, ok := errors.AsType[net.Error](err)
	ranOut := ok && timeout.Timeout()
	cause := context.Cause(a.Context)
	switch {
	// dials and package h1 have deadlines; a timer may be late
	case errors.Is(cause, conn.ErrLimit), cause == nil && after >= a.Limit:
		return timeoutFailure(at, fmt.Sprintf("the limit of %s for the whole attempt ran out", a.Limit))
	case cause != nil:
		return policy.ClassShutdown, "the attempt was given up: this process stops"
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return policy.ClassDNS, dnsText(e)
	}
	if ranOut {
		return timeoutFailure(at, fmt.Sprintf("timed out after %s", after.Round(time.Millisecond)))
	}
	if e, ok := errors.AsType[*conn.HandshakeError](err); ok {
		return handshakeFailure(e)
	}
	if _, ok := errors.AsType[*net.AddrError](err); ok {
		return policy.ClassInvalid, "no request can be made: " + err.Error()
	}
	// Not ClassInvalid, which is final: invalid requests fail when they are built.
	if at <= conn.PhaseDial {
		return policy.ClassOther, err.Error()
	}
	return byText(err)
}

// byPeer classifies errors that only the receiver, the network or the guard can cause.
func byPeer(err error) (policy.ErrorClass, string) {
	if e, ok := errors.AsType[*guard.BlockedError](err); ok {
		return policy.ClassBlocked, e.Error()
	}
	if e, ok := errors.AsType[*conn.PartlyBlockedError](err); ok {
		return policy.ClassUnreachable, e.Error()
	}
	if e, ok := errors.AsType[*conn.ProxyError](err); ok {
		if e.TimedOut() {
			return policy.ClassNone, "" // the limit is classified later
		}
		return policy.ClassProxy, proxyText(e)
	}
	if _, ok := errors.AsType[*conn.HandshakeError](err); ok {
		return policy.ClassNone, "" // it is not an error of a connection in use
	}
	if code, ok := remoteAlert(err); ok {
		class, text := alertFailure(code, err)
		return class, "TLS: " + text
	}
	if known := byErrno(err); known != nil {
		return known.class, known.text
	}
	return policy.ClassNone, ""
}

// timeoutFailure classifies an attempt that timed out in a phase.
func timeoutFailure(phase conn.Phase, text string) (policy.ErrorClass, string) {
	text += fmt.Sprintf(" while %s", phase)
	switch phase {
	case conn.PhaseTLS:
		return policy.ClassTimeoutTLS, text + helloHint
	case conn.PhaseSend:
		return policy.ClassTimeoutSend, text
	case conn.PhaseHeaders:
		return policy.ClassTimeoutHeaders, text
	case conn.PhaseBody:
		return policy.ClassTimeoutBody, text
	default:
		return policy.ClassTimeoutDial, text
	}
}

// proxyText describes an error between us and the proxy. It contains nothing that the proxy wrote, since a proxy may
// repeat credentials.
func proxyText(e *conn.ProxyError) string {
	if e.Err == nil {
		return e.Error()
	}
	cause := "what it sent is no HTTP"
	if _, ok := errors.AsType[*net.DNSError](e.Err); ok {
		cause = "its name does not resolve"
	} else if known := byErrno(e.Err); known != nil {
		cause = known.text
	} else if op, ok := errors.AsType[*net.OpError](e.Err); ok {
		cause = op.Err.Error()
	} else if _, text := tlsFailure(e.Err, false); text != "" {
		cause = text
	}
	return e.Error() + ": " + cause
}

// errno is a system error of a connection and its text.
type errno struct {
	err   error
	class policy.ErrorClass
	text  string
}

// byErrno returns the errno that an error wraps, if any.
func byErrno(err error) *errno {
	for i := range errnos {
		if errors.Is(err, errnos[i].err) {
			return &errnos[i]
		}
	}
	return nil
}

// errnos are system errors that this process cannot cause.
var errnos = []errno{
	{syscall.ECONNREFUSED, policy.ClassRefused, "connection refused: no listener on the port"},
	{syscall.EHOSTUNREACH, policy.ClassUnreachable, "there is no route to the host"},
	{syscall.EHOSTDOWN, policy.ClassUnreachable, "the host is down"},
	{syscall.ENETUNREACH, policy.ClassUnreachable, "the network cannot be reached"},
	{syscall.ENETDOWN, policy.ClassUnreachable, "the network is down"},
	{syscall.ECONNRESET, policy.ClassReset, "the connection was reset before the answer was complete"},
	{syscall.EPIPE, policy.ClassReset, "the connection was closed while the request was sent"},
	{io.ErrUnexpectedEOF, policy.ClassReset, "the connection ended in the middle of the answer"},
	{io.EOF, policy.ClassReset, "the connection ended before there was an answer"},
}

// dnsText distinguishes missing names from failing name servers.
func dnsText(e *net.DNSError) string {
	switch {
	case e.IsNotFound:
		return fmt.Sprintf("there is no such name: %s has no address", e.Name)
	case e.IsTimeout:
		return fmt.Sprintf("the name server did not answer for %s", e.Name)
	default:
		return fmt.Sprintf("the name server could not answer for %s: %s", e.Name, e.Err)
	}
}

// texts classifies untyped errors of net/http. Tests provoke the common ones, so that a change of their texts in a new
// version of Go is noticed; a rare one that changes gets class http.
var texts = []struct {
	part  string
	class policy.ErrorClass
	text  string // empty: the error's text
}{
	{"header list", policy.ClassTooLarge, tooLargeText},
	{"server closed idle connection", policy.ClassReset, "the connection ended before there was an answer"},
	{"readLoopPeekFailLocked", policy.ClassReset, h1.ErrSpokeFirst.Error()},
	{"cannot retry err", policy.ClassReset, givenBackText},
	{"cannot rewind body after connection loss", policy.ClassReset, givenBackText},
	{"stream error:", policy.ClassReset, ""},
	{"http2: Transport received GOAWAY", policy.ClassReset, givenBackText},
	{"http2: server sent GOAWAY", policy.ClassReset, lostText},
	{"http2: client conn", policy.ClassReset, lostText},
	{"use of closed network connection", policy.ClassReset, lostText},
	{"tls: no renegotiation", policy.ClassTLSClient, renegotiationText},
	{"tls:", policy.ClassTLS, ""},
}

// lostText is the text for a connection that ended during a request.
const lostText = "the connection was lost before the answer was complete"

// givenBackText is the text for a request that the receiver refused over HTTP/2.
const givenBackText = "the receiver gave the request back unanswered"

// tooLargeText is the text for a response beyond h1.MaxHeader or h1.MaxHeaderLines.
var tooLargeText = fmt.Sprintf("the header of the answer, with its interim answers, has more than the %d KiB or %d "+
	"lines that are read",
	h1.MaxHeader>>10, h1.MaxHeaderLines)

// byText classifies an error on an open connection. Unknown errors are errors of the response.
func byText(err error) (policy.ErrorClass, string) {
	own := err.Error()
	for _, known := range texts {
		if strings.Contains(own, known.part) {
			return known.class, cmp.Or(known.text, own)
		}
	}
	return policy.ClassHTTP, strings.TrimPrefix(strings.TrimPrefix(own, "net/http: "),
		"HTTP/1.x transport connection broken: ")
}
