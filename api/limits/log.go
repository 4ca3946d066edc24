package limits

import (
	"log/slog"
	"sync"
	"time"
)

// LogInterval is the shortest interval of lines that clients cause, so that they cannot flood the log.
const LogInterval = time.Second

// A Log writes at most one line per LogInterval, with the number of suppressed ones. It is safe for concurrent use.
type Log struct {
	Logger *slog.Logger

	mu      sync.Mutex
	last    time.Time
	dropped int
}

// Warn logs a line, or counts it as suppressed.
func (t *Log) Warn(msg string, args ...any) {
	t.mu.Lock()
	now := time.Now()
	if !t.last.IsZero() && now.Sub(t.last) < LogInterval {
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
	t.Logger.Warn(msg, args...) //nolint:sloglint // the callers pass constants
}
