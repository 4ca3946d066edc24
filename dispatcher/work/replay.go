package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Events is the part of events that a replay needs. A replay selects events, and plans a job of each event for each
// lane. A step writes its jobs in the settlement that stores its progress, so that each is made once.
type Events interface {
	// ReplayLanes returns the lanes to which a replay sends an event: of the next lanes after one that subscribe now,
	// those that the order's filter selects.
	ReplayLanes(ctx context.Context, event job.Ref, want *store.Filter, after string) (store.ReplayPart, error)
	// ReplayJobs completes and prepares jobs whose Lane, CreatedBy and RunAt are set, up to room bytes of bodies, and
	// returns an error or nil for each of the first jobs. replay is the id of the bulk work.
	ReplayJobs(
		ctx context.Context, event job.Ref, replay string, jobs []job.New, room int,
	) ([]store.NewJob, []error)
}

const (
	// eventsAtOnce is how many events are listed in one call.
	eventsAtOnce = 100
	// previewTime bounds a call of what PreviewReplay returns.
	previewTime = 100 * time.Millisecond
)

// planReplay plans up to limit jobs of the next events, until a time.
func (s *step) planReplay(ctx context.Context, limit int, until time.Time) error {
	planned, bytes := 0, 0
	for planned < limit && bytes < maxPlanBytes && time.Now().Before(until) {
		if len(s.Left) == 0 {
			if err := s.listEvents(ctx); err != nil || s.Listed {
				return err
			}
			continue
		}
		event := s.Left[0]
		part, err := s.Events.ReplayLanes(ctx, s.refOf(event), &s.Filter, s.LastLane)
		if err = orUnavailable(err); isUnavailable(err) {
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

// orUnavailable returns an error about an event, or about a job of one: as store.ErrUnavailable if it may be another
// later.
func orUnavailable(err error) error {
	_, early := errors.AsType[*store.StateError](err)
	if err == nil || early || errors.Is(err, store.ErrNotFound) || internaljobs.IsRefused(err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, store.ErrUnavailable)
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

// replay makes the jobs of a plan, as many as one settlement writes. The rest is left to the next step.
func (s *step) replay(ctx context.Context, plan []target) []error {
	errs, bytes := slices.Repeat([]error{errNotRead}, len(plan)), 0
	s.WaitingFor = ""
	for begin := 0; begin < len(plan) && bytes < maxPlanBytes && time.Since(s.started) < stepTime; {
		event, n := plan[begin].ID, 1
		for begin+n < len(plan) && plan[begin+n].ID == event {
			n++
		}
		jobs := make([]job.New, n)
		for i := range jobs {
			t := &plan[begin+i]
			jobs[i].Lane, jobs[i].CreatedBy = t.Lane, s.Actor
			if t.Start != 0 {
				jobs[i].RunAt = time.UnixMilli(t.Start)
			}
		}
		work := s.ref.ID[len(job.WorkIDPrefix):]
		made, failed := s.Events.ReplayJobs(ctx, s.refOf(event), work, jobs, maxPlanBytes-bytes)
		for i := range made {
			bytes += len(made[i].Body)
		}
		s.outbox = append(s.outbox, made...)
		for i, err := range failed {
			if wait, over := internaljobs.QuotaWait(err); over {
				s.WaitingFor, s.pause = internaljobs.Reason(err), wait
			}
			errs[begin+i] = orUnavailable(err)
		}
		if s.WaitingFor != "" {
			break
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
	o.IDCount, o.Rate, o.LaneRate = len(o.IDs), policy.Rate{}, policy.Rate{}
	p := progress{status: status{WorkOrder: o}, CreatedAt: time.Now().Add(maxSkew), Left: o.IDs}
	s := step{Worker: w, progress: &p, ref: refOf(namespace, "")}
	return func(ctx context.Context) (queues []job.Queue, more bool, err error) {
		s.Plan = nil
		err = s.planReplay(ctx, maxPlan, time.Now().Add(previewTime))
		for _, t := range s.Plan {
			queues = append(queues, job.Queue{Namespace: namespace, Topic: t.Topic, Lane: t.Lane})
		}
		return queues, !s.Listed, err
	}
}
