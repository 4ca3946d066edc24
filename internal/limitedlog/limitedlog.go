// Package limitedlog writes log lines of one kind at a bounded rate, so that neither clients nor deliveries can flood the
// log.
package limitedlog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Interval is the shortest interval of two lines, unless a Log has another.
const Interval = time.Second

// A Log writes at most one line per interval, with the number of suppressed ones. It is safe for concurrent use.
type Log struct {
	Logger   *slog.Logger
	Interval time.Duration // at least, and by default, Interval

	mu      sync.Mutex
	last    time.Time
	dropped int
}

// Warn logs a warning, or counts it as suppressed.
func (t *Log) Warn(msg string, args ...any) { t.log(slog.LevelWarn, msg, args) }

// Error logs an error, or counts it as suppressed.
func (t *Log) Error(msg string, args ...any) { t.log(slog.LevelError, msg, args) }

func (t *Log) log(level slog.Level, msg string, args []any) {
	t.mu.Lock()
	now := time.Now()
	if !t.last.IsZero() && now.Sub(t.last) < max(t.Interval, Interval) {
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
	t.Logger.Log(context.Background(), level, msg, args...) //nolint:sloglint // the callers pass constants
}
