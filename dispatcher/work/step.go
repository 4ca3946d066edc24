package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// firstPlan and maxPlan are the first and the largest number of jobs of a plan.
	firstPlan = 16
	maxPlan   = 500
	// maxPlanBytes is the approximate number of body bytes of a plan: the store may be blocked while it moves them.
	maxPlanBytes = 4 << 20
	// sampleSize is the number of jobs whose bodies are read to estimate those of a plan.
	sampleSize = 4
	// readAtOnce bounds concurrent reads.
	readAtOnce = 32
	// planTime bounds the time for which a step looks for jobs that match.
	planTime = time.Second
	// scanLimit is the number of jobs that a shard looks at in one call.
	scanLimit = 5_000
	// horizon is the time of the starts that are planned at once, under a rate: those that a stop does not prevent.
	horizon = 10 * time.Second
	// firstLead and maxLead bound progress.Lead.
	firstLead = time.Second
	maxLead   = 10 * time.Second
)

// Worker makes the steps of bulk work.
type Worker struct {
	Jobs Jobs
	// CheckURL returns an error for a job whose secrets must not be sent to a new URL.
	CheckURL func(j *job.Job, url string) error
}

// step is one step of a Work.
type step struct {
	*Worker
	*progress
	ref     job.Ref
	started time.Time // by this process's clock
	now0    time.Time // by the store's, not later than started
}

// now estimates the store's clock, never ahead of it.
func (s *step) now() time.Time { return s.now0.Add(time.Since(s.started)) }

// earliest is the first start that has not passed when a call that is made now has reached the store: within half of Lead.
func (s *step) earliest() time.Time { return s.now().Add(s.Lead / 2) }

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
	if err := s.execute(ctx); err != nil {
		return internaljobs.Step{}, err
	}
	var next internaljobs.Step
	if len(p.Plan) == 0 && !p.Listed {
		if err := s.plan(ctx); err != nil {
			return internaljobs.Step{}, err
		}
	}
	wait, err := s.assignStarts()
	if err != nil {
		return internaljobs.Step{}, err
	}
	next.Wait, next.Done = wait, len(p.Plan) == 0 && p.Listed
	next.Body, err = json.Marshal(&p)
	return next, err
}

// execute treats the jobs of the plan. What is left of the plan are those whose start has passed: it needs another.
func (s *step) execute(ctx context.Context) error {
	var late []target
	plan := s.Plan
	if s.limited() {
		earliest := s.earliest().UnixMilli()
		plan = nil
		for _, t := range s.Plan {
			if t.Start < earliest {
				late = append(late, t)
			} else {
				plan = append(plan, t)
			}
		}
	}
	if len(late) > 0 {
		s.Lead = min(2*s.Lead, maxLead)
	}
	if len(plan) > 0 {
		called := time.Now()
		errs, err := s.apply(ctx, plan)
		if err != nil {
			return err
		}
		if time.Since(called) > s.Lead/2 {
			s.Lead = min(2*s.Lead, maxLead)
		}
		for i, t := range plan {
			if err := s.record(ctx, t, errs[i]); err != nil {
				return err
			}
		}
	}
	s.Plan = late
	return nil
}

// apply changes jobs in one call and returns an error for each. An error for all is one of a store that is unavailable.
func (s *step) apply(ctx context.Context, plan []target) ([]error, error) {
	errs := make([]error, len(plan))
	if s.Action == store.WorkPurge {
		items := make([]store.Removal, len(plan))
		for i, t := range plan {
			items[i] = store.Removal{Ref: s.refOf(t.ID), From: job.Dead, IfVersion: t.Version}
		}
		errs = s.Jobs.Purge(ctx, items)
	} else {
		items := make([]store.Revival, len(plan))
		for i, t := range plan {
			items[i] = store.Revival{Ref: s.refOf(t.ID), From: job.Dead, IfVersion: t.Version, URL: s.URL, Actor: actorOf(s.ref.ID)}
			var after time.Duration
			if t.Start != 0 {
				items[i].RunAt = time.UnixMilli(t.Start)
				after = items[i].RunAt.Sub(s.now())
			}
			if s.ExpiresIn > 0 {
				items[i].ExpiresIn = s.ExpiresIn + after
			}
		}
		for i, r := range s.Jobs.Revive(ctx, items) {
			errs[i] = r.Err
		}
	}
	for _, err := range errs {
		if errors.Is(err, store.ErrUnavailable) || err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	return errs, nil
}

// record counts a job of the plan.
func (s *step) record(ctx context.Context, t target, err error) error {
	var state *store.StateError
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound) && s.Action == store.WorkPurge:
		s.Done++ // an earlier try of this step may have purged it
	case errors.Is(err, store.ErrVersion):
		mine, err := s.isMine(ctx, t)
		switch {
		case err != nil:
			return err
		case mine:
			s.Done++
		default:
			s.fail(&s.Skipped, t.ID, "changed since it was selected")
		}
	case errors.Is(err, store.ErrNotFound):
		s.fail(&s.Skipped, t.ID, "not found")
	case errors.As(err, &state):
		s.fail(&s.Skipped, t.ID, err.Error())
	default:
		s.fail(&s.Failed, t.ID, err.Error())
	}
	return nil
}

func (s *step) refOf(id string) job.Ref { return job.Ref{Namespace: s.ref.Namespace, ID: id} }

// plan lists the next jobs.
func (s *step) plan(ctx context.Context) error {
	jobs, err := s.next(ctx)
	if err != nil {
		return err
	}
	for i := range jobs {
		j := &jobs[i]
		s.Matched++
		if s.URL != "" {
			if err := s.CheckURL(j, s.URL); err != nil {
				s.fail(&s.Failed, j.ID, err.Error())
				continue
			}
		}
		t := target{ID: j.ID, Version: j.Version}
		if s.limited() {
			t.Topic, t.Lane = j.Topic, j.Lane
		}
		s.Plan = append(s.Plan, t)
	}
	bytes, of := s.sampleBodies(ctx, jobs)
	s.adapt(bytes, of)
	return nil
}

// adapt sets the size of the next plan from the bodies of some jobs of this one.
func (s *step) adapt(bytes, of int) {
	if of == 0 {
		return
	}
	fit := maxPlan
	if bytes > 0 {
		fit = min(maxPlanBytes/max(bytes/of, 1), maxPlan)
	}
	s.Size = max(min(fit, 2*s.Size), 1)
}

// limit is the number of jobs of the next plan.
func (s *step) limit() int {
	n := s.Size
	if s.Action == store.WorkRevive && s.Rate.Limited() {
		n = min(n, int(max(1, float64(s.Rate.Starts)*horizon.Seconds()/s.Rate.Per.Seconds())))
	}
	return n
}

// next returns the next jobs that match.
func (s *step) next(ctx context.Context) ([]job.Job, error) {
	if s.Filter.Namespace == "" {
		return s.nextByID(ctx)
	}
	f := s.Filter
	f.States, f.Oldest, f.ScanLimit, f.Limit = []job.State{job.Dead}, true, scanLimit, s.limit()
	if before := s.CreatedAt.Add(time.Millisecond); f.Ended.Before.IsZero() || before.Before(f.Ended.Before) {
		f.Ended.Before = before
	}
	for until := time.Now().Add(planTime); ; {
		f.After = s.After
		page, err := s.Jobs.List(ctx, f)
		if err != nil {
			return nil, err
		}
		s.After, s.Listed = page.Reached, !page.More
		if len(page.Jobs) > 0 || s.Listed || !time.Now().Before(until) {
			return page.Jobs, nil
		}
	}
}

// nextByID reads the next jobs of those that the order names. Jobs that are not dead are skipped.
func (s *step) nextByID(ctx context.Context) (jobs []job.Job, err error) {
	n := min(s.limit(), len(s.IDs), readAtOnce)
	found, errs := s.read(ctx, s.IDs[:n])
	for i, id := range s.IDs[:n] {
		switch {
		case errors.Is(errs[i], store.ErrNotFound):
			s.Matched++
			s.fail(&s.Skipped, id, "not found")
		case errs[i] != nil && (errors.Is(errs[i], store.ErrUnavailable) || ctx.Err() != nil):
			return nil, errs[i]
		case errs[i] != nil:
			s.Matched++
			s.fail(&s.Failed, id, errs[i].Error())
		case found[i].State != job.Dead:
			s.Matched++
			s.fail(&s.Skipped, id, (&store.StateError{State: found[i].State}).Error())
		default:
			jobs = append(jobs, found[i])
		}
	}
	s.IDs = s.IDs[n:]
	s.Listed = len(s.IDs) == 0
	return jobs, nil
}

// read reads jobs concurrently.
func (w *Worker) readAll(ctx context.Context, refs []job.Ref) ([]job.Job, []error) {
	jobs, errs := make([]job.Job, len(refs)), make([]error, len(refs))
	var all sync.WaitGroup
	for i, ref := range refs {
		all.Go(func() { jobs[i], errs[i] = w.Jobs.Get(ctx, ref) })
	}
	all.Wait()
	return jobs, errs
}

func (s *step) read(ctx context.Context, ids []string) ([]job.Job, []error) {
	refs := make([]job.Ref, len(ids))
	for i, id := range ids {
		refs[i] = s.refOf(id)
	}
	return s.readAll(ctx, refs)
}

// sampleBodies returns the size of the bodies of a few jobs, and the number of those jobs.
func (s *step) sampleBodies(ctx context.Context, jobs []job.Job) (bytes, of int) {
	few := min(sampleSize, len(jobs))
	ids := make([]string, few)
	for i := range ids {
		ids[i] = jobs[i*len(jobs)/few].ID
	}
	found, errs := s.read(ctx, ids)
	for i := range found {
		if errs[i] == nil {
			bytes, of = bytes+len(found[i].Body), of+1
		}
	}
	return bytes, of
}

// assignStarts gives each job of the plan its start, and returns the time until the next step.
func (s *step) assignStarts() (time.Duration, error) {
	if !s.limited() || len(s.Plan) == 0 {
		return 0, nil
	}
	pacer, err := s.pacer()
	if err != nil {
		return 0, err
	}
	earliest := max(s.now().Add(s.Lead).Sub(s.CreatedAt), s.Delay)
	first := time.Duration(1<<63 - 1)
	for i := range s.Plan {
		t := &s.Plan[i]
		at := pacer.Next(job.Queue{Namespace: s.ref.Namespace, Topic: t.Topic, Lane: t.Lane}, earliest)
		t.Start = s.CreatedAt.Add(at).UnixMilli()
		first = min(first, at)
	}
	s.Pace, err = json.Marshal(pacer)
	return max(0, s.CreatedAt.Add(first).Sub(s.now())-max(s.Lead, time.Second)), err
}
