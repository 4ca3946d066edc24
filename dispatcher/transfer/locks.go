package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringback/ringback/store"
)

// InUseError is the error for a store whose jobs are delivered.
type InUseError struct{ Store string }

func (e *InUseError) Error() string {
	return "the store " + e.Store + " is in use by a process that delivers: stop all processes of Ringback first"
}

const (
	extendEvery    = store.LeadershipTTL / 3
	releaseTimeout = time.Second
)

// lock takes the carrier locks of all shards at once, so that no process delivers until unlock. Each is extended from
// the moment it was taken, however long the others take. The context ends when one is lost.
func (o *Options) lock(ctx context.Context) (_ context.Context, unlock func(), err error) {
	ctx, end := context.WithCancelCause(ctx)
	var held sync.WaitGroup
	unlock = func() {
		end(nil)
		held.Wait()
	}
	for i := range o.Stores {
		s := &o.Stores[i]
		err := onShards(s, func(n int, shard store.Shard) error {
			l, err := takeOver(ctx, shard)
			if errors.Is(err, store.ErrNotLeader) {
				err = &InUseError{Store: s.Name}
			}
			if err != nil {
				return fmt.Errorf("lock shard %d: %w", n, err)
			}
			held.Go(func() { holdLock(ctx, l, end) })
			return nil
		})
		if err != nil {
			unlock()
			return nil, nil, err
		}
	}
	return ctx, unlock, nil
}

// takeOver takes a carrier lock. It waits for one that a process has left behind.
func takeOver(ctx context.Context, keeper store.Keeper) (store.Leadership, error) {
	for until := time.Now().Add(store.LeadershipTTL + time.Second); ; {
		l, err := keeper.Lead(ctx)
		if !errors.Is(err, store.ErrNotLeader) || time.Now().After(until) {
			return l, err
		}
		select {
		case <-time.After(extendEvery / 4):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// holdLock extends a carrier lock until ctx ends, and releases it then. It ends ctx when the lock cannot be extended in
// time.
func holdLock(ctx context.Context, l store.Leadership, end context.CancelCauseFunc) {
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		_ = l.Release(ctx) // else it expires
	}()
	tick := time.NewTicker(extendEvery)
	defer tick.Stop()
	for failed := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := l.Extend(ctx)
		if err == nil {
			failed = 0
		} else if failed++; errors.Is(err, store.ErrNotLeader) || failed > 2 {
			end(fmt.Errorf("the carrier lock of a shard was lost: %w", err))
			return
		}
	}
}
