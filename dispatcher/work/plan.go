package work

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// maxPlanBytes is the approximate number of body bytes of a plan: the store may be blocked while it moves them.
	maxPlanBytes = 4 << 20
	// sampleSize is the number of jobs whose bodies are read to estimate those of a plan.
	sampleSize = 4
	// maxSkew is the time by which clocks of the store's servers may differ, or be set back while a Work lasts.
	maxSkew = time.Hour
	// planTime bounds the time for which a step looks for jobs that match, countTime that for which it counts them.
	planTime  = time.Second
	countTime = 300 * time.Millisecond
	// scanLimit is the number of jobs that a shard looks at in one call.
	scanLimit = 5_000
)

// plan selects the next jobs.
func (s *step) plan(ctx context.Context) error {
	if s.Action == store.WorkReplay {
		return s.planReplay(ctx, s.limit(), s.started.Add(stepTime))
	}
	jobs, err := s.next(ctx)
	if err != nil {
		return err
	}
	for i := range jobs {
		j := &jobs[i]
		if store.IsInternal(j.Topic) {
			continue
		}
		s.Matched++
		if s.Action == store.WorkRevive && s.URL != "" {
			if err := s.Changes.PrepareRevival(ctx, j, &store.Revival{URL: s.URL, Header: s.Header}); err != nil &&
				!isUnavailable(err) {
				s.fail(&s.Failed, j.ID, s.reasonOf(j.ID, err))
				continue
			}
		}
		t := target{ID: j.ID, Version: j.Version, Check: j.Version > 1 &&
			(!s.ended() || s.CreatedAt.Sub(j.FinishedAt) < maxSkew)}
		if s.limited() {
			t.Topic, t.Lane = j.Topic, j.Lane
			if s.Action == store.WorkRun {
				t.Due = j.DueAt.UnixMilli()
			}
		}
		s.Plan = append(s.Plan, t)
	}
	return nil
}

// limit is the number of jobs of the next plan.
func (s *step) limit() int {
	n := min(s.Size, maxPlanned-len(s.Plan))
	if s.Rate.Limited() {
		n = min(n, int(max(1, float64(s.Rate.Starts)*s.span().Seconds()/s.Rate.Per.Seconds())))
	}
	return n
}

// next returns the next jobs that match.
func (s *step) next(ctx context.Context) ([]job.Job, error) {
	if s.IDCount > 0 {
		return s.nextByID(ctx)
	}
	if err := s.count(ctx); err != nil {
		return nil, err
	}
	f := s.filter()
	f.Limit = s.limit()
	for until := time.Now().Add(planTime); ; {
		f.After = s.After
		page, err := s.Jobs.List(ctx, f)
		if err != nil {
			return nil, err
		}
		s.After, s.Listed = page.Reached, !page.More
		if len(page.Jobs) > 0 || s.Listed || !time.Now().Before(until) {
			s.adapt(s.sampleBodies(ctx, page.Jobs))
			return page.Jobs, nil
		}
	}
}

// filter returns the order's filter, without the jobs that were registered, or have ended, after the Work was created.
func (s *step) filter() store.Filter {
	f := s.Filter
	f.Oldest, f.ScanLimit = true, scanLimit
	bound := &f.Created.Before
	if s.ended() {
		bound = &f.Ended.Before
	}
	if before := s.before(); bound.IsZero() || before.Before(*bound) {
		*bound = before
	}
	return f
}

// before is the time before which jobs have to be registered, or to have ended, to be selected.
func (s *step) before() time.Time { return s.CreatedAt.Add(time.Millisecond) }

// count counts the jobs that match, ahead of the plans.
func (s *step) count(ctx context.Context) error {
	f := s.filter()
	f.Limit = store.MaxListLimit
	for until := time.Now().Add(countTime); !s.Counted; {
		f.After = s.CountAfter
		page, err := s.Jobs.List(ctx, f)
		if err != nil {
			return err
		}
		for i := range page.Jobs {
			if !store.IsInternal(page.Jobs[i].Topic) {
				s.Total++
			}
		}
		s.CountAfter, s.Counted = page.Reached, !page.More
		if !time.Now().Before(until) {
			break
		}
	}
	return nil
}

// nextByID reads the next jobs of those that the order names. Those in other states, and those that were registered or
// have ended after the Work was created, are skipped. Jobs that were not read in time are left to the next step.
func (s *step) nextByID(ctx context.Context) (jobs []job.Job, err error) {
	ids := s.Left[:min(s.limit(), len(s.Left))]
	found, sizes, errs := s.read(ctx, ids)
	bytes := 0
	for i, id := range ids {
		if errs[i] != nil && isUnavailable(errs[i]) {
			if i == 0 {
				return nil, errs[i]
			}
			s.pause, ids = retryPause, ids[:i]
			break
		}
		switch {
		case job.IsInternalID(id), errs[i] == nil && !found[i].CreatedAt.Before(s.before()):
			errs[i] = store.ErrNotFound
		case errs[i] == nil && !slices.Contains(s.Filter.States, found[i].State):
			errs[i] = &store.StateError{State: found[i].State}
		case errs[i] == nil && s.ended() && !found[i].FinishedAt.Before(s.before()):
			errs[i] = errEndedLater
		}
		if errs[i] == nil {
			jobs, bytes = append(jobs, found[i]), bytes+sizes[i]
			continue
		}
		s.Matched++
		s.record(id, s.outcomeOf(id, errs[i]))
	}
	s.Left = s.Left[len(ids):]
	s.Listed = len(s.Left) == 0
	s.adapt(bytes, len(jobs))
	return jobs, nil
}

// errNotRead is the error of a job for which a step had no time.
var errNotRead = errors.Join(errors.New("the time of the step was over"), store.ErrUnavailable)

// errEndedLater is the error of a job that a client has named, and that ended after the Work was created.
var errEndedLater = errors.New("ended after the work began")

// read reads jobs concurrently, until stepTime is over. It returns the sizes of their bodies instead of these.
func (s *step) read(ctx context.Context, ids []string) (jobs []job.Job, sizes []int, errs []error) {
	jobs, sizes, errs = make([]job.Job, len(ids)), make([]int, len(ids)), make([]error, len(ids))
	internaljobs.InParallel(len(ids), readAtOnce, func(i int) {
		if errs[i] = errNotRead; time.Since(s.started) < stepTime {
			jobs[i], errs[i] = s.Jobs.Get(ctx, s.refOf(ids[i]))
			sizes[i], jobs[i].Body = len(jobs[i].Body), nil
		}
	})
	return jobs, sizes, errs
}

// adapt sets the size of the next plan from the bodies of some jobs of this one, in bytes.
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

// sampleBodies returns the size of the bodies of a few jobs, and the number of those jobs.
func (s *step) sampleBodies(ctx context.Context, jobs []job.Job) (bytes, of int) {
	few := min(sampleSize, len(jobs))
	ids := make([]string, few)
	for i := range ids {
		ids[i] = jobs[i*len(jobs)/few].ID
	}
	_, sizes, errs := s.read(ctx, ids)
	for i := range sizes {
		if errs[i] == nil {
			bytes, of = bytes+sizes[i], of+1
		}
	}
	return bytes, of
}
