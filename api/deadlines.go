package api

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/response"
)

// Timeouts of a stream, in place of those of ordinary requests.
const (
	// lineTimeout bounds the wait for the next line.
	lineTimeout = time.Minute
	// takeTimeout bounds the wait for the client to read results, once the buffer is full or the last line has arrived.
	takeTimeout = time.Minute
	// streamTimeout bounds the arrival of all lines.
	streamTimeout = 15 * time.Minute
	// lastTimeout replaces takeTimeout when the server ends the stream.
	lastTimeout = 5 * time.Second
	// lingerTimeout bounds the wait for more of a request that is being discarded.
	lingerTimeout = time.Second
	// maxLinger bounds the time for which a request is discarded.
	maxLinger = time.Minute
)

// deadlines are the deadlines of one stream. End ends it early. They are safe for concurrent use.
type deadlines struct {
	rc    *http.ResponseController
	until time.Time
	Ended chan struct{} // closed by End

	mu    sync.Mutex
	cause *response.Problem
}

// newDeadlines makes the deadlines of a stream that begins now.
func newDeadlines(rc *http.ResponseController) *deadlines {
	return &deadlines{rc: rc, until: time.Now().Add(streamTimeout), Ended: make(chan struct{})}
}

// BeginResponse sends the header of the answer. Later writes are bounded by the resultBuffer, and at the latest by the
// sum of all timeouts.
func (l *deadlines) BeginResponse(w http.ResponseWriter) {
	_ = l.rc.SetWriteDeadline(time.Now().Add(takeTimeout)) // an error means that there is no connection to stall
	w.WriteHeader(http.StatusOK)
	_ = l.rc.Flush() // the client may wait for the header before it sends
	_ = l.rc.SetWriteDeadline(l.until.Add(limits.Timeout + takeTimeout))
}

// NextLine sets the deadline of the next line. It returns the problem that ended the stream, if any.
func (l *deadlines) NextLine() *response.Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.cause == nil && !now.Before(l.until) {
		return tooSlow(streamTimeout, "the stream")
	}
	if l.cause == nil {
		until := now.Add(lineTimeout)
		if until.After(l.until) {
			until = l.until
		}
		_ = l.rc.SetReadDeadline(until)
	}
	return l.cause
}

// End ends the stream: a read in flight fails at once, and later ones too. The first reason counts.
func (l *deadlines) End(cause *response.Problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = cause
		close(l.Ended)
		_ = l.rc.SetReadDeadline(time.Unix(1, 0))
	}
}

// ReadError returns the problem of a read that failed at a line.
func (l *deadlines) ReadError(err error, at int, halfway bool) *response.Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.cause != nil:
		return l.cause
	case errors.Is(err, errNoMemory):
		return response.NewOverload(fmt.Sprintf(
			"too many request bytes in flight for line %d: lines without a result are not registered, send them "+
				"again", at))
	case errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(l.until):
		return tooSlow(streamTimeout, "the stream")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooSlow(lineTimeout, fmt.Sprintf("line %d", at))
	case halfway:
		return response.NewProblem(response.InvalidRequest, fmt.Sprintf("request body truncated within line %d: the "+
			"line is not registered", at))
	default:
		return response.NewProblem(response.InvalidRequest, fmt.Sprintf("request body truncated after line %d", at-1))
	}
}

func tooSlow(limit time.Duration, what string) *response.Problem {
	return response.NewProblem(response.RequestTimeout, fmt.Sprintf(
		"%s did not arrive within %v: lines without a result are not registered, send them again", what, limit))
}
