package schedulepages

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/chart"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// pageSize is the number of schedules of a list.
const pageSize = 50

// listData is the data of the list of schedules.
type listData struct {
	Lead  lead
	Rows  []row
	Pager web.Pager
}

// row is a schedule in the list.
type row struct {
	*client.Schedule

	To       string
	Topic    string
	Pill     web.Pill
	PausedBy string
	// ShortNote and ShortPause are the notes, cut: the page of the schedule has them whole.
	ShortNote, ShortPause string
	// NextLocal is the next tick on the clocks of Zone; empty: there is none.
	NextAt          time.Time
	NextLocal, Zone string
	LastTick        *client.PastTick
	LastPill        web.Pill
	LastReason      string
	LastJob         string // the link of its job
	Strip           template.HTML
}

// showList answers with a page of the schedules, in order of name.
func showList(v *web.Visit) (web.Answer, error) {
	page, err := v.API.SchedulesPage(v.Request.Context(),
		client.PageOptions{Cursor: v.Query("cursor"), Limit: pageSize})
	if err != nil {
		return nil, err
	}
	data := listData{Pager: v.Pager(page.NextCursor), Rows: make([]row, len(page.Items))}
	for i := range page.Items {
		data.Rows[i] = newRow(v, &page.Items[i])
	}
	data.Lead = listLead(page.Items, data.Pager != web.Pager{}, v.Now)
	return &web.Page{View: "schedule-list", Title: "Schedules", Section: section, Data: data}, nil
}

func newRow(v *web.Visit, s *client.Schedule) row {
	r := row{
		Schedule: s, To: pathOf(v, s.Name),
		Topic: topicOf(s), Pill: statePill(s.State), ShortNote: short(s.Note), ShortPause: short(s.PauseNote),
	}
	zone, loc := zoneOf(&s.ScheduleRequest)
	if s.State == "paused" {
		r.PausedBy = pausedBy(s)
	}
	if len(s.Next) > 0 && s.State == "active" {
		r.NextAt, r.NextLocal, r.Zone = s.Next[0].At, localText(s.Next[0].At, v.Now, loc), zone
	}
	if n := len(s.Last); n > 0 {
		r.LastTick = &s.Last[n-1]
		r.LastPill, r.LastReason = tickPill(r.LastTick), short(r.LastTick.Reason)
		if r.LastTick.JobID != "" {
			r.LastJob = v.Path("jobs", r.LastTick.JobID)
		}
	}
	if ticks := parse(&s.ScheduleRequest); ticks != nil && s.State == "active" {
		r.Strip = strip(ticks, v.Now, time.UTC, chart.NarrowDay)
	}
	return r
}

// statePill is the pill of a schedule's state.
func statePill(state string) web.Pill {
	switch state {
	case "active":
		return web.Pill{Class: "ok", Text: "running"}
	case "paused":
		return web.Pill{Class: "paused", Text: "paused"}
	case "ended":
		return web.Pill{Class: "plain", Text: "ended"}
	}
	return web.Pill{Class: "bad", Text: state}
}

// tickPill is the pill of what came of a tick: of the state of its job, as far as it is known.
func tickPill(t *client.PastTick) web.Pill {
	switch {
	case t.Outcome == "run" && t.JobState != "":
		return web.Pill{Class: string(t.JobState), Text: string(t.JobState)}
	case t.Outcome == "run":
		return web.Pill{Class: "plain", Text: "ran"}
	}
	class := map[string]string{"skipped": "plain", "missed": "warn", "failed": "bad"}[t.Outcome]
	return web.Pill{Class: class, Text: strings.ReplaceAll(t.Outcome, "_", " ")}
}

// listLead says how many schedules run, what is wrong with the others, and when the next tick is.
func listLead(all []client.Schedule, isPart bool, now time.Time) lead {
	if len(all) == 0 {
		return lead{Text: "There are no schedules: none registers jobs at times of its own."}
	}
	var running, paused, ended, unreadable []string
	var pause string
	var troubled troubles
	var next *client.Schedule
	class := ""
	for i := range all {
		s := &all[i]
		switch s.State {
		case "active":
			running = append(running, s.Name)
			if len(s.Next) > 0 && (next == nil || s.Next[0].At.Before(next.Next[0].At)) {
				next = s
			}
		case "paused":
			paused = append(paused, s.Name)
			pause = strings.TrimSpace(s.Name + " is paused " + pausedBy(s))
			if s.PauseNote != "" {
				pause += ": " + short(strings.TrimRight(s.PauseNote, ". "))
			}
		case "ended":
			ended = append(ended, s.Name)
		default:
			unreadable = append(unreadable, s.Name)
		}
		if n := len(s.Last); n > 0 && s.State == "active" {
			troubled.add(s.Name, &s.Last[n-1])
		}
	}
	var parts []string
	parts = append(parts, howMany(len(running), len(all), isPart))
	if len(unreadable) > 0 {
		class = "bad"
		parts = append(parts, words.List(unreadable)+words.Verb(int64(len(unreadable)), " is", " are")+
			" not readable, and must be put again")
	}
	if said := troubled.clauses(); len(said) > 0 {
		parts, class = append(parts, said...), "bad"
	}
	if len(paused) == 1 {
		parts = append(parts, pause)
	} else if len(paused) > 1 {
		parts = append(parts, words.List(paused)+" are paused")
	}
	if len(paused) > 0 && class == "" {
		class = "warn"
	}
	if len(ended) > 0 {
		parts = append(parts, words.List(ended)+words.Verb(int64(len(ended)), " has", " have")+" ended")
	}
	if next != nil {
		parts = append(parts, "the next tick is "+next.Name+" "+words.In(next.Next[0].At, now))
	}
	return lead{Class: class, Text: words.Sentence(strings.Join(parts, "; "))}
}

// howMany says how many of all schedules run.
func howMany(running, all int, isPart bool) string {
	on := ""
	if isPart {
		on = " on this page"
	}
	switch {
	case running == all:
		return words.Count(int64(all), "schedule") + on
	case running == 0 && all == 1:
		return "The one schedule" + on + " does not run"
	case running == 0:
		return fmt.Sprintf("None of %s%s runs", words.Count(int64(all), "schedule"), on)
	case running == 1:
		return fmt.Sprintf("1 of %s%s runs", words.Count(int64(all), "schedule"), on)
	}
	return fmt.Sprintf("%s of %s%s run", words.Number(int64(running)), words.Count(int64(all), "schedule"), on)
}

// troubles are the schedules whose last ticks went wrong: their names by what happened.
type troubles struct {
	failed, missed, dead []string
	reason               string // of the first that failed
}

// add adds a schedule, if its last tick went wrong.
func (t *troubles) add(name string, last *client.PastTick) {
	switch {
	case last.Outcome == "failed":
		if len(t.failed) == 0 {
			t.reason = short(strings.TrimRight(last.Reason, ". "))
		}
		t.failed = append(t.failed, name)
	case last.Outcome == "missed":
		t.missed = append(t.missed, name)
	case last.Outcome == "run" && last.JobState == client.Dead:
		t.dead = append(t.dead, name)
	}
}

// clauses say how many went wrong, and which.
func (t *troubles) clauses() []string {
	var all []string
	if n := int64(len(t.failed)); n > 0 {
		text := "the last " + words.Verb(n, "tick", "ticks") + " of " + words.List(t.failed) + " failed"
		if n == 1 && t.reason != "" {
			text += ": " + t.reason
		}
		all = append(all, text)
	}
	if n := int64(len(t.missed)); n > 0 {
		all = append(all, "the last "+words.Verb(n, "tick", "ticks")+" of "+words.List(t.missed)+
			words.Verb(n, " was", " were")+" missed")
	}
	if n := int64(len(t.dead)); n > 0 {
		all = append(all, "the "+words.Verb(n, "job of the last tick", "jobs of the last ticks")+" of "+
			words.List(t.dead)+words.Verb(n, " is", " are")+" dead")
	}
	return all
}
