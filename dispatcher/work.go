package dispatcher

import (
	"context"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/dispatcher/work"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// worker returns what makes the steps of bulk work.
func (d *Dispatcher) worker() *work.Worker {
	return &work.Worker{
		Jobs: d.store, Changes: workChanges{d}, Events: d.events, Observe: d.opts.ObserveWork, Logger: d.log,
	}
}

// newRunner returns the claim loop of internal jobs.
func (d *Dispatcher) newRunner() *internaljobs.Runner {
	return internaljobs.New(internaljobs.Options{
		Store: d.opts.Store, Grace: d.opts.Grace, Logger: d.log,
		Handlers: map[string]internaljobs.Handler{
			job.WorkTopic: d.worker().Step, job.ScheduleTopic: d.schedules.Step, job.EventTopic: d.events.Step,
		},
		AtOnce: map[string]int{job.EventTopic: eventsAtOnce},
	})
}

// workChanges implements work.Changes. The secret headers of a stored order are sealed without an origin.
type workChanges struct{ d *Dispatcher }

func (c workChanges) PrepareRevival(ctx context.Context, j *job.Job, revival *store.Revival) error {
	header, err := c.d.sealer.OpenUnbound(revival.Header)
	if err != nil {
		return err
	}
	revival.Header = header
	return c.d.prepareRevival(ctx, j, revival, notForRevival)
}

func (c workChanges) EditJob(ctx context.Context, j *job.Job, edit job.Edit) (job.Job, error) {
	header, err := c.d.sealer.OpenUnbound(edit.Spec.Header)
	if err != nil {
		return job.Job{}, err
	}
	edit.Spec.Header = header
	return c.d.editJob(ctx, j, edit)
}

// StartWork starts bulk work in a namespace. Errors: *job.QuotaError, and *job.InvalidError if the URL may not be
// called.
func (d *Dispatcher) StartWork(ctx context.Context, namespace string, o store.WorkOrder) (store.Work, error) {
	url := o.URL
	if o.Edit != nil {
		url = o.Edit.Spec.URL
	}
	if url != "" {
		if err := d.checkURL("/change/url", url); err != nil {
			return store.Work{}, err
		}
	}
	o.Header = d.sealer.SealHeaders(o.Header, "")
	if o.Edit != nil {
		edit := *o.Edit
		edit.Spec.Header = d.sealer.SealHeaders(edit.Spec.Header, "")
		o.Edit = &edit
	}
	return work.Create(ctx, d.store, namespace, o)
}

// Work returns bulk work. Error: store.ErrNotFound.
func (d *Dispatcher) Work(ctx context.Context, namespace, id string) (store.Work, error) {
	return work.Get(ctx, d.store, namespace, id)
}

// StopWork ends bulk work after the step in progress. Error: store.ErrNotFound.
func (d *Dispatcher) StopWork(ctx context.Context, namespace, id, actor string) (store.Work, error) {
	return work.Stop(ctx, d.store, namespace, id, actor)
}

// ListWork returns a page of the bulk work that shown selects: what runs, then what has ended, the newest first. The
// page has no Jobs.
func (d *Dispatcher) ListWork(
	ctx context.Context, filter store.Filter, shown func(*store.Work) bool,
) ([]store.Work, store.Page, error) {
	return work.List(ctx, d.store, filter, shown)
}
