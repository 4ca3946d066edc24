package counts

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// QueueState reads a queue's sets and throttle in one script.
func (s *Counts) QueueState(ctx context.Context, q job.Queue) (store.QueueState, error) {
	state := store.QueueState{LaneStats: store.LaneStats{Lane: q.Lane}}
	err := s.RetryStale(func() error {
		found, _, err := s.Find(ctx, []job.Queue{q})
		if err != nil || len(found) == 0 {
			return err
		}
		c := s.NewCall(scriptQueueState, s.Keys.Reply("", ""), found, nil, 0)
		c.Keys = append(c.Keys, s.Keys.Carrier)
		answer, err := s.RunList(ctx, c, 11)
		if err != nil {
			return err
		}
		n := nums(answer[:8])
		state.Scheduled, state.Ready, state.Running = n[0]-n[1], n[1]+n[2], n[3]
		state.CooldownUntil, state.BreakerOpen, state.NextStart, state.Led = layout.Time(n[4]), n[5] == 1,
			layout.Time(n[6]), n[7] == 1
		state.CooldownCause = layout.ParseCause(layout.Str(answer[9]))
		state.Health = store.ParseHealth(layout.Str(answer[10]))
		if next := layout.Str(answer[8]); next != "" {
			state.Next = layout.ParseJobKey(next)
		}
		return nil
	})
	if err != nil {
		return store.QueueState{}, fmt.Errorf("queue state: %w", err)
	}
	return state, nil
}

// TopicState reads a topic's counter of claimed jobs, and the starts that its rate counts.
func (s *Counts) TopicState(ctx context.Context, namespace, topic string, rate policy.Rate) (store.TopicState, error) {
	keys, starts, per := s.Keys.Topic(namespace, topic), 0, int64(0)
	if rate.Limited() {
		starts, per = rate.Starts, layout.Millis(rate.Per)
	}
	answer, err := s.EvalList(ctx, scriptTopicState, 2,
		[]string{keys.Stats, s.Keys.Rate(keys.Name), s.Keys.Clock}, []any{starts, per})
	if err != nil {
		return store.TopicState{}, fmt.Errorf("topic state: %w", err)
	}
	n := nums(answer)
	return store.TopicState{Running: n[0], NextStart: layout.Time(n[1])}, nil
}
