package schedulepages

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// editData is the data of the form of a schedule.
type editData struct {
	// Name is that of the schedule that is edited; empty: the form creates one, whose name is the text NewName.
	Name, NewName string
	ManagedBy     string
	Revision      string
	To            string
	Cancel        string
	Errors        web.FormErrors
	Timing        *timingData
	Rules         []web.Field
	Job, More     []web.Field
	// MoreOpen: something in More is set or wrong, so it is shown.
	MoreOpen bool
	// HidesBody: the form shows a placeholder instead of the body that the reader may not read.
	HidesBody bool
	NameField web.Field
	Timezones []string
}

// timingData is the data of the fields that say when a schedule runs, and of their preview.
type timingData struct {
	Fields    []web.Field
	Errors    web.FormErrors
	PreviewTo string
	// Preview are the next ticks; nil: there is nothing to preview, or Errors say what is wrong.
	Preview *preview
}

// preview are the next ticks of a form.
type preview struct {
	Sentence string
	Zone     string
	IsLocal  bool
	Ticks    []nextTick
}

// names of fields of the form of a schedule that the API does not have.
const (
	nameField     = "name"
	revisionField = "revision"
)

// editForm is the form of a schedule with what belongs to it.
type editForm struct {
	texts form.Texts

	Name, NewName, Revision, ManagedBy string
}

// readForm returns the form of a request; name is that of the schedule that is edited, or empty.
func readForm(v *web.Visit, name string) editForm {
	return editForm{
		texts: scheduleForm.Typed(v.Request.PostForm, nil), Name: name, NewName: v.Form(nameField),
		Revision: v.Form(revisionField),
	}
}

// newSchedule answers with an empty form.
func newSchedule(v *web.Visit) (web.Answer, error) {
	f := editForm{NewName: v.Query(nameField)}
	return f.page(v, web.FormErrors{}), nil
}

// editSchedule answers with the form of a schedule.
func editSchedule(v *web.Visit) (web.Answer, error) {
	s, err := v.API.GetSchedule(v.Request.Context(), v.PathValue("schedule"))
	if err != nil {
		return nil, err
	}
	f := editForm{
		texts: scheduleForm.Texts(valuesOf(s)), Name: s.Name, Revision: strconv.FormatInt(s.Revision, 10),
		ManagedBy: s.ManagedBy,
	}
	if f.texts["job.body_as"] == form.AsKept && !v.Who.Bodies { // the API refuses to store what the reader sees
		f.texts["job.body_as"], f.texts["job.body"] = form.AsText, form.Redacted
	}
	return f.page(v, web.FormErrors{}), nil
}

// page returns the page of a form.
func (f *editForm) page(v *web.Visit, errs web.FormErrors) *web.Page {
	page := &web.Page{
		View: "schedule-edit", Title: "New schedule", Section: section,
		Crumbs: crumbs(v), Status: errs.Status,
	}
	sections := scheduleForm.Sections(f.texts, nil, errs)
	d := editData{
		Name: f.Name, NewName: f.NewName, Revision: f.Revision, ManagedBy: f.ManagedBy, To: v.Path("schedules", "new"),
		Cancel: v.Path("schedules"), Errors: errs, Rules: sections[ruleGroup].Fields, Job: sections[jobGroup].Fields,
		More: sections[moreGroup].Fields, MoreOpen: sections[moreGroup].Set, Timezones: timezones,
		HidesBody: !v.Who.Bodies && f.texts["job.body"] == form.Redacted,
		NameField: web.Field{
			Name: nameField, Label: "Name", Value: f.NewName, Required: true, Error: errs.Of(nameField),
			Placeholder: "daily-report", Hint: "1 to 40 of A-Z a-z 0-9 _ : and -. Its jobs have ids with it.",
		},
	}
	if f.Name != "" {
		d.Rules = slices.DeleteFunc(d.Rules, func(field web.Field) bool { return field.Name == "paused" })
		page.Title = "Edit schedule " + f.Name
		page.Crumbs = append(page.Crumbs, web.Link{To: pathOf(v, f.Name), Text: f.Name})
		d.To, d.Cancel = pathOf(v, f.Name, "edit"), pathOf(v, f.Name)
	}
	d.Timing = f.timing(v, errs)
	page.Data = d
	return page
}

// timing returns the fields that say when the schedule runs, with their preview.
func (f *editForm) timing(v *web.Visit, errs web.FormErrors) *timingData {
	d := &timingData{PreviewTo: v.Path("schedules", "preview")}
	if f.texts["cron"] != "" || f.texts["every"] != "" {
		var found web.FormErrors
		d.Preview, found = f.preview(v)
		for field, sentence := range found.Fields {
			errs.Add(field, sentence)
		}
		d.Errors.General = found.General
	}
	d.Fields = scheduleForm.Sections(f.texts, nil, errs)[timingGroup].Fields
	return d
}

// preview asks the API for the next ticks of a form.
func (f *editForm) preview(v *web.Visit) (*preview, web.FormErrors) {
	query := make(url.Values)
	for _, name := range []string{"cron", "timezone", "every", "offset", "starts_at", "ends_at"} {
		text := f.texts[name]
		if t, ok := words.ParseTime(text); ok {
			text = t.Format(time.RFC3339Nano)
		}
		query.Set(name, text)
	}
	raw, err := v.API.Call(v.Request.Context(),
		client.Request{Method: http.MethodGet, Path: "/v1/schedules/preview?" + query.Encode()})
	found := new(client.SchedulePreview)
	if err == nil {
		err = json.Unmarshal(raw, found)
	}
	if err != nil {
		errs, ok := web.FormErrorsOf(err, scheduleForm.Names()...)
		if !ok {
			errs.General = []string{"The preview failed: " + err.Error()}
		}
		return nil, errs
	}
	zone, loc := zoneOf(&client.ScheduleRequest{Timezone: f.texts["timezone"]})
	shown := &preview{Sentence: "Runs " + words.LowerFirst(found.Description) + ".", Zone: zone, IsLocal: zone != "UTC"}
	for _, t := range found.Items {
		shown.Ticks = append(shown.Ticks, nextTick{Tick: t, LocalText: localText(t.At, v.Now, loc)})
	}
	return shown, web.FormErrors{}
}

// previewSchedule answers with the fields that say when a schedule runs and their preview, for a script; else with the
// whole form.
func previewSchedule(v *web.Visit) (web.Answer, error) {
	f := readForm(v, v.Form("schedule"))
	if v.Request.Header.Get("Hx-Request") == "true" {
		return &web.Part{View: "schedule-edit", Template: "schedule-timing", Data: f.timing(v, web.FormErrors{})}, nil
	}
	if f.Name != "" {
		switch stored, err := v.API.GetSchedule(v.Request.Context(), f.Name); {
		case err == nil:
			f.ManagedBy = stored.ManagedBy
		case !errors.Is(err, client.ErrNotFound): // of one that was deleted, the form keeps what was typed
			return nil, err
		}
	}
	return f.page(v, web.FormErrors{}), nil
}

// createSchedule creates a schedule.
func createSchedule(v *web.Visit) (web.Answer, error) {
	f := readForm(v, "")
	answer, err := f.put(v, f.NewName, 0, nil)
	if errors.Is(err, client.ErrRevision) {
		errs := web.FormErrors{Status: http.StatusPreconditionFailed}
		errs.Add(nameField, "there is a schedule with this name: choose another one, or edit that")
		return f.page(v, errs), nil
	}
	return answer, err
}

// changeSchedule replaces a schedule.
func changeSchedule(v *web.Visit) (web.Answer, error) {
	name := v.PathValue("schedule")
	stored, err := v.API.GetSchedule(v.Request.Context(), name)
	if err != nil {
		return nil, err
	}
	f := readForm(v, name)
	f.ManagedBy = stored.ManagedBy
	revision, err := v.Revision()
	if err != nil {
		return nil, err
	}
	if revision != stored.Revision {
		return f.conflict(v, stored), nil
	}
	answer, err := f.put(v, name, stored.Revision, valuesOf(stored))
	if errors.Is(err, client.ErrRevision) { // since it was read
		if stored, err = v.API.GetSchedule(v.Request.Context(), name); err == nil {
			return f.conflict(v, stored), nil
		}
	}
	return answer, err
}

// put puts the schedule of a form, if what is stored has a revision. client.ErrRevision: it has not.
func (f *editForm) put(v *web.Visit, name string, revision int64, stored form.Values) (web.Answer, error) {
	doc, _, errs := scheduleForm.Document(stored, f.texts)
	if name == "" {
		errs.Add(nameField, "is required")
	}
	if errs.Any() {
		return f.page(v, errs), nil
	}
	raw, err := v.Send(http.MethodPut, "/v1/schedules/"+url.PathEscape(name), doc, revision)
	if errors.Is(err, client.ErrRevision) {
		return nil, err
	}
	if errs, ok := web.FormErrorsOf(err, append(scheduleForm.Names(), nameField)...); ok {
		return f.page(v, errs), nil
	}
	if err != nil {
		return nil, err
	}
	put := new(client.Schedule)
	if err := json.Unmarshal(raw, put); err != nil {
		return nil, err
	}
	done := "Schedule " + put.Name + " is saved."
	if put.State == "active" && len(put.Next) > 0 {
		_, loc := zoneOf(&put.ScheduleRequest)
		done = "Schedule " + put.Name + " is saved; its next tick is at " + localText(put.Next[0].At, v.Now, loc) + "."
	}
	return web.Done(pathOf(v, put.Name), done), nil
}

// conflict returns the page of a form of a schedule that somebody else has changed: it says who, and what saving again
// changes of what is stored. Who has read that may overwrite it.
func (f *editForm) conflict(v *web.Visit, stored *client.Schedule) *web.Page {
	f.Revision, f.ManagedBy = strconv.FormatInt(stored.Revision, 10), stored.ManagedBy
	_, differ, errs := scheduleForm.Document(valuesOf(stored), f.texts)
	errs.Conflict(changedSince(v, stored), "the schedule as it is", differ)
	return f.page(v, errs)
}

// changedSince says that somebody has changed a schedule since the reader opened its form, and who.
func changedSince(v *web.Visit, s *client.Schedule) string {
	return v.ChangedSince("the schedule "+s.Name, s.UpdatedBy, s.UpdatedAt)
}
