package store

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Backoff spaces calls that are repeated after faults of the store: 50 ms to 100 ms at first, doubling up to 1 s to 2 s,
// for as long as it takes. The zero value is ready. Not safe for concurrent use.
type Backoff struct{ failed int }

// The bounds of a pause, without its jitter, which adds up to as much again.
const (
	backoffFirst   = 50 * time.Millisecond
	backoffLongest = time.Second
)

// Next is the pause after a fault.
func (b *Backoff) Next() time.Duration {
	pause := min(backoffFirst<<min(b.failed, 10), backoffLongest)
	b.failed++
	return pause + rand.N(pause)
}

// Wait pauses after a fault; false when ctx ended first.
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

// Level is how loudly to tell of a fault before its Wait: the 1st, 2nd, 4th, 8th … in a row are warnings, so that a store
// that is away does not fill a log, and the others are for who looks closely.
func (b *Backoff) Level() slog.Level {
	if b.failed&(b.failed+1) == 0 {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Reset begins again with the first pause, after a call that succeeded.
func (b *Backoff) Reset() { b.failed = 0 }
