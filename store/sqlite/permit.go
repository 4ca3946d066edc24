package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// Permit implements store.Shard. Like a claim's, its counts survive the process, and a power cut may take the last of
// them back.
func (s *Store) Permit(ctx context.Context, token store.Token, asks []store.PermitRequest) ([]store.Permit, error) {
	checkBatch("permits", len(asks))
	// A grant would not be used by a caller who has left.
	c := op{Verb: "permit starts", Weight: len(asks), Gone: func() error { return db.ContextError(ctx) }}
	weigh := func(all []store.Permit) int { return 48 * len(all) }
	permits, err := unit.Submit(ctx, s.db, token, c, weigh, func(u *unit.Unit) (permits []store.Permit, err error) {
		permits = make([]store.Permit, len(asks))
		for i, ask := range asks {
			if permits[i], err = grantPermit(u, ask); err != nil {
				return nil, err
			}
		}
		return permits, nil
	})
	return slices.Clone(permits), err
}

// grantPermit serves one request: it grants what fits.
func grantPermit(u *unit.Unit, ask store.PermitRequest) (store.Permit, error) {
	p := store.Permit{Starts: ask.Starts, At: clock.Time(u.Now.Millis)}
	if !ask.Rate.Limited() {
		return p, nil
	}
	t, err := u.Topic(memory.TopicName{Namespace: ask.Namespace, Name: ask.Topic})
	if err != nil {
		return p, err
	}
	var before, w memory.Window
	if t.Grants != nil {
		before = t.Grants.Starts
		w = before.Counting(ask.Rate, u.Now)
	}
	granted := max(0, min(int64(ask.Starts), w.Room(ask.Rate, u.Now)))
	if granted > 0 {
		w = w.Add(ask.Rate, granted, ask.Slack, u.Now)
	}
	if p.Starts = int(granted); p.Starts < ask.Starts {
		p.Next = time.Duration(w[0].ExpireAt(ask.Rate) - u.Now.Mono)
	}
	if granted == 0 && len(w) == len(before) {
		return p, nil
	}
	u.TouchTopic(t)
	t.Grants = nil
	if len(w) > 0 {
		t.Grants = &memory.Grants{Starts: w, Per: ask.Rate.Per}
	}
	return p, nil
}
