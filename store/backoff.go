package store

import (
	"context"
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

// Wait pauses; false when ctx ended first.
func (b *Backoff) Wait(ctx context.Context) bool {
	pause := min(backoffFirst<<min(b.failed, 10), backoffLongest)
	b.failed++
	timer := time.NewTimer(pause + rand.N(pause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Reset begins again with the first pause, after a call that succeeded.
func (b *Backoff) Reset() { b.failed = 0 }
