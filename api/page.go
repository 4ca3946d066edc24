// This part of the package answers with documents: the entry points, the descriptions of problems, and the contract. It
// also answers for paths that do not exist.

package api

import (
	"bytes"
	"net/http"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"
)

// acceptsHTML reports whether the client is a browser: programs accept anything, or JSON.
func acceptsHTML(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// serve answers with a page: HTML for browsers, else its other form.
func serve(w http.ResponseWriter, r *http.Request, page *template.Template, data any, other func() error) error {
	h := w.Header()
	h.Set("Vary", "Accept")
	if !acceptsHTML(r) {
		return other()
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = w.Write(executePage(page, data))
	return nil
}

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
		panic("pages: a page always has an HTML form: " + err.Error())
	}
	return b.Bytes()
}
