package store

import (
	"cmp"
	"context"
	"slices"
)

// TopicStats adds up the shards' counts, in order of name.
func (r *Router) TopicStats(ctx context.Context, filter StatsFilter) ([]TopicStats, error) {
	all, err := r.sumTopics(func(shard int) ([]TopicStats, error) { return r.shards[shard].TopicStats(ctx, filter) })
	if len(filter.Topics) == 0 {
		// Each shard answered its first topics, so the first of all are complete.
		all = all[:min(len(all), filter.Limit)]
	}
	return all, err
}

// Totals adds up the shards' totals.
func (r *Router) Totals(ctx context.Context, namespace string) (TopicStats, error) {
	parts, err := r.sumTopics(func(shard int) ([]TopicStats, error) {
		total, err := r.shards[shard].Totals(ctx, namespace)
		return []TopicStats{total}, err
	})
	if err != nil {
		return TopicStats{}, err
	}
	return parts[0], nil
}

// sumTopics adds up rows of all shards by topic, in order of namespace and name.
func (r *Router) sumTopics(ask func(shard int) ([]TopicStats, error)) ([]TopicStats, error) {
	parts := make([][]TopicStats, len(r.shards))
	err := r.each(func(shard int) (err error) {
		parts[shard], err = ask(shard)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	type name struct{ namespace, topic string }
	sums := make(map[name]TopicStats)
	for _, part := range parts {
		for _, t := range part {
			key := name{t.Namespace, t.Topic}
			sums[key] = sums[key].Add(t)
		}
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

// Add adds the counts of o, whose name the sum has.
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

// LaneStats merges the shards' lanes in order of name; a lane lives on one shard only.
func (r *Router) LaneStats(ctx context.Context, namespace, topic, after string, limit int) ([]LaneStats, error) {
	parts := make([][]LaneStats, len(r.shards))
	err := r.each(func(shard int) (err error) {
		parts[shard], err = r.shards[shard].LaneStats(ctx, namespace, topic, after, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := slices.Concat(parts...)
	slices.SortFunc(all, func(a, b LaneStats) int { return cmp.Compare(a.Lane, b.Lane) })
	return all[:min(limit, len(all))], nil
}

// ListLanes merges the shards' lanes with settings of their own in order of name.
func (r *Router) ListLanes(ctx context.Context, namespace, topic, after string, limit int) ([]Lane, error) {
	parts := make([][]Lane, len(r.shards))
	err := r.each(func(shard int) (err error) {
		parts[shard], err = r.shards[shard].ListLanes(ctx, namespace, topic, after, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := slices.Concat(parts...)
	slices.SortFunc(all, func(a, b Lane) int { return cmp.Compare(a.Queue.Lane, b.Queue.Lane) })
	return all[:min(limit, len(all))], nil
}
