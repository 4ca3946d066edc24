package carrier

import (
	"context"
	"errors"
	"time"

	"github.com/ringback/ringback/store"
)

// home brings outbox entries to their own queues. The entry is removed by the next Carry; when the process dies in
// between, the second insertion finds the first by its fixed id.
type home struct {
	next  store.Round
	again time.Time // entries that could not be brought are tried again then
	pause time.Duration
}

// The pauses before what could not be brought home is tried again: they double while nothing can.
const (
	homeFirst = 100 * time.Millisecond
	homeMost  = 5 * time.Second
)

// take gives the round that names the entries which stand in their queues, once.
func (h *home) take() store.Round {
	round := h.next
	h.next = store.Round{}
	return round
}

// wait is how long the sleep may be so that what stands in its queue leaves the outbox.
func (h *home) wait() time.Duration {
	if !h.again.IsZero() {
		return max(time.Millisecond, time.Until(h.again))
	}
	return look
}

// bring inserts the entries, and tells whether any now stands in its queue. One that cannot be inserted holds up neither
// the others nor the shard: where the store is away it is tried again after a pause, where its insertion is refused for
// another reason it is dropped, with a log line that names it.
func (h *home) bring(ctx context.Context, s *shard, entries []store.Entry) bool {
	if len(entries) == 0 {
		h.again, h.pause = time.Time{}, 0
		return false
	}
	if time.Now().Before(h.again) {
		return false
	}
	away := 0
	for i, result := range s.store.Insert(ctx, entries) {
		e := entries[i]
		switch {
		case errors.Is(result.Err, store.ErrUnavailable), result.Err != nil && ctx.Err() != nil,
			errors.Is(result.Err, context.DeadlineExceeded):
			away++
			continue
		case result.Err != nil:
			s.log.Error("a job born in the outbox was dropped", "job", e.ID, "origin", e.Origin, "err", result.Err)
		case result.Outcome == store.Conflict:
			s.log.Error("a job born in the outbox has the id of another one", "job", e.ID, "origin", e.Origin)
		}
		h.next.Home = append(h.next.Home, e.Ref())
	}
	h.again = time.Time{}
	if away > 0 {
		h.pause = min(max(2*h.pause, homeFirst), homeMost)
		h.again = time.Now().Add(h.pause)
		s.log.Warn("jobs born in the outbox could not be brought to their queues yet", "shard", s.n, "count", away)
	} else {
		h.pause = 0
	}
	return len(h.next.Home) > 0
}
