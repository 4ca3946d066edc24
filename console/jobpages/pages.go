package jobpages

import (
	"embed"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/console/web"
)

//go:embed templates
var files embed.FS

// New returns the pages.
func New() web.Pages {
	return web.Pages{
		Name: "jobpages", Files: files,
		Routes: []web.Route{
			web.Get("jobs", access.ReadJob, showList), // tokens that may read single jobs only see the box for an id
		},
	}
}
