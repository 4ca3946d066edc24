package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/throttle"
)

// Permit implements store.Shard. Like a claim's, its counts survive the process, and a power cut may take the last of
// them back.
func (s *Store) Permit(ctx context.Context, token store.Token, asks []store.PermitRequest) ([]store.Permit, error) {
	bound("permits", len(asks))
	var permits []store.Permit
	err := s.db.Submit(ctx, &op{
		Verb: "permit starts", Weight: len(asks),
		// Its grant would not be used.
		Gone: func() error { return db.ContextError(ctx) },
		Run: func(tx *tx) (err error) {
			weigh := func(all []store.Permit) int { return 48 * len(all) }
			permits, err = once(tx, memory.Call{Method: "permit", Token: token}, weigh, func() ([]store.Permit, error) {
				permits := make([]store.Permit, len(asks))
				for i, ask := range asks {
					var err error
					if permits[i], err = tx.permit(ask); err != nil {
						return nil, err
					}
				}
				return permits, nil
			})
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	return slices.Clone(permits), nil
}

// permit serves one request: it grants what fits.
func (tx *tx) permit(ask store.PermitRequest) (store.Permit, error) {
	p := store.Permit{Starts: ask.Starts, At: clock.Time(tx.Now.Millis)}
	if !ask.Rate.Limited() {
		return p, nil
	}
	t, err := tx.Topic(memory.TopicName{Namespace: ask.Namespace, Name: ask.Topic})
	if err != nil {
		return p, err
	}
	var before, w throttle.Window
	if t.Grants != nil {
		before = t.Grants.Starts
		w = before.Counting(ask.Rate, tx.Now)
	}
	granted := max(0, min(int64(ask.Starts), w.Room(ask.Rate, tx.Now)))
	if granted > 0 {
		w = w.Add(ask.Rate, granted, ask.Slack, tx.Now)
	}
	if p.Starts = int(granted); p.Starts < ask.Starts {
		p.Next = time.Duration(w[0].Leave(ask.Rate) - tx.Now.Mono)
	}
	if granted == 0 && len(w) == len(before) {
		return p, nil
	}
	tx.TouchTopic(t)
	t.Grants = nil
	if len(w) > 0 {
		t.Grants = &throttle.Grants{Starts: w, Per: ask.Rate.Per}
	}
	return p, nil
}

// Alarm implements store.Shard.
func (s *Store) Alarm(ctx context.Context, token store.Token, alarm store.Alarm) (bool, error) {
	outbox := encodeOutbox(alarm.Outbox)
	var changed bool
	err := s.db.Submit(ctx, &op{Verb: "note an alarm", Durable: true, Weight: 1 + len(outbox), Run: func(tx *tx) (err error) {
		changed, err = once(tx, memory.Call{Method: "alarm", Token: token}, light[bool], func() (bool, error) {
			name := memory.TopicName{Namespace: alarm.Namespace, Name: alarm.Topic}
			if t := tx.Mem.Topics[name]; alarm.Raised == (t != nil && t.Alarm) {
				return false, nil
			}
			t, err := tx.Topic(name)
			if err != nil {
				return false, err
			}
			tx.TouchTopic(t)
			t.Alarm = alarm.Raised
			return true, tx.Enqueue(alarm.Outbox, outbox)
		})
		return err
	}})
	if err != nil {
		return false, err // what the writer found may still change
	}
	return changed, nil
}
