package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// defaultWait is the timeout of Wait unless it is given one.
const defaultWait = 5 * time.Second

// Wait implements store.Shard.
func (s *Store) Wait(ctx context.Context, watch store.WaitOptions) ([]job.Queue, error) {
	wait, most := watch.Timeout, watch.Max
	if wait <= 0 {
		wait = defaultWait
	}
	if most <= 0 {
		most = store.MaxBatch
	}
	var queues []job.Queue
	err := s.await(ctx, wait, func() (done bool, changed <-chan struct{}, closed bool) {
		queues, changed, closed = s.wakeups.Take(watch.Groups, most)
		return len(queues) > 0, changed, closed
	})
	return queues, err
}

// WaitAgenda implements store.Shard.
func (s *Store) WaitAgenda(ctx context.Context, timeout time.Duration) (moved bool, err error) {
	err = s.await(ctx, timeout, func() (done bool, changed <-chan struct{}, closed bool) {
		moved, changed, closed = s.wakeups.TakeAgenda()
		return moved, changed, closed
	})
	return moved, err
}

// await calls take until it is done, each time that something has changed, or until the timeout.
func (s *Store) await(
	ctx context.Context, timeout time.Duration, take func() (done bool, changed <-chan struct{}, closed bool),
) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		if err := db.ContextError(ctx); err != nil {
			return fmt.Errorf("wait for wake-ups: %w", err)
		}
		done, changed, closed := take()
		switch {
		case closed:
			return db.ErrClosed
		case done:
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-ctx.Done():
		}
	}
}

// Notify implements store.Shard; it drops queues with nothing to claim.
func (s *Store) Notify(ctx context.Context, queues []job.Queue) error {
	checkBatch("queues to notify", len(queues))
	return s.db.Submit(ctx, &op{Verb: "notify queues", Weight: 1, Run: func(u *unit.Unit) error {
		for _, name := range queues {
			q := u.Mem.Queues[name]
			if q == nil || q.Waiting == 0 {
				continue
			}
			if err := u.LoadHead(q); err != nil {
				return err
			}
			u.Notify(q)
		}
		return nil
	}})
}
