package documents

import (
	"context"
	"time"
)

// ctxMutex is a mutex whose lock can end with a context or after a timeout.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

// lock waits for the mutex. It returns the cause if ctx ends first.
func (m ctxMutex) lock(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryLock locks the mutex if it is free.
func (m ctxMutex) tryLock() bool {
	select {
	case m <- struct{}{}:
		return true
	default:
		return false
	}
}

// tryLockFor locks the mutex if it becomes free in time.
func (m ctxMutex) tryLockFor(ctx context.Context, patience time.Duration) bool {
	if m.tryLock() {
		return true
	}
	if patience <= 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return m.lock(ctx) == nil
}

// unlock releases the mutex, which the caller holds.
func (m ctxMutex) unlock() { <-m }
