package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Get returns an event with the states of its jobs. Error: store.ErrNotFound.
func (s *Service) Get(ctx context.Context, namespace, id string) (store.Event, error) {
	found, err := s.Jobs.Get(ctx, refOf(namespace, id))
	if err != nil {
		return store.Event{}, err
	}
	e := decode(&found)
	e.Counts, err = s.count(ctx, &e)
	return e, err
}

// count counts the jobs of an event by state.
func (s *Service) count(ctx context.Context, e *store.Event) (*store.EventCounts, error) {
	refs := make([]job.Ref, len(e.Lanes))
	for i, lane := range e.Lanes {
		refs[i] = job.Ref{Namespace: e.Namespace, ID: lane.JobID}
	}
	counts := &store.EventCounts{Exact: e.Jobs <= int64(len(refs))}
	for len(refs) > 0 {
		n := min(len(refs), store.MaxBatch)
		statuses, err := s.Jobs.StatusOnAny(ctx, refs[:n])
		if err != nil {
			return nil, fmt.Errorf("count the jobs of an event: %w", err)
		}
		for _, status := range statuses {
			switch {
			case status.Ended == job.Delivered:
				counts.Delivered++
			case status.Ended == job.Dead:
				counts.Dead++
			case status.Ended == job.Cancelled:
				counts.Cancelled++
			case status.Exists || !e.Expanded:
				counts.Waiting++
			default:
				counts.Forgotten++
			}
		}
		refs = refs[n:]
	}
	return counts, nil
}

// decode returns the event of an internal job. Of one that cannot be read only the id is known.
func decode(j *job.Job) store.Event {
	e := store.Event{
		Namespace: j.Namespace, ID: j.ID[len(job.EventIDPrefix):], Topic: j.Lane, Type: j.Labels[job.LabelEvent],
		DueAt: j.FirstDueAt, CreatedAt: j.CreatedAt, CreatedBy: j.CreatedBy, Expanded: j.State.Ended(),
	}
	var p progress
	if err := json.Unmarshal(j.Body, &p); err != nil {
		return e
	}
	e.Labels, e.BodyKind, e.Body = p.Job.Labels, p.Job.BodyKind, p.Job.Body
	lanes := p.Made
	e.Jobs, e.Refused = p.Count, p.Refused
	if p.Lanes != nil && !e.Expanded { // in a moment
		lanes, e.Jobs, e.Expanded = p.Lanes, int64(len(p.Lanes)), true
	}
	e.Lanes = lanesOf(p.ID, lanes)
	return e
}

// lanesOf returns lanes with their jobs of an event.
func lanesOf(event string, lanes []string) []store.EventLane {
	all := make([]store.EventLane, len(lanes))
	for i, lane := range lanes {
		all[i] = store.EventLane{Lane: lane, JobID: job.EventJobID(event, lane)}
	}
	return all
}

// List returns a page of the events that a filter selects, in its order, without the states of their jobs. shown says
// which of them.
func (s *Service) List(
	ctx context.Context, filter store.Filter, shown func(*store.Event) bool,
) ([]store.Event, store.Page, error) {
	filter.Topic, filter.Lane, filter.Kind = job.EventTopic, filter.Topic, ""
	page, err := s.Jobs.List(ctx, filter)
	if err != nil {
		return nil, page, err
	}
	all := make([]store.Event, 0, len(page.Jobs))
	for i := range page.Jobs {
		found, err := s.Jobs.Get(ctx, page.Jobs[i].Ref())
		switch e := decode(&found); {
		case errors.Is(err, store.ErrNotFound): // gone meanwhile
		case err != nil:
			return nil, page, err
		case shown(&e):
			all = append(all, e)
		}
	}
	return all, page, nil
}
