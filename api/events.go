package api

import (
	"cmp"
	"net/http"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

func (a *api) eventEndpoints() []endpoint {
	return []endpoint{
		at("POST /v1/events", access.SendEvent, ofRequest, a.on(onStore.sendEvent), query(dryRun, "wait")),
		at("GET /v1/events", access.ReadEvents, ofItems, a.on(onStore.listEvents),
			query("topic", "type", "label", "order", "limit", "cursor", "created_after", "created_before")),
		at("POST /v1/events/batch", access.SendEvent, ofRequest, a.on(onStore.sendEvents)),
		at("GET /v1/events/{id}", access.ReadEvents, ofEvent, a.on(onStore.event), query("wait")),
	}
}

// readEvent reads an event that its token may send.
func (a onStore) readEvent(r *http.Request, text []byte, keys []string) (store.EventSpec, error) {
	e, p := request.DecodeEvent(text, keys, time.Now(), a.maxBody)
	if p != nil {
		return e, p
	}
	err := admit(r.Context(), &e.Job)
	e.Job.CreatedBy = "" // it is not part of what is repeated
	e.Job.Topic = cmp.Or(e.Job.Topic, job.DefaultTopic)
	return e, err
}

// sendEvent sends an event, or says which lanes would get it now.
func (a onStore) sendEvent(w http.ResponseWriter, r *http.Request) error {
	dry, err := request.DryRun(r)
	if err != nil {
		return err
	}
	wait, waits, err := request.Wait(r)
	if err != nil {
		return err
	}
	text, err := request.ReadJSON(w, r, request.Limit(a.maxBody))
	if err != nil {
		return err
	}
	e, err := a.readEvent(r, text, r.Header[request.IdempotencyKey])
	if err != nil {
		return err
	}
	if dry {
		found, err := a.store.PreviewEvent(r.Context(), namespaceOf(r), actorOf(r.Context()), e)
		if err != nil {
			return err
		}
		response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.Event(&found) })
		return nil
	}
	if waits {
		leave, err := a.enterWait(r, a.waiting)
		if err != nil {
			return err
		}
		defer leave()
	}
	sent := a.store.SendEvents(r.Context(), namespaceOf(r), actorOf(r.Context()), []store.EventSpec{e})[0]
	if sent.Err != nil {
		return sent.Err
	}
	status := eventStatus(&sent.Event)
	if waits {
		limits.Metered(r).Release()
		if ended, err := a.waitForEvent(w, r, sent.Event.ID, wait); err == nil { // else it is at least sent
			sent.Event = ended
		}
	}
	if !request.PrincipalOf(r.Context()).Allows(access.ReadEvents) {
		sent.Event.Lanes, sent.Event.Refused = nil, nil // as it does not read lanes
	}
	w.Header()["Location"] = []string{"/v1/events/" + sent.Event.ID}
	response.Answer(w, status, func(o *response.Buffer) { o.Event(&sent.Event) })
	return nil
}

// waitForEvent returns an event once its jobs have ended, or as it is after wait. The request's token must still be
// valid then.
func (a onStore) waitForEvent(
	w http.ResponseWriter, r *http.Request, id string, wait time.Duration,
) (store.Event, error) {
	allowWait(w, wait)
	e, err := a.store.WaitForEvent(r.Context(), namespaceOf(r), id, wait)
	if err == nil {
		err = a.afterWait(w, r)
	}
	return e, err
}

// eventStatus is that of the answer to an event: 202 if lanes are left to find.
func eventStatus(e *store.Event) int {
	switch {
	case e.Known:
		return http.StatusOK
	case e.Expanded:
		return http.StatusCreated
	default:
		return http.StatusAccepted
	}
}

// sendEvents sends several events, and answers with a result for each, in order.
func (a onStore) sendEvents(w http.ResponseWriter, r *http.Request) error {
	text, err := request.ReadJSON(w, r, request.MaxBatchBytes)
	if err != nil {
		return err
	}
	raw, n, p := request.DecodeEvents(text)
	if p != nil {
		return p
	}
	results := make([]store.SentEvent, 0, n)
	good, at := make([]store.EventSpec, 0, n), make([]int, 0, n)
	for _, one := range request.Elements(raw) {
		e, err := a.readEvent(r, one, nil)
		if results = append(results, store.SentEvent{Event: store.Event{ID: e.ID}, Err: err}); err == nil {
			good, at = append(good, e), append(at, len(results)-1)
		}
	}
	for k, sent := range a.store.SendEvents(r.Context(), namespaceOf(r), actorOf(r.Context()), good) {
		sent.Event.ID = cmp.Or(sent.Event.ID, good[k].ID)
		results[at[k]] = sent
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		o.Array("results")
		for i := range results {
			e, status := &results[i].Event, eventStatus(&results[i].Event)
			var p *response.Problem
			if err := results[i].Err; err != nil {
				p = response.FromError(err)
				status = p.Status
			}
			o.EventResult(i, e, status, p)
		}
		o.CloseArray()
	})
	return nil
}

// listEvents answers with a page of events, the newest first, without the states of their jobs.
func (a onStore) listEvents(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	filter := q.EventFilter()
	if err := q.Err(); err != nil {
		return err
	}
	return a.serveList(w, r, request.MaxListLimit, func(o *response.Buffer) error {
		found, page, err := a.store.ListEvents(r.Context(), filter, func(e *store.Event) bool {
			return checkTopic(r.Context(), e.Topic) == nil
		})
		if err != nil {
			return err
		}
		response.Objects(o, "items", found, o.Event)
		return writeCursor(o, &filter, &page)
	})
}

// event answers with an event, its body and the states of its jobs.
func (a onStore) event(w http.ResponseWriter, r *http.Request) error {
	wait, waits, err := request.Wait(r)
	if err != nil {
		return err
	}
	e, err := a.store.Event(r.Context(), namespaceOf(r), r.PathValue("id"))
	if err == nil && checkTopic(r.Context(), e.Topic) != nil {
		err = store.ErrNotFound
	}
	if err == nil && waits {
		leave, full := a.enterWait(r, a.waiting)
		if full != nil {
			return full
		}
		defer leave()
		e, err = a.waitForEvent(w, r, e.ID, wait)
	}
	if err != nil {
		return orNotFound(err, "no such event, or its retention has ended")
	}
	if e.BodyKind != job.BodyNone && !request.PrincipalOf(r.Context()).Bodies {
		e.BodyKind, e.Body = job.BodyText, []byte(response.Redacted)
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		o.Event(&e)
		o.Body(e.BodyKind, e.Body)
	})
	return nil
}
