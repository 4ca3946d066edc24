package redis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// counterFields are the counters of a topic that Totals adds up.
var counterFields = []string{"reg", "ready", "held", "d", "x", "c"}

// Totals adds up the counters of all topics, and looks at all lanes on the agenda for jobs that are due and in no ready
// list.
func (sh *shard) Totals(ctx context.Context, namespace string) (total store.TopicStats, err error) {
	s := sh.store
	err = s.retryStale(sh, func() (err error) {
		total, err = s.totals(ctx, sh, namespace)
		return err
	})
	if err != nil {
		return store.TopicStats{}, fmt.Errorf("totals: %w", err)
	}
	return total, nil
}

func (s *Store) totals(ctx context.Context, sh *shard, namespace string) (store.TopicStats, error) {
	total := store.TopicStats{Namespace: namespace}
	// The lanes first: what comes to ready after that is counted there.
	due, oldest, err := s.dueOnAgenda(ctx, sh, namespace)
	if err != nil {
		return total, err
	}
	ready := due
	add := func(names []string) error {
		pipe := s.client.Pipeline()
		parts := make([]*redis.SliceCmd, len(names))
		for i, name := range names {
			parts[i] = pipe.HMGet(ctx, sh.keys.Tag+"stats:"+name, counterFields...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return connect.MapError(ctx, err)
		}
		for _, part := range parts {
			c := strs(part.Val())
			total.Registered += num(c[0])
			ready += num(c[1])
			total.Running += num(c[2])
			total.Delivered += num(c[3])
			total.Dead += num(c[4])
			total.Cancelled += num(c[5])
		}
		counts, err := s.openLanes(ctx, sh, names)
		for _, n := range counts {
			total.OpenBreakers += n
		}
		return err
	}
	if err := s.eachTopics(ctx, sh, namespace, add); err != nil {
		return total, err
	}
	if err := add([]string{layout.TopicName(namespace, forgotten)}); err != nil {
		return total, err
	}
	waiting := max(0, total.Registered-total.Running-total.Delivered-total.Dead-total.Cancelled)
	total.Ready = min(ready, waiting)
	total.Scheduled = waiting - total.Ready
	if waiting > 0 {
		total.OldestDue = oldest
	}
	return total, nil
}

// dueOnAgenda counts the jobs of all lanes that are due and in no ready list, and finds the first due moment of all. After
// a step of the clock lanes may be on the stale agenda, or on both.
func (s *Store) dueOnAgenda(ctx context.Context, sh *shard, namespace string) (due int64, oldest time.Time, err error) {
	stale := map[string]bool{}
	for _, agenda := range []string{sh.keys.StaleAgenda, sh.keys.Agenda} {
		for from := int64(0); ; from += oldestLanes {
			numbers, err := s.client.ZRange(ctx, agenda, from, from+oldestLanes-1).Result()
			if err != nil {
				return 0, oldest, connect.MapError(ctx, err)
			}
			last := len(numbers) < oldestLanes
			numbers = slices.DeleteFunc(numbers, func(n string) bool { return stale[n] })
			n, first, err := s.dueOfQueues(ctx, sh, namespace, numbers)
			if err != nil {
				return 0, oldest, err
			}
			due += n
			if oldest.IsZero() || !first.IsZero() && first.Before(oldest) {
				oldest = first
			}
			if agenda != sh.keys.Agenda {
				for _, n := range numbers {
					stale[n] = true
				}
			}
			if last {
				break
			}
		}
	}
	return due, oldest, nil
}

// dueOfQueues is dueOnAgenda of the queues of a namespace among those given by number.
func (s *Store) dueOfQueues(ctx context.Context, sh *shard, namespace string, numbers []string) (due int64, oldest time.Time, err error) {
	queues, err := s.resolve(ctx, sh, numbers)
	if err != nil {
		return 0, oldest, err
	}
	lanes := make([]string, 0, len(queues))
	for _, q := range queues {
		if q.Namespace == namespace {
			lanes = append(lanes, q.Lane+"\x00"+q.Number)
		}
	}
	if len(lanes) == 0 {
		return 0, oldest, nil
	}
	_, counts, err := s.dueOf(ctx, sh, sh.keys.Topic(namespace, "").Stats, lanes)
	if err != nil {
		return 0, oldest, err
	}
	for _, n := range counts {
		due += n
	}
	oldest, err = s.oldestDue(ctx, sh, lanes)
	return due, oldest, err
}
