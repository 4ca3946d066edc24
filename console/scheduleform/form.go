package scheduleform

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/jobform"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/job/units"
)

// Form is a form. Its texts are by name of the field; those without a text are absent.
type Form struct {
	Texts map[string]string
	Job   jobform.Form
}

// Read returns the form of a request.
func Read(r *http.Request) Form {
	f := Form{Texts: make(map[string]string), Job: jobform.Read(r, JobPrefix)}
	for _, name := range Names {
		f.set(name, strings.TrimSpace(lines(r.PostFormValue(name))))
	}
	return f
}

// lines returns a text with the line ends that a browser's text is read with.
func lines(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// Of returns the form of a schedule. Secret headers are shown as the API does, as [redacted], which keeps them.
func Of(s client.ScheduleRequest) Form {
	f := Form{Texts: make(map[string]string), Job: jobform.Form{}}
	f.set(Cron, s.Cron)
	f.set(Timezone, s.Timezone)
	f.set(Every, formatDuration(s.Every))
	f.set(Offset, formatDuration(s.Offset))
	f.set(StartsAt, formatTime(s.StartsAt))
	f.set(EndsAt, formatTime(s.EndsAt))
	f.set(Jitter, formatDuration(s.Jitter))
	f.set(MaxRuns, formatNumber(s.MaxRuns))
	f.set(Overlap, s.Overlap)
	if s.CatchUp != nil {
		f.set(CatchUpRuns, s.CatchUp.Runs)
		f.set(CatchUpWindow, formatDuration(s.CatchUp.Window))
	}
	f.set(PauseAfterDead, formatNumber(int64(s.PauseAfterDead)))
	f.set(Note, strings.TrimSpace(lines(strings.ReplaceAll(s.Note, "\x00", "\uFFFD")))) // HTML has no NUL
	if s.Paused != nil && *s.Paused {
		f.set(Paused, "true")
	}
	if s.Job != nil {
		f.Job = jobform.OfSchedule(*s.Job)
	}
	return f
}

func (f Form) set(name, text string) {
	if text != "" {
		f.Texts[name] = text
	}
}

func formatDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return units.FormatDuration(d)
}

func formatTime(t time.Time) string {
	switch t = t.UTC(); {
	case t.IsZero():
		return ""
	case t.Equal(t.Truncate(time.Minute)):
		return t.Format("2006-01-02 15:04")
	}
	return t.Format(time.RFC3339Nano)
}

func formatNumber(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// parser parses a form and collects what is wrong with it.
type parser struct {
	form   Form
	errors web.FormErrors
}

func (p *parser) duration(name string) time.Duration {
	text := p.form.Texts[name]
	if text == "" {
		return 0
	}
	d, err := units.ParseDuration(text)
	switch {
	case err != nil:
		p.errors.Add(name, err.Error())
	case d <= 0 && name != Offset && name != Jitter:
		p.errors.Add(name, "must be longer than 0")
	case d < 0:
		p.errors.Add(name, "must not be negative")
	}
	return d
}

func (p *parser) time(name string) time.Time {
	text := p.form.Texts[name]
	if text == "" {
		return time.Time{}
	}
	t, err := jobform.ParseTime(text)
	if err != nil {
		p.errors.Add(name, err.Error())
	}
	return t
}

// number parses a number from 1 to top.
func (p *parser) number(name string, top int64) int64 {
	text := p.form.Texts[name]
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		p.errors.Add(name, "is not a whole number")
	case n < 1 || n > top: // 0 is left out of requests
		p.errors.Add(name, "must be from 1 to "+strconv.FormatInt(top, 10))
	}
	return n
}

// Limits of numbers, as the API has them.
const (
	maxMaxRuns        = 1<<53 - 1
	maxPauseAfterDead = 20
)

// Request returns the settings that the form describes. from are those that it was made of, or the zero value: what the
// form does not have, and what a person did not change, is kept. Paused is nil unless the form says that the schedule
// is paused.
func (f Form) Request(from client.ScheduleRequest) (client.ScheduleRequest, web.FormErrors) {
	p := &parser{form: f}
	s := client.ScheduleRequest{
		Cron: f.Texts[Cron], Timezone: f.Texts[Timezone], Every: p.duration(Every), Offset: p.duration(Offset),
		Jitter: p.duration(Jitter), StartsAt: p.time(StartsAt), EndsAt: p.time(EndsAt), Overlap: f.Texts[Overlap],
		MaxRuns: p.number(MaxRuns, maxMaxRuns), PauseAfterDead: int(p.number(PauseAfterDead, maxPauseAfterDead)),
		Note: f.Texts[Note], ManagedBy: from.ManagedBy,
	}
	if f.Texts[CatchUpRuns] != "" || f.Texts[CatchUpWindow] != "" {
		s.CatchUp = &client.CatchUp{Runs: f.Texts[CatchUpRuns], Window: p.duration(CatchUpWindow)}
	}
	if f.Texts[Paused] == "true" {
		s.Paused = new(true)
	}
	was := Of(from)
	if s.Note == was.Texts[Note] {
		s.Note = from.Note
	}
	j, errs := f.Job.ScheduleJob(JobPrefix)
	if from.Job != nil && isSameBody(f.Job, was.Job) {
		j.Body, j.ContentType = from.Job.Body, from.Job.ContentType
		delete(errs.Fields, JobPrefix+jobform.Body)
	}
	if from.Job != nil && j.Method == was.Job[jobform.Method] {
		j.Method = from.Job.Method // also if it is absent, as the form does not say
	}
	s.Job = &j
	for field, sentence := range errs.Fields {
		p.errors.Add(field, sentence)
	}
	return s, p.errors
}

// isSameBody reports whether two forms of a job have the same body, as a browser sends it.
func isSameBody(a, b jobform.Form) bool {
	for _, name := range []string{jobform.Body, jobform.BodyAs, jobform.ContentType} {
		if lines(a[name]) != lines(b[name]) {
			return false
		}
	}
	return true
}

// Differs returns the names of the fields whose texts are not those of another form. Paused is none of them, which only
// a new schedule's form has.
func (f Form) Differs(from Form) []string {
	var names []string
	for _, name := range Names {
		if name != Paused && f.Texts[name] != from.Texts[name] {
			names = append(names, name)
		}
	}
	for _, name := range f.Job.Differs(from.Job) {
		names = append(names, JobPrefix+name)
	}
	return names
}

// Preview returns what the API needs to show the ticks of the form.
func (f Form) Preview() (client.Preview, web.FormErrors) {
	p := &parser{form: f}
	return client.Preview{
		Cron: f.Texts[Cron], Timezone: f.Texts[Timezone], Every: p.duration(Every), Offset: p.duration(Offset),
		StartsAt: p.time(StartsAt), EndsAt: p.time(EndsAt),
	}, p.errors
}

// HasTiming reports whether the form says when the schedule runs.
func (f Form) HasTiming() bool { return f.Texts[Cron] != "" || f.Texts[Every] != "" }

// ErrorsOf returns an error of the API about a schedule or its preview as errors of the form's fields. ok is false for
// errors that are not about what was sent: return these. others are fields of the same form besides those of the
// schedule.
func ErrorsOf(err error, others ...string) (errs web.FormErrors, ok bool) {
	p, is := errors.AsType[*client.Problem](err)
	if !is {
		return errs, false
	}
	renamed := *p
	renamed.Errors = nil
	for _, e := range p.Errors { // those of a preview are parameters
		e.Field = "/" + strings.TrimLeft(e.Field, "/?")
		renamed.Errors = append(renamed.Errors, e)
	}
	return jobform.ErrorsOf(&renamed, "job", JobPrefix, append(others, Names...)...)
}
