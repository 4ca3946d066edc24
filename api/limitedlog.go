package api

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/ringback/ringback/api/response"
)

// logEvery is how often what clients cause is logged: they must not be able to flood the log.
const logEvery = time.Second

// A limitedLog logs at most one line of a kind each logEvery, which says how many were left out before it. Safe for
// concurrent use; the zero value with a logger is ready.
type limitedLog struct {
	log *slog.Logger

	mu      sync.Mutex
	last    time.Time
	dropped int
}

// warn logs a line, or counts it.
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
	t.log.Warn(msg, args...) //nolint:sloglint // the callers say constants
}

// warnOverload logs that a request was refused because too much is under way, and nothing for other problems.
func (a *api) warnOverload(r *http.Request, p *response.Problem) {
	if p.Overload {
		a.overloadLog.warn("overloaded, answering 503", "method", r.Method, "route", r.Pattern, "reason", p.Detail)
	}
}
