package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A bell holds each queue at most once.
type bell struct {
	queues []job.Queue
	has    map[job.Queue]bool
	// line holds who awaits, longest first: they are served in that order, as a blocking pop serves its clients.
	line []*store.WaitOptions
}

// leave takes a waiter out of the line.
func (b *bell) leave(w *store.WaitOptions) {
	b.line = slices.DeleteFunc(b.line, func(x *store.WaitOptions) bool { return x == w })
}

func (s *modelShard) bell(group string) *bell {
	b := s.bells[group]
	if b == nil {
		b = &bell{has: make(map[job.Queue]bool)}
		s.bells[group] = b
	}
	return b
}

// ring puts a queue on the bell of those who POST: no topic has another group yet.
func (s *modelShard) ring(q *queue, now time.Time) {
	q.rung = now
	b := s.bell(store.GroupPush)
	if b.has[q.name] {
		return
	}
	b.has[q.name] = true
	b.queues = append(b.queues, q.name)
	s.signal()
}

func (b *bell) take(n int) []job.Queue {
	n = min(n, len(b.queues))
	taken := append([]job.Queue(nil), b.queues[:n]...)
	b.queues = b.queues[n:]
	for _, q := range taken {
		delete(b.has, q)
	}
	return taken
}

// signal tells whoever awaits to look.
func (s *modelShard) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// awaitDefault is the longest that Wait blocks when it is not told.
const awaitDefault = 5 * time.Second

// Wait blocks on channels and a timer only.
func (s *modelShard) Wait(ctx context.Context, watch store.WaitOptions) (store.Wakeup, error) {
	m := s.model
	if watch.Timeout <= 0 {
		watch.Timeout = awaitDefault
	}
	if watch.Max <= 0 {
		watch.Max = store.MaxBatch
	}
	timer := time.NewTimer(watch.Timeout)
	defer timer.Stop()
	m.mu.Lock()
	b := s.bell(watch.Group)
	b.line = append(b.line, &watch)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		b.leave(&watch)
		s.signal()
	}()
	for {
		if _, err := m.open(ctx); err != nil {
			return store.Wakeup{}, err
		}
		var rung store.Wakeup
		if b.line[0] == &watch {
			rung.Queues = b.take(watch.Max)
		}
		if watch.Agenda {
			rung.AgendaMoved, s.wake = s.wake, false
		}
		changed := s.changed
		m.mu.Unlock()
		if len(rung.Queues) > 0 || rung.AgendaMoved {
			return rung, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return store.Wakeup{}, nil
		case <-ctx.Done():
			return store.Wakeup{}, fmt.Errorf("await the bell: %w", context.Cause(ctx))
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
			s.ring(q, now)
			s.plan(q, now, false)
		}
	}
	return nil
}

// lead is the carrier lock as it stands, and also what its holder has in hand.
type lead struct {
	shard *modelShard
	token store.Token
	until time.Time
}

// Lead takes the lock when nobody holds it or its time has passed.
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

// Extend holds the lock longer.
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

// Release gives the lock up, if it is still held.
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
