package jobform

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

// The names of the fields, which are those of the API's where it has them.
const (
	ID          = "id"
	Topic       = "topic"
	Lane        = "lane"
	URL         = "url"
	Method      = "method"
	Headers     = "headers"
	Body        = "body"
	BodyAs      = "body_as"
	ContentType = "content_type"
	Delay       = "delay"
	RunAt       = "run_at"
	Retries     = "retries"
	Ladder      = "ladder"
	Timeout     = "timeout"
	ExpiresIn   = "expires_in"
	ExpiresAt   = "expires_at"
	Labels      = "labels"
	OnDelivered = "on_delivered"
	OnDead      = "on_dead"
)

// Names are the names of all fields, in the order in which a form has them.
var Names = []string{
	ID, Topic, URL, Method, Headers, Body, BodyAs, ContentType, Delay, RunAt, Lane, Retries, Ladder, Timeout,
	ExpiresIn, ExpiresAt, Labels, OnDelivered, OnDead,
}

// ScheduleNames are the names of the fields of a schedule's job.
var ScheduleNames = without(Names, ID, Delay, RunAt, ExpiresAt)

// EditNames are the names of the fields that can be edited.
var EditNames = without(Names, ID, Topic, Method, Lane, OnDelivered, OnDead)

func without(names []string, others ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// The ways in which the field Body is read: values of the field BodyAs.
const (
	AsJSON   = "json"
	AsText   = "text"
	AsBase64 = "base64"
	// AsKept stands for the body that the job has: the text is ignored.
	AsKept = "kept"
)

// Form is a form: the texts of its fields by name. Those without a text are absent.
type Form map[string]string

// Read returns the form of a request, whose fields begin with a prefix such as "job."; empty: with none.
func Read(r *http.Request, prefix string) Form {
	f := make(Form, len(Names))
	for _, name := range Names {
		text := strings.ReplaceAll(r.PostFormValue(prefix+name), "\r\n", "\n")
		if name != Body {
			text = strings.TrimSpace(text)
		}
		if text != "" {
			f[name] = text
		}
	}
	return f
}

// ErrorsOf returns an error of the API as errors of the form's fields, as web.FormErrorsOf does. at is where the API's
// request has the job: empty, or "job" in a schedule. The fields begin with the prefix, and others are fields of the
// same form besides those.
func ErrorsOf(err error, at, prefix string, others ...string) (web.FormErrors, bool) {
	if at != "" {
		at += "."
	}
	known := slices.Clone(others)
	for _, name := range append([]string{"body_text", "body_base64"}, Names...) {
		known = append(known, at+name)
	}
	found, ok := web.FormErrorsOf(err, known...)
	if !ok {
		return found, false
	}
	named := found
	named.Fields = nil
	for field, sentence := range found.Fields {
		name, ofJob := strings.CutPrefix(field, at)
		switch {
		case !ofJob || slices.Contains(others, field):
			named.Add(field, sentence)
		case name == "body_text" || name == "body_base64":
			named.Add(prefix+Body, sentence)
		default:
			named.Add(prefix+name, sentence)
		}
	}
	return named, true
}

// Of returns the form that registers a copy of a job, due now, and the names of its secret headers, whose values the
// API does not show: the form lacks them. Without a body the form keeps that of the job, where the reader may not see
// it or it cannot be edited.
func Of(j *client.JobInfo) (f Form, secrets []string) {
	f = Form{}
	headers, secrets := withoutSecrets(j.Headers, "")
	f.set(Topic, j.Topic)
	f.set(URL, j.URL)
	f.set(Method, j.Method)
	f.set(Headers, FormatHeaders(headers))
	f.setBody(j.Body, j.ContentType)
	if j.Lane != laneOf(j.URL) {
		f.set(Lane, j.Lane)
	}
	f.setPolicy(j)
	var more []string
	for _, c := range []struct {
		field string
		value *client.Callback
	}{{OnDelivered, j.OnDelivered}, {OnDead, j.OnDead}} {
		text, names := formatCallback(c.value, c.field)
		f.set(c.field, text)
		more = append(more, names...)
	}
	return f, append(secrets, more...)
}

// OfEdit returns the form that edits a job: it changes nothing as it is. Secret headers are shown as the API does, as
// [redacted], which keeps them.
func OfEdit(j *client.JobInfo) Form {
	f := Form{}
	f.set(URL, j.URL)
	f.set(Headers, FormatHeaders(j.Headers))
	f.setBody(j.Body, j.ContentType)
	f.setPolicy(j)
	f.set(ExpiresAt, formatTime(j.ExpiresAt))
	return f
}

// OfSchedule returns the form of a schedule's job. Secret headers are shown as the API does, as [redacted], which keeps
// them. A job without a method has the default, which a browser chooses, too.
func OfSchedule(j client.ScheduleJob) Form {
	f := Form{}
	f.set(Topic, j.Topic)
	f.set(Lane, j.Lane)
	f.set(URL, j.URL)
	f.set(Method, cmp.Or(j.Method, http.MethodPost))
	f.set(Headers, FormatHeaders(j.Headers))
	f.setPayload(j.Body, j.ContentType)
	f.set(Retries, formatInt(j.Retries))
	f.set(Ladder, formatLadder(j.Ladder))
	f.set(Timeout, formatDuration(j.Timeout))
	f.set(ExpiresIn, formatDuration(j.ExpiresIn))
	f.set(Labels, formatLabels(j.Labels))
	for field, value := range map[string]*client.Callback{OnDelivered: j.OnDelivered, OnDead: j.OnDead} {
		f.set(field, callbackText(value))
	}
	return f
}

// Differs returns the names of the fields whose texts are not those of another form, in the order of Names. Those that
// describe the body are one: Body.
func (f Form) Differs(from Form) []string {
	var names []string
	for _, name := range Names {
		if lines(f[name]) == lines(from[name]) {
			continue
		}
		if name == BodyAs || name == ContentType {
			name = Body
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// lines returns a text with the line ends that a browser's text is read with.
func lines(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// setPolicy sets what of a job decides about its attempts.
func (f Form) setPolicy(j *client.JobInfo) {
	f.set(Retries, formatInt(j.Retries))
	f.set(Ladder, formatLadder(j.Ladder))
	f.set(Timeout, formatDuration(j.Timeout))
	f.set(Labels, formatLabels(j.Labels))
}

// set sets a field, unless the text is empty.
func (f Form) set(name, text string) {
	if text != "" {
		f[name] = text
	}
}
