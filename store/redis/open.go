package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// Open connects to Redis, checks its settings, and opens or lays out the data under the prefix.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	address, err := connect.ParseAddress(o.URL)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the URL and the rule
	}
	s := &Store{
		runner: &runner{client: connect.New(address, o.Wait, o.Logger), log: o.Logger, defaults: layout.FormatLimits(0, o.Limits)},
		prefix: o.Prefix, limits: o.Limits,
		lanesAtOnce: repairLanes, endedAtOnce: repairLists, me: string(store.NewToken()), elapsed: o.elapsed,
	}
	if err := s.open(ctx, o.Shards); err != nil {
		return nil, errors.Join(err, s.client.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, shards int) error {
	if err := s.client.Check(ctx); err != nil {
		return fmt.Errorf("open redis: %w", err)
	}
	persistent, err := s.client.CheckServers(ctx)
	if err != nil {
		return err //nolint:wrapcheck // it names the setting and the rule
	}
	n, err := s.layout(ctx, shards)
	if err != nil {
		return err
	}
	for i, tag := range layout.Tags(s.prefix, n) {
		s.shards = append(s.shards, newShard(s, layout.NewKeys(tag), i))
	}
	s.health.shards, s.health.filled = n, make(map[int]bool)
	if err := s.client.CheckWait(ctx); err != nil {
		return err //nolint:wrapcheck // as above
	}
	if !persistent { // last, so that a refusal is the only line
		s.log.WarnContext(ctx, "redis persists nothing, jobs are lost when it stops; set appendonly yes")
	}
	return nil
}

// layout checks, or sets once, the layout's version, and returns the number of shards. It writes only missing fields, so
// that existing data can be opened while memory is full.
func (s *Store) layout(ctx context.Context, shards int) (n int, err error) {
	key := s.metaKey()
	first := max(shards, 1)
	if s.client.IsCluster() {
		first = cmp.Or(shards, layout.ClusterShards)
	}
	found, err := s.client.HMGet(ctx, key, "version", "shards").Result()
	if err == nil && (found[0] == nil || found[1] == nil) {
		pipe := s.client.Pipeline()
		pipe.HSetNX(ctx, key, "version", layout.Version)
		pipe.HSetNX(ctx, key, "shards", first)
		read := pipe.HMGet(ctx, key, "version", "shards")
		_, err = pipe.Exec(ctx)
		found = read.Val()
	}
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", key, connect.MapError(ctx, err))
	}
	values := strs(found)
	version, n := num(values[0]), int(num(values[1]))
	switch {
	case version != layout.Version:
		return 0, fmt.Errorf("redis: the data have schema version %s, this program requires version %d", values[0], layout.Version)
	case n < 1 || n > job.MaxShards:
		return 0, fmt.Errorf("redis: %s has %q shards, want 1 to %d", key, values[1], job.MaxShards)
	case shards != 0 && shards != n:
		return 0, fmt.Errorf("redis: the data have %d shards, not %d: the number is fixed when they are laid out", n, shards)
	}
	return n, nil
}
