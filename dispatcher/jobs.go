package dispatcher

import (
	"cmp"
	"context"

	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Get reads a job with its record. store.ErrNotFound.
func (d *Dispatcher) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	found, err := d.store.Get(ctx, ref)
	one := []job.Job{found}
	d.setCallbackIDs(ctx, one)
	return one[0], err
}

// setCallbackIDs sets CallbackID of ended jobs whose own or topic's current policy has a callback for that end.
func (d *Dispatcher) setCallbackIDs(ctx context.Context, jobs []job.Job) {
	for i := range jobs {
		j := &jobs[i]
		if j.Kind != "" || j.State != job.Delivered && j.State != job.Dead {
			continue
		}
		onDelivered, onDead := j.OnDelivered, j.OnDead
		if onDelivered == nil || onDead == nil {
			topic := d.policies.resolved(ctx, j.Namespace, j.Topic)
			onDelivered, onDead = cmp.Or(onDelivered, topic.OnDelivered), cmp.Or(onDead, topic.OnDead)
		}
		if j.State == job.Delivered && onDelivered != nil || j.State == job.Dead && onDead != nil {
			j.CallbackID = job.CallbackID(*j)
		}
	}
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
	if edit.URL != nil && edit.Header != nil { // headers in the edit are for the new URL
		edit.Header = d.sealer.SealHeaders(edit.Header, job.Origin(*edit.URL))
	}
	switch {
	case !secrets.HasPlain(edit.Header) && (edit.URL == nil || edit.Header != nil):
		return d.store.Edit(ctx, ref, edit)
	case edit.IfVersion != 0:
		return d.editWithHeaders(ctx, ref, edit)
	default:
		return retryOnConflict(ctx, func() (job.Job, error) { return d.editWithHeaders(ctx, ref, edit) })
	}
}

// editWithHeaders changes a job's URL and keeps its headers, or changes secret headers and keeps its URL. It edits the version
// that it has checked.
func (d *Dispatcher) editWithHeaders(ctx context.Context, ref job.Ref, edit store.Edit) (job.Job, error) {
	found, err := d.store.Get(ctx, ref)
	switch {
	case err != nil:
		return job.Job{}, err
	case edit.IfVersion != 0 && edit.IfVersion != found.Version:
		return job.Job{}, store.ErrVersion
	case found.State != job.Scheduled && found.State != job.Ready:
		return job.Job{}, &store.StateError{State: found.State}
	}
	if edit.Header != nil {
		target, err := d.target(ctx, found.Queue, found.URL)
		if err != nil {
			return job.Job{}, err
		}
		edit.Header = d.sealer.SealHeaders(edit.Header, job.Origin(target))
	} else if err := d.checkSecretsStayOnOrigin(&found, *edit.URL, notForEdit); err != nil {
		return job.Job{}, err
	}
	edit.IfVersion = found.Version
	return d.store.Edit(ctx, ref, edit)
}

// Revive sends an ended job on another round. store.ErrNotFound, a *store.StateError, store.ErrExpired when it would expire
// narrowTo it is due.
func (d *Dispatcher) Revive(ctx context.Context, revival store.Revival) (job.Job, error) {
	revived := d.store.Revive(ctx, []store.Revival{revival})[0]
	return revived.Job, revived.Err
}

// Cancel ends an unfinished job, or marks a running one. store.ErrNotFound, a *store.StateError.
func (d *Dispatcher) Cancel(ctx context.Context, ref job.Ref) (job.Job, error) {
	return d.store.Cancel(ctx, ref)
}
