package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/settings"
)

// leadership is a held carrier lock.
type leadership struct {
	keeper *Keeper
	mutex  *redsync.Mutex
	copied int64         // revision of the policies that were copied to the shard last
	again  time.Duration // by the process's clock: the policies are not read before
}

// Lead takes the shard's carrier lock and updates the shard's copy of the policies' limits: the process that was
// writing them may have died half way.
func (s *Keeper) Lead(ctx context.Context) (store.Leadership, error) {
	value := string(store.NewToken())
	if err := s.lock(ctx, value); err != nil {
		return nil, fmt.Errorf("lead: %w", err)
	}
	mutex := redsync.New(goredis.NewPool(s.Client)).NewMutex(s.Keys.Carrier, redsync.WithExpiry(store.LeadershipTTL),
		redsync.WithTries(1), redsync.WithTimeoutFactor(1), redsync.WithValue(value))
	l := &leadership{keeper: s, mutex: mutex, copied: settings.UnknownRevision}
	if err := l.copyNewer(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("lead: %w", err), l.Release(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// lock takes the lock.
func (s *Keeper) lock(ctx context.Context, value string) error {
	ctx, cancel := connect.WithTimeout(ctx, store.LeadershipTTL)
	defer cancel()
	taken, err := s.Eval(ctx, scriptLead, []string{s.Keys.Carrier}, []any{value, store.LeadershipTTL.Milliseconds()})
	if err == nil && layout.Num(taken) == 0 {
		err = store.ErrNotLeader
	}
	return err
}

// Extend extends the lock by store.LeadershipTTL, and copies policies that were written since: their writer may have
// died before it had copied them.
func (l *leadership) Extend(ctx context.Context) error {
	ok, err := l.mutex.ExtendContext(ctx)
	if !ok {
		return fmt.Errorf("extend the lead: %w", mapLockError(ctx, err))
	}
	if err := l.copyNewer(ctx); err != nil {
		return fmt.Errorf("extend the lead: %w", err)
	}
	return nil
}

const (
	// policiesTimeout bounds reading the policies, and policiesPause is the pause after a failure.
	policiesTimeout = time.Second
	policiesPause   = 5 * time.Second
)

// copyNewer copies the policies when their revision changed. While they are unavailable (on a cluster they may be on
// another server), the shard keeps its limits and is carried.
func (l *leadership) copyNewer(ctx context.Context) error {
	if l.keeper.process.elapsed() < l.again {
		return nil
	}
	ctx, cancel := connect.WithTimeout(ctx, policiesTimeout)
	defer cancel()
	revision, err := l.keeper.policies.Revision(ctx, store.KindTopic)
	if err == nil && revision != l.copied {
		revision, err = l.keeper.policies.CopyLimits(ctx, l.keeper.Shard, l.copied)
	}
	switch {
	case errors.Is(err, store.ErrUnavailable):
		l.again = l.keeper.process.elapsed() + policiesPause
		return nil
	case err != nil:
		return err
	}
	l.copied = revision
	return nil
}

// Release releases the lock; one that was already lost is no error.
func (l *leadership) Release(ctx context.Context) error {
	ok, err := l.mutex.UnlockContext(ctx)
	if err = mapLockError(ctx, err); ok || errors.Is(err, store.ErrNotLeader) {
		return nil
	}
	return fmt.Errorf("release the lead: %w", err)
}

// mapLockError maps redsync's errors: Redis is unavailable, or another process has the lock.
func mapLockError(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*redsync.RedisError](err); ok {
		return connect.MapError(ctx, e.Err)
	}
	return store.ErrNotLeader
}
