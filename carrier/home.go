package carrier

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/store"
)

// home brings outbox entries to their own queues. The entry is removed by the next Carry; when the process dies in
// between, the second insertion finds the first by its fixed id.
type home struct{ next store.Round }

// take gives the round that names the entries which stand in their queues, once.
func (h *home) take() store.Round {
	round := h.next
	h.next = store.Round{}
	return round
}

// bring inserts the entries. One that can never be inserted is dropped with a log line instead of blocking the rest; a
// store that is away fails the round, and they come again.
func (h *home) bring(ctx context.Context, s *shard, entries []store.Entry) error {
	for i, result := range s.store.Insert(ctx, entries) {
		if result.Err != nil {
			return fmt.Errorf("bring %s home: %w", entries[i].ID, result.Err)
		}
		if result.Outcome == store.Conflict {
			s.log.Error("a job born in the outbox has the id of another one", "job", entries[i].ID, "origin", entries[i].Origin)
		}
		h.next.Home = append(h.next.Home, entries[i].Ref())
	}
	return nil
}
