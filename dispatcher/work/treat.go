package work

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// outcome is the result of a step for one job of its plan.
type outcome struct {
	kind   outcomeKind
	reason string // of failed and skipped jobs
	err    error  // of pending jobs
}

type outcomeKind uint8

const (
	pending outcomeKind = iota // left to the next step
	done
	failed
	skipped
	left // treated before, and selected again
)

// execute treats the jobs of the plan. The plan keeps those whose start is far ahead, so that a stop prevents it, or
// has passed, because they need another, and those that could not be treated in time. Error: one of a store that is
// unavailable for all of them.
func (s *step) execute(ctx context.Context) error {
	var plan, kept []target
	late, earliest := false, s.earliest().UnixMilli()
	for _, t := range s.Plan {
		switch {
		case s.limited() && t.Start < earliest:
			t.Start, late = 0, true
			kept = append(kept, t)
		case s.isAhead(&t):
			kept = append(kept, t)
		default:
			plan = append(plan, t)
		}
	}
	switch {
	case late:
		s.Lead = min(2*s.Lead, maxLead)
	case s.Lead > usualLead && len(plan) > 0 && plan[0].Start > s.now().Add(s.Lead*7/8).UnixMilli():
		s.Lead = max(s.Lead/2, usualLead)
	}
	if len(plan) > 0 {
		called := time.Now()
		outcomes := s.treat(ctx, plan)
		if time.Since(called) > min(s.Lead, usualLead)/2 {
			s.Lead = max(s.Lead, min(2*s.Lead, usualLead))
		}
		treated := false
		for i, t := range plan {
			if outcomes[i].kind == pending {
				s.pause = max(s.pause, retryPause)
				kept = append(kept, t)
				continue
			}
			treated = true
			if outcomes[i].reason != "" && s.Action == store.WorkReplay {
				outcomes[i].reason = "lane " + t.Lane + ": " + outcomes[i].reason
			}
			s.record(t.ID, outcomes[i])
		}
		if !treated && s.WaitingFor == "" {
			return outcomes[0].err
		}
	}
	s.Plan = kept
	return nil
}

// record counts a job of the plan.
func (s *step) record(id string, o outcome) {
	switch o.kind {
	case done:
		s.Done++
	case failed:
		s.fail(&s.Failed, id, o.reason)
	case skipped:
		s.fail(&s.Skipped, id, o.reason)
	case left:
		s.Matched--
	case pending:
	}
}

// treat makes the change of each job and returns an outcome for each.
func (s *step) treat(ctx context.Context, plan []target) []outcome {
	outcomes, errs := make([]outcome, len(plan)), make([]error, len(plan))
	switch s.Action {
	case store.WorkPurge:
		items := make([]store.Removal, len(plan))
		for i, t := range plan {
			items[i] = store.Removal{Ref: s.refOf(t.ID), IfVersion: t.Version}
		}
		errs = s.Jobs.Purge(ctx, items)
	case store.WorkRevive:
		errs = s.revive(ctx, plan)
	case store.WorkReplay:
		errs = s.replay(ctx, plan)
	default:
		internaljobs.InParallel(len(plan), readAtOnce, func(i int) {
			if errs[i] = errNotRead; time.Since(s.started) < stepTime {
				errs[i] = s.changeOne(ctx, plan[i])
			}
		})
	}
	until := time.Now().Add(stepTime) // counted anew, so that each step can resolve some
	internaljobs.InParallel(len(plan), readAtOnce, func(i int) {
		outcomes[i] = s.outcomeOf(plan[i].ID, s.resolve(ctx, plan[i], errs[i], until))
	})
	return outcomes
}

// revive revives jobs in one call.
func (s *step) revive(ctx context.Context, plan []target) []error {
	errs := make([]error, len(plan))
	items := make([]store.Revival, len(plan))
	for i, t := range plan {
		items[i] = store.Revival{
			Ref: s.refOf(t.ID), IfVersion: t.Version, URL: s.URL, Header: s.Header,
			Actor: actorOf(s.ref.ID),
		}
		var after time.Duration
		if t.Start != 0 {
			items[i].RunAt = time.UnixMilli(t.Start)
			after = items[i].RunAt.Sub(s.now())
		}
		if s.ExpiresIn > 0 {
			items[i].ExpiresIn = s.ExpiresIn + after
		}
	}
	secret := hasSecret(s.Header)
	internaljobs.InParallel(len(plan), readAtOnce, func(i int) {
		if !plan[i].Check && !secret {
			return
		}
		found, err := s.current(ctx, plan[i])
		if err == nil && secret { // sealed for the job's origin
			err = s.Changes.PrepareRevival(ctx, &found, &items[i])
		}
		errs[i] = err
	})
	var ready []store.Revival
	for i := range items {
		if errs[i] == nil {
			ready = append(ready, items[i])
		}
	}
	results := s.Jobs.Revive(ctx, ready)
	for i := range items {
		if errs[i] == nil {
			errs[i], results = results[0].Err, results[1:]
		}
	}
	return errs
}

// hasSecret reports whether some headers are secret.
func hasSecret(header map[string][]string) bool {
	for name := range header {
		if job.SecretHeader(name) {
			return true
		}
	}
	return false
}

// errLeft is the error of a job that this Work had changed before it was selected again. errMine is that of a job which
// an earlier try of the step has changed.
var errLeft, errMine = errors.New("changed before"), errors.New("changed by an earlier try")

// current reads a job of the plan. Errors: errLeft, errMine, and store.ErrVersion if it was changed otherwise.
func (s *step) current(ctx context.Context, t target) (job.Job, error) {
	if time.Since(s.started) >= stepTime {
		return job.Job{}, errNotRead
	}
	found, err := s.Jobs.Get(ctx, s.refOf(t.ID))
	if err != nil {
		return found, err
	}
	if err = s.ownChange(&found, t); err == nil && found.Version != t.Version {
		err = store.ErrVersion
	}
	return found, err
}

// changeOne cancels, runs or edits a job.
func (s *step) changeOne(ctx context.Context, t target) error {
	ref, actor := s.refOf(t.ID), actorOf(s.ref.ID)
	var found job.Job
	var err error
	if s.Action == store.WorkEdit || t.Check {
		if found, err = s.current(ctx, t); err != nil {
			return err
		}
	}
	switch s.Action {
	case store.WorkEdit:
		edit := *s.Edit
		edit.IfVersion, edit.Actor = t.Version, actor
		_, err = s.Changes.EditJob(ctx, &found, edit)
	case store.WorkRun:
		due := job.TimeOrDelay{}
		if t.Start != 0 {
			due.At = time.UnixMilli(t.Start)
		}
		_, err = s.Jobs.Replace(ctx, ref,
			store.Replacement{Kind: job.EventRun, Actor: actor, IfVersion: t.Version, Due: &due})
	default:
		_, err = s.Jobs.Cancel(ctx, ref, store.Cancellation{IfVersion: t.Version, Actor: actor})
	}
	return err
}

// resolve returns the error of a change. A job of another version may have been changed by an earlier try of the step,
// and so may one that cannot be purged because it is gone. Jobs are read until a time.
func (s *step) resolve(ctx context.Context, t target, err error, until time.Time) error {
	switch {
	case errors.Is(err, store.ErrNotFound) && s.Action == store.WorkPurge:
		return nil
	case !errors.Is(err, store.ErrVersion) || s.Action == store.WorkPurge:
		return err
	}
	if !time.Now().Before(until) {
		return errNotRead
	}
	found, failed := s.Jobs.Get(ctx, s.refOf(t.ID))
	if failed != nil {
		return failed
	}
	return cmp.Or(s.ownChange(&found, t), err)
}

// ownChange returns errMine if this Work has changed a job since it was selected, errLeft if it has before, and nil if
// it has not. Each version after the first has an event.
func (s *step) ownChange(j *job.Job, t target) error {
	actor := actorOf(s.ref.ID)
	isMine := func(e job.Event) bool { return e.Actor == actor }
	selected := max(0, len(j.Events)-int(max(0, j.Version-t.Version)))
	switch {
	case slices.ContainsFunc(j.Events[selected:], isMine):
		return errMine
	case slices.ContainsFunc(j.Events[:selected], isMine):
		return errLeft
	default:
		return nil
	}
}

// isUnavailable reports whether a call may succeed later.
func isUnavailable(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrContended) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// outcomeOf returns the outcome of a change that ended with an error; nil: with success.
func (s *step) outcomeOf(id string, err error) outcome {
	switch {
	case err == nil, errors.Is(err, errMine):
		return outcome{kind: done}
	case errors.Is(err, errLeft):
		return outcome{kind: left}
	case isUnavailable(err):
		return outcome{kind: pending, err: err}
	case errors.Is(err, store.ErrNotFound):
		return outcome{kind: skipped, reason: "not found"}
	case errors.Is(err, errEndedLater):
		return outcome{kind: skipped, reason: err.Error()}
	case errors.Is(err, store.ErrVersion):
		return outcome{kind: skipped, reason: "changed since it was selected"}
	}
	if state, ok := errors.AsType[*store.StateError](err); ok {
		if s.Action == store.WorkReplay {
			return outcome{kind: skipped, reason: "its lanes are still to get their first job"}
		}
		return outcome{kind: skipped, reason: state.Error()}
	}
	return outcome{kind: failed, reason: s.reasonOf(id, err)}
}

// reasonOf returns the reason of a failure for clients. Errors of the store are logged instead.
func (s *step) reasonOf(id string, err error) string {
	if errors.Is(err, store.ErrExpired) {
		return "the job would expire before it is due: set expires_in"
	}
	if undeclared, ok := errors.AsType[*job.UndeclaredTopicError](err); ok {
		return undeclared.Error()
	}
	if invalid, ok := errors.AsType[*job.InvalidError](err); ok && len(invalid.Errors) > 0 {
		return invalid.Errors[0].Field + " " + invalid.Errors[0].Detail
	}
	if s.Failed < maxFailures {
		s.Logger.Error("bulk work could not change a job", "work", s.ref.ID[len(job.WorkIDPrefix):], "job", id, "err",
			err)
	}
	return "internal error: see the server's log"
}
