package console

import (
	"embed"

	"github.com/ringback/ringback/console/web"
)

//go:embed templates
var ownFiles embed.FS

// ownPages returns the views of signing in and of errors.
func ownPages() web.Pages { return web.Pages{Name: "console", Files: ownFiles} }
