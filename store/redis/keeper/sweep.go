package keeper

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// sweepTopics is how many topics one Sweep processes. The next continues after them.
const sweepTopics = 128

// Sweep deletes ended jobs of the next topics beyond their retention, and forgets their unused lanes. More is also set
// when topics are left.
func (s *Keeper) Sweep(ctx context.Context, token store.Token, limit int) (store.SweepResult, error) {
	if limit <= 0 {
		return store.SweepResult{}, ctx.Err()
	}
	s.mu.Lock()
	after, turn := s.sweepAfter, s.sweeps
	s.mu.Unlock()
	names, err := s.Client.MembersAfter(ctx, s.Keys.Topics, after, sweepTopics)
	if err != nil {
		return store.SweepResult{}, fmt.Errorf("sweep: %w", err)
	}
	topics := make([]*layout.Topic, len(names))
	for i, name := range names {
		topics[i] = s.Keys.TopicByName(name)
	}
	c := s.NewCall(scriptSweep, s.Keys.Reply(string(token), "w"), nil, topics, 1)
	c.Add(limit)
	answer, err := s.RunList(ctx, c, 3)
	if err != nil {
		return store.SweepResult{}, fmt.Errorf("sweep: %w", err)
	}
	swept := store.SweepResult{
		Jobs: int(layout.Num(answer[0])),
		IDs:  int(layout.Num(answer[1])), More: answer[2] == "1",
	}
	if swept.More {
		return swept, nil // these topics are not done
	}
	all := after == "" && len(names) < sweepTopics
	if all || turn%forgetTurns == 0 {
		if err := s.forgetUnused(ctx, names); err != nil {
			return store.SweepResult{}, fmt.Errorf("forget unused lanes: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sweepAfter = ""; len(names) == sweepTopics {
		s.sweepAfter, swept.More = names[len(names)-1], true
	} else {
		s.sweeps++
	}
	return swept, nil
}
