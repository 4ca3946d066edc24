package storetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// endOfLife returns the end of a job's time to live; zero: none.
func (r *record) endOfLife() time.Time {
	at := r.job.ExpiresAt
	if r.maxAge > 0 && !r.aged {
		if old := after(r.job.FirstDueAt, r.maxAge); at.IsZero() || old.Before(at) {
			at = old
		}
	}
	return at
}

// isExpired reports whether a job without a lease is beyond its time to live.
func (r *record) isExpired(now time.Time) bool {
	waits := r.place == &r.queue.due || r.place == &r.queue.ready
	at := r.endOfLife()
	return waits && !at.IsZero() && at.Before(now)
}

// ClaimExpired leases jobs that wait beyond their time to live.
func (s *modelShard) ClaimExpired(
	ctx context.Context, token store.Token, request store.ClaimExpiredRequest,
) ([]store.ClaimedJob, error) {
	m := s.model
	bound(request.Max)
	now, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	t, _ := once(s, now, call{"expired", token}, func() (*claimReply, error) {
		t := &claimReply{}
		var over []*record
		for _, r := range s.jobs {
			if !s.hasTTL {
				break // saves time in tests with many jobs
			}
			if r.isExpired(now) {
				over = append(over, r)
			}
		}
		slices.SortFunc(over, func(a, b *record) int {
			return cmp.Or(a.endOfLife().Compare(b.endOfLife()), cmp.Compare(a.job.ID, b.job.ID))
		})
		size := 0
		for _, r := range over {
			if size += len(r.job.Body); len(t.records) == request.Max || len(t.records) > 0 && size > request.MaxBytes {
				break
			}
			if r.job.ExpiresAt.IsZero() || !r.job.ExpiresAt.Before(now) {
				r.aged = true
			}
			r.queue.open = r.queue.breakerIsOpen(now) // else the claimed job would open a closed one again
			s.remove(r)
			r.lease, r.claimed, r.late = token, now, max(0, now.Sub(r.job.DueAt))
			r.probe, r.rated = false, false
			r.deadline = after(now, request.Lease)
			r.job.State = job.Running
			s.placeIn(r, &r.queue.claimed)
			s.reschedule(r.queue, now, true)
			t.records = append(t.records, r)
		}
		return t, nil
	})
	var held []store.ClaimedJob
	for _, r := range t.records {
		if r.place == &r.queue.claimed && r.lease == token {
			held = append(held, r.claimedJob(now))
		}
	}
	return held, nil
}
