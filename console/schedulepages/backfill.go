package schedulepages

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// backfill is the progress of a backfill.
type backfill struct {
	*client.BackfillState

	Class, Text string
	IsRunning   bool
}

// newBackfill returns the progress of a schedule's last backfill; nil: it had none.
func newBackfill(s *client.Schedule) *backfill {
	if s.Backfill == nil {
		return nil
	}
	b := &backfill{BackfillState: s.Backfill}
	done := words.Number(b.Done) + " of " + words.Count(b.Total, "tick")
	span := " from " + words.DateTime(b.After, nil) + " to " + words.DateTime(b.Before, nil)
	switch {
	case b.Failed != "":
		b.Class, b.Text = "bad", words.Sentence("The backfill"+span+" failed after", done+":", b.Failed)
	case !b.EndedAt.IsZero():
		b.Class, b.Text = "ok", words.Sentence("The backfill"+span+" has run", done)
	case s.State == "paused":
		b.IsRunning, b.Class, b.Text = true, "warn", words.Sentence("The backfill"+span+
			" has run", done, "and goes on when the schedule is resumed")
	default:
		b.IsRunning, b.Text = true, words.Sentence("The backfill"+span+" has run", done+",", "at", b.Rate)
	}
	return b
}

// The names of the fields of the form of a backfill, as the API has them.
const (
	afterField  = "after"
	beforeField = "before"
	rateField   = "rate"
)

// backfillData is the data of the page that begins a backfill.
type backfillData struct {
	Name, To, Cancel, Revision string
	Errors                     web.FormErrors
	Fields                     []web.Field
	// Counted says how many ticks there are; empty: they are not counted.
	Counted string
	// Texts are those of the fields, for the form that starts what was counted. CanStart: there is something to start.
	After, Before, Rate string
	CanStart            bool
	Running             *backfill
}

// backfillForm is the form of a backfill.
type backfillForm struct {
	schedule            *client.Schedule
	after, before, rate string
}

// countBackfill answers with the form of a backfill, and with the number of its ticks once it is filled.
func countBackfill(v *web.Visit) (web.Answer, error) {
	s, err := v.API.GetSchedule(v.Request.Context(), v.PathValue("schedule"))
	if err != nil {
		return nil, err
	}
	f := &backfillForm{s, v.Query(afterField), v.Query(beforeField), v.Query(rateField)}
	if f.after == "" && f.before == "" {
		now := v.Now.UTC().Truncate(time.Minute)
		f.after, f.before = now.Add(-24*time.Hour).Format(timeLayout), now.Format(timeLayout)
		return f.page(v, web.FormErrors{}, nil), nil
	}
	return f.counted(v, web.FormErrors{})
}

// timeLayout is how the form writes times.
const timeLayout = "2006-01-02 15:04"

// startBackfill starts a backfill as its page has counted it.
func startBackfill(v *web.Visit) (web.Answer, error) {
	name := v.PathValue("schedule")
	s, err := v.API.GetSchedule(v.Request.Context(), name)
	if err != nil {
		return nil, err
	}
	f := &backfillForm{s, v.Form(afterField), v.Form(beforeField), v.Form(rateField)}
	b, errs := f.parse()
	if errs.Any() {
		return f.page(v, errs, nil), nil
	}
	condition, err := v.Condition()
	if err != nil {
		return nil, err
	}
	started, err := v.API.BackfillSchedule(v.Request.Context(), name, b, condition)
	if errors.Is(err, client.ErrRevision) {
		if s, err = v.API.GetSchedule(v.Request.Context(), name); err != nil {
			return nil, err
		}
		f.schedule = s
		return f.counted(v, web.FormErrors{Status: http.StatusPreconditionFailed, General: []string{
			changedSince(v, s) + " Its ticks are counted again: look at the number, and start again.",
		}})
	}
	if err != nil {
		return f.refused(v, err, "")
	}
	done := "The backfill has begun."
	if started.Backfill != nil {
		done = "The backfill of " + words.Count(started.Backfill.Total, "tick") + " has begun."
	}
	return web.Done(pathOf(v, name), done), nil
}

// counted returns the page with the number of ticks.
func (f *backfillForm) counted(v *web.Visit, errs web.FormErrors) (web.Answer, error) {
	b, invalid := f.parse()
	if invalid.Any() {
		invalid.Heading = notCounted
		return f.page(v, invalid, nil), nil
	}
	count, err := v.API.CountBackfill(v.Request.Context(), f.schedule.Name, b)
	if err != nil {
		return f.refused(v, err, notCounted)
	}
	return f.page(v, errs, count), nil
}

// notCounted is the heading of errors of the page that counts.
const notCounted = "The ticks cannot be counted"

// refused returns the page with what the API has against the form, under a heading.
func (f *backfillForm) refused(v *web.Visit, err error, heading string) (web.Answer, error) {
	errs, ok := web.FormErrorsOf(err, afterField, beforeField, rateField)
	if !ok {
		return nil, err
	}
	errs.Heading = heading
	return f.page(v, errs, nil), nil
}

// parse returns the backfill that the form describes.
func (f *backfillForm) parse() (b client.Backfill, errs web.FormErrors) {
	for _, field := range []struct {
		name, text string
		to         *time.Time
	}{{afterField, f.after, &b.After}, {beforeField, f.before, &b.Before}} {
		if field.text == "" {
			errs.Add(field.name, "is required")
			continue
		}
		t, ok := words.ParseTime(field.text)
		if !ok {
			errs.Add(field.name, "is not a time: write 2026-11-24 14:30 for UTC, or 2026-11-24T14:30:00+01:00")
		}
		*field.to = t
	}
	b.Rate = f.rate
	return b, errs
}

// page returns the page of the form.
func (f *backfillForm) page(v *web.Visit, errs web.FormErrors, count *client.BackfillCount) *web.Page {
	s := f.schedule
	d := &backfillData{
		Name: s.Name, To: pathOf(v, s.Name, "backfill"), Cancel: pathOf(v, s.Name),
		Revision: strconv.FormatInt(s.Revision, 10), Errors: errs, After: f.after, Before: f.before, Rate: f.rate,
		Fields: []web.Field{
			{
				Name: afterField, Label: "From", Value: f.after, Required: true, Error: errs.Of(afterField),
				Hint: "The earliest tick. A time in UTC, or one with its zone.",
			},
			{
				Name: beforeField, Label: "Up to, but without", Value: f.before, Required: true,
				Error: errs.Of(beforeField), Hint: "Ticks from then on do not run.",
			},
			{
				Name: rateField, Label: "Rate", Value: f.rate, Placeholder: "10/s", Error: errs.Of(rateField),
				Hint: "Jobs that are registered in a time, at most 100/s. Empty: 10/s.",
			},
		},
	}
	if running := newBackfill(s); running != nil && running.IsRunning {
		d.Running = running
	}
	if count != nil {
		rate := f.rate
		if rate == "" {
			rate = "10/s"
		}
		d.CanStart = count.Total > 0
		d.Counted = words.Sentence("There is no tick in this time")
		if d.CanStart {
			d.Counted = words.Sentence(words.Count(count.Total, "tick"), "would run, at "+rate+".",
				"Those whose job is stored or remembered do not run again; older ones do, although they ran at their "+
					"time")
		}
	}
	return &web.Page{
		View: "schedule-backfill", Title: "Backfill schedule " + s.Name, Section: section, Status: errs.Status, Data: d,
		Crumbs: append(crumbs(v), web.Link{To: pathOf(v, s.Name), Text: s.Name}),
	}
}
