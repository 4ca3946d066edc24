package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store"
)

// A lead is a carrier lock held.
type lead struct {
	s      *Store
	sh     *part
	mutex  *redsync.Mutex
	copied int64     // revision of the policies that were copied to the shard last
	again  time.Time // the policies are not looked at before
}

// Lead takes the shard's carrier lock, and brings the shard's copy of the topics' policies up to date: the process that
// was writing them may have died half way.
func (s *Store) Lead(ctx context.Context, shard int) (store.Lead, error) {
	sh := s.shards[shard]
	lock := redsync.New(goredis.NewPool(s.client))
	options := []redsync.Option{redsync.WithExpiry(store.LeadTime), redsync.WithTries(1), redsync.WithTimeoutFactor(1)}
	mutex := lock.NewMutex(sh.lead, options...)
	err := mutex.LockContext(ctx)
	if full(err) {
		value := string(store.NewToken())
		mutex = lock.NewMutex(sh.lead, append(options, redsync.WithValue(value))...)
		err = s.lockFull(ctx, sh.lead, value)
	} else if err != nil {
		err = lockFault(ctx, err)
	}
	if err != nil {
		return nil, fmt.Errorf("lead: %w", err)
	}
	l := &lead{s: s, sh: sh, mutex: mutex, copied: unknownRevision}
	if err := l.copyNewer(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("lead: %w", err), l.Release(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// full tells a lock that was refused because the server's memory is full.
func full(err error) bool {
	e, ok := errors.AsType[*redsync.RedisError](err)
	return ok && redis.HasErrorPrefix(e.Err, "OOM")
}

// lockFull takes the lock while memory is full: only a carrier's moves make room again.
func (s *Store) lockFull(ctx context.Context, key, value string) error {
	taken, err := s.eval(ctx, scriptLead, []string{key}, []any{value, store.LeadTime.Milliseconds()})
	if err != nil {
		return err
	}
	if num(taken) != 1 {
		return store.ErrNotLeader
	}
	return nil
}

// Extend holds the lock for another store.LeadTime, and copies the policies when one was written since: its writer may
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
	ctx, cancel := within(ctx, policiesTime)
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
		return fault(ctx, e.Err)
	}
	return store.ErrNotLeader
}
