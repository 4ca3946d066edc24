package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/ringback/ringback/store"
)

// A lead is a carrier lock held.
type lead struct {
	mutex *redsync.Mutex
}

// Lead takes the shard's carrier lock, and brings the shard's copy of the topics' policies up to date: the process that
// was writing them may have died half way.
func (s *Store) Lead(ctx context.Context, shard int) (store.Lead, error) {
	sh := s.shards[shard]
	key := s.prefix + ":carrier:" + strconv.Itoa(shard)
	mutex := redsync.New(goredis.NewPool(s.client)).NewMutex(key,
		redsync.WithExpiry(store.LeadTime), redsync.WithTries(1), redsync.WithTimeoutFactor(1))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, fmt.Errorf("lead: %w", lockFault(ctx, err))
	}
	l := &lead{mutex: mutex}
	if err := s.copyTopics(ctx, sh); err != nil {
		return nil, errors.Join(fmt.Errorf("lead: %w", err), l.Release(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// Extend holds the lock for another store.LeadTime.
func (l *lead) Extend(ctx context.Context) error {
	ok, err := l.mutex.ExtendContext(ctx)
	if ok {
		return nil
	}
	return fmt.Errorf("extend the lead: %w", lockFault(ctx, err))
}

// Release gives the lock up; one that was lost already is no error.
func (l *lead) Release(ctx context.Context) error {
	ok, err := l.mutex.UnlockContext(ctx)
	if err = lockFault(ctx, err); ok || errors.Is(err, store.ErrNotLeader) {
		return nil
	}
	return fmt.Errorf("release the lead: %w", err)
}

// lockFault tells a lock that another has from a Redis that cannot be asked.
func lockFault(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*redsync.RedisError](err); ok {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fault(e.Err)
	}
	return store.ErrNotLeader
}
