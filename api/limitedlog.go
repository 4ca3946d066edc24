package api

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/ringback/ringback/api/response"
)

// logEvery is the interval of lines that clients cause, so that they cannot flood the log.
const logEvery = time.Second

// A limitedLog logs at most one line per logEvery, with the number of suppressed ones. It is safe for concurrent use. The
// zero value with a logger is ready.
type limitedLog struct {
	log *slog.Logger

	mu      sync.Mutex
	last    time.Time
	dropped int
}

// warn logs a line, or counts it as suppressed.
func (t *limitedLog) warn(msg string, args ...any) {
	t.mu.Lock()
	now := time.Now()
	if !t.last.IsZero() && now.Sub(t.last) < logEvery {
		t.dropped++
		t.mu.Unlock()
		return
	}
	dropped := t.dropped
	t.last, t.dropped = now, 0
	t.mu.Unlock()
	if dropped > 0 {
		args = append(args, "suppressed", dropped)
	}
	t.log.Warn(msg, args...) //nolint:sloglint // the callers pass constants
}

// warnOverload logs a problem of an overload, and no other.
func (a *api) warnOverload(r *http.Request, p *response.Problem) {
	if p.Overload {
		a.overloadLog.warn("overloaded, answering 503", "method", r.Method, "route", r.Pattern, "reason", p.Detail)
	}
}
