package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Bounds of a page of bulk work.
const (
	defaultWorkLimit = 50
	maxWorkLimit     = 100
)

func (a *api) workEndpoints() []endpoint {
	return []endpoint{
		at("GET /v1/work", access.ReadWork, ofItems, a.on(onStore.listWork), paged()),
		at("POST /v1/work", access.StartWork, ofRequest, a.on(onStore.startWork), query("within")),
		at("GET /v1/work/{id}", access.ReadWork, ofWork, a.on(onStore.work)),
		at("POST /v1/work/{id}/stop", access.StopWork, ofWork, a.on(onStore.stopWork)),
	}
}

// startWork starts bulk work, or counts the jobs that it would select.
func (a onStore) startWork(w http.ResponseWriter, r *http.Request) error {
	f, err := request.ReadWork(w, r)
	return a.startOrder(w, r, access.StartWork, f, err)
}

// reviveDead and purgeDead are short forms of startWork.
func (a onStore) reviveDead(w http.ResponseWriter, r *http.Request) error {
	f, err := request.ReadDead(w, r, store.WorkRevive)
	err = a.startOrder(w, r, access.ReviveDead, f, err)
	if invalid, ok := errors.AsType[*job.InvalidError](err); ok { // its fields are beside those that select jobs
		for i := range invalid.Errors {
			invalid.Errors[i].Field = strings.TrimPrefix(invalid.Errors[i].Field, "/change")
		}
	}
	return err
}

func (a onStore) purgeDead(w http.ResponseWriter, r *http.Request) error {
	f, err := request.ReadDead(w, r, store.WorkPurge)
	return a.startOrder(w, r, access.PurgeDead, f, err)
}

// startOrder starts the work that was read, or err.
func (a onStore) startOrder(
	w http.ResponseWriter, r *http.Request, action access.Action, f request.WorkRequest, err error,
) error {
	if err == nil {
		err = checkTopic(r.Context(), f.Filter.Topic)
	}
	if err == nil {
		err = checkBodies(r.Context(), f.URL, f.Edit)
	}
	if err != nil {
		return err
	}
	if f.DryRun {
		return a.countWork(w, r, f)
	}
	f.Actor = actorOf(r.Context())
	if f.Change != nil {
		f.Change = redactChange(f.Change)
	}
	started, err := a.store.StartWork(r.Context(), namespaceOf(r), f.WorkOrder)
	if err != nil {
		return err
	}
	a.audit(r, action, "work", started.ID, "change", string(f.Action), "topic", f.Filter.Topic, "ids", len(f.IDs))
	w.Header()["Location"] = []string{"/v1/work/" + started.ID}
	response.Answer(w, http.StatusAccepted, func(o *response.Buffer) { o.Work(&started) })
	return nil
}

// countWork answers with the number of jobs that bulk work would select, by topic and reason.
func (a onStore) countWork(w http.ResponseWriter, r *http.Request, f request.WorkRequest) error {
	by := store.GroupBy{Topic: true, Reason: true, Within: f.Within}
	a.boundCount(r, &by)
	return a.answerList(w, r, func(o *response.Buffer, _ func() error) error {
		var found store.Groups
		var err error
		switch {
		case f.Action == store.WorkReplay:
			found, err = a.store.GroupReplay(r.Context(), namespaceOf(r), f.WorkOrder, by)
		case len(f.IDs) > 0:
			found, err = a.store.GroupIDs(r.Context(), namespaceOf(r), f.IDs, f.Filter.States, by)
		default:
			found, err = a.store.Groups(r.Context(), f.Filter, by)
		}
		if err != nil {
			return err
		}
		found.Groups = slices.DeleteFunc(slices.Clone(found.Groups),
			func(g store.Group) bool { return store.IsInternal(g.Topic) })
		o.WorkCount(found)
		return nil
	})
}

// listWork answers with a page of bulk work. A token that is restricted to topics sees the work whose filter names one
// of them.
func (a onStore) listWork(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	filter := q.Filter(job.Scheduled, job.Ready, job.Running, job.Delivered, job.Dead, job.Cancelled)
	if filter.Limit = q.Limit(defaultWorkLimit); filter.Limit > maxWorkLimit {
		q.AddError("?limit", "must be 1 to 100")
	}
	if err := q.Err(); err != nil {
		return err
	}
	return a.serveList(w, r, request.MaxListLimit, func(o *response.Buffer) error { // some are as large as several jobs
		found, page, err := a.store.ListWork(r.Context(), filter, func(found *store.Work) bool {
			return checkTopic(r.Context(), found.Filter.Topic) == nil
		})
		if err != nil {
			return err
		}
		response.Objects(o, "items", found, o.Work)
		return writeCursor(o, &filter, &page)
	})
}

// work answers with bulk work.
func (a onStore) work(w http.ResponseWriter, r *http.Request) error {
	found, err := a.findWork(r)
	return answerWork(w, found, err)
}

// stopWork stops bulk work.
func (a onStore) stopWork(w http.ResponseWriter, r *http.Request) error {
	found, err := a.findWork(r)
	if err == nil {
		err = request.RequireNoBody(r)
	}
	if err == nil {
		found, err = a.store.StopWork(r.Context(), namespaceOf(r), found.ID, actorOf(r.Context()))
	}
	if err == nil {
		a.audit(r, access.StopWork, "work", found.ID, "change", string(found.Action), "topic", found.Filter.Topic,
			"matched", found.Matched, "done", found.Done, "failed", found.Failed)
	}
	return answerWork(w, found, err)
}

// findWork reads the work in the path. Work that the request's token may not see is not found.
func (a onStore) findWork(r *http.Request) (store.Work, error) {
	ref, err := request.PathJob(r)
	if err != nil {
		return store.Work{}, err
	}
	found, err := a.store.Work(r.Context(), ref.Namespace, ref.ID)
	if err == nil && checkTopic(r.Context(), found.Filter.Topic) != nil {
		err = store.ErrNotFound
	}
	return found, err
}

func answerWork(w http.ResponseWriter, found store.Work, err error) error {
	if err != nil {
		return orNotFound(err, "no such work, or its retention has ended")
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.Work(&found) })
	return nil
}
