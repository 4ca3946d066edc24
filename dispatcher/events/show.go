package events

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// relayTime is the time within which the jobs of an event that has ended are expected to be registered.
const relayTime = time.Minute

// Get returns an event with the states of its jobs. Error: store.ErrNotFound.
func (s *Service) Get(ctx context.Context, namespace, id string) (store.Event, error) {
	found, err := s.find(ctx, namespace, id)
	if err != nil {
		return store.Event{}, err
	}
	e := decode(&found)
	e.Counts, err = s.count(ctx, &e, !e.Expanded || time.Since(found.FinishedAt) < relayTime)
	return e, err
}

// find returns the internal job of an event.
func (s *Service) find(ctx context.Context, namespace, id string) (job.Job, error) {
	ref := refOf(namespace, id)
	if !job.IsInternalID(ref.ID) { // a callback of a job may have such an id
		return job.Job{}, store.ErrNotFound
	}
	return s.Jobs.Get(ctx, ref)
}

// count counts the jobs of an event by state. toCome says that those that are not known are still to come.
func (s *Service) count(ctx context.Context, e *store.Event, toCome bool) (*store.EventCounts, error) {
	refs := make([]job.Ref, len(e.Lanes))
	for i, lane := range e.Lanes {
		refs[i] = job.Ref{Namespace: e.Namespace, ID: lane.JobID}
	}
	statuses, err := s.Jobs.StatusOnAny(ctx, refs)
	if err != nil {
		return nil, fmt.Errorf("count the jobs of an event: %w", err)
	}
	counts := &store.EventCounts{Exact: e.Jobs <= int64(len(refs))}
	for _, status := range statuses {
		switch {
		case status.Ended == job.Delivered:
			counts.Delivered++
		case status.Ended == job.Dead:
			counts.Dead++
		case status.Ended == job.Cancelled:
			counts.Cancelled++
		case status.Exists || toCome:
			counts.Waiting++
		default:
			counts.Forgotten++
		}
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
	e.Jobs, e.Refused, e.WaitingFor, e.Chosen = p.Count, p.Refused, p.WaitingFor, p.Lanes != nil
	if e.Chosen && !e.Expanded {
		lanes, e.Jobs = p.Lanes, int64(len(p.Lanes))
	}
	e.Lanes = lanesOf(p.ID, p.Job.Topic, lanes)
	return e
}

// lanesOf returns lanes with their jobs of an event.
func lanesOf(event, topic string, lanes []string) []store.EventLane {
	all := make([]store.EventLane, len(lanes))
	for i, lane := range lanes {
		all[i] = store.EventLane{Lane: lane, JobID: job.EventJobID(event, topic, lane)}
	}
	return all
}

// List returns a page of the events that shown selects, in the order of a filter, without their bodies, their lanes and
// the states of their jobs. It is full unless it is the last, or took long.
func (s *Service) List(
	ctx context.Context, filter store.Filter, shown func(*store.Event) bool,
) ([]store.Event, store.Page, error) {
	filter.Topic, filter.Lane, filter.Kind = job.EventTopic, filter.Topic, ""
	return internaljobs.List(ctx, s.Jobs, filter, func(j *job.Job) store.Event {
		e := decode(j)
		e.Body, e.Lanes, e.Refused = nil, nil, nil
		return e
	}, shown)
}
