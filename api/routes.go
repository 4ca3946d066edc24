package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// A handler answers one request, or says why not: see problemOf.
type handler func(http.ResponseWriter, *http.Request) error

// A route is one path and what its methods do.
type route struct {
	path    string
	methods map[string]handler
}

// routes is everything that is served.
func (a *api) routes() []route {
	return []route{
		{"/v1/jobs", map[string]handler{http.MethodPost: a.register, http.MethodGet: a.list}},
		{"/v1/batch", map[string]handler{http.MethodPost: a.batch}},
		{"/v1/jobs/{id}", map[string]handler{
			http.MethodGet: a.get, http.MethodPatch: a.edit, http.MethodDelete: a.cancel,
		}},
		{"/v1/jobs/{id}/run", map[string]handler{http.MethodPost: a.run}},
		{"/v1/jobs/{id}/revive", map[string]handler{http.MethodPost: a.revive}},
		{"/v1/topics", map[string]handler{http.MethodGet: a.topics}},
		{"/v1/topics/{topic}", map[string]handler{
			http.MethodGet: a.topic, http.MethodPut: a.putTopic, http.MethodPatch: a.patchTopic,
		}},
		{"/v1/topics/{topic}/pause", map[string]handler{http.MethodPost: a.pause(true)}},
		{"/v1/topics/{topic}/resume", map[string]handler{http.MethodPost: a.pause(false)}},
		{"/v1/topics/{topic}/stats", map[string]handler{http.MethodGet: a.topicStats}},
		{"/v1/stats", map[string]handler{http.MethodGet: a.stats}},
		{"/v1/version", map[string]handler{http.MethodGet: a.showVersion}},
		{"/healthz", map[string]handler{http.MethodGet: a.alive}},
		{"/readyz", map[string]handler{http.MethodGet: a.ready}},
		{"/openapi.yaml", map[string]handler{http.MethodGet: a.contract}},
	}
}

// methods serves a route's methods, HEAD like GET, and refuses others by naming them.
func (a *api) methods(r route) http.Handler {
	var allowed []string
	for m := range r.methods {
		allowed = append(allowed, m)
		if m == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	slices.Sort(allowed)
	allow := strings.Join(allowed, ", ")
	return a.handle(func(w http.ResponseWriter, req *http.Request) error {
		method := req.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		serve, ok := r.methods[method]
		if !ok {
			w.Header().Set("Allow", allow)
			return refuse(http.StatusMethodNotAllowed, "this path takes "+allow)
		}
		return serve(w, req)
	})
}

// errSlow is the cause when a request takes too long.
var errSlow = errors.New("the request took longer than the API gives it")

// handle bounds a request in time and turns an error into a problem.
func (a *api) handle(serve handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeoutCause(r.Context(), requestTimeout, errSlow)
		defer cancel()
		err := serve(w, r.WithContext(ctx))
		if err == nil {
			return
		}
		p := problemOf(err)
		switch p.status {
		case http.StatusInternalServerError:
			a.log.Error("a request failed", "method", r.Method, "route", r.Pattern, "err", err)
		case http.StatusServiceUnavailable:
			a.log.Debug("a request could not be served", "method", r.Method, "route", r.Pattern, "err", err)
		}
		p.write(w)
	})
}
