package counts

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// counterFields are the counters of a topic that Totals and Usage add up.
var counterFields = []string{"reg", "ready", "claimed", "d", "x", "c", "b", "db", "xb", "cb"}

// Totals adds up the counters of the topics that pages list, and counts the due jobs that are in no ready list, of all
// lanes on the agenda.
func (s *Counts) Totals(ctx context.Context, namespace string) (store.TopicStats, error) {
	total, err := s.totals(ctx, namespace)
	if err != nil {
		return store.TopicStats{}, fmt.Errorf("totals: %w", err)
	}
	return total, nil
}

func (s *Counts) totals(ctx context.Context, namespace string) (store.TopicStats, error) {
	total := store.TopicStats{Namespace: namespace}
	// The lanes first: what comes to ready after that is counted there.
	counted, err := s.countAgenda(ctx, namespace)
	if err != nil {
		return total, err
	}
	ready := counted.due
	add := func(names []string) error {
		err := s.eachCounters(ctx, names, func(c []string) {
			total.Registered += layout.Num(c[0])
			ready += layout.Num(c[1])
			total.Running += layout.Num(c[2])
			total.Delivered += layout.Num(c[3])
			total.Dead += layout.Num(c[4])
			total.Cancelled += layout.Num(c[5])
			total.Bytes += max(0, layout.Num(c[6]))
		})
		if err != nil {
			return err
		}
		counts, err := s.openLanes(ctx, names)
		for _, n := range counts {
			total.OpenBreakers += n
		}
		return err
	}
	if err := s.eachTopics(ctx, namespace, add); err != nil {
		return total, err
	}
	if err := add([]string{layout.TopicName(namespace, layout.ForgottenTopic)}); err != nil {
		return total, err
	}
	waiting := max(0, total.Registered-total.Running-total.Delivered-total.Dead-total.Cancelled)
	total.Ready = min(ready, waiting)
	total.Scheduled = waiting - total.Ready
	if waiting > 0 {
		total.OldestDue = layout.Time(counted.oldest)
	}
	return total, nil
}

// eachCounters reads the counterFields of topics in one trip, and calls do with those of each topic.
func (s *Counts) eachCounters(ctx context.Context, names []string, do func(c []string)) error {
	pipe := s.Client.Pipeline()
	parts := make([]*redis.SliceCmd, len(names))
	for i, name := range names {
		parts[i] = pipe.HMGet(ctx, s.Keys.TopicByName(name).Stats, counterFields...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return connect.MapError(ctx, err)
	}
	for _, part := range parts {
		do(layout.Strs(part.Val()))
	}
	return nil
}

// Usage adds up the counters of the topics that pages list. Those of forgotten topics add up to none.
func (s *Counts) Usage(ctx context.Context, namespace string) (usage store.Usage, err error) {
	err = s.eachTopics(ctx, namespace, func(names []string) error {
		return s.eachCounters(ctx, names, func(c []string) {
			jobs := layout.Num(c[0]) - layout.Num(c[3]) - layout.Num(c[4]) - layout.Num(c[5])
			usage = usage.Add(store.Usage{
				Jobs: max(0, jobs), Bytes: max(0, layout.Num(c[6])),
				KeptBytes: max(0, layout.Num(c[7])+layout.Num(c[8])+layout.Num(c[9])),
			})
		})
	})
	if err != nil {
		return store.Usage{}, fmt.Errorf("usage: %w", err)
	}
	return usage, nil
}

// countAgenda counts the jobs in all lanes of a namespace. After a step of the clock lanes may be on the stale agenda,
// or on both.
func (s *Counts) countAgenda(ctx context.Context, namespace string) (sum laneCounts, err error) {
	stale := map[string]bool{}
	for _, agenda := range []string{s.Keys.StaleAgenda, s.Keys.Agenda} {
		for from := int64(0); ; from += lanesChunk {
			numbers, err := s.Client.ZRange(ctx, agenda, from, from+lanesChunk-1).Result()
			if err != nil {
				return sum, connect.MapError(ctx, err)
			}
			last := len(numbers) < lanesChunk
			numbers = slices.DeleteFunc(numbers, func(n string) bool { return stale[n] })
			part, err := s.countQueues(ctx, namespace, numbers)
			if err != nil {
				return sum, err
			}
			sum.add(part)
			if agenda != s.Keys.Agenda {
				for _, n := range numbers {
					stale[n] = true
				}
			}
			if last {
				break
			}
		}
	}
	return sum, nil
}

// countQueues counts the jobs in the queues of a namespace among those given by number.
func (s *Counts) countQueues(ctx context.Context, namespace string, numbers []string) (sum laneCounts, err error) {
	queues, err := s.PeekByNumber(ctx, numbers)
	if err != nil {
		return sum, err
	}
	lanes := make([]string, 0, len(queues))
	for _, q := range queues {
		if q.Namespace == namespace && !store.IsInternal(q.Topic) {
			lanes = append(lanes, q.Lane+"\x00"+q.Number)
		}
	}
	if len(lanes) == 0 {
		return sum, nil
	}
	sum, _, err = s.countLanesOf(ctx, s.Keys.Topic(namespace, "").Stats, lanes, true)
	return sum, err
}
