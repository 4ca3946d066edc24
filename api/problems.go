package api

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/ringback/ringback/api/response"
)

// acceptsHTML reports whether the client is a browser: programs accept anything, or JSON.
func acceptsHTML(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// servePage answers with a page: HTML for browsers, else its other form.
func servePage(w http.ResponseWriter, r *http.Request, page func() []byte, other func() error) error {
	h := w.Header()
	h.Set("Vary", "Accept")
	if !acceptsHTML(r) {
		return other()
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = w.Write(page())
	return nil
}

// serveProblems describes the problems, each under an anchor with its code.
func (a *api) serveProblems(w http.ResponseWriter, r *http.Request) error {
	return servePage(w, r, func() []byte { return executePage(problemsPage, response.ProblemTypes()) }, func() error {
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

// newPage makes the template of a page.
func newPage(title, body string) *template.Template {
	return template.Must(template.New(title).Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Ringback: ` + title + `</title>
<style>body{font-family:sans-serif;max-width:50em;margin:2em auto;padding:0 1em;line-height:1.5}</style></head>
<body><h1>` + title + `</h1>
` + body + `</body></html>
`))
}

// executePage returns a page for its data.
func executePage(page *template.Template, data any) []byte {
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil {
		panic("api: a page always has an HTML form: " + err.Error())
	}
	return b.Bytes()
}
