package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/counts"
	"github.com/ringback/ringback/store/redis/health"
	"github.com/ringback/ringback/store/redis/jobs"
	"github.com/ringback/ringback/store/redis/keeper"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/queue"
	"github.com/ringback/ringback/store/redis/repair"
	"github.com/ringback/ringback/store/redis/settings"
	"github.com/ringback/ringback/store/redis/shard"
	"github.com/ringback/ringback/store/redis/tail"
)

// Open connects to Redis, checks its settings, and opens or lays out the data under the prefix.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	address, err := connect.ParseAddress(o.URL)
	if err != nil {
		return nil, err
	}
	runner := &layout.Runner{Client: connect.New(address, o.Wait, o.Logger), Defaults: layout.FormatLimits(0, o.Limits)}
	s := &Store{Runner: runner, now: time.Now}
	if err := s.open(ctx, &o); err != nil {
		return nil, errors.Join(err, s.Client.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, o *Options) error {
	if err := s.Client.Check(ctx); err != nil {
		return fmt.Errorf("open redis: %w", err)
	}
	persistent, err := s.Client.CheckServers(ctx)
	if err != nil {
		return err
	}
	if o.exists {
		if err := s.checkExists(ctx, o.Prefix); err != nil {
			return err
		}
	}
	n, err := s.openMeta(ctx, o)
	if err != nil {
		return err
	}
	shards := make([]*shard.Shard, n)
	for i, tag := range layout.Tags(o.Prefix, n) {
		shards[i] = shard.New(s.Runner, o.Logger, tag, i)
	}
	s.Tail = tail.New(s.Runner, &shards[0].Keys)
	s.documents = settings.NewDocuments(s.Runner, o.Prefix, o.Limits, shards, o.Logger)
	s.health = health.New(s.Client, o.Logger, o.Prefix, shards, func() time.Time { return s.now() })
	s.repairs = repair.NewProcess(o.elapsed)
	process := keeper.NewProcess(o.elapsed)
	for _, sh := range shards {
		repairer := repair.New(sh, s.health, s.repairs)
		s.shards = append(s.shards, &storeShard{
			Shard: sh, Queue: queue.New(sh), Jobs: jobs.New(sh, s.health),
			Keeper:   keeper.New(sh, process, s.documents, repairer),
			Repairer: repairer, Counts: &counts.Counts{Shard: sh}, Lanes: &settings.Lanes{Shard: sh},
		})
	}
	if err := s.Client.CheckWait(ctx); err != nil {
		return err
	}
	if !persistent { // last, so that a refusal is the only line
		o.Logger.WarnContext(ctx, "redis persists nothing, jobs are lost when it stops; set appendonly yes")
	}
	return nil
}

// openMeta checks the layout's version, or writes it to a new store, and returns the number of shards. It writes only
// missing fields, so that existing data can be opened while memory is full.
func (s *Store) openMeta(ctx context.Context, o *Options) (n int, err error) {
	key, shards := layout.MetaKey(o.Prefix), o.Shards
	first := max(shards, 1)
	if s.Client.IsCluster() {
		first = cmp.Or(shards, layout.ClusterShards)
	}
	found, err := s.Client.HMGet(ctx, key, "version", "shards").Result()
	if err == nil && (found[0] == nil || found[1] == nil) {
		pipe := s.Client.Pipeline()
		pipe.HSetNX(ctx, key, "version", layout.Version)
		pipe.HSetNX(ctx, key, "shards", first)
		read := pipe.HMGet(ctx, key, "version", "shards")
		_, err = pipe.Exec(ctx)
		found = read.Val()
	}
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", key, connect.MapError(ctx, err))
	}
	values := layout.Strs(found)
	return layout.CheckMeta(values[0], values[1], shards)
}
