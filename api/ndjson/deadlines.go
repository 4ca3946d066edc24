package ndjson

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
	// LineTimeout bounds the wait for the next line.
	LineTimeout = time.Minute
	// TakeTimeout bounds the wait for the client to read results, once the buffer is full or the last line has arrived.
	TakeTimeout = time.Minute
	// StreamTimeout bounds the arrival of all lines.
	StreamTimeout = 15 * time.Minute
	// LastTimeout replaces TakeTimeout when the server ends the stream.
	LastTimeout = 5 * time.Second
	// LingerTimeout bounds the wait for more of a request that is being discarded.
	LingerTimeout = time.Second
	// MaxLinger bounds the time for which a request is discarded.
	MaxLinger = time.Minute
)

// Deadlines are the deadlines of one stream. End ends it early. They are safe for concurrent use.
type Deadlines struct {
	rc    *http.ResponseController
	until time.Time
	Ended chan struct{} // closed by End

	mu    sync.Mutex
	cause *response.Problem
}

// NewDeadlines makes the deadlines of a stream that begins now.
func NewDeadlines(rc *http.ResponseController) *Deadlines {
	return &Deadlines{rc: rc, until: time.Now().Add(StreamTimeout), Ended: make(chan struct{})}
}

// BeginResponse sends the header of the answer. Later writes are bounded by the ResultBuffer, and at the latest by the
// sum of all timeouts.
func (l *Deadlines) BeginResponse(w http.ResponseWriter) {
	_ = l.rc.SetWriteDeadline(time.Now().Add(TakeTimeout)) // an error means that there is no connection to stall
	w.WriteHeader(http.StatusOK)
	_ = l.rc.Flush() // the client may wait for the header before it sends
	_ = l.rc.SetWriteDeadline(l.until.Add(limits.Timeout + TakeTimeout))
}

// NextLine sets the deadline of the next line. It returns the problem that ended the stream, if any.
func (l *Deadlines) NextLine() *response.Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.cause == nil && !now.Before(l.until) {
		return tooSlow(StreamTimeout, "the stream")
	}
	if l.cause == nil {
		until := now.Add(LineTimeout)
		if until.After(l.until) {
			until = l.until
		}
		_ = l.rc.SetReadDeadline(until)
	}
	return l.cause
}

// End ends the stream: a read in flight fails at once, and later ones too. The first reason counts.
func (l *Deadlines) End(cause *response.Problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = cause
		close(l.Ended)
		_ = l.rc.SetReadDeadline(time.Unix(1, 0))
	}
}

// ReadError returns the problem of a read that failed at a line.
func (l *Deadlines) ReadError(err error, at int, halfway bool) *response.Problem {
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
		return tooSlow(StreamTimeout, "the stream")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooSlow(LineTimeout, fmt.Sprintf("line %d", at))
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
