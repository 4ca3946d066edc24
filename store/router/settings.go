package router

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// PutTopic writes a topic's policy.
func (r *Router) PutTopic(ctx context.Context, topic store.Topic) (store.Topic, error) {
	return store.PutTopic(ctx, r.settings, topic)
}

// DeleteTopic removes a topic's policy.
func (r *Router) DeleteTopic(ctx context.Context, topic store.Topic) error {
	return store.DeleteTopic(ctx, r.settings, topic)
}

// PutLane writes a lane's settings on the lane's shard.
func (r *Router) PutLane(ctx context.Context, lane store.Lane) (store.Lane, error) {
	return store.PutLane(ctx, r.shards[r.ShardOf(lane.Queue)], store.NewToken(), lane)
}

// GetLanes reads the settings of any number of lanes on any shards: one Lane for each, in order.
func (r *Router) GetLanes(ctx context.Context, queues []job.Queue) ([]store.Lane, error) {
	byShard := make([][]int, len(r.shards))
	for i, q := range queues {
		n := r.ShardOf(q)
		byShard[n] = append(byShard[n], i)
	}
	lanes := make([]store.Lane, len(queues))
	err := r.ForEachShard(func(n int, shard store.Shard) error {
		for part := range slices.Chunk(byShard[n], store.MaxBatch) {
			found, err := store.GetLanes(ctx, shard, pick(queues, part))
			if err != nil {
				return fmt.Errorf("read lanes' settings: %w", err)
			}
			for k, i := range part {
				lanes[i] = found[k]
			}
		}
		return nil
	})
	return lanes, err
}

// ListLanes merges the shards' lanes with settings in order of name.
func (r *Router) ListLanes(ctx context.Context, namespace, topic, after string, limit int) ([]store.Lane, error) {
	all, err := readShards(r, func(shard store.Shard) ([]store.Lane, error) {
		return store.ListLanes(ctx, shard, namespace, topic, after, limit)
	})
	slices.SortFunc(all, func(a, b store.Lane) int { return cmp.Compare(a.Queue.Lane, b.Queue.Lane) })
	return all[:min(limit, len(all))], err
}
