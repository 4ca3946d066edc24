package sqlite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
)

// wakeups are the queues that Wait is to return, each once. The writer adds to them after a commit.
type wakeups struct {
	mu     sync.Mutex
	queues []*queue
	wake   bool
	closed bool
	// changed is closed and replaced when something was added.
	changed chan struct{}
}

func newWakeups() *wakeups { return &wakeups{changed: make(chan struct{})} }

// notify adds queues and, with wake, says that the agenda has a new head.
func (b *wakeups) notify(queues []*queue, wake bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := wake && !b.wake
	b.wake = b.wake || wake
	for _, q := range queues {
		if !q.notified {
			q.notified = true
			b.queues = append(b.queues, q)
			news = true
		}
	}
	if news {
		b.signal()
	}
}

func (b *wakeups) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// take removes the first most queues.
func (b *wakeups) take(most int) (queues []job.Queue, changed <-chan struct{}, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := min(most, len(b.queues)); n > 0 {
		queues = make([]job.Queue, n)
		for i, q := range b.queues[:n] {
			queues[i] = q.name
			q.notified = false
		}
		b.queues = append(b.queues[:0], b.queues[n:]...)
		clear(b.queues[len(b.queues):cap(b.queues)])
	}
	return queues, b.changed, b.closed
}

// takeAgenda reports whether the agenda has had a new head since the last call.
func (b *wakeups) takeAgenda() (moved bool, changed <-chan struct{}, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	moved, b.wake = b.wake, false
	return moved, b.changed, b.closed
}

func (b *wakeups) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.signal()
}

// defaultWait is the timeout of Wait unless it is given one.
const defaultWait = 5 * time.Second

// Wait implements store.Shard. Only store.GroupPush has wake-ups yet.
func (s *Store) Wait(ctx context.Context, watch store.WaitOptions) (store.Wakeup, error) {
	wait, most := watch.Timeout, watch.Max
	if wait <= 0 {
		wait = defaultWait
	}
	if most <= 0 {
		most = store.MaxBatch
	}
	if watch.Group != store.GroupPush {
		most = 0
	}
	var queues []job.Queue
	err := s.await(ctx, wait, func() (done bool, changed <-chan struct{}, closed bool) {
		queues, changed, closed = s.wakeups.take(most)
		return len(queues) > 0, changed, closed
	})
	return store.Wakeup{Queues: queues}, err
}

// WaitAgenda implements store.Shard.
func (s *Store) WaitAgenda(ctx context.Context, timeout time.Duration) (moved bool, err error) {
	err = s.await(ctx, timeout, func() (done bool, changed <-chan struct{}, closed bool) {
		moved, changed, closed = s.wakeups.takeAgenda()
		return moved, changed, closed
	})
	return moved, err
}

// await calls take until it is done, each time that something has changed, or until the timeout.
func (s *Store) await(ctx context.Context, timeout time.Duration, take func() (done bool, changed <-chan struct{}, closed bool)) error {
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
	bound("queues to notify", len(queues))
	return s.db.Submit(ctx, &op{Verb: "notify queues", Weight: 1, Run: func(tx *tx) error {
		for _, name := range queues {
			q := tx.mem.queues[name]
			if q == nil || q.waiting == 0 {
				continue
			}
			if err := tx.loadHead(q); err != nil {
				return err
			}
			tx.notify(q)
		}
		return nil
	}})
}
