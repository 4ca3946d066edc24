package dispatcher

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/ringback/ringback/dispatcher/livetail"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// Listen returns a listener for the attempts and changes of all processes that a filter selects. Close it. Errors:
// livetail.ErrTooManyListeners, and those of package store.
func (d *Dispatcher) Listen(ctx context.Context, filter livetail.Filter) (*livetail.Listener, error) {
	return d.live.Listen(ctx, filter)
}

// LiveTail returns the number of this process's listeners, and of the updates that were skipped for them.
func (d *Dispatcher) LiveTail() (listeners int, skipped uint64) {
	return d.live.Listeners(), d.live.Skipped()
}

// runLive publishes attempts and changes until stop is called, after ctx has ended: also those of attempts in flight
// then.
func (d *Dispatcher) runLive(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { d.live.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// liveObserver publishes the ends of attempts.
type liveObserver struct {
	next pool.Observer // nil: none
	live *livetail.Hub
}

// AttemptEnded implements pool.Observer.
func (o liveObserver) AttemptEnded(e pool.AttemptEvent) {
	if o.next != nil {
		o.next.AttemptEnded(e)
	}
	if !o.live.Wanted() {
		return
	}
	update := jobUpdate(&e.Job.Spec)
	switch {
	case e.Record.Kind != "":
		record := e.Record
		record.URL, record.Header, record.Body = e.URL, nil, nil
		update.Attempt = &record
		if e.Result != nil {
			update.Late = new(max(0, e.Late))
		}
	case e.Verdict.Kind == policy.Dead:
		update.Change = livetail.Change{Kind: livetail.Dead, Reason: e.Verdict.Reason}
	default:
		return // the job was put back
	}
	o.live.Publish(update)
}

// jobUpdate returns an update of a job.
func jobUpdate(spec *job.Spec) livetail.Update {
	return livetail.Update{
		At: job.Millis(time.Now()), Namespace: spec.Namespace, Topic: spec.Topic, Lane: spec.Lane,
		ID: spec.ID, Labels: spec.Labels,
	}
}

// reportingStore reports the changes of jobs by clients.
type reportingStore struct {
	*router.Router
	changed func(spec *job.Spec, kind job.EventKind, fields []string, actor string)
}

// jobChanged is called with each change of a job by a client of this process. What its own attempts end, settled is
// called with.
func (d *Dispatcher) jobChanged(spec *job.Spec, kind job.EventKind, fields []string, actor string) {
	if kind == job.EventCancelled {
		d.ends.MayHaveEnded(spec.Ref(), nil)
	}
	if d.live.Wanted() {
		update := jobUpdate(spec)
		update.Change = livetail.Change{Kind: livetail.ChangeKind(kind), Fields: fields, Actor: actor}
		d.live.Publish(update)
	}
}

// settled is called with each settlement of this process that was not refused.
func (d *Dispatcher) settled(s *store.Settlement) { d.ends.MayHaveEnded(s.Ref, s) }

// Insert is Router.Insert.
func (s *reportingStore) Insert(ctx context.Context, jobs []store.NewJob) []store.RoutedResult {
	results := s.Router.Insert(ctx, jobs)
	for i := range results {
		if results[i].Err == nil && results[i].Outcome == store.Created {
			s.changed(&jobs[i].Spec, job.EventCreated, nil, jobs[i].CreatedBy)
		}
	}
	return results
}

// Replace is Router.Replace.
func (s *reportingStore) Replace(ctx context.Context, ref job.Ref, replacement store.Replacement) (job.Job, error) {
	found, err := s.Router.Replace(ctx, ref, replacement)
	if err == nil {
		s.changed(&found.Spec, replacement.Kind, replacement.Fields, replacement.Actor)
	}
	return found, err
}

// Revive is Router.Revive.
func (s *reportingStore) Revive(ctx context.Context, items []store.Revival) []store.ReviveResult {
	results := s.Router.Revive(ctx, items)
	for i, item := range items {
		if results[i].Err == nil {
			s.changed(&results[i].Job.Spec, job.EventRevived, nil, item.Actor)
		}
	}
	return results
}

// Cancel is Router.Cancel.
func (s *reportingStore) Cancel(
	ctx context.Context, ref job.Ref, cancellation store.Cancellation,
) (job.Job, error) {
	found, err := s.Router.Cancel(ctx, ref, cancellation)
	if err == nil {
		s.changed(&found.Spec, job.EventCancelled, nil, cancellation.Actor)
	}
	return found, err
}

// publishPause publishes that a topic, or a lane, was paused or resumed. was and is are the state before and after a
// change.
func (d *Dispatcher) publishPause(q job.Queue, was, is bool, actor string) {
	if was == is || !d.live.Wanted() {
		return
	}
	kind := livetail.Resumed
	if is {
		kind = livetail.Paused
	}
	d.live.Publish(livetail.Update{
		At: job.Millis(time.Now()), Namespace: cmp.Or(q.Namespace, job.DefaultNamespace), Topic: q.Topic, Lane: q.Lane,
		Change: livetail.Change{Kind: kind, Actor: actor},
	})
}
