package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Events is the part of events that a replay needs. A replay selects events, and plans a job of each event for each lane.
// A step writes its jobs in the settlement that stores its progress, so that each is made once.
type Events interface {
	// ReplayLanes returns the lanes to which a replay sends an event: of the next lanes after one that subscribe now,
	// those that the order's filter selects.
	ReplayLanes(ctx context.Context, event job.Ref, want *store.Filter, after string) (store.ReplayPart, error)
	// ReplayJobs completes and prepares jobs whose Lane, CreatedBy and RunAt are set, and returns an error or nil for
	// each of the first jobs. replay is the id of the bulk work.
	ReplayJobs(ctx context.Context, event job.Ref, replay string, jobs []job.New) ([]store.NewJob, []error)
}

// eventsAtOnce is how many events are listed in one call.
const eventsAtOnce = 100

// planReplay plans jobs of the next events.
func (s *step) planReplay(ctx context.Context) error {
	planned, bytes := 0, 0
	for limit := s.limit(); planned < limit && bytes < maxPlanBytes && time.Since(s.started) < stepTime; {
		if len(s.Left) == 0 {
			if err := s.listEvents(ctx); err != nil || s.Listed {
				return err
			}
			continue
		}
		event := s.Left[0]
		part, err := s.Events.ReplayLanes(ctx, s.refOf(event), &s.Filter, s.LastLane)
		if isUnavailable(err) {
			return err
		}
		if err != nil {
			s.Matched++
			s.record(event, s.outcomeOf(event, err))
		}
		if fits := max(1, min(limit-planned, (maxPlanBytes-bytes)/max(1, part.Bytes))); len(part.Lanes) > fits {
			part.Lanes, part.Last = part.Lanes[:fits], part.Lanes[fits-1]
		}
		for _, lane := range part.Lanes {
			s.Plan = append(s.Plan, target{ID: event, Topic: part.Topic, Lane: lane})
		}
		s.Matched += int64(len(part.Lanes))
		planned, bytes = planned+len(part.Lanes), bytes+len(part.Lanes)*part.Bytes
		if s.LastLane = part.Last; part.Last == "" {
			s.Left = s.Left[1:]
		}
	}
	s.adapt(bytes, planned)
	return nil
}

// listEvents lists the next events.
func (s *step) listEvents(ctx context.Context) error {
	if s.IDCount > 0 || s.Found {
		s.Listed = true
		return nil
	}
	f := s.filter()
	f.Topic, f.Lane, f.Kind, f.States = job.EventTopic, f.Topic, "", []job.State{job.Delivered}
	f.After, f.Limit = s.After, eventsAtOnce
	page, err := s.Jobs.List(ctx, f)
	if err != nil {
		return err
	}
	for i := range page.Jobs {
		s.Left = append(s.Left, page.Jobs[i].ID[len(job.EventIDPrefix):])
	}
	s.After, s.Found = page.Reached, !page.More
	return nil
}

// replay makes the jobs of a plan.
func (s *step) replay(ctx context.Context, plan []target) []error {
	errs := make([]error, len(plan))
	for begin := 0; begin < len(plan); {
		event := plan[begin].ID
		n := slices.IndexFunc(plan[begin:], func(t target) bool { return t.ID != event })
		if n < 0 {
			n = len(plan) - begin
		}
		jobs := make([]job.New, n)
		for i := range jobs {
			t := &plan[begin+i]
			jobs[i].Lane, jobs[i].CreatedBy = t.Lane, s.Actor
			if t.Start != 0 {
				jobs[i].RunAt = time.UnixMilli(t.Start)
			}
		}
		made, failed := s.Events.ReplayJobs(ctx, s.refOf(event), s.ref.ID[len(job.WorkIDPrefix):], jobs)
		s.outbox = append(s.outbox, made...)
		for i := range jobs {
			if errs[begin+i] = errNotRead; i < len(failed) {
				errs[begin+i] = failed[i]
			}
			if over, full := errors.AsType[*job.QuotaError](errs[begin+i]); full {
				errs[begin+i] = fmt.Errorf("%w: %w", over, store.ErrUnavailable)
			}
		}
		begin += n
	}
	return errs
}

// PreviewReplay returns a function that returns the queues of the next jobs that a replay would make now. more is false
// after the last.
func (w *Worker) PreviewReplay(
	namespace string, o store.WorkOrder,
) func(context.Context) (queues []job.Queue, more bool, err error) {
	o.IDCount = len(o.IDs)
	p := progress{status: status{WorkOrder: o}, CreatedAt: time.Now().Add(maxSkew), Left: o.IDs, Size: maxPlan}
	s := step{Worker: w, progress: &p, ref: job.Ref{Namespace: namespace}}
	return func(ctx context.Context) (queues []job.Queue, more bool, err error) {
		s.started, s.Plan = time.Now(), nil
		err = s.planReplay(ctx)
		for _, t := range s.Plan {
			queues = append(queues, job.Queue{Namespace: namespace, Topic: t.Topic, Lane: t.Lane})
		}
		return queues, !s.Listed, err
	}
}
