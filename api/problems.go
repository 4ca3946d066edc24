package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/ringback/ringback/api/response"
)

// problems describes the problems, each under an anchor with its code.
func problems(w http.ResponseWriter, r *http.Request) error {
	return serve(w, r, problemsPage, response.ProblemTypes(), func() error {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(problemsText()))
		return nil
	})
}

// problemsText returns the page as Markdown.
func problemsText() string {
	var b strings.Builder
	for _, p := range response.ProblemTypes() {
		fmt.Fprintf(&b, "\n## %s\n\n%d. %s\n\n%s\n", p.Code, p.Status, p.Meaning, p.Remedy)
	}
	return b.String()
}

// problemsPage is the page as HTML.
var problemsPage = newPage("Problems", `<p>The type of a problem is a link to this page, its code a stable word.</p>
{{range .}}<h2 id="{{.Code}}">{{.Code}}</h2>
<p><b>{{.Status}}.</b> {{.Meaning}}</p>
<p>{{.Remedy}}</p>
{{end}}`)
