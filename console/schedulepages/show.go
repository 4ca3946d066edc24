package schedulepages

import (
	"encoding/base64"
	"encoding/json"
	"html/template"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/chart"
	"github.com/ringback/ringback/console/form"
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
	IsLocal    bool
	Strip      template.HTML
	Upcoming   []nextTick
	Passed     []pastTick // the newest first
	Job, Rules []form.Row
	Body       string
	Jobs       string // the link of the list of its jobs
	Backfill   *backfill
}

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
		Zone: zone, IsLocal: zone != "UTC", Backfill: newBackfill(s),
	}
	if ticks := parse(&s.ScheduleRequest); ticks != nil && s.State == "active" {
		d.Strip = strip(ticks, v.Now, loc, chart.WideDay)
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
	d.setRows()
	if s.Job != nil {
		d.Jobs = v.PathQuery(v.Path("jobs"), "topic", d.Topic, "id_prefix", "rb:s:"+s.Name+":")
	}
	return d
}

func newPastTick(v *web.Visit, t *client.PastTick, loc *time.Location) pastTick {
	p := pastTick{PastTick: *t, LocalText: localText(t.At, v.Now, loc), Pill: tickPill(t), Text: t.Reason}
	switch {
	case t.Outcome != "run":
		if p.Text == "" {
			_, p.Text, _ = strings.Cut(words.TickOutcome(t.Outcome), ": ")
		}
	case t.JobState == "":
		p.Text = "its job is not stored any more"
	default:
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
		return "the last one was " + string(t.JobState)
	case t.JobState != "":
		return "the job of the last one is " + string(t.JobState)
	}
	return "the last one ran"
}

// setRows sets what is set, of the job and of the rest.
func (d *showData) setRows() {
	values := valuesOf(d.Schedule)
	if values["job.topic"] == nil && d.Schedule.Job != nil {
		values["job.topic"] = json.RawMessage(`"default"`)
	}
	for _, t := range scheduleForm.Tables(values, values) {
		if t.Title == jobTitle {
			d.Job = append(d.Job, t.Rows...)
		} else {
			d.Rules = append(d.Rules, t.Rows...)
		}
	}
	for _, row := range []form.Row{
		{Label: "Created", Text: byAt(d.CreatedBy, d.CreatedAt)},
		{Label: "Changed", Text: byAt(d.UpdatedBy, d.UpdatedAt)},
	} {
		if row.Text != "" {
			d.Rules = append(d.Rules, row)
		}
	}
	if d.Schedule.Job == nil {
		return
	}
	switch b := d.Schedule.Job.Body.(type) {
	case json.RawMessage:
		d.Body = string(b)
	case client.Text:
		d.Body = string(b)
	case []byte:
		d.Body = base64.StdEncoding.EncodeToString(b)
		d.Job = append(d.Job, form.Row{Label: "The body is", Text: "bytes, here in base64"})
	}
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
