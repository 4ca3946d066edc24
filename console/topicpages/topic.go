package topicpages

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// topicPage is the data of the page of a topic.
type topicPage struct {
	Topic string
	Tabs  []tab
	Lead  lead
	// Missing is why there is no topic; empty: there is one.
	Missing  string
	Settings *client.Topic
	Counts   client.Counts
	Lanes    laneList
	Hour     *recent.Attempts
	Worst    []worstLane // of which attempts failed, the worst first
	// Policy is the policy that holds.
	Policy preview
	// Errors of the form that was sent, and what was typed.
	Errors web.FormErrors
	Note   string
}

// Due says when the oldest job is due.
func (p topicPage) Due(now time.Time) string { return dueText(p.Counts.OldestDueAt, now) }

// Waiting is the number of jobs that wait, due or not.
func (p topicPage) Waiting() int64 { return p.Counts.Scheduled + p.Counts.Ready }

// Changed says who changed the topic, its policy, a pause or a secret.
func (p topicPage) Changed() lastChange {
	return lastChange{p.Settings.UpdatedBy, p.Settings.UpdatedAt}
}

// showTopic answers with the page of a topic.
func showTopic(v *web.Visit) (web.Answer, error) {
	if lane := v.Query("lane"); lane != "" {
		return &web.Redirect{To: owner{v.PathValue("topic"), lane}.path(v)}, nil
	}
	return topicAnswer(v, web.FormErrors{})
}

// topicAnswer is the page of a topic with the errors of a form.
func topicAnswer(v *web.Visit, errs web.FormErrors) (web.Answer, error) {
	o := ownerOf(v)
	p := topicPage{Topic: o.Topic, Tabs: o.tabs(v, ""), Errors: errs, Note: v.Form("note")}
	if err := p.read(v); err != nil {
		return nil, err
	}
	return &web.Page{View: "topic", Title: "Topic " +
		o.Topic, Section: section, Crumbs: o.crumbs(v, false), Data: p, Status: errs.Status}, nil
}

// read reads the topic's settings, its counts and a page of its lanes.
func (p *topicPage) read(v *web.Visit) error {
	ctx := v.Request.Context()
	t, err := v.API.GetTopic(ctx, p.Topic)
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusNotFound {
		p.Missing = problem.Detail
		p.Lead = lead{Text: words.Sentence("There is no topic", p.Topic)}
		return nil
	}
	if err != nil {
		return err
	}
	o := client.PageOptions{Cursor: v.Query("cursor"), Limit: laneRows}
	stats, err := v.API.TopicStatsPage(ctx, p.Topic, o)
	if err != nil {
		return err
	}
	history, err := v.API.TopicHistory(ctx, p.Topic)
	if err != nil {
		return err
	}
	settings, err := v.API.LanesPage(ctx, p.Topic, o)
	if err != nil {
		return err
	}
	p.Settings, p.Counts = t, stats.Counts
	p.Lanes = newLaneList(v, t, stats, settings)
	p.Hour = recent.LastHour(&history.Buckets, v.Now)
	for i := range history.Lanes {
		l := &history.Lanes[i]
		p.Worst = append(p.Worst, worstLane{l, recent.LastHour(&l.Buckets, v.Now)})
	}
	p.Lead = newTopicLead(t, stats.Counts, p.Lanes, v.Now)
	p.addHealth(v.Now)
	if v.Live { // its blocks have no policy
		return nil
	}
	set, err := v.API.GetTopicSettings(ctx, p.Topic)
	if err != nil {
		return err
	}
	p.Policy = newPreview(t, policyForm.Values(set.Raw))
	return nil
}

// newTopicLead says what keeps the jobs of a topic from being delivered, as far as counts and a page of lanes tell. The
// counts are those of all lanes.
func newTopicLead(t *client.Topic, c client.Counts, lanes laneList, now time.Time) lead {
	waiting := c.Scheduled + c.Ready
	jobs := words.CountVerb(waiting, "job", "waits", "wait")
	switch {
	case t.Paused:
		return lead{"warn", pauseText("Paused", t.PausedBy, t.PausedAt, t.PauseNote, now) + " " +
			words.UpperFirst(jobs) + "."}
	case waiting+c.Running == 0 && c.Registered == 0:
		return lead{Text: "No job was registered yet."}
	case waiting+c.Running == 0:
		return lead{Text: words.Sentence("No job waits:", words.Number(c.Delivered), "delivered and",
			words.Number(c.Dead), "dead in all")}
	}
	late := topicRow{Counts: c}.late(now)
	l := lead{"ok", "No job is late"}
	switch {
	case late >= lateAfter:
		l = lead{"warn", "Late"}
		jobs += forWhom(t.Deliver) + ", and the oldest was due " + words.Duration(late.Truncate(time.Second)) + " ago"
	case waiting == 0:
		jobs = words.CountVerb(c.Running, "attempt", "is", "are") + " running"
	case c.OldestDueAt.After(now):
		jobs += ", the next is due " + words.In(c.OldestDueAt, now)
	default:
		l.Text = "No job is more than a minute late"
	}
	if class, clauses := lanes.holds(c.BreakersOpen, now); len(clauses) > 0 {
		l = lead{class, words.UpperFirst(strings.Join(clauses, "; "))}
	}
	l.Text = words.Sentence(l.Text+":", jobs)
	return l
}

// addHealth says first how many receivers fail, with the worst, and at last how many jobs died in the last hour.
func (p *topicPage) addHealth(now time.Time) {
	if n := p.Counts.LanesFailing; n > 0 {
		text := failingText(n)
		if i := slices.IndexFunc(p.Worst, isFailing); i >= 0 {
			h := p.Worst[i].Health
			text += fmt.Sprintf(" (%s since %s: %d\u00a0%% of its latest attempts)", p.Worst[i].Lane,
				words.When(h.Since, now, nil), h.FailedPercent)
		}
		p.Lead = lead{"bad", words.Sentence(words.UpperFirst(text)) + " " + p.Lead.Text}
	}
	if n := p.Hour.Sum().Dead; n > 0 {
		p.Lead.worsen()
		p.Lead.Text += " " + words.Sentence(words.Count(n, "job")+" died in the last hour")
	}
}

// worstLane is a lane of which attempts failed, with its last hour.
type worstLane struct {
	*client.WorstLane

	Hour *recent.Attempts
}

func isFailing(l worstLane) bool { return l.Health.State == "failing" }

// forWhom says whom due jobs wait for, if it is not Ringback.
func forWhom(deliver string) string {
	switch deliver {
	case "pull":
		return " for a client that leases from the topic"
	case "handler":
		return " for a program with a handler"
	}
	return ""
}

// pauseText says who paused something, since when and why.
func pauseText(what, by string, at time.Time, note string, now time.Time) string {
	if by != "" {
		what += " by " + by
	}
	if !at.IsZero() {
		what += " since " + words.When(at, now, nil) + " (" + words.Ago(at, now) + ")"
	}
	if note != "" {
		what += ": “" + note + "”"
	}
	return words.Sentence(what)
}

// createTopic stores a topic without settings, unless there are some.
func createTopic(v *web.Visit) (web.Answer, error) {
	o := ownerOf(v)
	_, err := v.API.PutTopic(v.Request.Context(), o.Topic, client.Policy{}, client.IfNew())
	if errors.Is(err, client.ErrRevision) {
		return web.Warn(o.path(v), "Somebody else created the topic "+o.Topic+" meanwhile."), nil
	}
	if err != nil {
		return formProblem(v, err, topicAnswer)
	}
	return web.Done(o.path(v, "policy"), "Topic "+o.Topic+" is created, with the default policy."), nil
}

// formProblem answers a form with its page and what the API found wrong; other errors are returned.
func formProblem(
	v *web.Visit, err error, answer func(*web.Visit, web.FormErrors) (web.Answer, error), fields ...string,
) (web.Answer, error) {
	errs, ok := web.FormErrorsOf(err, fields...)
	if !ok || errors.Is(err, client.ErrForbidden) {
		return nil, err
	}
	return answer(v, errs)
}

// pauseTopic pauses a topic.
func pauseTopic(v *web.Visit) (web.Answer, error) {
	o := ownerOf(v)
	if _, err := v.API.PauseTopic(v.Request.Context(), o.Topic, v.Form("note")); err != nil {
		return formProblem(v, err, topicAnswer, "note")
	}
	return web.Done(o.path(v), "Topic "+o.Topic+" is paused. Its jobs are accepted, and wait."), nil
}

// resumeTopic resumes a topic.
func resumeTopic(v *web.Visit) (web.Answer, error) {
	o := ownerOf(v)
	if _, err := v.API.ResumeTopic(v.Request.Context(), o.Topic); err != nil {
		return formProblem(v, err, topicAnswer)
	}
	return web.Done(o.path(v), "Topic "+o.Topic+" is resumed."), nil
}

// deletePage is the data of the page that asks before a topic is deleted.
type deletePage struct {
	Topic string
	Lead  lead
	// Unfinished is the number of jobs that a purge cancels.
	Unfinished int64
	Revision   int64
	Purge      bool
	Errors     web.FormErrors
}

// askToDelete says what a topic has, and asks whether it is deleted.
func askToDelete(v *web.Visit) (web.Answer, error) { return deleteAnswer(v, web.FormErrors{}) }

func deleteAnswer(v *web.Visit, errs web.FormErrors) (web.Answer, error) {
	ctx, o := v.Request.Context(), ownerOf(v)
	t, err := v.API.GetTopic(ctx, o.Topic)
	if err != nil {
		return nil, err
	}
	stats, err := v.API.TopicStatsPage(ctx, o.Topic, client.PageOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	errs.Heading = "The topic is not deleted yet" // although some of its jobs may be cancelled, or its policy removed
	p := deletePage{Topic: o.Topic, Revision: t.Revision, Purge: v.Form("purge") != "", Errors: errs}
	p.Unfinished = stats.Scheduled + stats.Ready + stats.Running
	p.Lead = lead{"warn", words.Sentence("Topic", o.Topic, "has", words.Count(p.Unfinished, "unfinished job"))}
	return &web.Page{View: "topic-delete", Title: "Delete topic " +
		o.Topic, Section: section, Crumbs: o.crumbs(v, true), Data: p, Status: errs.Status}, nil
}

// deleteTopic deletes a topic.
func deleteTopic(v *web.Visit) (web.Answer, error) {
	o := ownerOf(v)
	condition, err := v.Condition()
	if err == nil {
		err = v.API.DeleteTopic(v.Request.Context(), o.Topic, v.Form("purge") != "", condition)
	}
	if errors.Is(err, client.ErrRevision) {
		var errs web.FormErrors
		errs.General = []string{"Somebody changed the topic meanwhile: look at it, and delete it again if you still " +
			"want to."}
		errs.Status = http.StatusPreconditionFailed
		return deleteAnswer(v, errs)
	}
	if err != nil && v.Overdue() {
		v, done := v.MoreTime()
		defer done()
		return deleteAnswer(v, web.FormErrors{Status: http.StatusConflict, General: []string{
			"There was more to cancel and remove than fits into one request. What is cancelled and removed stays so: " +
				"send the form again until it succeeds.",
		}})
	}
	if err != nil {
		return formProblem(v, err, deleteAnswer)
	}
	return web.Done(v.Path("topics"), "Topic "+o.Topic+" is deleted."), nil
}
