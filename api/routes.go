package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A handler answers a request, or returns an error for FromError.
type handler func(http.ResponseWriter, *http.Request) error

// An endpoint is a method of a path. Each file of handlers lists its endpoints.
type endpoint struct {
	method, path string
	// action is what the method does. A token's role must allow it.
	action access.Action
	// topic says where the topic is, for tokens that are restricted to topics.
	topic topicSource
	serve handler

	parameters []string // of the query; all others are refused
	conditions []string // of changes, which the handler evaluates
	always     bool     // also in a process that only delivers
	endless    bool     // it goes on until the client disconnects, or waits: the context has no timeout
	audited    bool     // logged by auditChange
}

// An option changes an endpoint.
type option func(*endpoint)

// query names the parameters of the query.
func query(names ...string) option { return func(e *endpoint) { e.parameters = names } }

// ofSettings marks changes of settings.
func ofSettings(e *endpoint) { e.conditions, e.audited = request.SettingsConditions, true }

// ofOneJob marks changes of a job.
func ofOneJob(e *endpoint) { e.conditions = request.JobConditions }

func always(e *endpoint) { e.always = true }

func endless(e *endpoint) { e.endless = true }

func audited(e *endpoint) { e.audited = true }

// at returns the endpoint of a method and a path.
func at(request string, action access.Action, topic topicSource, serve handler, options ...option) endpoint {
	method, path, _ := strings.Cut(request, " ")
	e := endpoint{method: method, path: path, action: action, topic: topic, serve: serve}
	for _, option := range options {
		option(&e)
	}
	return e
}

// A route is a path with its endpoints by their methods.
type route struct {
	path    string
	methods map[string]endpoint
}

// any reports whether an endpoint has a property.
func (r *route) any(has func(endpoint) bool) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(r.methods)), has)
}

// routes returns all routes.
func (a *api) routes() []route {
	var all []route
	for _, e := range slices.Concat(a.jobEndpoints(), a.topicEndpoints(), a.laneEndpoints(),
		a.secretEndpoints("/v1/topics/{topic}"), a.secretEndpoints("/v1/topics/{topic}/lanes/{lane}"),
		a.leaseEndpoints(), a.deadEndpoints(), a.workEndpoints(), a.scheduleEndpoints(), a.eventEndpoints(),
		a.statsEndpoints(),
		a.tokenEndpoints(), a.namespaceEndpoints(), a.serviceEndpoints()) {
		i := slices.IndexFunc(all, func(r route) bool { return r.path == e.path })
		if i < 0 {
			i = len(all)
			all = append(all, route{e.path, make(map[string]endpoint)})
		}
		all[i].methods[e.method] = e
	}
	return all
}

// serviceEndpoints are those about the service itself.
func (a *api) serviceEndpoints() []endpoint {
	return []endpoint{
		at("GET /v1/version", access.ReadService, ofNone, a.serveVersion, always),
		at("GET /healthz", access.Open, ofNone, a.alive, always),
		at("GET /readyz", access.Open, ofNone, a.ready, always),
		at("GET /metrics", access.Open, ofNone, a.serveMetrics, always),
		at("GET "+response.ProblemsPath, access.Open, ofNone, problems, always),
		at("GET /", access.Open, ofNone, a.serveRoot, always),
		at("GET /openapi.json", access.Open, ofNone, openAPIDocument.JSON, always),
		at("GET /openapi.yaml", access.Open, ofNone, openAPIDocument.YAML, always),
	}
}

// markOpen marks the requests for open paths: see limits.Open. Paths that need a token are answered without waiting for
// the client until it is known, and so are paths without a route.
func markOpen(open map[string]bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open[r.URL.Path] {
			limits.Open(w, r)
		}
		next.ServeHTTP(w, r)
	})
}

// A topicSource says where the topic is that a request concerns. The zero value is invalid.
type topicSource uint8

const (
	_          topicSource = iota
	ofPath                 // {topic}
	ofJob                  // that of the job {id}
	ofRequest              // in the parameters or the body: the handler calls checkTopic
	ofNone                 // the request concerns no topic
	ofAll                  // the request concerns all topics of the namespace
	ofWork                 // that of the work {id}: the handler answers 404
	ofEvent                // that of the event {id}: the handler answers 404
	ofSchedule             // that of the jobs of {schedule}: the handler answers 404
	ofItems                // each item of the answer has one: the handler leaves others out
)

// dryRun is the parameter of a PUT that only checks it.
const dryRun = "dry_run"

// paged names the parameters of a list, with others.
func paged(others ...string) option { return query(append([]string{"cursor", "limit"}, others...)...) }

// onStore serves the requests of a namespace with its store.
type onStore struct {
	*api
	store Store
}

// on returns the handler that finds the store of a request's namespace, before it reads the rest of the request:
// without the store it answers 503 to an invalid one, too.
func (a *api) on(serve func(onStore, http.ResponseWriter, *http.Request) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		found, err := a.service.FindStore(r.Context(), namespaceOf(r))
		if err != nil {
			return unread(r, err)
		}
		return serve(onStore{a, found}, w, r)
	}
}

// unread returns the problem of a request whose body is not read.
func unread(r *http.Request, err error) error {
	p := response.FromError(err)
	p.Unread = r.Body != nil && r.Body != http.NoBody
	return p
}

// holderOf returns on whose behalf a request is served.
func (a *api) holderOf(r *http.Request) capacity.Holder {
	return a.service.HolderOf(r.Context(), namespaceOf(r))
}

// registerAll registers jobs on the store that their namespace has now: it may have become available, or the namespace
// was removed, while the request was read.
func (a *api) registerAll(ctx context.Context, jobs []job.New) []store.RoutedResult {
	found, err := a.service.FindStore(ctx, request.PrincipalOf(ctx).Namespace)
	if err != nil {
		return slices.Repeat([]store.RoutedResult{{Err: err}}, len(jobs))
	}
	return found.Register(ctx, jobs)
}

// methods serves a route's methods, and HEAD like GET. Other methods are answered with 405.
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
		found, ok := r.methods[method]
		if !ok {
			w.Header().Set("Allow", allow)
			return response.NewProblem(response.MethodNotAllowed, "the methods of this path are "+allow)
		}
		names, dry := found.parameters, false
		if slices.Contains(names, dryRun) && req.URL.RawQuery != "" {
			var err error
			if dry, err = request.DryRun(request.WithParameters(req, names)); err != nil {
				return err
			}
		}
		if dry { // it tells no more than a GET
			found.action = r.methods[http.MethodGet].action
		}
		if err := a.authorize(req, found); err != nil {
			return err
		}
		switch {
		case req.URL.RawQuery == "":
		case len(names) > 0:
			req = request.WithParameters(req, names)
		default:
			if err := request.NewQuery(req).Err(); err != nil {
				return err
			}
		}
		if method != http.MethodGet {
			if err := request.CheckConditions(req, found.conditions); err != nil {
				return err
			}
			if err := request.CheckEncoding(w, req); err != nil {
				return err
			}
		}
		serve := found.serve
		if a.tracer != nil && (found.action == access.RegisterJob || found.action == access.RunSchedule) {
			serve = a.traced(serve)
		}
		err := serve(w, req)
		if err == nil && found.audited && !dry {
			a.auditChange(req, found.action)
		}
		return err
	}, r.any(func(e endpoint) bool { return e.endless }))
}

// identify returns whose a request is. Requests for paths that do not begin with /v1/ are nobody's.
func (a *api) identify(ctx context.Context, w http.ResponseWriter, r *http.Request) (*access.Principal, error) {
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		return access.Nobody, nil
	}
	principal, err := a.callers.Principal(ctx, r)
	if err != nil {
		setHeaders(w, r)
		return access.Nobody, err
	}
	return principal, nil
}

// handle finds whose a request is, bounds its time unless its answer is endless, and turns an error into a problem.
func (a *api) handle(serve handler, endless bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wait, _, _ := request.Wait(r) // refused later if it is not a parameter of the route, or invalid
		ctx, cancel := context.WithTimeoutCause(r.Context(), wait+limits.Timeout, response.ErrTimeout)
		defer cancel()
		principal, err := a.identify(ctx, w, r)
		if endless {
			ctx = r.Context()
		}
		r = r.WithContext(request.WithPrincipal(ctx, principal))
		if err == nil {
			err = a.serveHolder(serve, w, r)
		}
		if err == nil {
			return
		}
		p := response.FromError(err)
		switch p.Status {
		case http.StatusForbidden:
			a.logForbidden(r, p)
		case http.StatusInternalServerError:
			a.log.Error("request failed", "method", r.Method, "route", r.Pattern, "err", err)
		case http.StatusServiceUnavailable:
			a.log.Debug("request not served, answering 503", "method", r.Method, "route", r.Pattern, "err", err)
			a.warnOverload(r, p)
		}
		if p.Unread {
			limits.Metered(r).Release()
			a.refuseUnread(w, r, p)
			return
		}
		p.Write(w)
	})
}

// serveHolder calls a handler, within the share of the namespace that a request is for, and of its store.
func (a *api) serveHolder(serve handler, w http.ResponseWriter, r *http.Request) error {
	var holder capacity.Holder
	if namespaceOf(r) != "" {
		holder = a.holderOf(r)
		if err := limits.Identify(r.Context(), holder); err != nil {
			return unread(r, err)
		}
	}
	if r.Body != nil && r.Body != http.NoBody {
		metered := a.bodies.Meter(r.Body, holder)
		defer metered.Release()
		r.Body = metered
	}
	return serve(w, r)
}

// refuseUnread answers a request that was not read to its end. It discards the rest of the request, since closing a
// connection with unread bytes resets it, and the client would lose the answer.
func (a *api) refuseUnread(w http.ResponseWriter, r *http.Request, p *response.Problem) {
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // unsupported only where answers never wait for the request
	w.Header().Set("Connection", "close")
	limits := newDeadlines(rc)
	stop := a.onShutdown(func() { limits.End(p) })
	defer stop()
	p.Write(w)
	_ = limits.Linger(r.Body, rc.Flush) // fails only when the client is gone
}

// warnOverload logs a problem of an overload, and no other.
func (a *api) warnOverload(r *http.Request, p *response.Problem) {
	if p.Overload {
		a.overloadLog.Warn("overloaded, answering 503", "method", r.Method, "route", r.Pattern, "reason", p.Detail)
	}
}

// notFound answers requests without a route. A process that only delivers answers 421 (RFC 9110, 15.5.20) instead of
// 404 to requests for jobs, so that clients retry at another process.
func (a *api) notFound(_ http.ResponseWriter, r *http.Request) error {
	if a.healthOnly && (r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/")) {
		return response.NewProblem(response.Misdirected,
			"this process only delivers: use a process with the role api")
	}
	return notFoundPage(r)
}
