package schedulepages

import (
	"github.com/ringback/ringback/console/web"
)

// pause pauses a schedule.
func pause(v *web.Visit) (web.Answer, error) {
	name := v.PathValue("schedule")
	if _, err := v.API.PauseSchedule(v.Request.Context(), name, v.Form("note")); err != nil {
		return nil, err
	}
	return back(v, "Schedule "+name+" is paused: its ticks do not run until it is resumed."), nil
}

// resume resumes a schedule.
func resume(v *web.Visit) (web.Answer, error) {
	name := v.PathValue("schedule")
	if _, err := v.API.ResumeSchedule(v.Request.Context(), name); err != nil {
		return nil, err
	}
	return back(v, "Schedule "+name+" runs again. The ticks of its pause do not run later."), nil
}

// back leads from a button to the page where it was: the list, or the schedule.
func back(v *web.Visit, done string) *web.Redirect {
	to := pathOf(v, v.PathValue("schedule"))
	if v.Form("from") == "list" {
		to = v.Path("schedules")
	}
	return &web.Redirect{To: to, Notice: web.Done(done)}
}
