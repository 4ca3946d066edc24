package router

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// TopicStats adds up the shards' counts, in order of name.
func (r *Router) TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error) {
	all, err := r.sumTopics(
		func(shard store.Shard) ([]store.TopicStats, error) { return shard.TopicStats(ctx, filter) },
	)
	if len(filter.Topics) == 0 {
		// Each shard returned its first topics, so that the sums of the first of all are complete.
		all = all[:min(len(all), filter.Limit)]
	}
	return all, err
}

// Totals adds up the shards' totals.
func (r *Router) Totals(ctx context.Context, namespace string) (store.TopicStats, error) {
	sums, err := r.sumTopics(func(shard store.Shard) ([]store.TopicStats, error) {
		total, err := shard.Totals(ctx, namespace)
		return []store.TopicStats{total}, err
	})
	if err != nil {
		return store.TopicStats{}, err
	}
	return sums[0], nil
}

// Usage adds up the shards' usages of a namespace.
func (r *Router) Usage(ctx context.Context, namespace string) (sum store.Usage, err error) {
	parts, err := readShards(r, func(shard store.Shard) ([]store.Usage, error) {
		usage, err := shard.Usage(ctx, namespace)
		return []store.Usage{usage}, err
	})
	for _, part := range parts {
		sum = sum.Add(part)
	}
	return sum, err
}

// sumTopics adds up the rows of all shards by topic, in order of namespace and name.
func (r *Router) sumTopics(read func(store.Shard) ([]store.TopicStats, error)) ([]store.TopicStats, error) {
	rows, err := readShards(r, read)
	if err != nil || len(r.shards) == 1 {
		return rows, err
	}
	type name struct{ namespace, topic string }
	sums := make(map[name]store.TopicStats)
	for _, t := range rows {
		key := name{t.Namespace, t.Topic}
		sums[key] = sums[key].Add(t)
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b store.TopicStats) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Topic, b.Topic))
	}), nil
}

// LaneStats merges the shards' lanes in order of name. Each lane is on one shard.
func (r *Router) LaneStats(ctx context.Context, namespace, topic, after string, limit int) ([]store.LaneStats, error) {
	all, err := readShards(r, func(shard store.Shard) ([]store.LaneStats, error) {
		return shard.LaneStats(ctx, namespace, topic, after, limit)
	})
	slices.SortFunc(all, func(a, b store.LaneStats) int { return cmp.Compare(a.Lane, b.Lane) })
	return all[:min(limit, len(all))], err
}

// QueueState is Counts.QueueState on the queue's shard.
func (r *Router) QueueState(ctx context.Context, q job.Queue) (store.QueueState, error) {
	return r.shards[r.ShardOf(q)].QueueState(ctx, q)
}

// NextStart returns when a topic's rate grants the next start; zero: now.
func (r *Router) NextStart(ctx context.Context, namespace, topic string, rate policy.Rate) (time.Time, error) {
	state, err := r.shards[r.ShardOfTopic(namespace, topic)].TopicState(ctx, namespace, topic, rate)
	return state.NextStart, err
}

// TopicState adds up the shards' running jobs of a topic, and returns when its rate grants the next start.
func (r *Router) TopicState(
	ctx context.Context, namespace, topic string, rate policy.Rate,
) (sum store.TopicState, err error) {
	states, err := readShards(r, func(shard store.Shard) ([]store.TopicState, error) {
		state, err := shard.TopicState(ctx, namespace, topic, rate)
		return []store.TopicState{state}, err
	})
	for _, state := range states {
		sum.Running += state.Running
		if state.NextStart.After(sum.NextStart) {
			sum.NextStart = state.NextStart // of the one shard that grants starts
		}
	}
	return sum, err
}

// ListHealth merges the lanes of all shards in order of the Since of their health.
func (r *Router) ListHealth(ctx context.Context, f store.HealthFilter) ([]store.LaneHealth, error) {
	all, err := readShards(r, func(shard store.Shard) ([]store.LaneHealth, error) { return shard.ListHealth(ctx, f) })
	return f.First(all), err
}

// ReadHistory adds up the shards' histories of topics, in their order.
func (r *Router) ReadHistory(ctx context.Context, namespace string, topics []string) ([]store.History, error) {
	parts, err := readShards(r, func(shard store.Shard) ([]store.History, error) {
		return shard.ReadHistory(ctx, namespace, topics)
	})
	if err != nil {
		return nil, err
	}
	sums := make([]store.History, len(topics))
	for i := range parts { // each shard answers in the order of the topics
		sum := &sums[i%len(topics)]
		sum.Topic = parts[i].Topic
		sum.Merge(&parts[i])
	}
	return sums, nil
}

// readShards reads rows from all shards concurrently, and returns them in order of the shards.
func readShards[T any](r *Router, read func(store.Shard) ([]T, error)) ([]T, error) {
	parts := make([][]T, len(r.shards))
	err := r.ForEachShard(func(n int, shard store.Shard) (err error) {
		parts[n], err = read(shard)
		return err
	})
	if err != nil {
		return nil, err
	}
	return slices.Concat(parts...), nil
}
