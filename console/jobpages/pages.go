package jobpages

import (
	"embed"
	"html/template"

	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/access"
)

//go:embed templates
var files embed.FS

// pages has what the pages share with others.
type pages struct {
	answers *recent.Answers
}

// New returns the pages.
func New(answers *recent.Answers) web.Pages {
	p := &pages{answers}
	return web.Pages{
		Name: "jobpages", Files: files,
		Funcs: template.FuncMap{
			"retries": (*jobData).retries, "ladder": (*jobData).ladder, "generations": (*jobData).generations,
			"more": (*jobData).more, "milliseconds": milliseconds, "isWide": form.Section.IsWide,
		},
		Routes: []web.Route{
			web.Get("jobs", access.ReadJob, p.showList), // tokens that may read single jobs only see the box for an id
			web.Get("events", access.ReadEvents, showEvents),
			web.Get("events/{event}", access.ReadEvents, showEvent),
			web.Get("replay", access.StartWork, countReplay),
			web.Post("replay", access.StartWork, startReplay),
			web.Get("jobs/{id}", access.ReadJob, showJob),
			web.Post("jobs/{id}/run", access.RunJob, act("The job was not run", runJob)),
			web.Post("jobs/{id}/cancel", access.CancelJob, act("The job was not cancelled", cancelJob)),
			web.Post("jobs/{id}/revive", access.ReviveJob, reviveJob),
			web.Get("jobs/{id}/edit", access.EditJob, editForm),
			web.PostJob("jobs/{id}/edit", access.EditJob, editJob),
			web.Get("jobs/{id}/copy", access.RegisterJob, copyForm),
			web.PostJob("jobs/{id}/copy", access.RegisterJob, copyJob),
		},
	}
}
