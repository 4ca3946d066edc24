package api

import (
	"net/http"

	"github.com/ringback/ringback/api/response"
)

// A pageLink is an entry point of the API. The name is stable.
type pageLink struct {
	Name, Path string
	// Off: the process does not serve it.
	Off bool
}

// answerRoot answers programs with the entry points, and browsers with a page of them, or with a redirect to the
// console if there is one.
func answerRoot(w http.ResponseWriter, r *http.Request, links []pageLink, console bool) error {
	if console && acceptsHTML(r) {
		h := w.Header()
		h.Set("Vary", "Accept")
		h.Set("Location", "console/") // relative: a proxy may have removed a prefix of the path
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return serve(w, r, rootPage, links, func() error {
		response.Answer(w, http.StatusOK, func(o *response.Buffer) {
			o.Object("links")
			for _, l := range links {
				if l.Off {
					o.Null(l.Name)
				} else {
					o.Text(l.Name, l.Path)
				}
			}
			o.Close()
		})
		return nil
	})
}

// rootPage is the page for browsers.
var rootPage = newPage("API", `<p>This is the HTTP API of Ringback. This process has no console: it runs with `+
	`--no-console, or only delivers.</p>
<ul>{{range .}}{{if not .Off}}<li>{{.Name}}: <a href="{{.Path}}">{{.Path}}</a></li>
{{end}}{{end}}</ul>
<p>The documentation is in the folder docs of the source. <a href="/openapi.yaml">openapi.yaml</a> has every request `+
	`and response. Paths under
/v1 need the token if the server has one.</p>`)
