package ndjson

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
)

// Limits of a stream in time, in place of those of ordinary requests.
const (
	// LineTimeout is for the next line to arrive.
	LineTimeout = time.Minute
	// TakeTimeout is for the client to take some of the results, once as many wait as are kept or no line is to come.
	TakeTimeout = time.Minute
	// StreamTimeout is for all lines to arrive.
	StreamTimeout = 15 * time.Minute
	// LastTimeout takes TakeTimeout's place when the stream was ended from here.
	LastTimeout = 5 * time.Second
	// LingerTimeout is for a client to send more of what is not taken any more, before the connection is closed.
	LingerTimeout = time.Second
	// MaxLinger is for all of that.
	MaxLinger = time.Minute
)

// Deadlines are those of one stream, and the ways to end it before its end.
type Deadlines struct {
	rc    *http.ResponseController
	until time.Time
	Ended chan struct{} // closed by end

	mu    sync.Mutex
	cause *response.Problem
}

// NewDeadlines makes the deadlines of a stream that begins now.
func NewDeadlines(rc *http.ResponseController) *Deadlines {
	return &Deadlines{rc: rc, until: time.Now().Add(StreamTimeout), Ended: make(chan struct{})}
}

// BeginResponse sends the answer's header. What is written after it is bounded by the tray, and in any case ends when all
// deadlines have gone by.
func (l *Deadlines) BeginResponse(w http.ResponseWriter) {
	_ = l.rc.SetWriteDeadline(time.Now().Add(TakeTimeout)) // what has no deadlines does not stall: it is no connection
	w.WriteHeader(http.StatusOK)
	_ = l.rc.Flush() // a client may wait for it before it sends; when it fails, so does what follows
	_ = l.rc.SetWriteDeadline(l.until.Add(request.Timeout + TakeTimeout))
}

// NextLine gives the client the time for its next line, or says why there is none.
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

// End ends the stream: a read under way fails at once, and no other begins. The first reason counts.
func (l *Deadlines) End(why *response.Problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = why
		close(l.Ended)
		_ = l.rc.SetReadDeadline(time.Unix(1, 0))
	}
}

// ReadError is why reading failed, at which line.
func (l *Deadlines) ReadError(err error, at int, halfway bool) *response.Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.cause != nil:
		return l.cause
	case errors.Is(err, errNoMemory):
		return response.Overloaded(fmt.Sprintf(
			"too many request bytes in flight for line %d: lines without a result are not registered, send them again", at))
	case errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(l.until):
		return tooSlow(StreamTimeout, "the stream")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooSlow(LineTimeout, fmt.Sprintf("line %d", at))
	case halfway:
		return response.NewProblem(http.StatusBadRequest, fmt.Sprintf("request body truncated within line %d: the line is not registered", at))
	default:
		return response.NewProblem(http.StatusBadRequest, fmt.Sprintf("request body truncated after line %d", at-1))
	}
}

func tooSlow(limit time.Duration, what string) *response.Problem {
	return response.NewProblem(http.StatusRequestTimeout, fmt.Sprintf(
		"%s did not arrive within %v: lines without a result are not registered, send them again", what, limit))
}
