package store

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Backoff gives the pauses between retries after store errors: 50 ms to 100 ms at first, doubling up to 1 s to 2 s,
// without an end. The zero value is ready. It is not safe for concurrent use.
type Backoff struct{ failed int }

// The bounds of a pause. Jitter adds up to 100 %.
const (
	backoffFirst   = 50 * time.Millisecond
	backoffLongest = time.Second
)

// Next returns the pause before the next retry.
func (b *Backoff) Next() time.Duration {
	pause := min(backoffFirst<<min(b.failed, 10), backoffLongest)
	b.failed++
	return pause + rand.N(pause)
}

// Wait pauses before the next retry. It returns false when ctx ended first.
func (b *Backoff) Wait(ctx context.Context) bool {
	timer := time.NewTimer(b.Next())
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Level returns the level at which to log an error, before the Wait for it: Warn for the 1st, 2nd, 4th, 8th … in a row,
// else Debug, so that an unavailable store does not fill the log.
func (b *Backoff) Level() slog.Level {
	if b.failed&(b.failed+1) == 0 {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Reset restarts with the first pause, after a call that succeeded.
func (b *Backoff) Reset() { b.failed = 0 }
