package outbox

import (
	"context"
	"fmt"
	"time"
)

// Stats are the counts of an outbox, for metrics and alerts.
type Stats struct {
	// Jobs are those in the table: not registered yet, or refused.
	Jobs int64
	// Refused are those that Ringback has refused for what they say. It does not count those that a quota or a fault
	// holds up.
	Refused int64
	// OldestAddedAt is when the oldest was added; zero: there is none.
	OldestAddedAt time.Time
	// ClaimedAhead are the rows that this relay, since it was made, has claimed before their time, which was further
	// away than any relay sets it: the clock was set back.
	ClaimedAhead int64
	// LookTime is how long this relay's last look for rows took; zero: Run has not looked yet.
	LookTime time.Duration
}

// Stats counts the rows of the outbox. It reads all of them, so call it every few seconds at most.
func (r *Relay) Stats(ctx context.Context) (Stats, error) {
	s := Stats{ClaimedAhead: r.claimedAhead.Load(), LookTime: time.Duration(r.lookTime.Load())}
	var oldest int64
	if err := r.db.QueryRowContext(ctx, countRows).Scan(&s.Jobs, &s.Refused, &oldest); err != nil {
		return Stats{}, fmt.Errorf("outbox: count rows: %w", err)
	}
	if oldest > 0 {
		s.OldestAddedAt = time.UnixMilli(oldest)
	}
	return s, nil
}
