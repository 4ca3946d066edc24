package store

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// CallTimeout bounds one call of a process to its store.
const CallTimeout = 10 * time.Second

// Call makes a call with CallTimeout.
func Call(ctx context.Context, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return call(ctx)
}

// IsUnavailable reports whether a call may succeed later. It may have taken effect.
func IsUnavailable(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// Exchange repeats calls of a shard until they are answered. It is safe for concurrent use.
type Exchange struct {
	Queue Queue
	Shard int // its number, for the log
	// For bounds the time of the repeats of a call; zero: until its context ends.
	For time.Duration
	// Settled is called with each settlement that was not refused: it may have ended its job; nil: it is not.
	Settled func(*Settlement)
	// HealthChanged is called with each change of a lane by which its receiver begins to fail, or recovers; nil: it is
	// not.
	HealthChanged func(context.Context, *HealthChange)
	Log           *slog.Logger
}

// Retry repeats a call while the store is unavailable. An error is a rejection by the store, or the last one before the
// context or the time ended. what names the call in the log.
func (e *Exchange) Retry(ctx context.Context, what string, call func(ctx context.Context) error) error {
	var pause Backoff
	for began := time.Now(); ; {
		err := Call(ctx, call)
		if err == nil || ctx.Err() != nil || !IsUnavailable(err) || e.For > 0 && time.Since(began) > e.For {
			return err
		}
		e.Log.Log(ctx, pause.Level(), "store unavailable, retrying", "call", what, "shard", e.Shard, "err", err)
		if !pause.Wait(ctx) {
			return err
		}
	}
}

// SettleAndClaim settles, and claims as next asks, in one call: without settlements it only claims, with next nil it
// only settles.
func (e *Exchange) SettleAndClaim(
	ctx context.Context, token Token, items []Settlement, next *ClaimRequest,
) ([]error, ClaimResult, error) {
	if len(items) == 0 {
		claimed, err := e.Queue.Claim(ctx, token, *next)
		return nil, claimed, err
	}
	errs, claimed, err := e.Queue.Settle(ctx, token, items, next)
	for i, refused := range errs {
		if refused == nil && e.Settled != nil {
			e.Settled(&items[i])
		}
	}
	for i := range claimed.Health {
		if before, after := claimed.Health[i].Failing(); before != after && e.HealthChanged != nil {
			e.HealthChanged(ctx, &claimed.Health[i])
		}
	}
	return errs, claimed, err
}

// Settle writes settlements, one by one after a rejection of all, until the store is unavailable. put takes the error
// of each item in order: nil, the reason why it was refused, or that of the unavailable store.
func (e *Exchange) Settle(ctx context.Context, token Token, items []Settlement, put func(i int, err error)) {
	var errs []error
	err := e.Retry(ctx, "settle", func(ctx context.Context) (err error) {
		errs, _, err = e.SettleAndClaim(ctx, token, items, nil)
		return err
	})
	switch {
	case err == nil:
		for i, err := range errs {
			put(i, err)
		}
	case len(items) == 1, ctx.Err() != nil, IsUnavailable(err):
		for i := range items {
			put(i, err)
		}
	default:
		for i := range items {
			switch { // the rest is not tried once the store is unavailable, or ctx has ended
			case ctx.Err() != nil:
				err = ctx.Err()
			case !IsUnavailable(err):
				e.Settle(ctx, token.Item(i), items[i:i+1], func(_ int, of error) { err = of })
			}
			put(i, err)
		}
	}
}
