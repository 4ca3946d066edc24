package dispatcher

import (
	"context"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Get reads a job with its record. store.ErrNotFound.
func (d *Dispatcher) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	return d.store.Get(ctx, ref)
}

// List reads one page of a topic's jobs in one state.
func (d *Dispatcher) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	return d.store.List(ctx, filter)
}

// Edit changes a scheduled or ready job, or (job.KindRun) makes it due. store.ErrNotFound, store.ErrVersion,
// store.ErrContended, a *store.StateError, or a *job.InvalidError: also when headers that carry secrets would stay where
// the URL leads to another origin.
func (d *Dispatcher) Edit(ctx context.Context, ref job.Ref, edit store.Edit) (job.Job, error) {
	if edit.URL != nil {
		if err := d.checkURL("/url", *edit.URL); err != nil {
			return job.Job{}, err
		}
	}
	switch {
	case edit.URL == nil || edit.Header != nil: // what is said anew is for the new URL
		return d.store.Edit(ctx, ref, edit)
	case edit.IfVersion != 0:
		return d.move(ctx, ref, edit)
	default:
		return again(ctx, func() (job.Job, error) { return d.move(ctx, ref, edit) })
	}
}

// move changes a job's URL while its headers stay. The version says that they are those that were looked at.
func (d *Dispatcher) move(ctx context.Context, ref job.Ref, edit store.Edit) (job.Job, error) {
	found, err := d.store.Get(ctx, ref)
	switch {
	case err != nil:
		return job.Job{}, err
	case edit.IfVersion != 0 && edit.IfVersion != found.Version:
		return job.Job{}, store.ErrVersion
	case found.State != job.Scheduled && found.State != job.Ready:
		return job.Job{}, &store.StateError{State: found.State}
	}
	if err := astray(&found, *edit.URL, notForEdit); err != nil {
		return job.Job{}, err
	}
	edit.IfVersion = found.Version
	return d.store.Edit(ctx, ref, edit)
}

// Revive sends an ended job on another round, due now. store.ErrNotFound, a *store.StateError.
func (d *Dispatcher) Revive(ctx context.Context, ref job.Ref) (job.Job, error) {
	revived := d.store.Revive(ctx, []store.Revival{{Ref: ref}})[0]
	return revived.Job, revived.Err
}

// Cancel ends an unfinished job, or marks a running one. store.ErrNotFound, a *store.StateError.
func (d *Dispatcher) Cancel(ctx context.Context, ref job.Ref) (job.Job, error) {
	return d.store.Cancel(ctx, ref)
}
