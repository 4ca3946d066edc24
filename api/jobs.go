package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// register takes one job.
func (a *api) register(w http.ResponseWriter, r *http.Request) error {
	text, err := readJSON(w, r, a.requestLimit())
	if err != nil {
		return err
	}
	n, p := decodeNew(text, time.Now(), a.maxBody)
	if p != nil {
		return p
	}
	result := a.service.Register(r.Context(), []job.New{n})[0]
	status, p := settled(&result)
	if p != nil {
		return p
	}
	if status == http.StatusCreated {
		w.Header()["Location"] = []string{"/v1/jobs/" + result.Job.ID}
	}
	a.answerJob(w, status, &result.Job)
	return nil
}

// settled says which status a registration comes to, or which problem.
func settled(result *store.RoutedResult) (status int, p *problem) {
	switch {
	case result.Err != nil:
		return 0, problemOf(result.Err)
	case result.Outcome == store.Created:
		return http.StatusCreated, nil
	case result.Outcome == store.Existing:
		return http.StatusOK, nil
	case result.Job.State == job.Cancelled:
		return 0, refuse(http.StatusConflict, "the job "+result.Job.ID+
			" was cancelled: POST /v1/jobs/"+result.Job.ID+"/revive to send it after all, or choose another id")
	default:
		return 0, refuse(http.StatusConflict, "another request was registered under the id "+result.Job.ID+
			": the same request again must be the same in every field")
	}
}

// get shows a job with its attempts.
func (a *api) get(w http.ResponseWriter, r *http.Request) error {
	ref, err := pathJob(r)
	if err != nil {
		return err
	}
	found, err := a.service.Get(r.Context(), ref)
	if err != nil {
		return err
	}
	return a.showJob(w, &found)
}

// Sizes of lists: of jobs unless a client says otherwise, and of all lists at most.
const (
	listStandard = 50
	listMost     = 500
)

// states are those that can be listed.
var states = map[job.State]bool{
	job.Scheduled: true, job.Ready: true, job.Running: true, job.Delivered: true, job.Dead: true, job.Cancelled: true,
}

// list shows one page of a topic's jobs in one state.
func (a *api) list(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r, "topic", "state", "lane", "label", "reason", "status", "after", "before", "limit", "cursor")
	filter := q.filter()
	filter.State = job.State(q.get("state"))
	if filter.Topic == "" {
		q.fault("?topic", "must name a topic")
	}
	if !states[filter.State] {
		q.fault("?state", "must be scheduled, ready, running, delivered, dead or cancelled")
	}
	for _, name := range []string{"reason", "status"} {
		if q.get(name) != "" && filter.State != job.Dead {
			q.fault(queryName(name), "selects among dead jobs: it needs state=dead")
		}
	}
	q.checkFilter("?", &filter)
	if err := q.err(); err != nil {
		return err
	}
	return a.answerList(w, r, filter.Limit, func(o *out) error {
		page, err := a.service.List(r.Context(), filter)
		if err == nil {
			o.page(page)
		}
		return err
	})
}

// page writes a page of jobs.
func (o *out) page(page store.Page) {
	o.open()
	o.array("items")
	for i := range page.Jobs {
		o.open()
		o.job(&page.Jobs[i])
		o.close()
	}
	o.closeArray()
	o.said("next_cursor", page.Cursor)
	o.close()
}

// ownIDs begins the ids of jobs that Ringback made itself.
const ownIDs = "rb:"

// edit changes a job that nobody holds.
func (a *api) edit(w http.ResponseWriter, r *http.Request) error {
	ref, err := pathJob(r)
	if err != nil {
		return err
	}
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	text, err := readJSON(w, r, a.requestLimit())
	if err != nil {
		return err
	}
	edit, p := decodeEdit(text, time.Now(), a.maxBody)
	if p != nil {
		return p
	}
	if edit.Labels != nil && strings.HasPrefix(ref.ID, ownIDs) {
		return invalid(job.FieldError{Field: "/labels", Detail: "of a job that Ringback made never change: they say who signs it"})
	}
	edit.IfVersion = version
	return a.change(w, r, ref, edit, "only scheduled and ready jobs can be changed")
}

// run makes a job due now.
func (a *api) run(w http.ResponseWriter, r *http.Request) error {
	ref, err := pathJob(r)
	if err != nil {
		return err
	}
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	if err := noBody(r); err != nil {
		return err
	}
	edit := store.Edit{Kind: job.KindRun, IfVersion: version, Delay: new(time.Duration)}
	return a.change(w, r, ref, edit, "only scheduled and ready jobs can be made due; an ended one can be revived")
}

// change edits a job and shows it.
func (a *api) change(w http.ResponseWriter, r *http.Request, ref job.Ref, edit store.Edit, needed string) error {
	changed, err := a.service.Edit(r.Context(), ref, edit)
	if err != nil {
		return because(err, needed)
	}
	a.answerJob(w, http.StatusOK, &changed)
	return nil
}

// bareJob reads a request that says nothing but which job it is about.
func bareJob(r *http.Request) (job.Ref, error) {
	ref, err := pathJob(r)
	if err == nil {
		err = noBody(r)
	}
	if err == nil {
		err = noIfMatch(r)
	}
	return ref, err
}

// revive sends an ended job on another round.
func (a *api) revive(w http.ResponseWriter, r *http.Request) error {
	revival, err := readRevival(w, r)
	if err != nil {
		return err
	}
	revived, err := a.service.Revive(r.Context(), revival)
	if err != nil {
		return because(err, "only delivered, dead and cancelled jobs can be revived")
	}
	a.answerJob(w, http.StatusOK, &revived)
	return nil
}

// cancel ends a job, or marks a running one.
func (a *api) cancel(w http.ResponseWriter, r *http.Request) error {
	ref, err := bareJob(r)
	if err != nil {
		return err
	}
	cancelled, err := a.service.Cancel(r.Context(), ref)
	if err != nil {
		return because(err, "only unfinished jobs can be cancelled")
	}
	status := http.StatusOK
	if cancelled.State == job.Running {
		status = http.StatusAccepted
	}
	a.answerJob(w, status, &cancelled)
	return nil
}

// showJob answers with a job and its attempts, unless so much is being answered that there is no room for its body.
func (a *api) showJob(w http.ResponseWriter, j *job.Job) error {
	held, ok := a.bodies.answer(answerSize(j))
	defer held.release()
	if !ok {
		return overloaded("too many bytes of answers are under way: try again, with fewer requests at a time")
	}
	o := beginJob(w, j)
	defer o.free()
	o.attempts(j.History)
	o.close()
	o.send(w, http.StatusOK)
	return nil
}

// answerJob answers a change with the job, and how durable the change was. The change is made, so it is not refused.
func (a *api) answerJob(w http.ResponseWriter, status int, j *job.Job) {
	held, ok := a.bodies.answer(answerSize(j))
	defer held.release()
	if !ok {
		held.force(answerSize(j))
	}
	o := beginJob(w, j)
	defer o.free()
	o.durability(j.Durability)
	o.close()
	o.send(w, status)
}

// beginJob begins an answer that shows a job.
func beginJob(w http.ResponseWriter, j *job.Job) *out {
	if j.Version > 0 {
		w.Header()["Etag"] = []string{`"` + strconv.FormatInt(j.Version, 10) + `"`}
	}
	o := newOut()
	o.open()
	o.job(j)
	o.body(j)
	return o
}
