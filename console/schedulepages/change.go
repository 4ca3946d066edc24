package schedulepages

import (
	"errors"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

// run registers a job of a schedule beside its ticks.
func run(v *web.Visit) (web.Answer, error) {
	name := v.PathValue("schedule")
	j, err := v.API.RunSchedule(v.Request.Context(), name)
	if err != nil {
		return nil, err
	}
	return web.Done(v.Path("jobs", j.ID), "This job of the schedule "+name+" was registered, beside its ticks."),
		nil
}

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

// remove deletes a schedule as the page has shown it.
func remove(v *web.Visit) (web.Answer, error) {
	name := v.PathValue("schedule")
	condition, err := v.Condition()
	if err == nil {
		err = v.API.DeleteSchedule(v.Request.Context(), name, condition)
	}
	if errors.Is(err, client.ErrRevision) {
		return &web.Redirect{To: pathOf(v, name), Notice: web.Notice{
			Kind: "bad",
			Text: "Schedule " + name + " was changed meanwhile, and was not deleted. Look at it, and delete it again.",
		}}, nil
	}
	if err != nil {
		return nil, err
	}
	return web.Done(v.Path("schedules"), "Schedule "+name+" is deleted. The jobs that it has registered stay."), nil
}

// back leads from a button to the page where it was: the list, or the schedule.
func back(v *web.Visit, done string) *web.Redirect {
	to := pathOf(v, v.PathValue("schedule"))
	if v.Form("from") == "list" {
		to = v.Path("schedules")
	}
	return web.Done(to, done)
}
