package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/ringback/ringback/api/content"
	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A handler answers a request, or returns an error for FromError.
type handler func(http.ResponseWriter, *http.Request) error

// A route is a path and its methods.
type route struct {
	path    string
	methods map[string]endpoint
	// parameters are the query parameters of each method. All others are refused.
	parameters map[string][]string
	// always: also in a process that only delivers.
	always bool
	// conditions are the conditions that the handlers of changes evaluate.
	conditions []string
	// endless: the answer goes on until the client disconnects, or comes after a wait. The context of its requests has
	// no timeout.
	endless bool
	// audited: changes are logged by auditChange.
	audited bool
}

// An endpoint is a method of a route.
type endpoint struct {
	// action is what the method does. A token's role must allow it.
	action access.Action
	// topic says where the topic is, for tokens that are restricted to topics.
	topic topicSource
	serve handler
}

// isOpen reports whether a route needs no token.
func (r *route) isOpen() bool {
	for _, e := range r.methods {
		if e.action != access.Open {
			return false
		}
	}
	return true
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
	ofSchedule             // that of the jobs of {schedule}: the handler answers 404
	ofItems                // each item of the answer has one: the handler leaves others out
)

// Query parameters of routes.
var (
	paged    = onGet("cursor", "limit")
	jobPages = map[string][]string{
		http.MethodGet:  request.FilterParameters("state", "order", "limit", "cursor", "within"),
		http.MethodPost: {"wait"},
	}
	deadPages = onGet(request.FilterParameters("order", "limit", "cursor", "within")...)
	preview   = onGet("cron", "timezone", "every", "offset", "starts_at", "ends_at", "from", "limit")
	dryPut    = map[string][]string{http.MethodPut: {dryRun}}
	groups    = onGet(request.FilterParameters("by", "within")...)
	counted   = map[string][]string{http.MethodPost: {"within"}}
	works     = map[string][]string{http.MethodGet: {"cursor", "limit"}, http.MethodPost: {"within"}}
)

// dryRun is the parameter of a PUT that only checks it.
const dryRun = "dry_run"

// onGet returns query parameters of GET.
func onGet(names ...string) map[string][]string { return map[string][]string{http.MethodGet: names} }

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
			p := response.FromError(err)
			p.Unread = r.Body != nil && r.Body != http.NoBody
			return p
		}
		return serve(onStore{a, found}, w, r)
	}
}

// registerAll registers jobs on the store that their namespace has now: it may have become available, or the namespace
// was removed, while the request was read.
func (a *api) registerAll(ctx context.Context, jobs []job.New) []store.RoutedResult {
	found, err := a.service.FindStore(ctx, access.PrincipalOf(ctx).Namespace)
	if err != nil {
		return slices.Repeat([]store.RoutedResult{{Err: err}}, len(jobs))
	}
	return found.Register(ctx, jobs)
}

// routes returns all routes.
func (a *api) routes() []route {
	on := a.on
	// Topics and lanes share these handlers.
	secrets := map[string]endpoint{
		http.MethodPost: {access.AddSecret, ofPath, on(onStore.addSecret)},
		http.MethodGet:  {access.ReadSecrets, ofPath, on(onStore.secrets)},
	}
	secret := map[string]endpoint{http.MethodDelete: {access.RemoveSecret, ofPath, on(onStore.removeSecret)}}
	keys := map[string]endpoint{http.MethodGet: {access.ReadKeys, ofPath, on(onStore.keys)}}
	return []route{
		{path: "/v1/jobs", parameters: jobPages, methods: map[string]endpoint{
			http.MethodPost: {access.RegisterJob, ofRequest, on(onStore.register)},
			http.MethodGet:  {access.ListJobs, ofRequest, on(onStore.list)},
		}},
		{
			path:    "/v1/batch",
			methods: map[string]endpoint{http.MethodPost: {access.RegisterJob, ofRequest, a.batch.Register}},
		},
		{path: "/v1/jobs/{id}", parameters: onGet("wait"), methods: map[string]endpoint{
			http.MethodGet:    {access.ReadJob, ofJob, on(onStore.get)},
			http.MethodPatch:  {access.EditJob, ofJob, on(onStore.edit)},
			http.MethodDelete: {access.CancelJob, ofJob, on(onStore.cancel)},
		}, conditions: content.JobConditions},
		{path: "/v1/jobs/{id}/run", methods: map[string]endpoint{
			http.MethodPost: {access.RunJob, ofJob, on(onStore.run)},
		}, conditions: content.JobConditions},
		{path: "/v1/jobs/{id}/revive", methods: map[string]endpoint{
			http.MethodPost: {access.ReviveJob, ofJob, on(onStore.revive)},
		}, conditions: content.JobConditions},
		{
			path: "/v1/topics", parameters: onGet("cursor", "limit", "defaults"),
			methods: map[string]endpoint{http.MethodGet: {access.ReadTopic, ofAll, on(onStore.topics)}},
		},
		{path: "/v1/topics/{topic}", parameters: map[string][]string{
			http.MethodGet: {"defaults"}, http.MethodPut: {dryRun, "defaults"}, http.MethodDelete: {"purge"},
		}, methods: map[string]endpoint{
			http.MethodGet:    {access.ReadTopic, ofPath, on(onStore.topic)},
			http.MethodPut:    {access.ChangeTopic, ofPath, on(onStore.putTopic)},
			http.MethodPatch:  {access.ChangeTopic, ofPath, on(onStore.patchTopic)},
			http.MethodDelete: {access.DeleteTopic, ofPath, on(onStore.deleteTopic)},
		}, conditions: content.SettingsConditions, audited: true},
		{path: "/v1/topics/{topic}/pause", methods: map[string]endpoint{
			http.MethodPost: {access.PauseTopic, ofPath, on(onStore.pause)},
		}, conditions: content.SettingsConditions, audited: true},
		{path: "/v1/topics/{topic}/resume", methods: map[string]endpoint{
			http.MethodPost: {access.ResumeTopic, ofPath, on(onStore.resume)},
		}, conditions: content.SettingsConditions, audited: true},
		{path: "/v1/topics/{topic}/lease", endless: true, methods: map[string]endpoint{
			http.MethodPost: {access.LeaseJobs, ofPath, on(onStore.lease)},
		}},
		{path: "/v1/leases", endless: true, methods: map[string]endpoint{
			http.MethodPost: {access.SettleLeases, ofRequest, on(onStore.settleLeases)},
		}},
		{
			path: "/v1/topics/{topic}/stats", parameters: onGet("cursor", "limit", "lane"),
			methods: map[string]endpoint{http.MethodGet: {access.ReadStats, ofPath, on(onStore.topicStats)}},
		},
		{path: "/v1/lanes/held", parameters: onGet("limit", "topic", "lane"), methods: map[string]endpoint{
			http.MethodGet: {access.ReadStats, ofItems, on(onStore.heldLanes)},
		}},
		{
			path: "/v1/topics/{topic}/lanes", parameters: paged,
			methods: map[string]endpoint{http.MethodGet: {access.ReadLane, ofPath, on(onStore.lanes)}},
		},
		{path: "/v1/topics/{topic}/lanes/{lane}", parameters: dryPut, methods: map[string]endpoint{
			http.MethodGet:    {access.ReadLane, ofPath, on(onStore.lane)},
			http.MethodPut:    {access.ChangeLane, ofPath, on(onStore.putLane)},
			http.MethodPatch:  {access.ChangeLane, ofPath, on(onStore.patchLane)},
			http.MethodDelete: {access.DeleteLane, ofPath, on(onStore.deleteLane)},
		}, conditions: content.SettingsConditions, audited: true},
		{path: "/v1/topics/{topic}/lanes/{lane}/pause", methods: map[string]endpoint{
			http.MethodPost: {access.PauseLane, ofPath, on(onStore.pauseLane)},
		}, conditions: content.SettingsConditions, audited: true},
		{path: "/v1/topics/{topic}/lanes/{lane}/resume", methods: map[string]endpoint{
			http.MethodPost: {access.ResumeLane, ofPath, on(onStore.resumeLane)},
		}, conditions: content.SettingsConditions, audited: true},
		{
			path: "/v1/topics/{topic}/secrets", parameters: paged, methods: secrets,
			conditions: content.SettingsConditions, audited: true,
		},
		{
			path: "/v1/topics/{topic}/secrets/{id}", methods: secret,
			conditions: content.SettingsConditions, audited: true,
		},
		{path: "/v1/topics/{topic}/keys", parameters: paged, methods: keys},
		{
			path: "/v1/topics/{topic}/lanes/{lane}/secrets", parameters: paged, methods: secrets,
			conditions: content.SettingsConditions, audited: true,
		},
		{
			path: "/v1/topics/{topic}/lanes/{lane}/secrets/{id}", methods: secret,
			conditions: content.SettingsConditions, audited: true,
		},
		{path: "/v1/topics/{topic}/lanes/{lane}/keys", parameters: paged, methods: keys},
		{
			path: "/v1/dead", parameters: deadPages,
			methods: map[string]endpoint{http.MethodGet: {access.ListJobs, ofRequest, on(onStore.dead)}},
		},
		{
			path: "/v1/dead/groups", parameters: groups,
			methods: map[string]endpoint{http.MethodGet: {access.ListJobs, ofRequest, on(onStore.deadGroups)}},
		},
		{
			path: "/v1/dead/revive", parameters: counted,
			methods: map[string]endpoint{http.MethodPost: {access.ReviveDead, ofRequest, on(onStore.reviveDead)}},
		},
		{
			path: "/v1/dead/purge", parameters: counted,
			methods: map[string]endpoint{http.MethodPost: {access.PurgeDead, ofRequest, on(onStore.purgeDead)}},
		},
		{path: "/v1/work", parameters: works, methods: map[string]endpoint{
			http.MethodPost: {access.StartWork, ofRequest, on(onStore.startWork)},
			http.MethodGet:  {access.ReadWork, ofItems, on(onStore.listWork)},
		}},
		{
			path:    "/v1/work/{id}",
			methods: map[string]endpoint{http.MethodGet: {access.ReadWork, ofWork, on(onStore.work)}},
		},
		{path: "/v1/work/{id}/stop", methods: map[string]endpoint{
			http.MethodPost: {access.StopWork, ofWork, on(onStore.stopWork)},
		}},
		{
			path: "/v1/schedules", parameters: paged,
			methods: map[string]endpoint{http.MethodGet: {access.ReadSchedule, ofItems, on(onStore.schedules)}},
		},
		{
			path: "/v1/schedules/preview", parameters: preview,
			methods: map[string]endpoint{http.MethodGet: {access.ReadSchedule, ofNone, a.preview}},
		},
		{path: "/v1/schedules/{schedule}", parameters: dryPut, methods: map[string]endpoint{
			http.MethodGet:    {access.ReadSchedule, ofSchedule, on(onStore.schedule)},
			http.MethodPut:    {access.ChangeSchedule, ofRequest, on(onStore.putSchedule)},
			http.MethodDelete: {access.DeleteSchedule, ofSchedule, on(onStore.deleteSchedule)},
		}, conditions: content.SettingsConditions, audited: true},
		{
			path:    "/v1/schedules/{schedule}/run",
			methods: map[string]endpoint{http.MethodPost: {access.RunSchedule, ofSchedule, on(onStore.runSchedule)}},
		},
		{path: "/v1/schedules/{schedule}/pause", methods: map[string]endpoint{
			http.MethodPost: {access.PauseSchedule, ofSchedule, on(onStore.pauseSchedule)},
		}, conditions: content.SettingsConditions, audited: true},
		{path: "/v1/schedules/{schedule}/resume", methods: map[string]endpoint{
			http.MethodPost: {access.ResumeSchedule, ofSchedule, on(onStore.resumeSchedule)},
		}, conditions: content.SettingsConditions, audited: true},
		{path: "/v1/schedules/{schedule}/backfill", methods: map[string]endpoint{
			http.MethodPost: {access.BackfillSchedule, ofSchedule, on(onStore.backfill)},
		}, conditions: content.SettingsConditions},
		{
			path: "/v1/stats", parameters: paged,
			methods: map[string]endpoint{http.MethodGet: {access.ReadStats, ofAll, on(onStore.stats)}},
		},
		{path: "/v1/stream", parameters: onGet("topic", "lane", "verdict"), endless: true, methods: map[string]endpoint{
			http.MethodGet: {access.WatchEvents, ofRequest, on(onStore.watchEvents)},
		}},
		{path: "/v1/whoami", methods: map[string]endpoint{http.MethodGet: {access.ReadService, ofNone, a.whoami}}},
		{path: "/v1/tokens", parameters: paged, methods: map[string]endpoint{
			http.MethodGet:  {access.ReadTokens, ofAll, a.tokens},
			http.MethodPost: {access.CreateToken, ofAll, a.createToken},
		}},
		{path: "/v1/tokens/{id}", methods: map[string]endpoint{
			http.MethodGet:    {access.ReadTokens, ofAll, a.token},
			http.MethodDelete: {access.RevokeToken, ofAll, a.revokeToken},
		}, audited: true},
		{
			path: "/v1/namespaces", parameters: paged,
			methods: map[string]endpoint{http.MethodGet: {access.ReadNamespaces, ofAll, a.namespaces}},
		},
		{
			path: "/v1/namespaces/{namespace}", parameters: map[string][]string{http.MethodDelete: {"purge"}},
			methods: map[string]endpoint{
				http.MethodGet:    {access.ReadNamespaces, ofAll, a.namespace},
				http.MethodPut:    {access.PutNamespace, ofAll, a.putNamespace},
				http.MethodDelete: {access.DeleteNamespace, ofAll, a.deleteNamespace},
			}, conditions: content.SettingsConditions, audited: true,
		},
		{
			path:    "/v1/version",
			methods: map[string]endpoint{http.MethodGet: {access.ReadService, ofNone, a.serveVersion}}, always: true,
		},
		{path: "/healthz", methods: map[string]endpoint{http.MethodGet: {access.Open, ofNone, a.alive}}, always: true},
		{path: "/readyz", methods: map[string]endpoint{http.MethodGet: {access.Open, ofNone, a.ready}}, always: true},
		{
			path:    "/metrics",
			methods: map[string]endpoint{http.MethodGet: {access.Open, ofNone, a.serveMetrics}}, always: true,
		},
		{
			path:    response.ProblemsPath,
			methods: map[string]endpoint{http.MethodGet: {access.Open, ofNone, problems}}, always: true,
		},
		{path: "/", methods: map[string]endpoint{http.MethodGet: {access.Open, ofNone, a.serveRoot}}, always: true},
		{
			path:    "/openapi.json",
			methods: map[string]endpoint{http.MethodGet: {access.Open, ofNone, openAPIDocument.JSON}}, always: true,
		},
		{
			path:    "/openapi.yaml",
			methods: map[string]endpoint{http.MethodGet: {access.Open, ofNone, openAPIDocument.YAML}}, always: true,
		},
	}
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
		names := r.parameters[method]
		dry := false
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
			if err := content.CheckConditions(req, r.conditions); err != nil {
				return err
			}
			if err := content.CheckEncoding(w, req); err != nil {
				return err
			}
		}
		serve := found.serve
		if a.tracer != nil && (found.action == access.RegisterJob || found.action == access.RunSchedule) {
			serve = a.traced(serve)
		}
		err := serve(w, req)
		if err == nil && r.audited && method != http.MethodGet && !dry {
			a.auditChange(req, found.action)
		}
		return err
	}, r.endless)
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
		r = r.WithContext(access.With(ctx, principal))
		if err == nil {
			if r.Body != nil && r.Body != http.NoBody {
				metered := a.bodies.Meter(r.Body)
				defer metered.Release()
				r.Body = metered
			}
			err = serve(w, r)
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
