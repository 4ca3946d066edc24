package api

import (
	"net/http"

	"github.com/ringback/ringback/api/response"
)

// A link is an entry point of the API. The name is stable.
type link struct {
	Name, Path string
	// Off: the process does not serve it.
	Off bool
}

// links returns the entry points.
func (a *api) links() []link {
	return []link{
		{"jobs", "/v1/jobs", a.healthOnly},
		{"topics", "/v1/topics", a.healthOnly},
		{"dead", "/v1/dead", a.healthOnly},
		{"work", "/v1/work", a.healthOnly},
		{"stats", "/v1/stats", a.healthOnly},
		{"stream", "/v1/stream", a.healthOnly},
		{"whoami", "/v1/whoami", a.healthOnly},
		{"tokens", "/v1/tokens", a.healthOnly},
		{"namespaces", "/v1/namespaces", a.healthOnly},
		{"openapi", "/openapi.json", false},
		{"problems", response.ProblemsPath, false},
		{"version", "/v1/version", false},
		{"health", "/readyz", false},
		{"metrics", "/metrics", a.metrics == nil},
	}
}

// serveRoot answers programs with the entry points, and browsers with a page of them.
func (a *api) serveRoot(w http.ResponseWriter, r *http.Request) error {
	return servePage(w, r, func() []byte { return executePage(rootPage, a.links()) }, func() error {
		response.Answer(w, http.StatusOK, func(o *response.Buffer) {
			o.Object("links")
			for _, l := range a.links() {
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
var rootPage = newPage("API", `<p>This is the HTTP API of Ringback. There is no console: it is not part of this build.</p>
<ul>{{range .}}{{if not .Off}}<li>{{.Name}}: <a href="{{.Path}}">{{.Path}}</a></li>
{{end}}{{end}}</ul>
<p>The documentation is in the folder docs of the source. <a href="/openapi.yaml">openapi.yaml</a> has every request and response. Paths under
/v1 need the token if the server has one.</p>`)
