package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// wakeups are the notified queues of a group, each at most once.
type wakeups struct {
	queues []job.Queue
	queued map[job.Queue]bool
	// waiting are the waiters, longest first. They are served in that order, as a blocking pop of Redis does.
	waiting []*store.WaitOptions
}

// remove removes a waiter.
func (b *wakeups) remove(w *store.WaitOptions) {
	b.waiting = slices.DeleteFunc(b.waiting, func(x *store.WaitOptions) bool { return x == w })
}

func (s *modelShard) wakeupsOf(group string) *wakeups {
	b := s.wakeups[group]
	if b == nil {
		b = &wakeups{queued: make(map[job.Queue]bool)}
		s.wakeups[group] = b
	}
	return b
}

// wakeupsFor returns the wake-ups of a queue's group.
func (s *modelShard) wakeupsFor(q *queue) *wakeups {
	return s.wakeupsOf(store.GroupOf(q.name.Namespace, q.name.Topic, s.limits(q.name).Deliver))
}

// isUnread reports whether the wake-up of a queue is in its topic's own group, for which nobody may wait.
func (s *modelShard) isUnread(q *queue) bool {
	return !s.limits(q.name).Deliver.Pushes() && s.wakeupsFor(q).queued[q.name]
}

// notify adds a queue to the wake-ups of its group.
func (s *modelShard) notify(q *queue, now time.Time) {
	q.notifiedAt = now
	b := s.wakeupsFor(q)
	if b.queued[q.name] {
		return
	}
	b.queued[q.name] = true
	b.queues = append(b.queues, q.name)
	s.wakeWaiters()
}

func (b *wakeups) next(n int) []job.Queue {
	n = min(n, len(b.queues))
	taken := append([]job.Queue(nil), b.queues[:n]...)
	b.queues = b.queues[n:]
	for _, q := range taken {
		delete(b.queued, q)
	}
	return taken
}

// wakeWaiters makes all waiters check again.
func (s *modelShard) wakeWaiters() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// defaultWaitTimeout is the default of WaitOptions.Timeout.
const defaultWaitTimeout = 5 * time.Second

// Wait blocks on channels and a timer only.
func (s *modelShard) Wait(ctx context.Context, watch store.WaitOptions) ([]job.Queue, error) {
	m := s.model
	if watch.Timeout <= 0 {
		watch.Timeout = defaultWaitTimeout
	}
	if watch.Max <= 0 {
		watch.Max = store.MaxBatch
	}
	timer := time.NewTimer(watch.Timeout)
	defer timer.Stop()
	m.mu.Lock()
	var groups []*wakeups
	for _, group := range watch.Groups {
		b := s.wakeupsOf(group)
		b.waiting = append(b.waiting, &watch)
		groups = append(groups, b)
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, b := range groups {
			b.remove(&watch)
		}
		s.wakeWaiters()
	}()
	for {
		if _, err := m.open(ctx); err != nil {
			return nil, err
		}
		var wakeup []job.Queue
		for _, b := range groups {
			if b.waiting[0] == &watch {
				wakeup = append(wakeup, b.next(watch.Max-len(wakeup))...)
			}
		}
		changed := s.changed
		m.mu.Unlock()
		if len(wakeup) > 0 {
			return wakeup, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for wake-ups: %w", context.Cause(ctx))
		}
	}
}

// WaitAgenda blocks on a channel and a timer only.
func (s *modelShard) WaitAgenda(ctx context.Context, timeout time.Duration) (bool, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		if _, err := s.model.open(ctx); err != nil {
			return false, err
		}
		moved, changed := s.agendaMoved, s.changed
		s.agendaMoved = false
		s.model.mu.Unlock()
		if moved {
			return true, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, fmt.Errorf("wait for the agenda: %w", context.Cause(ctx))
		}
	}
}

// Notify drops queues with nothing to claim.
func (s *modelShard) Notify(ctx context.Context, queues []job.Queue) error {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, name := range queues {
		if q := s.queues[name]; q != nil && q.claimable(now) != nil && !s.blocked(q, now) {
			s.notify(q, now)
			s.reschedule(q, now, false)
		}
	}
	return nil
}

// lead is the carrier lock, and the Leadership of its holder.
type lead struct {
	shard *modelShard
	token store.Token
	until time.Time
}

// Lead takes the lock when it is free or has expired.
func (s *modelShard) Lead(ctx context.Context) (store.Leadership, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if s.leader.until.After(now) {
		return nil, store.ErrNotLeader
	}
	s.leader = lead{shard: s, token: store.NewToken(), until: now.Add(store.LeadershipTTL)}
	mine := s.leader
	return &mine, nil
}

// Extend extends the lock.
func (l *lead) Extend(ctx context.Context) error {
	now, err := l.shard.model.open(ctx)
	if err != nil {
		return err
	}
	defer l.shard.model.mu.Unlock()
	s := l.shard
	if s.leader.token != l.token || !s.leader.until.After(now) {
		return store.ErrNotLeader
	}
	s.leader.until = now.Add(store.LeadershipTTL)
	return nil
}

// Release releases the lock if it is still held.
func (l *lead) Release(ctx context.Context) error {
	if _, err := l.shard.model.open(ctx); err != nil {
		return err
	}
	defer l.shard.model.mu.Unlock()
	s := l.shard
	if s.leader.token == l.token {
		s.leader = lead{}
	}
	return nil
}
