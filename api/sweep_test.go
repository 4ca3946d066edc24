package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/content"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Every response to arbitrary requests is declared in openapi.yaml, and not an internal error.
func TestRoutes_AnswerByTheOpenAPISchemaWhateverIsSent(t *testing.T) {
	doc := document(t)
	bodies := []string{"", " ", "{}", "[]", "null", "5", `"x"`, `{"`, `{"x": 1}`, `{"jobs": []}`, `{"all": true}`, "\xff", strings.Repeat("[", 20_000)}
	types := []string{"", "application/json", "text/plain", "application/x-www-form-urlencoded", "application/merge-patch+json", content.ContentTypeNDJSON}
	headers := [][]string{
		nil,
		{"If-Match", `"1"`},
		{"If-Match", "*"},
		{"If-Match", "x"},
		{"If-None-Match", "*"},
		{"If-None-Match", `"1"`},
		{"If-Unmodified-Since", "Sat, 29 Oct 1994 19:43:31 GMT"},
		{"If-Modified-Since", "Sat, 29 Oct 2094 19:43:31 GMT"},
		{"Range", "bytes=0-1"},
		{"Content-Encoding", "gzip"},
		{"Expect", "100-continue"},
		{"Accept", "text/html"},
	}
	paths := strings.NewReplacer("{topic}", "seen", "{lane}", "a", "{id}", "dead", "{schedule}", "daily")
	for _, r := range new(api).routes() {
		for method := range r.methods {
			declared := doc.at("paths", r.path, strings.ToLower(method), "responses").keys()
			require.NotEmpty(t, declared)
			try := func(body, kind string, header []string) {
				f := fullService()
				f.jobs["dead"] = job.Job{Spec: job.Spec{ID: "dead"}, Progress: job.Progress{State: job.Scheduled, Version: 1}}
				f.own["seen/a"] = store.Lane{}
				h := New(Options{Service: f, Logger: quiet, Metrics: http.NotFoundHandler()})
				more := append([]string{"Content-Type", kind}, header...)
				w := call(t, h, method, paths.Replace(r.path), body, more...)
				if r.path == "/metrics" {
					return // another's handler
				}
				require.Less(t, w.Code, 500, "%s %s %q %q %q: %s", method, r.path, body, kind, header, w.Body)
				assert.Contains(t, declared, strconv.Itoa(w.Code), "%s %s %.40q %q %q: %s", method, r.path, body, kind, header, w.Body)
				if w.Code >= 400 {
					problemIn(t, w)
				}
			}
			for _, body := range bodies {
				for _, kind := range types {
					try(body, kind, nil)
				}
			}
			for _, header := range headers {
				try("", "", header)
				try("{}", "application/json", header)
			}
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "QUERY"} {
			_, served := r.methods[method]
			if _, get := r.methods[http.MethodGet]; served || method == http.MethodHead && get {
				continue
			}
			w := call(t, New(Options{Service: newFake(), Logger: quiet}), method, paths.Replace(r.path), "")
			require.True(t, slices.Contains([]int{http.StatusMethodNotAllowed}, w.Code), "%s %s: %d", method, r.path, w.Code)
			require.NotEmpty(t, w.Header().Get("Allow"))
		}
	}
}
