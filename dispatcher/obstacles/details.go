package obstacles

import (
	"context"
	"errors"
	"slices"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// oldestScan is the number of jobs that are looked through for the oldest due one.
const oldestScan = 50

// readDetails reads the oldest due job of a lane, and the text of its newest failed attempt.
func (s *search) readDetails(ctx context.Context, l *lane) error {
	oldest, err := s.opts.Store.List(ctx, store.Filter{
		Namespace: l.Queue.Namespace, Topic: l.Queue.Topic, Lane: l.Queue.Lane,
		States: []job.State{job.Scheduled, job.Ready}, Oldest: true, Limit: 1, ScanLimit: oldestScan,
	})
	if err != nil {
		return err
	}
	if len(oldest.Jobs) > 0 {
		l.OldestDue = oldest.Jobs[0].DueAt
	}
	if l.LastFailure == nil {
		return nil
	}
	found, err := s.opts.Store.GetIn(ctx, l.Queue, job.Ref{Namespace: l.Queue.Namespace, ID: l.LastFailure.JobID})
	if errors.Is(err, store.ErrNotFound) {
		return nil // it has ended, and is not kept
	}
	if failed := lastFailure(&found); failed != nil {
		l.LastFailure = failed // which has the text of its error
	}
	return err
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
