package counts

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/script"
)

// counterFields are the counters of a topic that Totals and Usage add up.
var counterFields = []string{"reg", "ready", "claimed", "d", "x", "c", "b"}

// Totals adds up the counters of the topics that pages list, and counts the due jobs that are in no ready list, of all lanes on the agenda.
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
	found, err := s.waitingOnAgenda(ctx, namespace)
	if err != nil {
		return total, err
	}
	ready := found.due
	add := func(names []string) error {
		err := s.eachCounters(ctx, names, func(_ int, c []string) {
			total.Registered += script.Num(c[0])
			ready += script.Num(c[1])
			total.Running += script.Num(c[2])
			total.Delivered += script.Num(c[3])
			total.Dead += script.Num(c[4])
			total.Cancelled += script.Num(c[5])
			total.Bytes += max(0, script.Num(c[6]))
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
		total.OldestDue = layout.Time(found.oldest)
	}
	return total, nil
}

// eachCounters reads the counterFields of topics in one trip, and calls do with those of each topic, by its index.
func (s *Counts) eachCounters(ctx context.Context, names []string, do func(i int, c []string)) error {
	pipe := s.Client.Pipeline()
	parts := make([]*redis.SliceCmd, len(names))
	for i, name := range names {
		parts[i] = pipe.HMGet(ctx, s.Keys.TopicByName(name).Stats, counterFields...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return connect.MapError(ctx, err)
	}
	for i, part := range parts {
		do(i, script.Strs(part.Val()))
	}
	return nil
}

// Usage adds up the counters of the topics that pages list. Those of forgotten topics add up to none.
func (s *Counts) Usage(ctx context.Context, namespace string) (usage store.Usage, err error) {
	err = s.eachTopics(ctx, namespace, func(names []string) error {
		return s.eachCounters(ctx, names, func(_ int, c []string) {
			jobs := script.Num(c[0]) - script.Num(c[3]) - script.Num(c[4]) - script.Num(c[5])
			usage = usage.Add(store.Usage{Jobs: max(0, jobs), Bytes: max(0, script.Num(c[6]))})
		})
	})
	if err != nil {
		return store.Usage{}, fmt.Errorf("usage: %w", err)
	}
	return usage, nil
}

// waitingOnAgenda finds what waits in all lanes of a namespace. After a step of the clock lanes may be on the stale agenda, or on both.
func (s *Counts) waitingOnAgenda(ctx context.Context, namespace string) (w waiting, err error) {
	stale := map[string]bool{}
	for _, agenda := range []string{s.Keys.StaleAgenda, s.Keys.Agenda} {
		for from := int64(0); ; from += lanesChunk {
			numbers, err := s.Client.ZRange(ctx, agenda, from, from+lanesChunk-1).Result()
			if err != nil {
				return w, connect.MapError(ctx, err)
			}
			last := len(numbers) < lanesChunk
			numbers = slices.DeleteFunc(numbers, func(n string) bool { return stale[n] })
			part, err := s.waitingInQueues(ctx, namespace, numbers)
			if err != nil {
				return w, err
			}
			w.add(part)
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
	return w, nil
}

// waitingInQueues finds what waits in the queues of a namespace among those given by number.
func (s *Counts) waitingInQueues(ctx context.Context, namespace string, numbers []string) (w waiting, err error) {
	queues, err := s.PeekByNumber(ctx, numbers)
	if err != nil {
		return w, err
	}
	lanes := make([]string, 0, len(queues))
	for _, q := range queues {
		if q.Namespace == namespace && !store.IsInternal(q.Topic) {
			lanes = append(lanes, q.Lane+"\x00"+q.Number)
		}
	}
	if len(lanes) == 0 {
		return w, nil
	}
	w, _, err = s.waitingIn(ctx, s.Keys.Topic(namespace, "").Stats, lanes, true)
	return w, err
}
