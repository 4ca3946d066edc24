// This part of the package writes log lines of one kind at a bounded rate, so that neither clients nor deliveries can
// flood the log.

package logs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// LimitedInterval is the shortest interval of two lines, unless a Log has another.
const LimitedInterval = time.Second

// A Limited writes at most Burst lines per interval, and the number of suppressed ones with the next line. It is safe
// for concurrent use.
type Limited struct {
	Logger   *slog.Logger
	Interval time.Duration // at least, and by default, Interval
	Burst    int           // zero: 1

	mu         sync.Mutex
	began      time.Time // of the interval
	written    int       // in the interval
	suppressed int       // since the last line
}

// Warn logs a warning, or counts it as suppressed.
func (t *Limited) Warn(msg string, args ...any) { t.log(slog.LevelWarn, msg, args) }

// Error logs an error, or counts it as suppressed.
func (t *Limited) Error(msg string, args ...any) { t.log(slog.LevelError, msg, args) }

func (t *Limited) log(level slog.Level, msg string, args []any) {
	suppressed, ok := t.Allow()
	if !ok {
		return
	}
	if suppressed > 0 {
		args = append(args, "suppressed", suppressed)
	}
	t.Logger.Log(context.Background(), level, msg, args...) //nolint:sloglint // the callers pass constants
}

// Allow reports whether a line may be written now, and how many were suppressed since the last one.
func (t *Limited) Allow() (suppressed int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.began) >= max(t.Interval, LimitedInterval) {
		t.began, t.written = now, 0
	}
	if t.written >= max(t.Burst, 1) {
		t.suppressed++
		return 0, false
	}
	t.written++
	suppressed, t.suppressed = t.suppressed, 0
	return suppressed, true
}

// Suppressed returns how many lines were suppressed since the last one.
func (t *Limited) Suppressed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.suppressed
}
