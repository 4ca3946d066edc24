package dispatcher

import (
	"context"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/dispatcher/work"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// newRunner returns the claim loop of internal jobs.
func (d *Dispatcher) newRunner() *internaljobs.Runner {
	w := &work.Worker{Jobs: d.store, CheckURL: func(j *job.Job, url string) error {
		return d.checkSecretsStayOnOrigin(j, url, notForRevival)
	}}
	return internaljobs.New(internaljobs.Options{
		Store: d.opts.Store, Handlers: map[string]internaljobs.Handler{work.Topic: w.Step}, Grace: d.opts.Grace, Logger: d.log,
	})
}

// StartWork starts bulk work in a namespace. It returns a *job.InvalidError if the URL may not be called.
func (d *Dispatcher) StartWork(ctx context.Context, namespace string, o store.WorkOrder) (store.Work, error) {
	if o.URL != "" {
		if err := d.checkURL("/change/url", o.URL); err != nil {
			return store.Work{}, err
		}
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

// ListWork returns a page of bulk work: what runs, then what has ended, the newest first. The page has no Jobs.
func (d *Dispatcher) ListWork(ctx context.Context, filter store.Filter) ([]store.Work, store.Page, error) {
	return work.List(ctx, d.store, filter)
}
