package schedules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

const (
	// maxConflicts bounds the repetitions of a change after others came first.
	maxConflicts = 10
	// stepWait bounds the wait for the end of a step in progress, after which a change holds.
	stepWait = 5 * time.Second
	// insertWait is the time to the first step of a schedule whose request dies before it wakes the job.
	insertWait = 30 * time.Second
)

// Put creates or replaces a schedule by change, which gets the stored one. Errors: that of change,
// *store.RevisionError, store.ErrContended, *job.LimitError and the errors of Registrar.
func (s *Service) Put(
	ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*store.Schedule) error,
) (store.Schedule, error) {
	return s.change(ctx, namespace, name, opts, change, true)
}

// Change changes a schedule as Put does, but for its job and the fields of schedule.Spec. It must exist. Errors:
// store.ErrNotFound, store.ErrUnreadable, and those of Put.
func (s *Service) Change(
	ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*store.Schedule) error,
) (store.Schedule, error) {
	return s.change(ctx, namespace, name, opts, change, false)
}

func (s *Service) change(
	ctx context.Context, namespace, name string, opts store.ChangeOptions,
	change func(*store.Schedule) error, replace bool,
) (store.Schedule, error) {
	for range maxConflicts {
		d, doc, err := s.apply(ctx, namespace, name, opts, change, replace)
		if errors.Is(err, store.ErrVersion) {
			continue
		}
		if errors.Is(err, store.ErrDryRun) {
			return d.schedule(&doc), nil
		}
		if err == nil {
			d, doc, err = s.wake(ctx, d, doc)
		}
		if err != nil {
			return store.Schedule{}, err
		}
		shown, err := s.view(ctx, d, &doc, true)
		if replace && err == nil && shown.Unreadable { // its progress, which is lost
			if d, doc, err = s.restart(ctx, doc.Key, d); err == nil && d != nil {
				shown, err = s.view(ctx, d, &doc, true)
			}
		}
		return shown, err
	}
	return store.Schedule{}, store.ErrContended
}

// apply makes a change once. store.ErrVersion: another one came first. store.ErrDryRun: it is not written.
func (s *Service) apply(
	ctx context.Context, namespace, name string, opts store.ChangeOptions,
	change func(*store.Schedule) error, replace bool,
) (*document, store.Document, error) {
	d, doc, err := s.read(ctx, namespace, name)
	unreadable := errors.Is(err, store.ErrUnreadable)
	if replace && (errors.Is(err, store.ErrNotFound) || unreadable) {
		d, err = &document{CreatedAt: job.Millis(time.Now())}, nil
	}
	if err != nil {
		return nil, doc, err
	}
	changed := d.schedule(&doc)
	changed.Unreadable = unreadable
	err = change(&changed) // first, since it may hide the schedule
	dry := errors.Is(err, store.ErrDryRun)
	if err == nil || dry {
		err = store.CheckCondition(opts.IfRevision, doc.Revision)
	}
	if err == nil && doc.Revision == 0 {
		err = s.checkRoom(ctx, namespace)
	}
	if err != nil {
		return nil, doc, err
	}
	d.ordered = changed.Backfill != d.Backfill
	d.ScheduleSettings, d.Paused, d.Pause, d.Backfill = changed.ScheduleSettings, changed.Paused, changed.Pause,
		changed.Backfill
	if replace {
		n := d.newJob(namespace)
		if d.Job, err = s.opts.Registrar.CheckJob(ctx, n); err != nil {
			return nil, doc, err
		}
	}
	if dry {
		return d, doc, store.ErrDryRun
	}
	if d.JobID == "" {
		d.CreatedBy = changed.CreatedBy
		if err := s.insert(ctx, doc.Key, d); err != nil {
			return nil, doc, err
		}
	}
	if err := s.endPeriod(ctx, doc.Key, d); err != nil {
		return nil, doc, err
	}
	d.Updated = cmp.Or(opts.Updated, d.Updated)
	doc, err = s.write(ctx, doc, d)
	return d, doc, err
}

// checkRoom returns a *job.LimitError if a namespace has as many schedules as it may have.
func (s *Service) checkRoom(ctx context.Context, namespace string) error {
	rows, err := s.opts.Jobs.TopicStats(ctx,
		store.StatsFilter{Namespace: namespace, Topics: []string{job.ScheduleTopic}})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Scheduled+row.Ready+row.Running >= store.MaxSchedules {
			return &job.LimitError{
				What: "schedules", Limit: store.MaxSchedules,
				Remedy: "remove those that are not used",
			}
		}
	}
	return nil
}

// wake makes the internal job of a changed schedule due. If the job is lost, the schedule gets a new one: wake returns
// its document.
func (s *Service) wake(ctx context.Context, d *document, doc store.Document) (*document, store.Document, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepWait) // also for a client that has left
	defer cancel()
	var pause store.Backoff
	for {
		ref := job.Ref{Namespace: doc.Key.Namespace, ID: d.JobID}
		_, err := s.opts.Jobs.Replace(ctx, ref, store.Replacement{Kind: job.EventRun, Due: new(job.TimeOrDelay)})
		state, busy := errors.AsType[*store.StateError](err)
		switch {
		case errors.Is(err, store.ErrNotFound) || busy && state.State.Ended():
			restarted, current, err := s.restart(ctx, doc.Key, d)
			if err != nil || restarted == nil { // it was deleted meanwhile
				return d, doc, err
			}
			d, doc = restarted, current
		case !busy:
			return d, doc, err
		case !pause.Wait(ctx): // the step in progress may have read the schedule before its change
			return d, doc, &store.UnavailableError{Reason: "the schedule is stored, but its last step has not ended: " +
				"repeat the request", Err: err}
		}
	}
}

// insert gives a schedule a new internal job, before its document is written. The job waits for that.
func (s *Service) insert(ctx context.Context, key store.DocumentKey, d *document) error {
	d.JobID, d.Before = job.ScheduleIDPrefix+key.Name+":"+job.NewID(time.Now(), 0), nil
	n := store.NewJob{New: job.New{Delay: insertWait, Spec: job.Spec{
		ID: d.JobID, Queue: queueOf(key.Namespace, key.Name), Kind: job.KindSchedule, CreatedBy: d.CreatedBy,
		BodyKind: job.BodyJSON, Body: []byte("{}"),
	}}}
	n.Fingerprint = codec.Fingerprint(&n.New)
	if err := s.opts.Jobs.Insert(ctx, []store.NewJob{n})[0].Err; err != nil {
		return fmt.Errorf("start schedule %s: %w", key.Name, err)
	}
	return nil
}

// check applies a Check.
func (d *document) check(check Check, doc *store.Document) error {
	if check == nil {
		return nil
	}
	return check(new(d.schedule(doc)))
}

// Delete removes a schedule. The jobs that it has registered stay. Errors: store.ErrNotFound, *store.RevisionError,
// store.ErrContended, those of check.
func (s *Service) Delete(ctx context.Context, namespace, name string, ifRevision int64, check Check) error {
	for range maxConflicts {
		d, doc, err := s.read(ctx, namespace, name)
		if err != nil && !errors.Is(err, store.ErrUnreadable) {
			return err
		}
		if err := d.check(check, &doc); err != nil {
			return err
		}
		if err := store.CheckCondition(ifRevision, doc.Revision); err != nil {
			return err
		}
		doc.Value, doc.Durability = nil, nil
		_, err = s.opts.Settings.PutDocument(ctx, store.NewToken(), doc, policy.Limits{})
		if errors.Is(err, store.ErrVersion) {
			continue
		}
		if err == nil && d != nil {
			s.end(ctx, job.Ref{Namespace: namespace, ID: d.JobID})
		}
		return err
	}
	return store.ErrContended
}

// end removes the internal job of a deleted schedule. After an error, or while it runs, its next step ends it.
func (s *Service) end(ctx context.Context, ref job.Ref) {
	_, err := s.opts.Jobs.Cancel(ctx, ref, store.Cancellation{})
	if err == nil {
		err = s.opts.Jobs.Purge(ctx, []store.Removal{{Ref: ref}})[0]
	}
	if _, busy := errors.AsType[*store.StateError](err); err != nil && !busy && !errors.Is(err, store.ErrNotFound) {
		s.opts.Logger.Warn("removing the internal job of a deleted schedule failed; it ends by itself",
			"job", ref.ID, "err", err)
	}
}

// NewJob returns the job of a run beside the ticks. Errors: store.ErrNotFound, store.ErrUnreadable, those of check.
func (s *Service) NewJob(ctx context.Context, namespace, name string, check Check) (job.New, error) {
	d, doc, err := s.read(ctx, namespace, name)
	if err == nil {
		err = d.check(check, &doc)
	}
	if err != nil {
		return job.New{}, err
	}
	return d.newJob(namespace), nil
}
