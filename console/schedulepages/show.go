package schedulepages

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/jobform"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// showData is the data of a schedule's page.
type showData struct {
	*client.Schedule

	Lead  lead
	Pill  web.Pill
	Topic string
	Zone  string
	// IsLocal reports whether the schedule's clocks differ from UTC.
	IsLocal           bool
	Strip             template.HTML
	Upcoming          []nextTick
	Passed            []pastTick // the newest first
	Job               []fact
	Body              string
	Rules             []fact
	PausedBy          string
	Jobs              string // the link of the list of its jobs
	To                links
	DeleteConfirm     string
	CanPause, IsReady bool
	Backfill          *backfill
}

// links are those of the forms and pages of a schedule.
type links struct{ Pause, Resume, Run, Edit, Delete, Backfill string }

// fact is a row of a list of facts.
type fact struct{ Name, Value string }

// Lines returns the lines of the value: headers and labels have several.
func (f fact) Lines() []string { return strings.Split(f.Value, "\n") }

// nextTick is a tick that is to come.
type nextTick struct {
	client.Tick

	LocalText string
	// Delay is that of the jitter; empty: the job is due at the tick.
	Delay string
}

// pastTick is a tick that has passed.
type pastTick struct {
	client.PastTick

	LocalText string
	Pill      web.Pill
	Text      string
	JobTo     string
}

// showSchedule answers with a schedule's page.
func showSchedule(v *web.Visit) (web.Answer, error) {
	s, err := v.API.GetSchedule(v.Request.Context(), v.PathValue("schedule"))
	if err != nil {
		return nil, err
	}
	return &web.Page{View: "schedule", Title: "Schedule " +
		s.Name, Section: section, Crumbs: crumbs(v), Data: newShowData(v, s)}, nil
}

// crumbs lead from the list to a schedule.
func crumbs(v *web.Visit) []web.Link { return []web.Link{{To: v.Path("schedules"), Text: "Schedules"}} }

func newShowData(v *web.Visit, s *client.Schedule) *showData {
	zone, loc := zoneOf(&s.ScheduleRequest)
	d := &showData{
		Schedule: s, Lead: showLead(s, v.Now), Pill: statePill(s.State), Topic: topicOf(s),
		Zone: zone, IsLocal: zone != "UTC", PausedBy: pausedBy(s), CanPause: s.State == "active",
		IsReady: s.State != "unreadable", Backfill: newBackfill(s), To: links{
			Pause: pathOf(v, s.Name, "pause"), Resume: pathOf(v, s.Name, "resume"), Run: pathOf(v, s.Name, "run"),
			Edit:   pathOf(v, s.Name, "edit"),
			Delete: pathOf(v, s.Name, "delete"), Backfill: pathOf(v, s.Name, "backfill"),
		},
		DeleteConfirm: "Delete the schedule " + s.Name +
			"? Its ticks end, and its counts are lost. The jobs that it has registered stay.",
	}
	if ticks := parse(&s.ScheduleRequest); ticks != nil && s.State == "active" {
		d.Strip = strip(ticks, v.Now, loc, 0)
	}
	for _, t := range s.Next {
		n := nextTick{Tick: t, LocalText: localText(t.At, v.Now, loc)}
		if delay := t.DueAt.Sub(t.At); delay > 0 {
			n.Delay = words.Duration(delay)
		}
		d.Upcoming = append(d.Upcoming, n)
	}
	for i := len(s.Last) - 1; i >= 0; i-- {
		d.Passed = append(d.Passed, newPastTick(v, &s.Last[i], loc))
	}
	if s.Job != nil {
		d.Job, d.Body = jobFacts(s.Job)
		d.Jobs = v.PathQuery(v.Path("jobs"), "topic", d.Topic, "id_prefix", "rb:s:"+s.Name+":")
	}
	d.Rules = rules(s, v.Now, loc)
	return d
}

func newPastTick(v *web.Visit, t *client.PastTick, loc *time.Location) pastTick {
	p := pastTick{PastTick: *t, LocalText: localText(t.At, v.Now, loc), Text: t.Reason}
	switch {
	case t.Outcome != "run":
		class := map[string]string{"skipped": "plain", "missed": "warn", "failed": "bad"}[t.Outcome]
		p.Pill = web.Pill{Class: class, Text: t.Outcome}
		if p.Text == "" {
			_, p.Text, _ = strings.Cut(words.TickOutcome(t.Outcome), ": ")
		}
	case t.JobState == "":
		p.Pill = web.Pill{Class: "plain", Text: "ran"}
		p.Text = "its job is not stored any more"
	default:
		p.Pill = web.Pill{Class: string(t.JobState), Text: words.State(string(t.JobState))}
		p.JobTo = v.Path("jobs", t.JobID)
	}
	return p
}

// showLead says when a schedule runs, when next, and what came of the last tick.
func showLead(s *client.Schedule, now time.Time) lead {
	runs := "Runs " + words.LowerFirst(s.Description)
	switch s.State {
	case "unreadable":
		return lead{"bad", "What is stored of this schedule is not readable, so no tick runs: edit and save it, or " +
			"delete it."}
	case "ended":
		return lead{"", words.Sentence("No tick is left; " + lastWords(s))}
	case "paused":
		why := "Paused " + pausedBy(s)
		if s.PausedAt.Before(now) {
			why += " " + words.Ago(s.PausedAt, now)
		}
		if s.PauseNote != "" {
			why += ": " + short(strings.TrimRight(s.PauseNote, ". "))
		}
		return lead{"warn", words.Sentence(strings.Join(strings.Fields(why), " ")) + " " +
			words.Sentence("Resumed, it "+words.LowerFirst(runs))}
	}
	text := runs
	if len(s.Next) > 0 {
		text += "; the next tick is " + words.In(s.Next[0].At, now)
	}
	l := lead{Text: words.Sentence(text + "; " + lastWords(s))}
	if n := len(s.Last); n > 0 {
		switch t := &s.Last[n-1]; {
		case t.Outcome == "failed" || t.JobState == "dead":
			l.Class = "bad"
		case t.Outcome == "missed":
			l.Class = "warn"
		case t.JobState == "delivered":
			l.Class = "ok"
		}
	}
	return l
}

// lastWords says what came of the last tick.
func lastWords(s *client.Schedule) string {
	n := len(s.Last)
	if n == 0 {
		return "no tick has passed yet"
	}
	switch t := &s.Last[n-1]; {
	case t.Outcome == "failed":
		if t.Reason == "" {
			return "the last one failed"
		}
		return "the last one failed: " + short(strings.TrimRight(t.Reason, ". "))
	case t.Outcome != "run":
		return "the last one was " + words.TickOutcome(t.Outcome)
	case t.JobState == "delivered" || t.JobState == "cancelled":
		return "the last one was " + words.State(string(t.JobState))
	case t.JobState != "":
		return "the job of the last one is " + words.State(string(t.JobState))
	}
	return "the last one ran"
}

// jobFacts returns what a schedule registers, without its body, and the body.
func jobFacts(j *client.ScheduleJob) (facts []fact, body string) {
	form := jobform.OfSchedule(*j)
	if form[jobform.Topic] == "" {
		form[jobform.Topic] = "default"
	}
	for _, field := range form.Fields("", web.FormErrors{}, jobform.ScheduleNames...) {
		switch {
		case field.Name == jobform.BodyAs && field.Value == jobform.AsBase64:
			facts = append(facts, fact{field.Label, "bytes, here in base64"})
		case field.Value != "" && field.Name != jobform.Body && field.Name != jobform.BodyAs:
			facts = append(facts, fact{field.Label, field.Value})
		}
	}
	return facts, form[jobform.Body]
}

// rules returns what decides about a schedule's ticks besides their times.
func rules(s *client.Schedule, now time.Time, loc *time.Location) (facts []fact) {
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return localText(t, now, loc) + " (" + words.DateTime(t, nil) + ")"
	}
	switch {
	case s.Cron != "":
		zone, _ := zoneOf(&s.ScheduleRequest)
		add("Cron", s.Cron+", "+zone)
	case s.Every > 0:
		add("Every", words.Duration(s.Every))
		if s.Offset > 0 {
			add("Offset", words.Duration(s.Offset))
		}
	}
	if s.Jitter > 0 {
		add("Jitter", "up to "+words.Duration(s.Jitter)+"; jobs of this schedule are due "+
			words.Duration(s.JitterDelay)+" after their ticks")
	}
	add("No ticks before", at(s.StartsAt))
	add("No ticks after", at(s.EndsAt))
	if s.MaxRuns > 0 {
		add("Ends after",
			fmt.Sprintf("%s that ran, of which %s did", words.Count(s.MaxRuns, "tick"), words.Number(s.Counts.Run)))
	}
	if s.Overlap != "" {
		add("Overlap", "while the job of the tick before is unfinished: "+words.Overlap(s.Overlap))
	}
	if c := s.CatchUp; c != nil {
		add("Late ticks", "of those that are late by at most "+words.Duration(c.Window)+": "+words.CatchUp(c.Runs))
	}
	if s.PauseAfterDead > 0 {
		add("Pauses itself after", words.Count(int64(s.PauseAfterDead), "dead job")+" in a row")
	}
	add("Note", s.Note)
	add("Managed by", s.ManagedBy)
	add("Created", byAt(s.CreatedBy, s.CreatedAt))
	add("Changed", byAt(s.UpdatedBy, s.UpdatedAt))
	return facts
}

// byAt says who did something, and when; empty: that is not known.
func byAt(name string, at time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case name == "":
		return words.DateTime(at, nil)
	}
	return "by " + name + ", " + words.DateTime(at, nil)
}
