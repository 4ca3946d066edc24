package jobpages

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
)

// jobData is the data of the page of a job.
type jobData struct {
	Job *client.JobInfo
	// Lead says what is going on, and Remedy is what ends that; nil: nothing, or what the page has anyway.
	Lead, LeadClass string
	Remedy          *web.Remedy
	Entries         []entry
	Labels          []web.Link
	Origin          *web.Link
	// URL is where the next attempt goes, Headers are the job's own.
	URL           string
	URLNote       string
	Headers       []string
	HasSecrets    bool
	Body          bodyView
	RawTo         string // the job in the API; empty: a link carries no token, and no namespace
	Curl, APICurl string
	LongBody      bool   // too long for commands
	Lacks         string // the secret headers that APICurl lacks
	// May are the actions that state and role allow.
	MayRun, MayCancel, MayRevive, MayEdit, MayCopy bool
	// NeedsExpiry: the expiry has passed, so a revival needs another.
	NeedsExpiry bool
	Revive      []web.Field
	// Failed says why an action was not done.
	Failed string
}

// showJob serves the page of a job.
func showJob(v *web.Visit) (web.Answer, error) {
	j, err := getJob(v, v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return jobPage(v, newJobData(v, j), 0), nil
}

// jobPage returns the page of a job.
func jobPage(v *web.Visit, d *jobData, status int) *web.Page {
	return &web.Page{
		View: "job", Title: "Job " + d.Job.ID, Section: "jobs",
		Crumbs: []web.Link{{To: v.Path("jobs"), Text: "Jobs"}}, Status: status, Data: d,
	}
}

// newJobData returns the data of the page of a job.
func newJobData(v *web.Visit, j *client.JobInfo) *jobData {
	d := &jobData{Job: j, Entries: timeline(j), Headers: headerLines(j.Headers)}
	d.Lead, d.LeadClass = leadOf(j, v.Now)
	if w := j.WaitingFor; w != nil && w.Kind != "retry" && (w.Remedy == nil || w.Remedy.ID != j.ID) {
		d.Remedy = v.Remedy(w.Remedy)
	}
	for _, name := range slices.Sorted(maps.Keys(j.Labels)) {
		d.Labels = append(d.Labels, web.Link{
			To:   v.PathQuery(v.Path("jobs"), "label", name+":"+j.Labels[name]),
			Text: name + "=" + j.Labels[name],
		})
	}
	d.Origin = origin(v, j)
	if v.Live { // no live block shows the rest
		return d
	}
	d.setActions(v, j)
	d.setRequest(v, j)
	return d
}

// tickPrefix begins the ids of the jobs of schedules: rb:s:NAME:UNIX.
const tickPrefix = "rb:s:"

// eventPrefix begins the ids of the jobs of events, whose origin is the event.
const eventPrefix = "rb:e:"

// origin links what a job is about that Ringback made: the job or the topic of a callback, or the schedule of a tick.
func origin(v *web.Visit, j *client.JobInfo) *web.Link {
	if tick, ok := strings.CutPrefix(j.ID, tickPrefix); ok && v.Can(access.ReadSchedule) {
		if at := strings.LastIndexByte(tick, ':'); at > 0 {
			return &web.Link{To: v.Path("schedules", tick[:at]), Text: "a tick of schedule " + tick[:at]}
		}
	}
	switch {
	case j.Origin == "":
		return nil
	case strings.HasPrefix(j.ID, eventPrefix) && !v.Can(access.ReadEvents):
		return nil
	case strings.HasPrefix(j.ID, eventPrefix):
		return &web.Link{To: v.Path("events", j.Origin), Text: "event " + j.Origin}
	case j.Kind != "backlog":
		return &web.Link{To: v.Path("jobs", j.Origin), Text: "job " + j.Origin}
	case v.Can(access.ReadTopic):
		return &web.Link{To: v.Path("topics", j.Origin), Text: "topic " + j.Origin}
	}
	return nil
}

// setRequest sets what is sent, and the commands that do the same: one that registers a copy only where the form may.
func (d *jobData) setRequest(v *web.Visit, j *client.JobInfo) {
	d.URL = j.URL
	if e := j.Effective; e != nil && e.URL != "" {
		d.URL = e.URL
	}
	switch {
	case d.URL == "":
		d.URLNote = "The URL is that of its lane or topic."
	case j.URL == "":
		d.URLNote = "The job has no URL of its own: this is that of its lane or topic."
	}
	for _, values := range j.Headers {
		d.HasSecrets = d.HasSecrets || isRedacted(values)
	}
	if hidesBody(v, j) {
		d.Body = bodyView{Note: "Your token may not read bodies."}
		return
	}
	if len(j.Body) > 0 {
		d.Body = showBody(j.Body)
		if v.Who.Actor == "" && v.Namespace == "default" {
			d.RawTo = v.Root + "/../v1/jobs/" + url.PathEscape(j.ID)
		}
	}
	if d.URL != "" && d.URL != form.Redacted {
		d.Curl = receiverCommand(j, d.URL)
	}
	d.LongBody = len(j.Body) > maxCommandBody
	if d.MayCopy {
		command, secrets := registerCommand(j, v.Namespace)
		d.APICurl, d.Lacks = command, words.List(secrets)
	}
}

// isRedacted reports whether the values of a header are the placeholder of a secret.
func isRedacted(values []string) bool { return len(values) == 1 && values[0] == form.Redacted }

// hidesBody reports whether the API shows a placeholder instead of the job's body.
func hidesBody(v *web.Visit, j *client.JobInfo) bool { return len(j.Body) > 0 && !v.Who.Bodies }

// setActions sets what the reader may do.
func (d *jobData) setActions(v *web.Visit, j *client.JobInfo) {
	can := func(a access.Action) bool { return v.CanTopic(a, j.Topic) }
	internal := j.Kind == "work" || j.Kind == "schedule"
	waits := j.State == client.Scheduled || j.State == client.Ready
	d.MayRun = can(access.RunJob) && j.State == client.Scheduled && !internal
	d.MayCancel = can(access.CancelJob) && !j.State.Ended() && !j.CancelRequested && !internal
	d.MayEdit = can(access.EditJob) && waits && !internal
	d.MayRevive = can(access.ReviveJob) && j.State.Ended() && !internal
	d.MayCopy = can(access.RegisterJob) && j.Kind == ""
	d.NeedsExpiry = !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(v.Now)
	d.setRevive(nil, web.FormErrors{})
}

// setRevive sets the fields of the form that revives the job.
func (d *jobData) setRevive(texts form.Texts, errs web.FormErrors) {
	d.Revive = reviveForm.Fields(texts, errs, "delay", "expires_in")
	d.Revive[0].Hint = "Empty: now."
	if d.NeedsExpiry {
		d.Revive[1].Required, d.Revive[1].Hint = true, "The expiry has passed."
	} else {
		d.Revive[1].Hint = "Empty: as it was."
	}
}

// Words of the facts.

// generations says how often the job was revived.
func (d *jobData) generations() string {
	if d.Job.Generation == 0 {
		return ""
	}
	return words.Count(int64(d.Job.Generation), "revival")
}

// retries says how many retries there are.
func (d *jobData) retries() string {
	e := d.Job.Effective
	if e == nil {
		return ""
	}
	text := words.Count(int64(e.Retries), "retry")
	if d.Job.RetriesLeft != nil {
		text += ", " + words.Number(int64(*d.Job.RetriesLeft)) + " left after the next attempt"
	}
	return text
}

// ladder says when the job is attempted if all attempts fail.
func (d *jobData) ladder() string {
	e := d.Job.Effective
	return words.Ladder(e.Ladder, e.Retries)
}

// more is what is set and has no other place on the page: the callbacks, and fields that the console does not know.
func (d *jobData) more() (rows []form.Row) {
	values, _ := form.CopyOf(d.Job)
	delete(values, "labels") // they are links
	for _, t := range form.Job.Tables(values, values) {
		if t.Title == form.MoreOfJob {
			rows = t.Rows
		}
	}
	return rows
}

// failed shows the page of a job with the reason why an action was not done. ok is false for errors that are no answer
// to it.
func failed(v *web.Visit, id, what string, err error) (web.Answer, error) {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || p.Status != http.StatusConflict && p.Status != http.StatusPreconditionFailed &&
		p.Status != http.StatusUnprocessableEntity {
		return nil, err
	}
	j, readErr := getJob(v, id)
	if readErr != nil {
		return nil, readErr
	}
	d := newJobData(v, j)
	d.Failed = what + ": " + reasonOf(p)
	return jobPage(v, d, p.Status), nil
}

// reasonOf says why the API refused a change.
func reasonOf(p *client.Problem) string {
	if p.Status == http.StatusPreconditionFailed {
		return "it was changed while you looked at it. Look at it as it is now, and try again."
	}
	sentences := []string{cmp.Or(p.Detail, p.Title)}
	for _, e := range p.Errors {
		sentences = append(sentences, e.Field+" "+e.Detail+".")
	}
	return strings.Join(sentences, " ")
}
