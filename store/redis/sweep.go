package redis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// sweepTopics is how many topics one Sweep looks at; the next goes on where it ended.
const sweepTopics = 128

// Sweep removes what retention no longer keeps of the next topics, and forgets what is unused of them. More says that topics are left in this turn, too.
func (sh *shard) Sweep(ctx context.Context, token store.Token, limit int) (store.SweepResult, error) {
	s := sh.store
	if limit <= 0 {
		return store.SweepResult{}, ctx.Err()
	}
	sh.mu.RLock()
	after, turn := sh.sweepAfter, sh.sweepTurns
	sh.mu.RUnlock()
	from := "-"
	if after != "" {
		from = "(" + after
	}
	names, err := s.client.ZRangeByLex(ctx, sh.keys.Seen, &redis.ZRangeBy{Min: from, Max: "+", Count: sweepTopics}).Result()
	if err != nil {
		return store.SweepResult{}, fmt.Errorf("sweep: %w", connect.MapError(ctx, err))
	}
	topics := make([]*layout.Topic, len(names))
	for i, name := range names {
		topics[i] = sh.keys.TopicByName(name)
	}
	c := s.newCall(sh, scriptSweep, sh.keys.Reply(string(token), "w"), nil, topics, 1)
	c.add(limit)
	reply, err := s.do(ctx, c)
	if err != nil {
		return store.SweepResult{}, fmt.Errorf("sweep: %w", err)
	}
	answer := strs(reply)
	if len(answer) != 3 {
		return store.SweepResult{}, malformed(scriptSweep)
	}
	swept := store.SweepResult{Jobs: int(num(answer[0])), IDs: int(num(answer[1])), More: answer[2] == "1"}
	if swept.More {
		return swept, nil // these topics are not done
	}
	all := after == "" && len(names) < sweepTopics
	if all || turn%forgetTurns == 0 {
		if err := s.forgetUnused(ctx, sh, names); err != nil {
			return store.SweepResult{}, fmt.Errorf("forget unused lanes: %w", err)
		}
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.sweepAfter = ""; len(names) == sweepTopics {
		sh.sweepAfter, swept.More = names[len(names)-1], true
	} else {
		sh.sweepTurns++
	}
	return swept, nil
}
