package counts

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// ListHealth reads the namespace's set of lanes with health, in its order, in portions of two round trips.
func (s *Counts) ListHealth(ctx context.Context, f store.HealthFilter) (all []store.LaneHealth, err error) {
	const chunk = 1000
	for from := int64(0); from < store.MaxHealthScan && len(all) < f.Limit; from += chunk {
		numbers, err := s.Client.ZRange(ctx, s.Keys.Unhealthy(f.Namespace), from, from+chunk-1).Result()
		if err != nil {
			return nil, fmt.Errorf("list health: %w", connect.MapError(ctx, err))
		}
		if len(numbers) == 0 {
			break
		}
		pipe := s.Client.Pipeline()
		names, lines := pipe.HMGet(ctx, s.Keys.Names, numbers...), pipe.HMGet(ctx, s.Keys.Health, numbers...)
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, fmt.Errorf("list health: %w", connect.MapError(ctx, err))
		}
		health := layout.Strs(lines.Val())
		for i, name := range layout.Strs(names.Val()) {
			q, ok := layout.ParseQueue(name)
			if h := store.ParseHealth(health[i]); ok && h != nil && f.Selects(q, h) {
				all = append(all, store.LaneHealth{Queue: q, Health: h})
			}
		}
		if len(numbers) < chunk {
			break
		}
	}
	return f.First(all), nil
}
