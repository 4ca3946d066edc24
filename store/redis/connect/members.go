package connect

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// MembersAfter reads up to limit members of a sorted set with equal scores, in order, after a member; empty: from the first.
func (c *Client) MembersAfter(ctx context.Context, key, after string, limit int) ([]string, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	members, err := c.ZRangeByLex(ctx, key, &redis.ZRangeBy{Min: from, Max: "+", Count: int64(limit)}).Result()
	return members, MapError(ctx, err)
}
