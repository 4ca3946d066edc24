package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/dispatcher/schedules"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// newSchedules returns the schedules of the store.
func (d *Dispatcher) newSchedules() *schedules.Service {
	return schedules.New(schedules.Options{
		Settings: d.opts.Store, Jobs: d.store, Registrar: registrar{d}, Observe: d.opts.ObserveTicks, Logger: d.log,
	})
}

// registrar implements schedules.Registrar.
type registrar struct{ d *Dispatcher }

// CheckJob checks a job as its registration would, but for the quotas of its namespace.
func (r registrar) CheckJob(ctx context.Context, n job.New) (job.Spec, error) {
	prepared, err := r.d.prepareAll(ctx, []job.New{n})
	if undeclared, ok := errors.AsType[*job.UndeclaredTopicError](err); ok {
		err = invalid("/topic", undeclared.Error())
	}
	if invalid, ok := errors.AsType[*job.InvalidError](err); ok {
		for i := range invalid.Errors {
			invalid.Errors[i].Field = "/job" + invalid.Errors[i].Field
		}
	}
	if err != nil {
		return job.Spec{}, err
	}
	n.Header, n.OnDelivered, n.OnDead = prepared[0].Header, prepared[0].OnDelivered, prepared[0].OnDead
	return n.Spec, nil
}

// PrepareJobs prepares jobs as their registration would.
func (r registrar) PrepareJobs(ctx context.Context, jobs []job.New) ([]store.NewJob, error) {
	prepared, err := r.d.prepareAll(ctx, jobs)
	reservations, over := r.d.quotas.Reserve(ctx, prepared)
	for i := range prepared {
		if over[i] != nil {
			prepared, err = prepared[:i], over[i]
			break
		}
	}
	if r.d.opts.Tracer != nil {
		for i := range prepared {
			r.d.opts.Tracer.Tick(ctx, &prepared[i].New)
		}
	}
	inserted := make([]store.RoutedResult, len(prepared))
	for i := range inserted {
		inserted[i].Outcome = store.Created // by the carrier, soon
	}
	for _, reserved := range reservations {
		reserved.Release(prepared, inserted)
	}
	return prepared, err
}

// prepareAll prepares jobs of registrations. With an error it returns those before the first that was refused.
func (d *Dispatcher) prepareAll(ctx context.Context, jobs []job.New) ([]store.NewJob, error) {
	topics := d.newLookup()
	topics.lanes, topics.lanesErr = d.laneURLs(ctx, topics, jobs, d.events.Subscriptions.URL)
	prepared := make([]store.NewJob, 0, len(jobs))
	now := time.Now()
	for _, n := range jobs {
		newJob, err := d.prepare(ctx, topics, n, now)
		if err != nil {
			return prepared, err
		}
		prepared = append(prepared, newJob)
	}
	return prepared, nil
}

// PutSchedule creates or replaces a schedule by change, which gets the stored one. Errors: that of change,
// *job.InvalidError, *job.UndeclaredTopicError, *job.LimitError, *store.RevisionError, store.ErrContended.
func (d *Dispatcher) PutSchedule(
	ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*store.Schedule) error,
) (store.Schedule, error) {
	release := func(error) {}
	put, err := d.schedules.Put(ctx, namespace, name, opts, func(s *store.Schedule) error {
		release(store.ErrVersion) // the change is made again
		var before store.Usage
		if s.Revision != 0 {
			before = usageOfSettings(s.ScheduleSettings)
		}
		err := change(s)
		if err != nil && !errors.Is(err, store.ErrDryRun) {
			return err
		}
		var refused error
		release, refused = d.quotas.ReserveSettings(ctx, namespace, usageOfSettings(s.ScheduleSettings).Sub(before))
		if err != nil {
			release(err) // Put returns none after a dry run
		}
		return cmp.Or(refused, err)
	})
	release(err)
	return d.sealer.VisibleSchedule(put, err)
}

// ChangeSchedule changes the pause or the backfill of a schedule. Errors: those of PutSchedule, store.ErrNotFound,
// store.ErrUnreadable.
func (d *Dispatcher) ChangeSchedule(
	ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*store.Schedule) error,
) (store.Schedule, error) {
	return d.sealer.VisibleSchedule(d.schedules.Change(ctx, namespace, name, opts, change))
}

// Schedule returns a schedule with its progress. store.ErrNotFound.
func (d *Dispatcher) Schedule(ctx context.Context, namespace, name string) (store.Schedule, error) {
	return d.sealer.VisibleSchedule(d.schedules.Get(ctx, namespace, name))
}

// ListSchedules returns the schedules of a namespace in order of name, at most limit after a name.
func (d *Dispatcher) ListSchedules(ctx context.Context, namespace, after string, limit int) ([]store.Schedule, error) {
	return d.sealer.VisibleSchedules(d.schedules.List(ctx, namespace, after, limit))
}

// DeleteSchedule removes a schedule, unless check (nil: none) refuses it. Errors: store.ErrNotFound,
// *store.RevisionError, store.ErrContended, those of check.
func (d *Dispatcher) DeleteSchedule(
	ctx context.Context, namespace, name string, ifRevision int64, check func(*store.Schedule) error,
) error {
	return d.schedules.Delete(ctx, namespace, name, ifRevision, check)
}

// RunSchedule registers a job of a schedule at once, beside its ticks, unless check (nil: none) refuses it. actor is
// the name of the client. Errors: those of Register, store.ErrNotFound, store.ErrUnreadable, those of check.
func (d *Dispatcher) RunSchedule(
	ctx context.Context, namespace, name, actor string, check func(*store.Schedule) error,
) (store.RoutedResult, error) {
	n, err := d.schedules.NewJob(ctx, namespace, name, check)
	if err != nil {
		return store.RoutedResult{}, err
	}
	n.CreatedBy = actor
	registered := d.Register(ctx, []job.New{n})[0]
	return registered, registered.Err
}

// deleteSchedules removes the schedules of a namespace.
func (d *Dispatcher) deleteSchedules(ctx context.Context, namespace string) error {
	for {
		page, err := d.schedules.List(ctx, namespace, "", schedulePage)
		if err != nil {
			return err
		}
		for i := range page {
			if err := d.schedules.Delete(ctx, namespace, page[i].Name, 0, nil); err != nil &&
				!errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		if len(page) < schedulePage {
			return nil
		}
		if isOutOfTime(ctx) {
			return &job.NamespaceInUseError{By: "more schedules than could be removed in time"}
		}
	}
}

// schedulePage is the number of schedules that are read at once.
const schedulePage = 100

// checkNoSchedules returns a *job.NamespaceInUseError if a namespace has schedules.
func (d *Dispatcher) checkNoSchedules(ctx context.Context, namespace string) error {
	found, err := d.schedules.List(ctx, namespace, "", 1)
	if err == nil && len(found) > 0 {
		err = &job.NamespaceInUseError{By: "schedules, such as " + found[0].Name}
	}
	return err
}

// resealSchedules seals the secret headers of all schedules under the current key.
func (d *Dispatcher) resealSchedules(ctx context.Context) (count int, failed error) {
	err := d.schedules.Each(ctx, func(s *store.Schedule) error {
		if !d.sealer.IsTopicStale(secretsOf(s)) {
			return nil
		}
		owner := job.Queue{Namespace: s.Namespace, Topic: job.ScheduleTopic, Lane: s.Name}
		_, err := d.schedules.Change(ctx, s.Namespace, s.Name, store.ChangeOptions{IfRevision: s.Revision}, func(
			stored *store.Schedule,
		) error {
			p := secretsOf(stored)
			if !d.sealer.ResealTopic(owner, &p) { // the key is not there: nothing changes
				return errNoChange
			}
			stored.Job.Header, stored.Job.OnDelivered, stored.Job.OnDead = p.Headers, p.OnDelivered, p.OnDead
			return nil
		})
		_, changed := errors.AsType[*store.RevisionError](err)
		switch {
		case err == nil:
			count++
		case errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil:
			return err
		case !changed && !errors.Is(err, errNoChange): // a change meanwhile has sealed it
			failed = fmt.Errorf("reseal the secrets of the schedule %s/%s: %w", s.Namespace, s.Name, err)
		}
		return nil
	})
	return count, errors.Join(failed, err)
}

// secretsOf returns the headers of a schedule's job as those of a topic.
func secretsOf(s *store.Schedule) policy.Topic {
	return policy.Topic{Headers: s.Job.Header, OnDelivered: s.Job.OnDelivered, OnDead: s.Job.OnDead}
}
