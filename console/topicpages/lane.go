package topicpages

import (
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
)

// laneJobs is the number of jobs on the page of a lane.
const laneJobs = 20

// lanePage is the data of the page of a lane.
type lanePage struct {
	Owner owner
	Tabs  []tab
	Lead  lead
	Topic *client.Topic // zero: there is none
	Row   laneRow
	// Held are the reasons why the lane holds jobs back, and LastFailure what its receiver did. Unknown: the server
	// could not find out.
	Held        []client.Obstacle
	LastFailure *client.LaneFailure
	Unknown     bool
	Jobs        []client.JobInfo
	// Pager leads to the search for more jobs if that for Jobs ended early.
	Pager web.Pager

	Groups    []form.Section
	Errors    web.FormErrors
	Note      string
	CanChange bool

	stored *settings
}

// Changed says who changed the settings.
func (p lanePage) Changed() lastChange { return p.stored.changed }

// showLane answers with the page of a lane.
func showLane(v *web.Visit) (web.Answer, error) { return laneAnswer(v, web.FormErrors{}) }

func laneAnswer(v *web.Visit, errs web.FormErrors) (web.Answer, error) {
	p, err := readLane(v)
	if err != nil {
		return nil, err
	}
	return p.answer(v, p.stored.texts(), errs), nil
}

// answer is the page with texts in the fields of its form.
func (p *lanePage) answer(v *web.Visit, texts form.Texts, errs web.FormErrors) web.Answer {
	o := p.Owner
	p.Errors, p.Note, p.Groups = errs, v.Form("note"), p.stored.sections(texts, errs)
	return &web.Page{
		View: "lane", Title: "Lane " + o.Lane + " of " + o.Topic, Section: section,
		Crumbs: o.crumbs(v, false), Data: *p, Status: errs.Status,
	}
}

// readLane reads a lane's settings, its counts, why it holds jobs back, and its newest jobs. Live blocks do not have
// the jobs.
func readLane(v *web.Visit) (*lanePage, error) {
	ctx, o := v.Request.Context(), ownerOf(v)
	p := &lanePage{Owner: o, Tabs: o.tabs(v, ""), CanChange: v.CanTopic(access.ChangeLane, o.Topic)}
	counts, err := v.API.LaneCounts(ctx, o.Topic, o.Lane)
	if err != nil {
		return nil, err
	}
	p.Topic, err = v.API.GetTopic(ctx, o.Topic)
	if errors.Is(err, client.ErrNotFound) {
		p.Topic, err = new(client.Topic), nil
	}
	if err != nil {
		return nil, err
	}
	l, err := v.API.GetLane(ctx, o.Topic, o.Lane)
	if errors.Is(err, client.ErrNotFound) {
		l, err = new(client.Lane), nil
	}
	if err != nil {
		return nil, err
	}
	p.stored, p.Row = laneSettings(o, l, p.Topic), laneRow{*counts, l, laneLimit(p.Topic, l)}
	if err := p.readHeld(v); err != nil {
		return nil, err
	}
	p.Lead = p.newLead(v.Now)
	if v.Live {
		return p, nil
	}
	jobs, err := v.API.JobPage(ctx, client.Query{Topic: o.Topic, Lane: o.Lane, Limit: laneJobs, Within: web.SearchTime})
	if err != nil {
		return nil, err
	}
	p.Jobs = jobs.Items
	if jobs.NextCursor != "" && len(p.Jobs) < laneJobs {
		p.Pager.Looked = "Looked at " + words.Count(jobs.Scanned, "job") + " of the topic for this list."
		p.Pager.GoOn = v.PathSearch(v.Path("jobs"), "topic", o.Topic, "lane", o.Lane)
	}
	return p, nil
}

// readHeld reads why the lane holds jobs back, if it does.
func (p *lanePage) readHeld(v *web.Visit) error {
	if p.Row.Ready == 0 && p.Row.Breaker == "closed" && p.Row.cooling(v.Now).IsZero() {
		return nil
	}
	held, err := v.API.TroubledLanes(v.Request.Context(),
		client.TroubledQuery{Topic: p.Owner.Topic, Lane: p.Owner.Lane})
	if err != nil {
		return err
	}
	for i := range held.Items {
		p.Held, p.LastFailure = held.Items[i].Reasons, held.Items[i].LastFailure
	}
	p.Unknown = len(held.Items) == 0 && !held.Exact
	return nil
}

// newLead says what holds the lane.
func (p *lanePage) newLead(now time.Time) lead {
	r, own := p.Row, p.Row.Settings
	waiting := r.Waiting()
	jobs := words.UpperFirst(words.CountVerb(waiting, "job", "waits", "wait") + ".")
	if waiting == 0 && r.Running == 0 && !own.Paused && !p.Topic.Paused {
		jobs = "No job waits."
	}
	t := p.Topic
	switch {
	case t.Paused:
		return lead{"warn", pauseText("Its topic is paused", t.PausedBy, t.PausedAt, t.PauseNote, now) + " " + jobs}
	case own.Paused:
		return lead{"warn", pauseText("Paused", own.PausedBy, own.PausedAt, own.PauseNote, now) + " " + jobs}
	case len(p.Held) > 0:
		return p.heldLead(&p.Held[0], jobs, now)
	case r.Breaker == "open": // and nothing waits for it
		return lead{"bad", "The breaker is open. " + jobs}
	case waiting == 0 && r.Running == 0:
		return lead{Text: "No job waits."}
	case p.Unknown:
		return lead{Text: "Whether something holds it is not known now. " + jobs}
	case r.Running > 0:
		return lead{"ok", words.Sentence("Nothing holds it:", words.CountVerb(r.Running, "attempt", "is",
			"are"), "running") + " " + jobs}
	case r.Ready > 0:
		return lead{"warn", words.Sentence("Nothing holds it, but no attempt is "+
			"running:", words.CountVerb(r.Ready, "job", "is", "are"), "ready"+forWhom(t.Deliver))}
	}
	return lead{Text: words.Sentence("No job is ready:", words.LowerFirst(jobs))}
}

// heldLead says what holds the lane, and what its receiver did if it is in trouble.
func (p *lanePage) heldLead(o *client.Obstacle, jobs string, now time.Time) lead {
	l := lead{"warn", o.Facts}
	if !o.Until.IsZero() {
		l.Text += " It ends at " + words.When(o.Until, now, nil) + " (" + words.In(o.Until, now) + ")."
	}
	l.Text += " " + jobs
	code := job.ObstacleCode(o.Code)
	if code == job.ObstacleBreakerOpen {
		l.Class = "bad"
	}
	if code.Severity() == job.SeverityFailing {
		l.Text += p.failure(now)
	}
	return l
}

// failure says what the receiver did last.
func (p *lanePage) failure(now time.Time) string {
	f := p.LastFailure
	if f == nil {
		return ""
	}
	ago := words.Ago(f.At, now)
	switch {
	case f.Status != 0:
		return " " + words.Sentence("Its receiver answered", strconv.Itoa(f.Status), ago)
	case f.ErrorClass != "":
		return " " + words.Sentence("Its last attempt failed", ago+", because", words.ErrorClass(f.ErrorClass))
	}
	return ""
}

// laneSettings returns the settings of a lane. Where they set nothing, those of the topic hold.
func laneSettings(o owner, l *client.Lane, t *client.Topic) *settings {
	s := &settings{
		form: laneForm, path: "/v1/topics/" + url.PathEscape(o.Topic) + "/lanes/" + url.PathEscape(o.Lane),
		exists: l.Revision != 0, revision: l.Revision, managedBy: l.ManagedBy,
		changed: lastChange{l.UpdatedBy, l.UpdatedAt}, set: laneForm.Values(l.Raw), effective: laneForm.Values(t.Raw),
	}
	delete(s.effective, "headers") // the lane's are added to them
	delete(s.effective, "managed_by")
	return s
}

// changeLane stores the settings that were typed.
func changeLane(v *web.Visit) (web.Answer, error) {
	o := ownerOf(v)
	p, err := readLane(v)
	if err != nil {
		return nil, err
	}
	again := func(v *web.Visit) (_ *settings, err error) {
		if p, err = readLane(v); err != nil {
			return nil, err
		}
		return p.stored, nil
	}
	show := func(_ *settings, texts form.Texts, errs web.FormErrors) web.Answer { return p.answer(v, texts, errs) }
	changed, answer, err := p.stored.save(v, again, show)
	if answer != nil || err != nil {
		return answer, err
	}
	return web.Done(o.path(v), words.Sentence(words.UpperFirst(o.String()), "is changed:", words.List(changed))), nil
}

// pauseLane pauses a lane.
func pauseLane(v *web.Visit) (web.Answer, error) {
	o := ownerOf(v)
	if _, err := v.API.PauseLane(v.Request.Context(), o.Topic, o.Lane, v.Form("note")); err != nil {
		return formProblem(v, err, laneAnswer, "note")
	}
	return web.Done(o.path(v), words.UpperFirst(o.String())+" is paused. Its jobs are accepted, and wait."), nil
}

// resumeLane resumes a lane.
func resumeLane(v *web.Visit) (web.Answer, error) {
	o := ownerOf(v)
	if _, err := v.API.ResumeLane(v.Request.Context(), o.Topic, o.Lane); err != nil {
		return formProblem(v, err, laneAnswer)
	}
	return web.Done(o.path(v), words.UpperFirst(o.String())+" is resumed."), nil
}

// deleteLane removes the settings and the secrets of a lane.
func deleteLane(v *web.Visit) (web.Answer, error) {
	o := ownerOf(v)
	condition, err := v.Condition()
	if err == nil {
		err = v.API.DeleteLane(v.Request.Context(), o.Topic, o.Lane, condition)
	}
	switch {
	case errors.Is(err, client.ErrNotFound):
		return web.Warn(o.path(v), "The lane has no settings."), nil
	case err != nil:
		return formProblem(v, err, laneAnswer)
	}
	return web.Done(o.path(v), "The settings and secrets of "+o.String()+
		" are deleted. Its jobs stay, with the settings of the topic."), nil
}
