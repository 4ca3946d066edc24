package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

func (a *api) jobEndpoints() []endpoint {
	list := request.FilterParameters("state", "order", "limit", "cursor", "within")
	return []endpoint{
		at("POST /v1/jobs", access.RegisterJob, ofRequest, a.on(onStore.register), query("wait")),
		at("GET /v1/jobs", access.ListJobs, ofRequest, a.on(onStore.list), query(list...)),
		at("POST /v1/batch", access.RegisterJob, ofRequest, a.batch.Register),
		at("GET /v1/jobs/{id}", access.ReadJob, ofJob, a.on(onStore.get), query("wait")),
		at("PATCH /v1/jobs/{id}", access.EditJob, ofJob, a.on(onStore.edit), ofOneJob),
		at("DELETE /v1/jobs/{id}", access.CancelJob, ofJob, a.on(onStore.cancel), ofOneJob),
		at("POST /v1/jobs/{id}/run", access.RunJob, ofJob, a.on(onStore.run), ofOneJob),
		at("POST /v1/jobs/{id}/revive", access.ReviveJob, ofJob, a.on(onStore.revive), ofOneJob),
	}
}

// register registers one job. With the parameter wait it answers when the job has ended.
func (a onStore) register(w http.ResponseWriter, r *http.Request) error {
	wait, waits, err := request.Wait(r)
	if err != nil {
		return err
	}
	text, err := request.ReadJSON(w, r, request.Limit(a.maxBody))
	if err != nil {
		return err
	}
	n, p := request.DecodeJob(text, r.Header[request.IdempotencyKey], time.Now(), a.maxBody)
	if p != nil {
		return p
	}
	jobs := []job.New{n}
	if err := admit(r.Context(), &jobs[0]); err != nil {
		return err
	}
	if waits {
		leave, err := a.enterWait(r, a.waiting)
		if err != nil {
			return err
		}
		defer leave()
	}
	result := &a.registerAll(r.Context(), jobs)[0]
	status, p := batchStatus(result)
	if p != nil {
		return p
	}
	if status == http.StatusCreated {
		w.Header()["Location"] = []string{"/v1/jobs/" + result.Job.ID}
	}
	if waits {
		a.answerEnd(w, r, status, result.Job, wait)
	} else {
		a.answerJob(w, r, status, &result.Job)
	}
	return nil
}

// get answers with a job, its attempts, and what it waits for. With the parameter wait it answers when the job has
// ended.
func (a onStore) get(w http.ResponseWriter, r *http.Request) error {
	ref, err := request.PathJob(r)
	if err != nil {
		return err
	}
	wait, waits, err := request.Wait(r)
	switch {
	case err != nil:
		return err
	case waits:
		return a.getEnded(w, r, ref, wait)
	}
	found, err := a.store.Get(r.Context(), ref)
	if err != nil {
		return err
	}
	return a.showJob(w, r, &found, a.store.Explain(r.Context(), &found))
}

// list answers with a page of jobs.
func (a onStore) list(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	filter := q.Filter()
	if err := q.Err(); err != nil {
		return err
	}
	if err := checkTopic(r.Context(), filter.Topic); err != nil {
		return err
	}
	return a.serveJobs(w, r, filter)
}

// edit changes a job that is not running.
func (a onStore) edit(w http.ResponseWriter, r *http.Request) error {
	ref, err := request.PathJob(r)
	if err != nil {
		return err
	}
	version, err := request.IfMatch(r)
	if err != nil {
		return err
	}
	text, err := request.ReadJSON(w, r, request.Limit(a.maxBody))
	if err != nil {
		return err
	}
	edit, p := request.DecodeEdit(text, time.Now(), a.maxBody)
	if p != nil {
		return p
	}
	if err := checkBodies(r.Context(), "", &edit); err != nil {
		return err
	}
	edit.IfVersion, edit.Actor = version, actorOf(r.Context())
	edited, err := a.store.Edit(r.Context(), ref, edit)
	if errors.Is(err, store.ErrExpired) {
		return response.Invalid(job.FieldError{
			Field:  request.TimeField(edit),
			Detail: "the job would expire before it is due",
		})
	}
	if err != nil {
		return response.WithHint(err, "only scheduled and ready jobs can be changed")
	}
	a.answerChange(w, r, access.EditJob, http.StatusOK, &edited)
	return nil
}

// run makes a job due now.
func (a onStore) run(w http.ResponseWriter, r *http.Request) error {
	ref, err := request.PathJob(r)
	if err != nil {
		return err
	}
	version, err := request.IfMatch(r)
	if err != nil {
		return err
	}
	if err := request.RequireNoBody(r); err != nil {
		return err
	}
	due, err := a.store.RunNow(r.Context(), ref, version, actorOf(r.Context()))
	if err != nil {
		return response.WithHint(err, "only scheduled and ready jobs can be made due; an ended one can be revived")
	}
	a.answerChange(w, r, access.RunJob, http.StatusOK, &due)
	return nil
}

// jobWithoutBody reads a request whose path is all its input.
func jobWithoutBody(r *http.Request) (job.Ref, error) {
	ref, err := request.PathJob(r)
	if err == nil {
		err = request.RequireNoBody(r)
	}
	return ref, err
}

// revive makes an ended job due again.
func (a onStore) revive(w http.ResponseWriter, r *http.Request) error {
	revival, err := request.ReadRevival(w, r)
	if err == nil {
		err = checkBodies(r.Context(), revival.URL, nil)
	}
	if err != nil {
		return err
	}
	revival.Actor = actorOf(r.Context())
	revived, err := a.store.Revive(r.Context(), revival)
	if err != nil {
		return response.WithHint(err, "only delivered, dead and cancelled jobs can be revived")
	}
	a.answerChange(w, r, access.ReviveJob, http.StatusOK, &revived)
	return nil
}

// cancel cancels a job, or marks a running one.
func (a onStore) cancel(w http.ResponseWriter, r *http.Request) error {
	ref, err := jobWithoutBody(r)
	if err != nil {
		return err
	}
	version, err := request.IfMatch(r)
	if err != nil {
		return err
	}
	cancelled, err := a.store.Cancel(r.Context(), ref,
		store.Cancellation{IfVersion: version, Actor: actorOf(r.Context())})
	if err != nil {
		return response.WithHint(err, "only unfinished jobs can be cancelled")
	}
	status := http.StatusOK
	if cancelled.State == job.Running {
		status = http.StatusAccepted
	}
	a.answerChange(w, r, access.CancelJob, status, &cancelled)
	return nil
}

// showJob answers with a job, its attempts and its explanation. It refuses when too many bytes of answers are in
// flight.
func (a *api) showJob(w http.ResponseWriter, r *http.Request, j *job.Job, explanation *job.Explanation) error {
	hideBodies(r, j)
	explanation = hideSettings(r, j, explanation)
	reserved, err := a.bodies.ReserveAnswer(a.holderOf(r), answerSize(j))
	if err != nil {
		return err
	}
	defer reserved.Release()
	o := newDetailBuffer(w, r, j, explanation)
	defer o.Free()
	o.Close()
	o.Send(w, http.StatusOK)
	return nil
}

// newDetailBuffer is newJobBuffer with the job's attempts and its explanation.
func newDetailBuffer(
	w http.ResponseWriter, r *http.Request, j *job.Job, explanation *job.Explanation,
) *response.Buffer {
	o := newJobBuffer(w, r, j)
	o.History(j)
	o.Explanation(explanation)
	return o
}

// answerSize returns the bytes of an answer with a job's body: the body, and its JSON form.
func answerSize(j *job.Job) int64 { return 2 * int64(len(j.Body)) }

// answerChange logs a change of a job, and answers with the job.
func (a *api) answerChange(w http.ResponseWriter, r *http.Request, action access.Action, status int, j *job.Job) {
	a.audit(r, action, "topic", j.Topic, "job", j.ID)
	a.answerJob(w, r, status, j)
}

// answerJob answers a change with the job and its durability. It never refuses, because the change is made.
func (a *api) answerJob(w http.ResponseWriter, r *http.Request, status int, j *job.Job) {
	hideBodies(r, j)
	reserved := a.reserveChange(r, j)
	defer reserved.Release()
	o := newJobBuffer(w, r, j)
	defer o.Free()
	o.Durability(j.Durability)
	o.Close()
	o.Send(w, status)
}

// reserveChange reserves the bytes of an answer that must not be refused.
func (a *api) reserveChange(r *http.Request, j *job.Job) *limits.MeteredBody {
	reserved, err := a.bodies.ReserveAnswer(a.holderOf(r), answerSize(j))
	if err != nil {
		reserved.ForceReserve(answerSize(j))
	}
	return reserved
}

// newJobBuffer returns a buffer with the members of a job and of its body, and sets the header ETag.
func newJobBuffer(w http.ResponseWriter, r *http.Request, j *job.Job) *response.Buffer {
	if j.Version > 0 {
		w.Header()["Etag"] = []string{`"` + strconv.FormatInt(j.Version, 10) + `"`}
	}
	o := response.NewBuffer()
	o.ShowHeadersTo(request.PrincipalOf(r.Context()))
	o.Open()
	o.Job(j)
	body := j.Body
	if j.Kind != "" && j.BodyKind == job.BodyJSON {
		body = redactCallback(body)
	}
	o.Body(j.BodyKind, body)
	return o
}
