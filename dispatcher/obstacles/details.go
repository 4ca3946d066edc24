package obstacles

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Sizes of a list of jobs that are looked through for failed ones.
const (
	failureJobs = 20
	failureScan = 50
)

// readDetails reads the oldest due job of a lane, and the newest known failed attempt.
func (s *search) readDetails(ctx context.Context, l *lane) error {
	oldest, err := s.opts.Store.List(ctx, store.Filter{
		Namespace: l.Queue.Namespace, Topic: l.Queue.Topic, Lane: l.Queue.Lane,
		States: []job.State{job.Scheduled, job.Ready}, Oldest: true, Limit: 1, ScanLimit: failureScan,
	})
	if err != nil {
		return err
	}
	if len(oldest.Jobs) > 0 {
		l.OldestDue = oldest.Jobs[0].DueAt
	}
	failed, err := s.lastFailed(ctx, l)
	if failed == nil || err != nil {
		return err
	}
	found, err := s.opts.Store.GetIn(ctx, l.Queue, failed.Ref())
	if errors.Is(err, store.ErrNotFound) {
		return nil // it has ended since
	}
	l.LastFailure = lastFailure(&found)
	return err
}

// lastFailed returns the waiting job of a lane whose last attempt failed last, among those that are due last; nil: none
// is found. The list begins at the last time at which the topic's ladder or the lane's cooldown can have put off a
// retry, so that it passes over jobs that are registered for later. Lists have no times of attempts, so these are taken
// from due times and rungs.
func (s *search) lastFailed(ctx context.Context, l *lane) (last *job.Job, err error) {
	now := time.Now()
	longest := max(l.longestRung(), l.cooldownUntil.Sub(now))
	page, err := s.opts.Store.List(ctx, store.Filter{
		Namespace: l.Queue.Namespace, Topic: l.Queue.Topic, Lane: l.Queue.Lane,
		States: []job.State{job.Scheduled, job.Ready},
		After:  store.Position{Topic: l.Queue.Topic, Lane: l.Queue.Lane, At: now.Add(2 * longest).UnixMilli()},
		Limit:  failureJobs, ScanLimit: failureScan,
	})
	if err != nil {
		return nil, err
	}
	var at time.Time
	for i := range page.Jobs {
		j := &page.Jobs[i]
		if j.FailedAttempts == 0 {
			continue
		}
		terms := l.topic.Resolved.Terms(j.Terms)
		if attempted := j.DueAt.Add(-terms.Ladder.Rung(j.FailedAttempts)); last == nil || attempted.After(at) {
			last, at = j, attempted
		}
	}
	return last, nil
}

// longestRung returns the longest wait of the topic's ladder.
func (l *lane) longestRung() (longest time.Duration) {
	for _, rung := range l.topic.Resolved.Ladder {
		longest = max(longest, rung)
	}
	return longest
}

// lastFailure returns the newest failed attempt of a job; nil: it has none.
func lastFailure(j *job.Job) *store.LaneFailure {
	for _, a := range slices.Backward(j.History) {
		if a.Kind.Counts() && a.Verdict != policy.Delivered.String() {
			return &store.LaneFailure{
				JobID: j.ID, At: a.StartedAt, Status: a.Status, Error: a.Error,
				ErrorClass: a.ErrorClass,
			}
		}
	}
	return nil
}
