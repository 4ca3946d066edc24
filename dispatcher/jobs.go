package dispatcher

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/store"
)

// Get returns a job with its history. Error: store.ErrNotFound.
func (d *Dispatcher) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	if job.IsInternalID(ref.ID) { // its body is internal
		return job.Job{}, store.ErrNotFound
	}
	found, err := d.store.Get(ctx, ref)
	one := []job.Job{found}
	d.setCallbackIDs(ctx, one)
	return d.sealer.VisibleJob(one[0], err)
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
			topic := d.policies.Resolve(ctx, j.Namespace, j.Topic)
			onDelivered, onDead = onDelivered.Or(topic.OnDelivered), onDead.Or(topic.OnDead)
		} else {
			onDelivered, onDead = onDelivered.Or(nil), onDead.Or(nil)
		}
		if j.State == job.Delivered && onDelivered != nil || j.State == job.Dead && onDead != nil {
			j.CallbackID = job.CallbackID(*j)
		}
	}
}

// Edit changes a scheduled or ready job. Errors: store.ErrNotFound, store.ErrVersion, store.ErrContended,
// store.ErrExpired, *store.StateError, and *job.InvalidError, also when secret headers would be kept for a URL with
// another origin.
func (d *Dispatcher) Edit(ctx context.Context, ref job.Ref, edit job.Edit) (job.Job, error) {
	if job.IsInternalID(ref.ID) {
		return job.Job{}, store.ErrNotFound
	}
	switch {
	case len(edit.Fields) == 0:
		return d.sealer.VisibleJob(d.store.Replace(ctx, ref, store.Replacement{
			Kind: job.EventEdited, Fields: editedTimes(&edit), Actor: edit.Actor,
			IfVersion: edit.IfVersion, Due: edit.Due, Expiry: edit.Expiry,
		}))
	case edit.IfVersion != 0:
		return d.sealer.VisibleJob(d.replace(ctx, ref, edit))
	default:
		return d.sealer.VisibleJob(retryOnConflict(ctx, func() (job.Job, error) { return d.replace(ctx, ref, edit) }))
	}
}

// replace reads a job, changes it, and writes it under the version read.
func (d *Dispatcher) replace(ctx context.Context, ref job.Ref, edit job.Edit) (job.Job, error) {
	found, err := d.store.Get(ctx, ref)
	if err != nil {
		return job.Job{}, err
	}
	return d.editJob(ctx, &found, edit)
}

// editJob changes a job that was read, and writes it under its version.
func (d *Dispatcher) editJob(ctx context.Context, found *job.Job, edit job.Edit) (job.Job, error) {
	switch {
	case edit.IfVersion != 0 && edit.IfVersion != found.Version:
		return job.Job{}, store.ErrVersion
	case found.State != job.Scheduled && found.State != job.Ready:
		return job.Job{}, &store.StateError{State: found.State}
	}
	spec, err := codec.Change(&found.Spec, &edit.Spec, edit.Fields)
	if err != nil {
		return job.Job{}, err
	}
	spec.Header = d.keepTrace(found.Header, spec.Header)
	if event, ok := found.Labels[job.LabelEvent]; ok && spec.Labels[job.LabelEvent] != event {
		spec.Labels = maps.Clone(spec.Labels)
		if spec.Labels == nil {
			spec.Labels = make(map[string]string)
		}
		spec.Labels[job.LabelEvent] = event // clients cannot send it
	}
	if err := d.checkEdit(ctx, found, &spec); err != nil {
		return job.Job{}, err
	}
	fields := append(codec.Diff(found.Spec, spec), editedTimes(&edit)...)
	return d.store.Replace(ctx, found.Ref(), store.Replacement{
		Kind: job.EventEdited, Fields: fields[:min(len(fields), job.MaxFields)], Actor: edit.Actor,
		IfVersion: found.Version, Spec: &spec, Due: edit.Due, Expiry: edit.Expiry,
	})
}

// editedTimes returns the names of the times that an edit sets.
func editedTimes(edit *job.Edit) (names []string) {
	if edit.Due != nil {
		names = append(names, "run_at")
	}
	if edit.Expiry != nil {
		names = append(names, "expires_at")
	}
	return names
}

// checkEdit checks the changes of an edit, and seals new secret headers for the job's current URL.
func (d *Dispatcher) checkEdit(ctx context.Context, found *job.Job, spec *job.Spec) (err error) {
	spec.Queue = found.Queue
	if spec.URL != found.URL {
		if err := d.checkURL("/url", spec.URL); err != nil {
			return err
		}
		kept := *found
		kept.Header = maps.Clone(spec.Header)
		maps.DeleteFunc(kept.Header, func(name string, values []string) bool {
			before, had := found.Header[name]
			return !had || !slices.Equal(values, before)
		})
		if err := d.checkSecretsStayOnOrigin(&kept, spec.URL, notForEdit); err != nil {
			return err
		}
	}
	if found.Kind != "" && !maps.Equal(spec.Labels, found.Labels) {
		return invalid("/labels", "of a job created by Ringback cannot be changed: they select the signing secret")
	}
	spec.Header, err = d.sealer.SealJobHeaders(spec.Header,
		func() (string, error) { return d.target(ctx, spec.Queue, spec.URL) })
	return err
}

// RunNow makes a scheduled job due now. A version other than 0 must be the job's. actor is the name of the client.
// Errors as for Edit.
func (d *Dispatcher) RunNow(ctx context.Context, ref job.Ref, version int64, actor string) (job.Job, error) {
	if job.IsInternalID(ref.ID) {
		return job.Job{}, store.ErrNotFound
	}
	return d.sealer.VisibleJob(d.store.Replace(ctx, ref,
		store.Replacement{Kind: job.EventRun, Actor: actor, IfVersion: version, Due: new(job.TimeOrDelay)}))
}

// Revive starts a new generation of an ended job. Errors: store.ErrNotFound, *store.StateError, store.ErrExpired when
// it would expire before it is due, and *job.InvalidError, also when secret headers would be kept for a URL with
// another origin.
func (d *Dispatcher) Revive(ctx context.Context, revival store.Revival) (job.Job, error) {
	if job.IsInternalID(revival.Ref.ID) {
		return job.Job{}, store.ErrNotFound
	}
	if revival.URL != "" || revival.Header != nil {
		found, err := d.store.Get(ctx, revival.Ref)
		switch {
		case err != nil:
			return job.Job{}, err
		case !found.State.Ended():
			return job.Job{}, &store.StateError{State: found.State}
		}
		if err := d.prepareRevival(ctx, &found, &revival, notForEdit); err != nil {
			return job.Job{}, err
		}
	}
	revived := d.store.Revive(ctx, []store.Revival{revival})[0]
	return d.sealer.VisibleJob(revived.Job, revived.Err)
}

// prepareRevival checks the new URL and headers of a job's revival, and seals secret headers for the URL. The job may
// change before it is revived; its secrets are safe then, because the attempt compares the origins again. detail is the
// error of a secret header that would be kept for another origin.
func (d *Dispatcher) prepareRevival(
	ctx context.Context, found *job.Job, revival *store.Revival, detail string,
) (err error) {
	if revival.URL != "" {
		if err := d.checkURL("/url", revival.URL); err != nil {
			return err
		}
		if revival.Header == nil {
			return d.checkSecretsStayOnOrigin(found, revival.URL, detail)
		}
	}
	if revival.Header == nil {
		return nil
	}
	revival.Header, err = d.sealer.SealJobHeaders(d.keepTrace(found.Header, revival.Header), func() (string, error) {
		return d.target(ctx, found.Queue, cmp.Or(revival.URL, found.URL))
	})
	return err
}

// Cancel ends a waiting job, or marks a running one. Errors: store.ErrNotFound, *store.StateError.
func (d *Dispatcher) Cancel(ctx context.Context, ref job.Ref, cancellation store.Cancellation) (job.Job, error) {
	if job.IsInternalID(ref.ID) {
		return job.Job{}, store.ErrNotFound
	}
	return d.sealer.VisibleJob(d.store.Cancel(ctx, ref, cancellation))
}
