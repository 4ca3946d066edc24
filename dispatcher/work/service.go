package work

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// queueOf returns the queue of a namespace's bulk work.
func queueOf(namespace string) job.Queue {
	return job.Queue{Namespace: namespace, Topic: Topic, Lane: job.DefaultLane}
}

// IsID reports whether a job is one that does bulk work.
func IsID(id string) bool { return strings.HasPrefix(id, idPrefix) }

func refOf(namespace, id string) job.Ref { return job.Ref{Namespace: namespace, ID: idPrefix + id} }

// Create starts bulk work.
func Create(ctx context.Context, jobs Jobs, namespace string, o store.WorkOrder) (store.Work, error) {
	body, err := json.Marshal(progress{WorkOrder: o})
	if err != nil {
		return store.Work{}, err
	}
	q := queueOf(namespace)
	id := idPrefix + job.NewID(time.Now(), jobs.ShardOf(q))
	inserted := jobs.Insert(ctx, []store.NewJob{{New: job.New{Spec: job.Spec{
		ID: id, Queue: q, Kind: job.KindWork, CreatedBy: o.Actor, BodyKind: job.BodyJSON, Body: body,
	}}}})[0]
	if inserted.Err != nil {
		return store.Work{}, inserted.Err
	}
	return decode(&inserted.Job)
}

// Get returns bulk work. Error: store.ErrNotFound.
func Get(ctx context.Context, jobs Jobs, namespace, id string) (store.Work, error) {
	found, err := jobs.Get(ctx, refOf(namespace, id))
	if err != nil {
		return store.Work{}, err
	}
	return decode(&found)
}

// Stop ends bulk work after the step in progress. Jobs that it has revived stay revived. Stopping ended work changes nothing.
func Stop(ctx context.Context, jobs Jobs, namespace, id, actor string) (store.Work, error) {
	found, err := jobs.Cancel(ctx, refOf(namespace, id), store.Cancellation{Actor: actor})
	if _, ended := errors.AsType[*store.StateError](err); ended {
		return Get(ctx, jobs, namespace, id)
	}
	if err != nil {
		return store.Work{}, err
	}
	return decode(&found)
}

// List returns a page of bulk work: first what runs, then what has ended, the newest first.
func List(ctx context.Context, jobs Jobs, filter store.Filter) ([]store.Work, store.Page, error) {
	filter.Topic, filter.Kind = Topic, ""
	page, err := jobs.List(ctx, filter)
	if err != nil {
		return nil, page, err
	}
	all := make([]store.Work, 0, len(page.Jobs))
	for i := range page.Jobs {
		found, err := jobs.Get(ctx, page.Jobs[i].Ref()) // lists have no bodies
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, page, err
		}
		w, err := decode(&found)
		if err != nil {
			return nil, page, err
		}
		all = append(all, w)
	}
	return all, page, nil
}

// actorOf returns the actor in the events of jobs that a Work has revived, by the id of its job.
func actorOf(id string) string { return "work:" + id[len(idPrefix):] }

// isMine reports whether this work has changed a job: an earlier try of the step did.
func (s *step) isMine(ctx context.Context, t target) (bool, error) {
	found, err := s.Jobs.Get(ctx, s.refOf(t.ID))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mine := slices.ContainsFunc(found.Events, func(e job.Event) bool { return e.Actor == actorOf(s.ref.ID) })
	return mine, nil
}
