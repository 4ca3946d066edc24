package jobpages

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/jobform"
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
	Groups []fieldGroup
	// Revision is that of the job as the reader saw it, NewID the id of the copy if the reader gives none.
	Revision int64
	NewID    string
	// To is where the form is sent, Submit what its button says.
	To, Submit string
}

// fieldGroup is a number of fields with a title.
type fieldGroup struct {
	Title  string
	Wide   bool // one field a line
	Fields []web.Field
}

// groups returns the fields of a form in groups. hints replace those that are different in this form.
func groups(f jobform.Form, errs web.FormErrors, has []string, hints map[string]string) []fieldGroup {
	var all []fieldGroup
	for _, g := range []struct {
		title string
		names []string
	}{
		{"Request", []string{
			jobform.ID, jobform.Topic, jobform.URL, jobform.Method, jobform.Headers, jobform.BodyAs,
			jobform.Body, jobform.ContentType,
		}},
		{"When", []string{jobform.Delay, jobform.RunAt, jobform.ExpiresIn, jobform.ExpiresAt}},
		{"Attempts", []string{jobform.Lane, jobform.Retries, jobform.Ladder, jobform.Timeout}},
		{"More", []string{jobform.Labels, jobform.OnDelivered, jobform.OnDead}},
	} {
		var names []string
		for _, name := range g.names {
			if slices.Contains(has, name) {
				names = append(names, name)
			}
		}
		fields := f.Fields("", errs, names...)
		for i := range fields {
			if hint, ok := hints[fields[i].Name]; ok {
				fields[i].Hint = hint
			}
		}
		wide := slices.ContainsFunc(fields, func(it web.Field) bool { return it.Kind == "textarea" })
		all = append(all, fieldGroup{g.title, wide, fields})
	}
	return all
}

// editHints are the hints of the form that edits a job.
var editHints = map[string]string{
	jobform.URL: "Where the job is sent. Secret headers are bound to its host: send them again when that " +
		"changes.",
	jobform.Headers:     "One a line. Values that are [redacted] stay as they are.",
	jobform.Delay:       "A wait from now, such as 90s, 1h30m or 2d; 0s is now. Empty: as it was.",
	jobform.RunAt:       "A time in UTC, or one with its zone. Empty: as it was.",
	jobform.Retries:     "Attempts after the first, 0 to 1000. A number can be changed, but not removed.",
	jobform.ExpiresIn:   "A new expiry, counted from now. Empty: as it was.",
	jobform.ExpiresAt:   "A time in UTC, or one with its zone. Empty: never.",
	jobform.ContentType: "Of the body. Empty: that of the kind of body.",
}

// editForm serves the form that edits a job.
func editForm(v *web.Visit) (web.Answer, error) {
	j, err := getJob(v, v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return editPage(v, j, jobform.OfEdit(j), web.FormErrors{}), nil
}

// editPage returns the page of the form that edits a job.
func editPage(v *web.Visit, j *client.JobInfo, f jobform.Form, errs web.FormErrors) *web.Page {
	d := &formData{
		Job: j, Errors: errs, Groups: groups(f, errs, jobform.EditNames, editHints), Revision: j.Revision,
		To: v.Path("jobs", j.ID, "edit"), Submit: "Save",
		Lead: "Changes apply to all attempts of job " + j.ID + " from the next one on.",
	}
	if j.State != client.Scheduled && j.State != client.Ready {
		d.Notes = append(d.Notes,
			"The job is "+words.State(string(j.State))+": only scheduled and ready jobs can be edited.")
	}
	if f[jobform.BodyAs] == jobform.AsKept && len(j.Body) > 0 {
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
	form := jobform.Read(v.Request, "")
	seen, err := v.Condition()
	if err != nil {
		return nil, err
	}
	if seen != client.IfRevision(j.Revision) {
		return editPage(v, j, form, changedMeanwhile(j, form)), nil
	}
	change, changed, errs := form.Change(jobform.OfEdit(j))
	if errs.Any() {
		return editPage(v, j, form, errs), nil
	}
	if !changed {
		return &web.Redirect{To: v.Path("jobs", id), Notice: web.Notice{Kind: "warn", Text: "Job " + id +
			" is as it was: no field differs."}}, nil
	}
	_, err = v.API.Edit(v.Request.Context(), id, change, seen)
	if errors.Is(err, client.ErrRevision) {
		if j, err = getJob(v, id); err != nil {
			return nil, err
		}
		return editPage(v, j, form, changedMeanwhile(j, form)), nil
	}
	if err != nil {
		if errs, ok := jobform.ErrorsOf(err, "", ""); ok && errs.Status != http.StatusForbidden {
			return editPage(v, j, form, errs), nil
		}
		return nil, err
	}
	return &web.Redirect{To: v.Path("jobs", id), Notice: web.Done("Job " + id + " is edited.")}, nil
}

// changedMeanwhile says that the job was changed since the reader saw it, by whom, and what saving the form again
// changes of it.
func changedMeanwhile(j *client.JobInfo, form jobform.Form) web.FormErrors {
	who := ""
	if n := len(j.Events); n > 0 {
		e := j.Events[n-1]
		who = fmt.Sprintf(" (%s%s)", words.Change(e.Kind), actor(e.Actor))
	}
	errs := web.FormErrors{Status: http.StatusPreconditionFailed, General: []string{
		"The job was changed while you edited it" + who + ". Your fields are kept.",
	}}
	if differ := form.Differs(jobform.OfEdit(j)); len(differ) > 0 {
		errs.General = append(errs.General,
			words.Sentence("Compared with the job as it is now, saving again changes", words.ListAll(differ)))
	} else {
		errs.General = append(errs.General, "The job is now as you typed it.")
	}
	return errs
}

// copyForm serves the form that registers a copy of a job.
func copyForm(v *web.Visit) (web.Answer, error) {
	j, err := getJob(v, v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	form, _ := jobform.Of(j)
	return copyPage(v, j, form, web.FormErrors{}, client.NewID()), nil
}

// copyPage returns the page of the form that registers a copy of a job.
func copyPage(v *web.Visit, j *client.JobInfo, f jobform.Form, errs web.FormErrors, id string) *web.Page {
	_, secrets := jobform.Of(j)
	if hidesBody(v, j) && f[jobform.BodyAs] == jobform.AsKept {
		f[jobform.BodyAs] = jobform.AsJSON
	}
	d := &formData{
		Job: j, Errors: errs, Groups: groups(f, errs, jobform.Names, nil), NewID: id,
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
	case f[jobform.BodyAs] == jobform.AsKept && len(j.Body) > 0:
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
	form, newID := jobform.Read(v.Request, ""), v.Form("new_id")
	copied, errs := form.Job("")
	if errs.Any() {
		return copyPage(v, j, form, errs, newID), nil
	}
	if form[jobform.BodyAs] == jobform.AsKept && len(j.Body) > 0 {
		copied.Body = j.Body
		if copied.ContentType == "" {
			copied.ContentType = j.ContentType
		}
	}
	if copied.ID == "" {
		copied.ID = newID // so that a form that is sent twice registers one copy
	}
	registered, err := v.API.Register(v.Request.Context(), copied)
	if err != nil {
		if errs, ok := jobform.ErrorsOf(err, "", ""); ok && errs.Status != http.StatusForbidden {
			return copyPage(v, j, form, errs, newID), nil
		}
		return nil, err
	}
	return &web.Redirect{To: v.Path("jobs", registered.ID), Notice: web.Done("Job " + registered.ID +
		" is registered, a copy of " + j.ID + ".")}, nil
}
