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
	// always: also where the process only delivers.
	always bool
}

// routes is everything that is served.
func (a *api) routes() []route {
	return []route{
		{path: "/v1/jobs", methods: map[string]handler{http.MethodPost: a.register, http.MethodGet: a.list}},
		{path: "/v1/batch", methods: map[string]handler{http.MethodPost: a.batch}},
		{path: "/v1/jobs/{id}", methods: map[string]handler{
			http.MethodGet: a.get, http.MethodPatch: a.edit, http.MethodDelete: a.cancel,
		}},
		{path: "/v1/jobs/{id}/run", methods: map[string]handler{http.MethodPost: a.run}},
		{path: "/v1/jobs/{id}/revive", methods: map[string]handler{http.MethodPost: a.revive}},
		{path: "/v1/topics", methods: map[string]handler{http.MethodGet: a.topics}},
		{path: "/v1/topics/{topic}", methods: map[string]handler{
			http.MethodGet: a.topic, http.MethodPut: a.putTopic, http.MethodPatch: a.patchTopic,
		}},
		{path: "/v1/topics/{topic}/pause", methods: map[string]handler{http.MethodPost: a.pause(true)}},
		{path: "/v1/topics/{topic}/resume", methods: map[string]handler{http.MethodPost: a.pause(false)}},
		{path: "/v1/topics/{topic}/stats", methods: map[string]handler{http.MethodGet: a.topicStats}},
		{path: "/v1/stats", methods: map[string]handler{http.MethodGet: a.stats}},
		{path: "/v1/version", methods: map[string]handler{http.MethodGet: a.showVersion}, always: true},
		{path: "/healthz", methods: map[string]handler{http.MethodGet: a.alive}, always: true},
		{path: "/readyz", methods: map[string]handler{http.MethodGet: a.ready}, always: true},
		{path: "/openapi.yaml", methods: map[string]handler{http.MethodGet: a.contract}, always: true},
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
