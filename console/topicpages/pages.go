package topicpages

import (
	"embed"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/console/web"
)

//go:embed templates
var files embed.FS

// section is the item of the navigation.
const section = "topics"

// New returns the pages.
func New() web.Pages {
	return web.Pages{
		Name:  "topicpages",
		Files: files,
		Routes: []web.Route{
			web.Get("topics", access.ReadTopic, showTopics),
		},
	}
}
