package queue

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/shard"
)

// Wait blocks on a connection for the group's wake-ups of the shard.
func (s *Queue) Wait(ctx context.Context, options store.WaitOptions) ([]job.Queue, error) {
	most := min(cmp.Or(max(options.Max, 0), store.MaxBatch), store.MaxBatch)
	listener := &s.push
	if options.Group == store.GroupInternal {
		listener = &s.internal
	}
	numbers, err := listener.Pop(ctx, s.Client, s.Keys.Wakeups(options.Group), most, options.Timeout)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
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
