package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/shard"
)

// findTimeout bounds the reads of queues' names. An ended context does not stop them.
const findTimeout = 5 * time.Second

// Wait blocks on a connection for the groups' wake-ups of the shard.
func (s *Queue) Wait(ctx context.Context, options store.WaitOptions) ([]job.Queue, error) {
	most := min(cmp.Or(max(options.Max, 0), store.MaxBatch), store.MaxBatch)
	keys := make([]string, len(options.Groups))
	for i, group := range options.Groups {
		keys[i] = s.Keys.Wakeups(group)
	}
	listener := s.takeListener()
	numbers, err := listener.Pop(ctx, s.Client, keys, most, options.Timeout)
	s.returnListener(listener)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	ctx, cancel := connect.WithTimeout(context.WithoutCancel(ctx), findTimeout) // nobody else gets these wake-ups
	defer cancel()
	found, _, err := s.FindByNumber(ctx, numbers)
	if err != nil {
		return nil, fmt.Errorf("wait for wake-ups: %w", err)
	}
	var wakeup []job.Queue
	for _, q := range shard.Distinct(found) {
		wakeup = append(wakeup, q.Queue)
	}
	return wakeup, nil
}

// takeListener returns a listener that no other Wait uses.
func (s *Queue) takeListener() *connect.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		l := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return l
	}
	l := &connect.Listener{Interrupt: s.Keys.Interrupt(rand.Text())}
	s.listeners = append(s.listeners, l)
	if s.closed {
		l.Close()
	}
	return l
}

// returnListener makes a listener free for the next Wait.
func (s *Queue) returnListener(l *connect.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, l)
}

// Notify writes wake-ups for queues with claimable jobs.
func (s *Queue) Notify(ctx context.Context, queues []job.Queue) error {
	shard.CheckBatchSize(len(queues))
	names, _ := shard.QueuesOf(queues, func(q *job.Queue) job.Queue { return *q })
	err := s.RetryStale(func() error {
		known, _, err := s.Find(ctx, names)
		if len(known) == 0 || err != nil {
			return err
		}
		_, err = s.Run(ctx, s.NewCall(scriptNotify, s.Keys.Reply("", ""), known, nil, 0))
		return err
	})
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}
