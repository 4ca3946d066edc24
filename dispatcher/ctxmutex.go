package dispatcher

import (
	"context"
	"time"
)

// A ctxMutex is had by one at a time. Unlike a mutex's, waiting for it ends with a context, or after a while.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

// lock waits until the turn is ours. The error is why ctx ended first.
func (t ctxMutex) lock(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryLock takes the turn if it is free.
func (t ctxMutex) tryLock() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// tryLockFor takes the turn if it becomes free soon enough.
func (t ctxMutex) tryLockFor(ctx context.Context, patience time.Duration) bool {
	if t.tryLock() {
		return true
	}
	if patience <= 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return t.lock(ctx) == nil
}

// unlock gives the turn on. It is ours.
func (t ctxMutex) unlock() { <-t }
