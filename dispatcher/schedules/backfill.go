package schedules

import (
	"context"
	"time"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/policy"
)

// runBackfill runs the next ticks of a backfill, and returns the time to those after them.
func (s *step) runBackfill(ctx context.Context) (time.Duration, error) {
	order := s.doc.Backfill
	if order == nil {
		s.Backfill = nil
		return idleWait, nil
	}
	if s.Backfill == nil || !s.Backfill.CreatedAt.Equal(order.CreatedAt) {
		s.Backfill = &backfill{Backfill: *order, Passed: order.After.Add(-1), DueAt: s.claimedAt}
	}
	b := s.Backfill
	if !b.EndedAt.IsZero() {
		return idleWait, nil
	}
	if wait := b.DueAt.Sub(s.claimedAt); wait > 0 {
		return wait, nil
	}
	until := b.Before.Add(-1)
	if next, in := s.next(s.Passed); in != nil && !next.After(until) { // the schedule itself comes first
		until = s.Passed
	}
	spacing, most := spread(b.Rate)
	ticks := first(s.newest().ticks, most, b.Passed, until)
	prepared, err := s.prepare(ctx, ticks)
	for i := range prepared {
		prepared[i].Delay = time.Duration(i) * spacing
		b.Passed = ticks[i]
		b.Done++
	}
	s.outbox = append(s.outbox, prepared...)
	wait := time.Duration(len(prepared)) * spacing
	switch {
	case err != nil:
		longer, over := internaljobs.QuotaWait(err)
		switch {
		case !over && !internaljobs.IsRefused(err):
			return 0, err
		case !over:
			b.Failed, b.EndedAt = internaljobs.Reason(err), s.claimedAt
			return idleWait, nil
		}
		wait = max(wait, longer)
	case len(ticks) == 0 && until.Before(b.Before.Add(-1)):
		return internaljobs.MaxQuotaWait, nil // or after its next tick
	case len(ticks) == 0:
		b.EndedAt = s.claimedAt
		return idleWait, nil
	}
	b.DueAt = s.claimedAt.Add(wait)
	return wait, nil
}

// spread returns the time between the jobs of a backfill, and how many a step registers: those of about a second.
func spread(rate policy.Rate) (spacing time.Duration, most int) {
	spacing = rate.Per / time.Duration(rate.Starts)
	return spacing, int(max(1, min(batch, time.Second/max(spacing, 1))))
}
