package deadpages

import (
	"embed"
	"time"

	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/access"
)

//go:embed all:templates
var files embed.FS

const (
	// sampleWithin bounds the time for which it looks for some of them, after that.
	sampleWithin = web.SearchTime / 2
	// pageLimit bounds the rows of a list.
	pageLimit = 50
)

// countTime returns the time for which a page counts jobs: up to 1,000 groups are written and read after that.
func countTime(v *web.Visit) time.Duration { return v.SearchTime() * 3 / 4 }

// New returns the pages.
func New() web.Pages {
	return web.Pages{
		Name:  "deadpages",
		Files: files,
		Routes: []web.Route{
			web.Get("dead", access.ListJobs, showDead),
			web.Get("work", access.ReadWork, listWork),
			web.Get("work/new", access.StartWork, newOrder),
			web.Post("work", access.StartWork, startWork),
			web.Get("work/{id}", access.ReadWork, showWork),
			web.Post("work/{id}/stop", access.StopWork, stopWork),
		},
	}
}

// needsTopic reports whether the API refuses requests of the reader without a topic.
func needsTopic(v *web.Visit) bool { return len(v.Who.Topics) > 0 }
