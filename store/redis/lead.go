package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
)

// A lead is a carrier lock held.
type lead struct {
	s      *Store
	sh     *shard
	mutex  *redsync.Mutex
	copied int64     // revision of the policies that were copied to the shard last
	again  time.Time // the policies are not looked at before
}

// Lead takes the shard's carrier lock, and brings the shard's copy of the topics' policies up to date: the process that
// was writing them may have died half way.
func (sh *shard) Lead(ctx context.Context) (store.Leadership, error) {
	s := sh.store
	value := string(store.NewToken())
	if err := s.lock(ctx, sh, value); err != nil {
		return nil, fmt.Errorf("lead: %w", err)
	}
	mutex := redsync.New(goredis.NewPool(s.client)).NewMutex(sh.keys.Carrier, redsync.WithExpiry(store.LeadershipTTL), redsync.WithTries(1),
		redsync.WithTimeoutFactor(1), redsync.WithValue(value))
	l := &lead{s: s, sh: sh, mutex: mutex, copied: unknownRevision}
	if err := l.copyNewer(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("lead: %w", err), l.Release(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// A lockWatch is what a process that does not lead knows of a lock that ends later than it can: Redis's clock was set back
// while it was held. Its holder makes that good when it extends it, so one that stays so for a lock's time has none any more.
type lockWatch struct {
	value string
	since time.Duration // by the process's monotonic clock
}

// lock takes the lock, or takes it over from a holder that is gone.
func (s *Store) lock(ctx context.Context, sh *shard, value string) error {
	sh.mu.Lock()
	watch := sh.lock
	sh.mu.Unlock()
	ctx, cancel := connect.WithTimeout(ctx, store.LeadershipTTL)
	defer cancel()
	void := ""
	if watch.value != "" && s.elapsed()-watch.since >= store.LeadershipTTL {
		void = watch.value
	}
	reply, err := s.eval(ctx, scriptLead, []string{sh.keys.Carrier}, []any{value, store.LeadershipTTL.Milliseconds(), void})
	if err != nil {
		return err
	}
	other := str(reply)
	switch {
	case other == "" || other == "-":
		watch = lockWatch{}
	case other != watch.value:
		watch = lockWatch{value: other, since: s.elapsed()}
	}
	sh.mu.Lock()
	sh.lock = watch
	sh.mu.Unlock()
	if other != "" {
		return store.ErrNotLeader
	}
	return nil
}

// Extend holds the lock for another store.LeadershipTTL, and copies the policies when one was written since: its writer may
// have died before it had copied it.
func (l *lead) Extend(ctx context.Context) error {
	ok, err := l.mutex.ExtendContext(ctx)
	if !ok {
		return fmt.Errorf("extend the lead: %w", lockFault(ctx, err))
	}
	if err := l.copyNewer(ctx); err != nil {
		return fmt.Errorf("extend the lead: %w", err)
	}
	return nil
}

const (
	// unknownRevision is none that policies ever have.
	unknownRevision = -1
	// policiesTime bounds the look at the policies while carrying, and policiesAgain is the pause after one in vain.
	policiesTime  = time.Second
	policiesAgain = 5 * time.Second
)

// copyNewer copies the policies when their revision is another one than was copied last. Where they cannot be had, since
// on a cluster they may lie on a server that is away, those that the shard has hold on: a shard on another server is
// carried meanwhile.
func (l *lead) copyNewer(ctx context.Context) error {
	if time.Now().Before(l.again) {
		return nil
	}
	ctx, cancel := connect.WithTimeout(ctx, policiesTime)
	defer cancel()
	revision, err := l.s.revision(ctx)
	if err == nil && revision != l.copied {
		revision, err = l.s.copyTopics(ctx, l.sh)
	}
	switch {
	case errors.Is(err, store.ErrUnavailable):
		l.again = time.Now().Add(policiesAgain)
		return nil
	case err != nil:
		return err
	}
	l.copied = revision
	return nil
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
		return connect.MapError(ctx, e.Err)
	}
	return store.ErrNotLeader
}
