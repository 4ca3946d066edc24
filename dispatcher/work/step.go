package work

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// firstPlan and maxPlan are the first and the largest number of jobs of a plan.
	firstPlan = 16
	maxPlan   = 500
	// readAtOnce bounds concurrent calls for single jobs.
	readAtOnce = 32
	// stepTime is the time after which a step begins no more calls for single jobs: the rest of its plan is left to the
	// next.
	stepTime = 2 * time.Second
	// retryPause is the time to the next step after one that could not treat some of its jobs.
	retryPause = time.Second
	// maxPlanned bounds the jobs of a plan, with those whose starts are far ahead.
	maxPlanned = 2000
	// horizon is the least time of the starts that a step makes, under a rate: those that a stop does not prevent.
	horizon = 10 * time.Second
	// firstLead and maxLead bound progress.Lead. It goes back to usualLead when steps are no longer late.
	firstLead = time.Second
	usualLead = 10 * time.Second
	maxLead   = 10 * time.Minute
)

// Worker makes the steps of bulk work.
type Worker struct {
	Jobs    Targets
	Changes Changes
	Events  Events
	// Observe is called with the jobs of an action that a step has treated, before they are recorded; nil: it is not.
	Observe func(action store.WorkAction, done, failed, skipped int64)
	Logger  *slog.Logger
}

// step is one step of a Work.
type step struct {
	*Worker
	*progress
	ref     job.Ref
	started time.Time // by this process's clock
	now0    time.Time // by the store's, not later than started
	pause   time.Duration
	outbox  []store.NewJob
}

// now estimates the store's clock, never ahead of it.
func (s *step) now() time.Time { return s.now0.Add(time.Since(s.started)) }

// earliest is the first start that has not passed when a call that is made now has reached the store: within half of
// Lead.
func (s *step) earliest() time.Time { return s.now().Add(min(s.Lead, usualLead) / 2) }

// span is the time of the starts of a step.
func (s *step) span() time.Duration { return max(horizon, s.Lead) }

// isAhead reports whether a start is left to a later step.
func (s *step) isAhead(t *target) bool {
	return t.Start > s.now().Add(s.Lead+s.span()).UnixMilli()
}

// plansMore reports whether this step, or the next at once, selects jobs: the starts of all planned ones are far ahead.
func (s *step) plansMore() bool {
	return !s.Listed && len(s.Plan) < maxPlanned && !slices.ContainsFunc(s.Plan,
		func(t target) bool { return !s.isAhead(&t) })
}

func (s *step) refOf(id string) job.Ref { return job.Ref{Namespace: s.ref.Namespace, ID: id} }

// Step executes the plan of a Work and makes the next one.
func (w *Worker) Step(ctx context.Context, j *store.ClaimedJob) (internaljobs.Step, error) {
	var p progress
	if err := json.Unmarshal(j.Body, &p); err != nil {
		return internaljobs.Step{}, fmt.Errorf("read work: %w", err)
	}
	s := step{Worker: w, progress: &p, ref: j.Ref(), started: time.Now(), now0: j.Now()}
	if p.CreatedAt.IsZero() {
		p.CreatedAt, p.Size, p.Lead = j.CreatedAt, firstPlan, firstLead
	}
	before := p.WorkCounts
	if err := s.execute(ctx); err != nil {
		return internaljobs.Step{}, err
	}
	if s.plansMore() && time.Since(s.started) < stepTime {
		if err := s.plan(ctx); err != nil && p.Treated() == before.Treated() {
			return internaljobs.Step{}, err
		} else if err != nil { // the next step returns it, if it lasts
			s.pause = retryPause
		}
	}
	wait, err := s.assignStarts(ctx)
	if err != nil {
		return internaljobs.Step{}, err
	}
	p.StepAt = s.now()
	next := internaljobs.Step{Wait: max(wait, s.pause), Done: len(p.Plan) == 0 && p.Listed, Outbox: s.outbox}
	if next.Done {
		p.forget()
		s.Logger.Info("bulk work ended", "work", j.ID[len(job.WorkIDPrefix):], "namespace", j.Namespace, "action",
			p.Action, "actor", p.Actor,
			"topic", p.Filter.Topic, "matched", p.Matched, "done", p.Done, "failed", p.Failed, "skipped", p.Skipped)
	}
	if w.Observe != nil {
		w.Observe(p.Action, p.Done-before.Done, p.Failed-before.Failed, p.Skipped-before.Skipped)
	}
	next.Body, err = json.Marshal(&p)
	return next, err
}

// assignStarts gives each job of the plan a start if it has none, and returns the time until the next step. A scheduled
// job that is due before its turn is skipped.
func (s *step) assignStarts(ctx context.Context) (time.Duration, error) {
	if !s.limited() || len(s.Plan) == 0 {
		return 0, nil
	}
	pacer, err := s.pacer()
	if err != nil {
		return 0, err
	}
	earliest := max(s.now().Add(s.Lead).Sub(s.CreatedAt), s.Delay)
	first := int64(math.MaxInt64)
	planned := s.Plan[:0]
	var early []target
	for _, t := range s.Plan {
		if t.Start == 0 {
			at := pacer.Next(job.Queue{Namespace: s.ref.Namespace, Topic: t.Topic, Lane: t.Lane}, earliest)
			t.Start = s.CreatedAt.Add(at).UnixMilli()
			s.FirstStart, s.LastStart = cmp.Or(s.FirstStart, t.Start), max(s.LastStart, t.Start)
		}
		if t.Due != 0 && t.Start >= t.Due {
			early = append(early, t)
			continue
		}
		planned = append(planned, t)
		first = min(first, t.Start)
	}
	if unread := s.skip(ctx, early); len(unread) > 0 {
		planned, first, s.pause = append(planned, unread...), 0, retryPause
	}
	s.Plan = planned
	s.Pace, err = json.Marshal(pacer)
	if len(planned) == 0 || s.plansMore() {
		return 0, err
	}
	return max(0, time.UnixMilli(first).Sub(s.now())-max(s.Lead, time.Second)), err
}

// skip records jobs that are due before their turn. Those that this Work has run before, and that have failed since,
// are left, and those that an earlier try of the step has run are done. It returns those that could not be read.
func (s *step) skip(ctx context.Context, early []target) (unread []target) {
	ids := make([]string, len(early))
	for i, t := range early {
		ids[i] = t.ID
	}
	found, _, errs := s.read(ctx, ids)
	for i, t := range early {
		var own error
		if errs[i] == nil {
			own = s.ownChange(&found[i], t)
		}
		switch {
		case isUnavailable(errs[i]):
			unread = append(unread, t)
		case own != nil:
			s.record(t.ID, s.outcomeOf(t.ID, own))
		default:
			s.record(t.ID, outcome{kind: skipped, reason: "due before its turn"})
		}
	}
	return unread
}
