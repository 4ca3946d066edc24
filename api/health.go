package api

import (
	"context"
	_ "embed" // for openapi.yaml
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/store"
)

// openAPI is the API's contract.
//
//go:embed openapi.yaml
var openAPI []byte

// readyTimeout bounds the readiness check.
const readyTimeout = 2 * time.Second

// alive answers 200 while the process runs.
func (a *api) alive(w http.ResponseWriter, _ *http.Request) error {
	answerWord(w, "status", "alive")
	return nil
}

// ready answers 200, or 503 with the reason.
func (a *api) ready(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeoutCause(r.Context(), readyTimeout, response.ErrTimeout)
	defer cancel()
	err := a.service.Ready(ctx)
	if err == nil {
		answerWord(w, "status", "ready")
		return nil
	}
	// Only reasons for operators: a driver's errors may contain addresses.
	reason := err.Error()
	if e, ok := errors.AsType[*store.UnavailableError](err); ok {
		reason = e.Reason
	} else if errors.Is(err, context.DeadlineExceeded) {
		reason = "the store does not answer"
	}
	a.log.Debug("not ready", "err", err)
	return response.NewProblem(response.NotReady, "not ready: "+reason)
}

// serveMetrics serves the metrics, if there are any.
func (a *api) serveMetrics(w http.ResponseWriter, r *http.Request) error {
	if a.metrics == nil {
		return a.notFound(w, r)
	}
	a.metrics.ServeHTTP(w, r)
	return nil
}

// serveVersion answers with the version of the program, of its source and of its compiler.
func (a *api) serveVersion(w http.ResponseWriter, _ *http.Request) error {
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		o.Text("version", a.version)
		o.TextOrNull("commit", a.commit)
		o.TextOrNull("go_version", a.goVersion)
	})
	return nil
}

// serveOpenAPI serves openapi.yaml.
func (a *api) serveOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI)
	return nil
}

// openAPIJSON is openapi.yaml as JSON.
var openAPIJSON = sync.OnceValue(func() []byte {
	var document any
	if err := yaml.Unmarshal(openAPI, &document); err != nil {
		panic("api: openapi.yaml is valid: " + err.Error())
	}
	text, err := json.Marshal(document)
	if err != nil {
		panic("api: openapi.yaml has a JSON form: " + err.Error())
	}
	return text
})

// serveOpenAPIJSON serves openapi.yaml as JSON.
func (a *api) serveOpenAPIJSON(w http.ResponseWriter, _ *http.Request) error {
	w.Header()["Content-Type"] = response.ContentTypeJSON
	_, _ = w.Write(openAPIJSON())
	return nil
}

// answerWord answers with one string.
func answerWord(w http.ResponseWriter, name, word string) {
	response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.Text(name, word) })
}
