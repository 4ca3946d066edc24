package dispatcher

import (
	"context"
	"time"
)

// A turn is had by one at a time. Unlike a mutex's, waiting for it ends with a context, or after a while.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits until the turn is ours. The error is why ctx ended first.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// try takes the turn if it is free.
func (t turn) try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// within takes the turn if it becomes free soon enough.
func (t turn) within(ctx context.Context, patience time.Duration) bool {
	if t.try() {
		return true
	}
	if patience <= 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return t.take(ctx) == nil
}

// leave gives the turn on. It is ours.
func (t turn) leave() { <-t }
