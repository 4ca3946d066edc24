package schedulepages

import (
	"embed"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job/schedule"
)

//go:embed templates
var files embed.FS

// section is the item of the navigation.
const section = "schedules"

// New returns the pages.
func New() web.Pages {
	return web.Pages{
		Name:  "schedulepages",
		Files: files,
		Routes: []web.Route{
			web.Get("schedules", access.ReadSchedule, showList),
			web.Get("schedules/new", access.ChangeSchedule, newSchedule),
			web.PostJob("schedules/new", access.ChangeSchedule, createSchedule),
			web.PostJob("schedules/preview", access.ReadSchedule, previewSchedule),
			web.Get("schedules/{schedule}/edit", access.ChangeSchedule, editSchedule),
			web.PostJob("schedules/{schedule}/edit", access.ChangeSchedule, changeSchedule),
			web.Get("schedules/{schedule}", access.ReadSchedule, showSchedule),
			web.Get("schedules/{schedule}/ticks", access.ReadSchedule, showSchedule), // of a schedule whose name is new
			web.Get("schedules/{schedule}/backfill", access.BackfillSchedule, countBackfill),
			web.Post("schedules/{schedule}/backfill", access.BackfillSchedule, startBackfill),
			web.Post("schedules/{schedule}/run", access.RunSchedule, run),
			web.Post("schedules/{schedule}/delete", access.DeleteSchedule, remove),
			web.Post("schedules/{schedule}/pause", access.PauseSchedule, pause),
			web.Post("schedules/{schedule}/resume", access.ResumeSchedule, resume),
		},
	}
}

// lead is the first sentence of a page, with the class that says how things are: ok, warn, bad or nothing.
type lead struct{ Class, Text string }

// pathOf returns the link to a schedule, or to a page below it.
func pathOf(v *web.Visit, name string, below ...string) string {
	if name == "new" && len(below) == 0 { // this path is that of the form
		below = []string{"ticks"}
	}
	return v.Path(append([]string{"schedules", name}, below...)...)
}

// parse returns the ticks of a schedule; nil: it is unreadable, or this program does not know its time zone.
func parse(r *client.ScheduleRequest) *schedule.Schedule {
	s, err := schedule.Parse(schedule.Spec{
		Cron: r.Cron, Timezone: r.Timezone, Every: r.Every, Offset: r.Offset, Jitter: r.Jitter,
		StartsAt: r.StartsAt, EndsAt: r.EndsAt,
	})
	if err != nil {
		return nil
	}
	return s
}

// topicOf returns the topic of a schedule's jobs; empty: it is not known.
func topicOf(s *client.Schedule) string {
	switch {
	case s.Job == nil:
		return ""
	case s.Job.Topic == "":
		return "default"
	}
	return s.Job.Topic
}

// zoneOf returns the name of a schedule's time zone, and the time zone.
func zoneOf(r *client.ScheduleRequest) (string, *time.Location) {
	if r.Timezone != "" {
		if loc, err := time.LoadLocation(r.Timezone); err == nil {
			return r.Timezone, loc
		}
	}
	return "UTC", time.UTC
}

// localText returns a time on the clocks of a time zone, with the day unless it is today there: "08:00", "Wed 25 Nov,
// 08:00". The year is left out within 300 days.
func localText(t, now time.Time, loc *time.Location) string {
	t, now = t.In(loc), now.In(loc)
	clock := "15:04"
	if t.Second() != 0 {
		clock = "15:04:05"
	}
	switch days := t.Sub(now).Abs(); {
	case words.Date(t, loc) == words.Date(now, loc):
		return t.Format(clock)
	case days < 300*24*time.Hour:
		return t.Format("Mon 2 Jan, " + clock)
	}
	return t.Format("Mon 2 Jan 2006, " + clock)
}

// pausedBy says who paused a schedule, after "paused".
func pausedBy(s *client.Schedule) string {
	switch s.PausedBy {
	case "":
		return ""
	case "schedule:" + s.Name:
		return "by itself"
	}
	return "by " + s.PausedBy
}

// short cuts a text for a sentence.
func short(text string) string { return words.Cut(text, 120) }
