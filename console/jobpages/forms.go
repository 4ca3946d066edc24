package jobpages

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// formData is the data of the forms that edit a job or register a copy of it.
type formData struct {
	Job  *client.JobInfo
	Lead string
	// Notes say what the form cannot do.
	Notes  []string
	Errors web.FormErrors
	Groups []form.Section
	// Revision is that of the job as the reader saw it, NewID the id of the copy if the reader gives none.
	Revision int64
	NewID    string
	// To is where the form is sent, Submit what its button says.
	To, Submit string
}

// changeForm is the form that edits a job.
var changeForm = form.Of[client.Change](
	form.Group{Title: "Request", Fields: editFields("url", "headers", "body_as", "body", "content_type")},
	form.Group{Title: "When", Fields: editFields("delay", "run_at", "expires_in", "expires_at")},
	form.Group{Title: "Attempts", Fields: editFields("retries", "ladder", "timeout")},
	form.Group{Title: "More", Fields: editFields("labels")},
)

// editFields returns fields of a job, with the hints of the form that edits one.
func editFields(names ...string) []form.Field {
	fields := form.JobFields("", names...)
	for i := range fields {
		fields[i].Hint = cmp.Or(editHints[fields[i].Name], fields[i].Hint)
	}
	return fields
}

var editHints = map[string]string{
	"url": "Where the job is sent. Secret headers are bound to its host: send them again when that " +
		"changes.",
	"headers":      "One a line. Values that are [redacted] stay as they are.",
	"delay":        "A wait from now, such as 90s, 1h30m or 2d; 0s is now. Empty: as it was.",
	"run_at":       "A time in UTC, or one with its zone. Empty: as it was.",
	"retries":      "Attempts after the first, 0 to 1000. A number can be changed, but not removed.",
	"expires_in":   "A new expiry, counted from now. Empty: as it was.",
	"expires_at":   "A time in UTC, or one with its zone. Empty: never.",
	"content_type": "Of the body. Empty: that of the kind of body.",
}

// changesOf returns what the texts of the form change of a job, and the names of it.
func changesOf(j *client.JobInfo, texts form.Texts) (doc json.RawMessage, changed []string, errs web.FormErrors) {
	stored := changeForm.Values(j.Raw)
	if texts["expires_in"] != "" && texts["expires_at"] == "" { // the new expiry replaces the old one
		delete(stored, "expires_at")
	}
	return changeForm.Changes(stored, texts)
}

// send sends a document about a job, if that is still as the form showed it.
func send(v *web.Visit, method, id, below string, doc json.RawMessage) error {
	revision, err := v.Revision()
	if err == nil {
		_, err = v.Send(method, "/v1/jobs/"+url.PathEscape(id)+below, doc, revision)
	}
	return err
}

// editForm serves the form that edits a job.
func editForm(v *web.Visit) (web.Answer, error) {
	j, err := getJob(v, v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return editPage(v, j, changeForm.Texts(changeForm.Values(j.Raw)), web.FormErrors{}), nil
}

// editPage returns the page of the form that edits a job.
func editPage(v *web.Visit, j *client.JobInfo, texts form.Texts, errs web.FormErrors) *web.Page {
	d := &formData{
		Job: j, Errors: errs, Groups: changeForm.Sections(texts, nil, errs), Revision: j.Revision,
		To: v.Path("jobs", j.ID, "edit"), Submit: "Save",
		Lead: "Changes apply to all attempts of job " + j.ID + " from the next one on.",
	}
	if j.State != client.Scheduled && j.State != client.Ready {
		d.Notes = append(d.Notes,
			"The job is "+string(j.State)+": only scheduled and ready jobs can be edited.")
	}
	if texts["body_as"] == form.AsKept && len(j.Body) > 0 {
		d.Notes = append(d.Notes, keptNote(v, j))
	}
	return &web.Page{
		View: "job-form", Title: "Edit job " + j.ID, Section: "jobs", Crumbs: crumbs(v, j),
		Status: errs.Status, Data: d,
	}
}

// keptNote says why the form does not show the body.
func keptNote(v *web.Visit, j *client.JobInfo) string {
	if hidesBody(v, j) {
		return "Your token may not read bodies, so the form does not show that of the job."
	}
	return "The body is too long to be edited here: it has " + words.Bytes(int64(len(j.Body))) + "."
}

func crumbs(v *web.Visit, j *client.JobInfo) []web.Link {
	return []web.Link{{To: v.Path("jobs"), Text: "Jobs"}, {To: v.Path("jobs", j.ID), Text: "Job " + j.ID}}
}

// editJob serves the form that edits a job: it sends the fields that differ from the job.
func editJob(v *web.Visit) (web.Answer, error) {
	id := v.PathValue("id")
	j, err := getJob(v, id)
	if err != nil {
		return nil, err
	}
	texts := changeForm.Typed(v.Request.PostForm, changeForm.Texts(changeForm.Values(j.Raw)))
	seen, err := v.Revision()
	if err != nil {
		return nil, err
	}
	if seen != j.Revision {
		return editPage(v, j, texts, changedMeanwhile(j, texts)), nil
	}
	doc, changed, errs := changesOf(j, texts)
	if errs.Any() {
		return editPage(v, j, texts, errs), nil
	}
	if len(changed) == 0 {
		return web.Warn(v.Path("jobs", id), "Job "+id+" is as it was: no field differs."), nil
	}
	err = send(v, http.MethodPatch, id, "", doc)
	if errors.Is(err, client.ErrRevision) {
		if j, err = getJob(v, id); err != nil {
			return nil, err
		}
		return editPage(v, j, texts, changedMeanwhile(j, texts)), nil
	}
	if err != nil {
		errs, ok := web.FormErrorsOf(err, changeForm.Names()...)
		if ok && errs.Status != http.StatusForbidden {
			return editPage(v, j, texts, errs), nil
		}
		return nil, err
	}
	return web.Done(v.Path("jobs", id), "Job "+id+" is edited."), nil
}

// changedMeanwhile says that the job was changed since the reader saw it, by whom, and what saving the form again
// changes of it.
func changedMeanwhile(j *client.JobInfo, texts form.Texts) web.FormErrors {
	who := ""
	if n := len(j.Events); n > 0 {
		e := j.Events[n-1]
		who = fmt.Sprintf(" (%s%s)", words.Change(e.Kind), actor(e.Actor))
	}
	_, differ, errs := changesOf(j, texts)
	errs.Conflict("The job was changed while you edited it"+who+".", "the job as it is", differ)
	return errs
}

// copyForm serves the form that registers a copy of a job.
func copyForm(v *web.Visit) (web.Answer, error) {
	j, err := getJob(v, v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	copied, _ := form.CopyOf(j)
	return copyPage(v, j, form.Job.Texts(copied), web.FormErrors{}, client.NewID()), nil
}

// copyPage returns the page of the form that registers a copy of a job.
func copyPage(v *web.Visit, j *client.JobInfo, texts form.Texts, errs web.FormErrors, id string) *web.Page {
	_, secrets := form.CopyOf(j)
	if hidesBody(v, j) && texts["body_as"] == form.AsKept {
		texts["body_as"], texts["content_type"] = form.AsJSON, ""
	}
	d := &formData{
		Job: j, Errors: errs, Groups: form.Job.Sections(texts, nil, errs), NewID: id,
		To: v.Path("jobs", j.ID, "copy"), Submit: "Register", Lead: "Registers another job like " + j.ID +
			"; that one stays as it is. The copy is due now and does not expire, unless you say so.",
	}
	if len(secrets) > 0 {
		d.Notes = append(d.Notes, "Secret headers cannot be copied, because nobody can read them: "+words.List(secrets)+
			". Write them again, or the copy is sent without them.")
	}
	switch {
	case hidesBody(v, j):
		d.Notes = append(d.Notes, "Your token may not read bodies, so the body cannot be copied: write it.")
	case texts["body_as"] == form.AsKept && len(j.Body) > 0:
		d.Notes = append(d.Notes, keptNote(v, j)+" The copy gets all of it, or the body that you write instead.")
	}
	return &web.Page{
		View: "job-form", Title: "Copy job " + j.ID, Section: "jobs", Crumbs: crumbs(v, j),
		Status: errs.Status, Data: d,
	}
}

// copyJob serves the form that registers a copy of a job.
func copyJob(v *web.Visit) (web.Answer, error) {
	j, err := getJob(v, v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	stored, _ := form.CopyOf(j)
	texts, newID := form.Job.Typed(v.Request.PostForm, form.Job.Texts(stored)), v.Form("new_id")
	named := maps.Clone(texts)
	named["id"] = cmp.Or(texts["id"], newID, client.NewID()) // so that a form that is sent twice registers one copy
	doc, _, errs := form.Job.Document(stored, named)
	if errs.Any() {
		return copyPage(v, j, texts, errs, newID), nil
	}
	if _, err = v.API.Call(v.Request.Context(),
		client.Request{Method: http.MethodPost, Path: "/v1/jobs", Body: doc}); err != nil {
		errs, ok := web.FormErrorsOf(err, form.Job.Names()...)
		if ok && errs.Status != http.StatusForbidden {
			return copyPage(v, j, texts, errs, newID), nil
		}
		return nil, err
	}
	return web.Done(v.Path("jobs", named["id"]), "Job "+named["id"]+" is registered, a copy of "+j.ID+"."), nil
}
