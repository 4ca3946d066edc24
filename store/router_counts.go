package store

import (
	"cmp"
	"context"
	"slices"
)

// TopicStats adds up the shards' counts, in order of name.
func (r *Router) TopicStats(ctx context.Context, filter StatsFilter) ([]TopicStats, error) {
	all, err := r.sumTopics(func(shard Shard) ([]TopicStats, error) { return shard.TopicStats(ctx, filter) })
	if len(filter.Topics) == 0 {
		// Each shard returned its first topics, so that the sums of the first of all are complete.
		all = all[:min(len(all), filter.Limit)]
	}
	return all, err
}

// Totals adds up the shards' totals.
func (r *Router) Totals(ctx context.Context, namespace string) (TopicStats, error) {
	sums, err := r.sumTopics(func(shard Shard) ([]TopicStats, error) {
		total, err := shard.Totals(ctx, namespace)
		return []TopicStats{total}, err
	})
	if err != nil {
		return TopicStats{}, err
	}
	return sums[0], nil
}

// sumTopics adds up the rows of all shards by topic, in order of namespace and name.
func (r *Router) sumTopics(read func(Shard) ([]TopicStats, error)) ([]TopicStats, error) {
	rows, err := readShards(r, read)
	if err != nil || len(r.shards) == 1 {
		return rows, err
	}
	type name struct{ namespace, topic string }
	sums := make(map[name]TopicStats)
	for _, t := range rows {
		key := name{t.Namespace, t.Topic}
		sums[key] = sums[key].Add(t)
	}
	all := make([]TopicStats, 0, len(sums))
	for _, t := range sums {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b TopicStats) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Topic, b.Topic))
	})
	return all, nil
}

// Add returns the sum of the counts, with the name of o.
func (t TopicStats) Add(o TopicStats) TopicStats {
	t.Namespace, t.Topic = o.Namespace, o.Topic
	t.Registered += o.Registered
	t.Scheduled += o.Scheduled
	t.Ready += o.Ready
	t.Running += o.Running
	t.Delivered += o.Delivered
	t.Dead += o.Dead
	t.Cancelled += o.Cancelled
	t.OpenBreakers += o.OpenBreakers
	if t.OldestDue.IsZero() || (!o.OldestDue.IsZero() && o.OldestDue.Before(t.OldestDue)) {
		t.OldestDue = o.OldestDue
	}
	return t
}

// LaneStats merges the shards' lanes in order of name. Each lane is on one shard.
func (r *Router) LaneStats(ctx context.Context, namespace, topic, after string, limit int) ([]LaneStats, error) {
	all, err := readShards(r, func(shard Shard) ([]LaneStats, error) {
		return shard.LaneStats(ctx, namespace, topic, after, limit)
	})
	slices.SortFunc(all, func(a, b LaneStats) int { return cmp.Compare(a.Lane, b.Lane) })
	return all[:min(limit, len(all))], err
}

// ListLanes merges the shards' lanes with settings in order of name.
func (r *Router) ListLanes(ctx context.Context, namespace, topic, after string, limit int) ([]Lane, error) {
	all, err := readShards(r, func(shard Shard) ([]Lane, error) {
		return ListLanes(ctx, shard, namespace, topic, after, limit)
	})
	slices.SortFunc(all, func(a, b Lane) int { return cmp.Compare(a.Queue.Lane, b.Queue.Lane) })
	return all[:min(limit, len(all))], err
}

// readShards reads rows from all shards concurrently, and returns them in order of the shards.
func readShards[T any](r *Router, read func(Shard) ([]T, error)) ([]T, error) {
	parts := make([][]T, len(r.shards))
	err := r.forEachShard(func(n int, shard Shard) (err error) {
		parts[n], err = read(shard)
		return err
	})
	if err != nil {
		return nil, err
	}
	return slices.Concat(parts...), nil
}
