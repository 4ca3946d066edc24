package connect

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// MembersAfter reads up to limit members of a sorted set with equal scores, in order, after a member; empty: from the
// first.
func (c *Client) MembersAfter(ctx context.Context, key, after string, limit int) ([]string, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	members, err := c.ZRangeByLex(ctx, key, &redis.ZRangeBy{Min: from, Max: "+", Count: int64(limit)}).Result()
	return members, MapError(ctx, err)
}

// FirstMembers reads up to limit members of each of several sorted sets with equal scores, in order and in one round
// trip.
func (c *Client) FirstMembers(ctx context.Context, keys []string, limit int) ([][]string, error) {
	pipe := c.Pipeline()
	cmds := make([]*redis.StringSliceCmd, len(keys))
	for i, key := range keys {
		cmds[i] = pipe.ZRangeByLex(ctx, key, &redis.ZRangeBy{Min: "-", Max: "+", Count: int64(limit)})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, MapError(ctx, err)
	}
	members := make([][]string, len(keys))
	for i, cmd := range cmds {
		members[i] = cmd.Val()
	}
	return members, nil
}
