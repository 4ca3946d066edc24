package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// anew is a service that is replaced before each request: a handler takes longer to make than to call.
type anew struct{ *fake }

func (s anew) FindStore(context.Context, string) (Store, error) { return s, nil }

// Every response to arbitrary requests is declared in openapi.yaml, and not an internal error.
func TestRoutes_AnswerByTheOpenAPISchemaWhateverIsSent(t *testing.T) {
	doc := document(t)
	bodies := []string{
		"", " ", "{}", "[]", "null", "5", `"x"`, `{"`, `{"x": 1}`, `{"jobs": []}`, `{"all": true}`,
		"\xff", strings.Repeat("[", 20_000),
	}
	types := []string{
		"", "application/json", "text/plain", "application/x-www-form-urlencoded",
		"application/merge-patch+json", request.ContentTypeNDJSON,
	}
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
	plain := []string{"application/json"}
	refused := []string{"", "{}", `{"`} // with a type that is not that of the request, all bodies are
	service := &anew{newFake()}
	h := New(Options{Service: service, Logger: quiet, Metrics: http.NotFoundHandler()})
	paths := strings.NewReplacer("{topic}", "seen", "{lane}", "a", "{id}", "dead", "{schedule}", "daily")
	for _, r := range new(api).routes() {
		for method := range r.methods {
			declared := doc.at("paths", r.path, strings.ToLower(method), "responses").keys()
			require.NotEmpty(t, declared)
			try := func(body, kind string, header []string) {
				f := fullService()
				f.jobs["dead"] = job.Job{
					Spec:     job.Spec{ID: "dead"},
					Progress: job.Progress{State: job.Scheduled, Version: 1},
				}
				f.own["seen/a"] = store.Lane{}
				service.fake = f
				more := append([]string{"Content-Type", kind}, header...)
				w := call(t, h, method, paths.Replace(r.path), body, more...)
				if r.path == "/metrics" {
					return // another's handler
				}
				require.Less(t, w.Code, 500, "%s %s %q %q %q: %s", method, r.path, body, kind, header, w.Body)
				assert.Contains(t, declared, strconv.Itoa(w.Code), "%s %s %.40q %q %q: %s", method, r.path,
					body, kind, header, w.Body)
				if w.Code >= 400 {
					problemIn(t, w)
				}
			}
			for _, body := range bodies {
				kinds := types
				if !slices.Contains(refused, body) {
					kinds = testkit.Of(plain, types)
				}
				for _, kind := range kinds {
					try(body, kind, nil)
				}
			}
			for _, header := range headers {
				try("", "", header)
				try("{}", "application/json", header)
			}
		}
		for _, method := range []string{
			"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "QUERY",
		} {
			_, served := r.methods[method]
			if _, get := r.methods[http.MethodGet]; served || method == http.MethodHead && get {
				continue
			}
			w := call(t, h, method, paths.Replace(r.path), "")
			require.Equal(t, http.StatusMethodNotAllowed, w.Code, "%s %s", method, r.path)
			require.NotEmpty(t, w.Header().Get("Allow"))
		}
	}
}
