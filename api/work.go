package api

import (
	"errors"
	"net/http"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// startWork starts bulk work, or counts what it would select.
func (a *api) startWork(w http.ResponseWriter, r *http.Request) error {
	f, err := request.ReadWork(w, r)
	if err == nil {
		err = checkTopic(r.Context(), f.Filter.Topic)
	}
	if err != nil {
		return err
	}
	if f.DryRun {
		return a.countWork(w, r, f)
	}
	f.Actor = actorOf(r.Context())
	started, err := a.service.StartWork(r.Context(), namespaceOf(r), f.WorkOrder)
	if err != nil {
		return err
	}
	a.audit(r, access.StartWork, "work", started.ID, "change", string(f.Action), "topic", f.Filter.Topic, "ids", len(f.IDs))
	response.Answer(w, http.StatusAccepted, func(o *response.Buffer) { o.Work(&started) })
	return nil
}

// countWork answers with the number of jobs that bulk work would select, by topic and reason.
func (a *api) countWork(w http.ResponseWriter, r *http.Request, f request.WorkRequest) error {
	var found store.Groups
	if f.IDs != nil {
		which := store.Selection{IDs: f.IDs, Filter: store.Filter{Namespace: namespaceOf(r)}, DryRun: true}
		counted, err := a.service.PurgeDead(r.Context(), which)
		if err != nil {
			return err
		}
		response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.WorkCount(counted.Matched, !counted.More, nil) })
		return nil
	}
	found, err := a.service.Groups(r.Context(), f.Filter, store.GroupBy{Topic: true, Reason: true})
	if err != nil {
		return err
	}
	matched := int64(0)
	for _, g := range found.Groups {
		matched += g.Count
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.WorkCount(matched, found.Exact, found.Groups) })
	return nil
}

// listWork answers with a page of bulk work.
func (a *api) listWork(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	filter := q.Filter(job.Scheduled, job.Ready, job.Running, job.Delivered, job.Dead, job.Cancelled)
	if err := q.Err(); err != nil {
		return err
	}
	return a.serveList(w, r, filter.Limit, func(o *response.Buffer) error {
		found, page, err := a.service.ListWork(r.Context(), filter)
		if err != nil {
			return err
		}
		next := ""
		if page.More {
			if next, err = request.NextCursor(&filter, page.Reached); err != nil {
				return err
			}
		}
		response.Objects(o, "items", found, o.Work)
		o.TextOrNull("next_cursor", next)
		return nil
	})
}

// work answers with bulk work.
func (a *api) work(w http.ResponseWriter, r *http.Request) error {
	ref, err := request.PathJob(r)
	if err != nil {
		return err
	}
	found, err := a.service.Work(r.Context(), ref.Namespace, ref.ID)
	return answerWork(w, found, err)
}

// stopWork stops bulk work.
func (a *api) stopWork(w http.ResponseWriter, r *http.Request) error {
	ref, err := request.PathJob(r)
	if err != nil {
		return err
	}
	stopped, err := a.service.StopWork(r.Context(), ref.Namespace, ref.ID, actorOf(r.Context()))
	return answerWork(w, stopped, err)
}

func answerWork(w http.ResponseWriter, found store.Work, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return response.NewProblem(response.NotFound, "no such work, or its retention has ended")
	}
	if err != nil {
		return err
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.Work(&found) })
	return nil
}
