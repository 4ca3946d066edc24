package api

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// maxStreams is how many streams there may be at a time, since each may hold a full tray and a group's text.
const maxStreams = 64

// Limits of a stream in time, in place of those of ordinary requests.
const (
	// lineTimeout is for the next line to arrive.
	lineTimeout = time.Minute
	// takeTimeout is for the client to take some of the results, once as many wait as are kept or no line is to come.
	takeTimeout = time.Minute
	// streamTimeout is for all lines to arrive.
	streamTimeout = 15 * time.Minute
	// lastTimeout takes takeTimeout's place when the stream was ended from here.
	lastTimeout = 5 * time.Second
	// lingerTimeout is for a client to send more of what is not taken any more, before the connection is closed.
	lingerTimeout = time.Second
	// lingerMost is for all of that.
	lingerMost = time.Minute
)

// limits are those of one stream, and the ways to end it before its end.
type limits struct {
	rc    *http.ResponseController
	until time.Time
	ended chan struct{} // closed by end

	mu  sync.Mutex
	why *problem
}

func newLimits(rc *http.ResponseController) *limits {
	return &limits{rc: rc, until: time.Now().Add(streamTimeout), ended: make(chan struct{})}
}

// answer sends the answer's header. What is written after it is bounded by the tray, and in any case ends when all
// limits have gone by.
func (l *limits) answer(w http.ResponseWriter) {
	_ = l.rc.SetWriteDeadline(time.Now().Add(takeTimeout)) // what has no deadlines does not stall: it is no connection
	w.WriteHeader(http.StatusOK)
	_ = l.rc.Flush() // a client may wait for it before it sends; when it fails, so does what follows
	_ = l.rc.SetWriteDeadline(l.until.Add(requestTimeout + takeTimeout))
}

// line gives the client the time for its next line, or says why there is none.
func (l *limits) line() *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.why == nil && !now.Before(l.until) {
		return tooSlow(streamTimeout, "the stream")
	}
	if l.why == nil {
		until := now.Add(lineTimeout)
		if until.After(l.until) {
			until = l.until
		}
		_ = l.rc.SetReadDeadline(until)
	}
	return l.why
}

// end ends the stream: a read under way fails at once, and no other begins. The first reason counts.
func (l *limits) end(why *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		l.why = why
		close(l.ended)
		_ = l.rc.SetReadDeadline(time.Unix(1, 0))
	}
}

// broken is why reading failed, at which line.
func (l *limits) broken(err error, at int, halfway bool) *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.why != nil:
		return l.why
	case errors.Is(err, errNoRoom):
		return overloaded(fmt.Sprintf(
			"too many bytes of requests are under way for line %d: what has no result is not registered; send it again", at))
	case errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(l.until):
		return tooSlow(streamTimeout, "the stream")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooSlow(lineTimeout, fmt.Sprintf("line %d", at))
	case halfway:
		return refuse(http.StatusBadRequest, fmt.Sprintf("the request ended before its end, within line %d: it is not registered", at))
	default:
		return refuse(http.StatusBadRequest, fmt.Sprintf("the request ended before its end, after line %d", at-1))
	}
}

func tooSlow(limit time.Duration, what string) *problem {
	return refuse(http.StatusRequestTimeout, fmt.Sprintf(
		"%s did not arrive within %v: what has no result is not registered; send it again", what, limit))
}
