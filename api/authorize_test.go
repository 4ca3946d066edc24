package api

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// withTokens returns a service with stored tokens, by text.
func withTokens(f *fake, tokens map[string]*access.Principal) *fake {
	f.callers = tokens
	return f
}

// samples has the path, the query and the body of a request that succeeds for a root, by method and route, if they are
// not the usual ones.
var samples = map[string]struct{ query, body string }{
	"POST /v1/leases":       {body: `{"next": {"topic": "order.close"}}`},
	"GET /v1/jobs":          {query: "?topic=order.close&state=dead"},
	"GET /v1/stream":        {query: "?topic=order.close"},
	"GET /v1/dead":          {query: "?topic=order.close"},
	"GET /v1/dead/groups":   {query: "?topic=order.close&by=lane"},
	"POST /v1/jobs":         {body: `{"url": "http://a.example", "topic": "order.close"}`},
	"POST /v1/batch":        {body: `{"jobs": [{"url": "http://a.example", "topic": "order.close"}]}`},
	"PATCH /v1/jobs/{id}":   {body: `{"retries": 1}`},
	"POST /v1/dead/revive":  {body: `{"topic": "order.close", "dry_run": true}`},
	"POST /v1/dead/purge":   {body: `{"topic": "order.close", "dry_run": true}`},
	"POST /v1/work":         {body: `{"action": "purge", "where": {"topic": "order.close"}, "dry_run": true}`},
	"POST /v1/events":       {body: `{"topic": "order.close", "type": "order.closed"}`},
	"POST /v1/events/batch": {body: `{"events": [{"topic": "order.close", "type": "order.closed"}]}`},
	"POST /v1/tokens":       {body: `{"name": "shop-api", "role": "publish"}`},

	"GET /v1/schedules/preview":    {query: "?cron=@daily"},
	"PUT /v1/schedules/{schedule}": {body: `{"cron": "@daily", "job": {"topic": "order.close"}}`},
	"POST /v1/schedules/{schedule}/backfill": {body: `{"after": "2020-01-01T00:00:00Z", "before": ` +
		`"2020-01-02T00:00:00Z"}`},
}

// sample makes the request of a route with a topic, and more headers.
func sample(t *testing.T, h http.Handler, method, path, topic string, header ...string) (status int, answer string) {
	t.Helper()
	s := samples[method+" "+path]
	if s.body == "" && (method == http.MethodPut || method == http.MethodPatch) {
		s.body = `{}`
	}
	id := "dead"
	if strings.Contains(path, "/secrets/") {
		id = sharedSecret.ID()
		if strings.Contains(path, "/lanes/") {
			id = keySecret.ID()
		}
	}
	if strings.Contains(path, "/work/{id}") {
		id = "w1"
	}
	if strings.Contains(path, "/events/{id}") {
		id = "e1"
	}
	if strings.Contains(path, "/tokens/{id}") {
		id = "5tR1nGs0"
	}
	target := strings.NewReplacer("{namespace}", "shop", "{topic}", "order.close", "{lane}", "a", "{id}", id,
		"{schedule}", "daily").Replace(path) + s.query
	w := call(t, h, method, strings.ReplaceAll(target, "order.close", topic),
		strings.ReplaceAll(s.body, "order.close", topic), header...)
	return w.Code, w.Body.String()
}

// jobAnswer returns the status of the first job in an answer of /v1/batch, and of other answers their own.
func jobAnswer(t *testing.T, status int, answer string) int {
	t.Helper()
	if all := statusesIn(t, answer); len(all) > 0 {
		return all[0]
	}
	return status
}

// Every method of every route is tried with every role, with tokens that are not valid, and with one for other topics.
func TestRoutes_ServeOnlyWhatTheTokenAllows(t *testing.T) {
	valid, _ := access.NewText()
	unknown, _ := access.NewText()
	bearer := func(text string) []string { return []string{"Authorization", "Bearer " + text} }
	handler := func(p *access.Principal) http.Handler {
		metrics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		return New(Options{
			Service: withTokens(fullService(), map[string]*access.Principal{valid: p}), Metrics: metrics, Logger: quiet,
			Access: AccessOptions{Tokens: []logs.Secret{"the root's token"}},
		})
	}
	for _, r := range new(api).routes() {
		for method, e := range r.methods {
			name := method + " " + r.path
			require.NotEmpty(t, access.RolesFor(e.action), "%s: the action %q has no role", name, e.action)
			require.NotZero(t, e.topic, "%s: where is its topic?", name)
			require.Equal(t, e.action == access.Open, !strings.HasPrefix(r.path, "/v1/"),
				"%s: paths under /v1/ need a token, others do not", name)
			require.Equal(t, strings.Contains(r.path, "{topic}"), e.topic == ofPath, name)

			status, answer := sample(t, handler(nil), method, r.path, "order.close", bearer("the root's token")...)
			require.Less(t, status, 500, "%s: %s", name, answer)
			require.NotContains(t, []int{401, 403, 404, 422}, jobAnswer(t, status, answer),
				"%s: the sample must succeed: %s", name, answer)
			if e.action == access.Open {
				status, _ = sample(t, handler(nil), method, r.path, "order.close")
				require.NotEqual(t, http.StatusUnauthorized, status, name)
				continue
			}
			for _, role := range access.Roles() {
				p := &access.Principal{Actor: "tester", Role: role, Namespace: job.DefaultNamespace, Bodies: true}
				status, answer := sample(t, handler(p), method, r.path, "order.close", bearer(valid)...)
				if !p.Allows(e.action) {
					require.Equal(t, http.StatusForbidden, status, "%s by %s: %s", name, role, answer)
					if e.action.NeedsRoot() {
						require.Contains(t, answer, "root token", name)
						continue
					}
					for _, allowed := range access.RolesFor(e.action) {
						require.Contains(t, answer, string(allowed), "%s by %s", name, role)
					}
					continue
				}
				require.NotContains(t, []int{401, 403, 404}, jobAnswer(t, status, answer), "%s by %s: %s", name, role,
					answer)

				restricted := *p
				restricted.Topics = access.Topics{"order.*"}
				status, answer = sample(t, handler(&restricted), method, r.path, "order.close", bearer(valid)...)
				if e.topic == ofAll {
					require.Equal(t, http.StatusForbidden, status, "%s for order.*: %s", name, answer)
					require.Contains(t, answer, "order.*", name)
				} else {
					require.NotContains(t, []int{401, 403, 404}, jobAnswer(t, status, answer),
						"%s for order.*: %s", name, answer)
				}

				restricted.Topics = access.Topics{"invoice.*"}
				status, answer = sample(t, handler(&restricted), method, r.path, "order.close", bearer(valid)...)
				want := http.StatusForbidden
				switch e.topic {
				case ofJob, ofWork, ofEvent, ofSchedule:
					want = http.StatusNotFound
				case ofNone, ofItems:
					want = http.StatusOK
				}
				require.Equal(t, want, jobAnswer(t, status, answer), "%s for invoice.*: %s", name, answer)
			}
			for reason, header := range map[string][]string{
				"token is required": nil,
				"no such token":     bearer(unknown),
				"mistyped":          bearer(unknown[:60] + "!"),
				"must be one":       {"Authorization", "Basic " + valid},
				"expired at 2020":   bearer(valid),
			} {
				expired := &access.Principal{Role: access.Admin, ExpiresAt: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
				status, answer := sample(t, handler(expired), method, r.path, "order.close", header...)
				require.Equal(t, http.StatusUnauthorized, status, "%s: %s", name, reason)
				require.Contains(t, answer, reason, name)
			}
		}
	}
}

func TestRoutes_RestrictedTokensNameTheTopicOfLists(t *testing.T) {
	valid, _ := access.NewText()
	f := withTokens(fullService(), map[string]*access.Principal{
		valid: {Role: access.Admin, Namespace: "default", Topics: access.Topics{"order.*"}},
	})
	h := New(Options{Service: f, Logger: quiet})
	for target, status := range map[string]int{
		"GET /v1/dead":                                     403,
		`POST /v1/dead/purge {"all": true}`:                403,
		`POST /v1/dead/purge {"ids": ["dead"]}`:            403,
		`POST /v1/jobs {"url": "http://a.example"}`:        403, // the topic default
		`POST /v1/dead/purge {"topic": "order.close"}`:     202,
		"GET /v1/jobs/dead":                                200,
		"GET /v1/jobs/running":                             404, // of the topic default
		"POST /v1/jobs/running/run":                        404,
		"GET /v1/jobs/missing":                             404,
		`PUT /v1/topics/default {}`:                        403,
		"GET /v1/topics/order.missing":                     404,
		"GET /v1/nothing":                                  404,
		`POST /v1/jobs {"url": "h", "topic": "order.new"}`: 422,
	} {
		parts := strings.SplitN(target, " ", 3)
		w := call(t, h, parts[0], parts[1], strings.Join(parts[2:], ""), "Authorization", "Bearer "+valid)
		require.Equal(t, status, w.Code, "%s: %s", target, w.Body)
	}
	require.Equal(t, "order.close", f.order.Filter.Topic)
	require.Zero(t, f.calls)
}

func TestBatch_ChecksTheTopicOfEachJob(t *testing.T) {
	valid, _ := access.NewText()
	f := withTokens(newFake(), map[string]*access.Principal{
		valid: {Role: access.Publish, Namespace: "shop", Topics: access.Topics{"order.*"}},
	})
	h := New(Options{Service: f, Logger: quiet})
	const good, bad = `{"id": "a", "url": "http://a.example", "topic": ` +
		`"order.close"}`, `{"id": "b", "url": "http://a.example", "topic": "invoice"}`
	w := call(t, h, http.MethodPost, "/v1/batch", `{"jobs": [`+good+`, `+bad+`]}`, "Authorization", "Bearer "+valid)
	require.Equal(t, []int{201, 403}, statusesIn(t, w.Body.String()))
	w = call(t, h, http.MethodPost, "/v1/batch", good+"\n"+bad+"\n", "Authorization", "Bearer "+valid,
		"Content-Type", "application/x-ndjson")
	require.Equal(t, []int{200, 403}, statusesIn(t, w.Body.String()))
	for _, n := range f.news {
		require.Equal(t, "shop", n.Namespace)
		require.Equal(t, "order.close", n.Topic)
	}
}

// resultStatus finds the status of a result of a batch.
var resultStatus = regexp.MustCompile(`\{"index":\d+,"id":[^,]*,"status":(\d+)`)

// statusesIn returns the statuses of the results of a batch.
func statusesIn(t *testing.T, answer string) (all []int) {
	t.Helper()
	for _, found := range resultStatus.FindAllStringSubmatch(answer, -1) {
		status, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		all = append(all, status)
	}
	return all
}

func TestBodies_AreShownOnlyToTokensThatMayReadThem(t *testing.T) {
	valid, _ := access.NewText()
	for _, bodies := range []bool{false, true} {
		for target, secret := range map[string]string{
			"GET /v1/jobs/dead": "4711, ", "GET /v1/jobs/dead?": `"busy\n"`, "GET /v1/jobs/running": `"hi\n"`,
			"GET /v1/jobs/plain": "AP8=", "GET /v1/jobs/rb:dead:1": `"job.dead"`, "POST /v1/jobs/dead/revive": "4711, ",
			"DELETE /v1/jobs/running":                     `"hi\n"`,
			`PATCH /v1/jobs/plain {"body_text": "new\n"}`: `"new\n"`, "POST /v1/jobs/plain/run": `"body_`,
		} {
			f := withTokens(fullService(), map[string]*access.Principal{
				valid: {Role: access.Operate, Namespace: job.DefaultNamespace, Bodies: bodies},
			})
			h := New(Options{Service: f, Logger: quiet})
			parts := strings.SplitN(target, " ", 3)
			w := call(t, h, parts[0], parts[1], strings.Join(parts[2:], ""), "Authorization", "Bearer "+valid)
			require.Less(t, w.Code, 300, "%s: %s", target, w.Body)
			if secret != `"body_` {
				require.Equal(t, bodies, strings.Contains(w.Body.String(), secret), "%s: %s", target, w.Body)
			}
			require.Equal(t, !bodies, strings.Contains(w.Body.String(), `"body_text":"[redacted]"`),
				"%s: %s", target, w.Body)
			require.Contains(t, string(f.jobs["dead"].Body), "4711", "what is stored stays")
			require.True(t, slices.ContainsFunc(f.jobs["dead"].History,
				func(a job.Attempt) bool { return string(a.Body) == "busy\n" }))
		}
	}
}

func TestSettings_AreHiddenFromTokensThatMayNotReadTopics(t *testing.T) {
	valid, _ := access.NewText()
	for _, role := range []access.Role{access.Publish, access.Read} {
		f := withTokens(fullService(),
			map[string]*access.Principal{valid: {Role: role, Namespace: job.DefaultNamespace, Bodies: true}})
		lanes := map[string]string{"https://own.example/": "own.example:443", "": "topic.example:443"}
		for id, own := range map[string]string{"own": "https://own.example/", "bare": ""} {
			f.jobs[id] = job.Job{
				Spec:     job.Spec{ID: id, Queue: job.Queue{Topic: "orders", Lane: lanes[own]}, URL: own},
				Progress: job.Progress{State: job.Ready},
				History: []job.Attempt{{N: 1, Kind: job.KindAttempt, Status: 500, Error: "of its own"}, {
					N: 2, Kind: job.KindAttempt, URL: "https://Topic.example/?key=42", RemoteAddr: "192.0.2.9:443",
					ErrorClass: policy.ClassDNS,
					Error:      "lookup topic.example: no such host", Body: []byte("<h1>topic.example</h1>"),
					Header: map[string][]string{
						"Location": {"https://topic.example/a"}, "Via": {"1.1 192.0.2.9"},
						"X-Request-Id": {"4711"},
					},
				}},
			}
			f.explanations[id] = &job.Explanation{
				Effective: &job.Effective{
					URL:   cmp.Or(own, "https://topic.example/?key=42"),
					Terms: policy.Builtin().Terms(policy.Terms{}),
				},
				WaitingFor: &job.Obstacle{
					Code: job.ObstacleTopicPaused, By: "mia", Note: "fraud case 42",
					Facts: "Topic orders is paused by mia (fraud case 42)", Hint: ": POST /v1/topics/orders/resume",
					Remedy: job.Remedy{Action: job.RemedyResume, Topic: "orders"},
				},
			}
			w := call(t, New(Options{Service: f, Logger: quiet}), http.MethodGet, "/v1/jobs/"+id, "",
				"Authorization", "Bearer "+valid)
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			for _, setting := range []string{"key=42", "mia", "fraud", "192.0.2.9", "topic.example", "resume"} {
				require.Equal(t, role == access.Read, strings.Contains(w.Body.String(), setting),
					"%s: %s", setting, w.Body)
			}
			got := decodeResponse(t, w)
			if effective, _ := got["effective"].(map[string]any); own != "" {
				require.Equal(t, own, effective["url"])
				require.Equal(t, "own.example:443", got["lane"])
			} else if role == access.Publish {
				require.Equal(t, "[redacted]", effective["url"])
			}
			require.Contains(t, w.Body.String(), "of its own")
			require.Contains(t, w.Body.String(), `"X-Request-Id":"4711"`)
			require.Contains(t, w.Body.String(), `"error_class":"dns"`)
			kept := f.jobs[id].History[1]
			require.Equal(t, []any{"https://Topic.example/?key=42", "https://topic.example/a"},
				[]any{kept.URL, kept.Header["Location"][0]}, "what the service has stays")
		}
	}
}

func TestCallbacks_DoNotTellTheReceiverToTokensThatMayNotReadTopics(t *testing.T) {
	valid, _ := access.NewText()
	for _, role := range []access.Role{access.Publish, access.Read} {
		f := withTokens(fullService(),
			map[string]*access.Principal{valid: {Role: role, Namespace: job.DefaultNamespace, Bodies: true}})
		f.jobs["callback"] = job.Job{
			Spec: job.Spec{
				ID: "callback", Kind: job.KindCallback,
				Queue: job.Queue{Topic: job.CallbackTopic, Lane: "topic.example:443"}, URL: "https://topic.example/",
				Header: map[string][]string{"X-Host": {"topic.example"}}, BodyKind: job.BodyJSON,
				Body: []byte(`{"attempt": {"url": "https://topic.example/"}}`),
			},
			Progress: job.Progress{State: job.Ready},
			History: []job.Attempt{{
				N: 1, Kind: job.KindAttempt, RemoteAddr: "192.0.2.9:443", Error: "lookup topic.example: no such host",
				Header: map[string][]string{"Location": {"https://topic.example/login"}},
				Body:   []byte("welcome to topic.example"),
			}},
		}
		f.explanations["callback"] = &job.Explanation{Effective: &job.Effective{
			URL:   "https://topic.example/",
			Terms: policy.Builtin().Terms(policy.Terms{}),
		}}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			w := call(t, New(Options{Service: f, Logger: quiet}), method, "/v1/jobs/callback", "",
				"Authorization", "Bearer "+valid)
			if role == access.Read && method == http.MethodDelete {
				continue // it may not
			}
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			for _, setting := range []string{"topic.example", "192.0.2.9"} {
				require.Equal(t, role == access.Read, strings.Contains(w.Body.String(), setting),
					"%s: %s", setting, w.Body)
			}
		}
	}
}

// namespaceService records the namespaces that it is asked for.
type namespaceService struct {
	*fake
	asked []string
}

func (s *namespaceService) FindStore(context.Context, string) (Store, error) { return s, nil }

func (s *namespaceService) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	s.asked = append(s.asked, ref.Namespace)
	return s.fake.Get(ctx, ref)
}

func (s *namespaceService) Totals(ctx context.Context, namespace string) (store.TopicStats, error) {
	s.asked = append(s.asked, namespace)
	return s.fake.Totals(ctx, namespace)
}

func TestNamespace_IsThatOfTheToken(t *testing.T) {
	valid, _ := access.NewText()
	for _, c := range []struct {
		token, header string
		status        int
		namespace     string
	}{
		{"root", "", 200, "default"},
		{"root", "default", 200, "default"},
		{"root", "shop", 200, "shop"},
		{"root", "missing", 404, ""},
		{"root", "No/such", 400, ""},
		{"valid", "", 200, "shop"},
		{"valid", "shop", 200, "shop"},
		{"valid", "default", 403, ""},
		{"valid", "missing", 403, ""},
	} {
		s := &namespaceService{fake: withTokens(fullService(), map[string]*access.Principal{
			valid: {Role: access.Admin, Namespace: "shop"},
		})}
		h := New(Options{Service: s, Logger: quiet, Access: AccessOptions{Tokens: []logs.Secret{"root"}}})
		text := c.token
		if text == "valid" {
			text = valid
		}
		header := []string{"Authorization", "Bearer " + text}
		if c.header != "" {
			header = append(header, namespaceHeader, c.header)
		}
		require.Equal(t, c.status, call(t, h, http.MethodGet, "/v1/jobs/dead", "", header...).Code, "%+v", c)
		require.Equal(t, c.status, call(t, h, http.MethodGet, "/v1/stats", "", header...).Code, "%+v", c)
		for _, asked := range s.asked {
			require.Equal(t, c.namespace, asked)
		}
		require.Equal(t, c.status == http.StatusOK, len(s.asked) > 0)
	}
}

func (s *revocableService) FindStore(context.Context, string) (Store, error) { return s, nil }

// revocableService refuses all tokens once they are revoked.
type revocableService struct {
	*fake
	revoked atomic.Bool
}

func (s *revocableService) Authenticate(ctx context.Context, text string) (*access.Principal, error) {
	if s.revoked.Load() {
		return nil, access.ErrUnknown
	}
	return s.fake.Authenticate(ctx, text)
}

func TestStream_EndsWhenItsTokenIsRevoked(t *testing.T) {
	s := newRevocable()
	client := begin(t, dial(t, New(Options{Service: s, Logger: quiet})), "Authorization: Bearer "+fakeToken)
	client.answer()
	require.NoError(t, client.send("{\"id\": \"a\"}\n"))
	require.Equal(t, http.StatusCreated, client.result().Status)
	s.revoked.Store(true)
	require.NoError(t, client.send("{\"id\": \"b\"}\n"))
	last := client.result()
	require.Nil(t, last.Index)
	require.Equal(t, http.StatusUnauthorized, last.Status)
	require.Equal(t, "token_unknown", last.Error.Code)
	require.NoError(t, client.conn.Close())
	require.Len(t, s.news, 1)
}

// The name of the token is kept with each change, for the job's events.
func TestChanges_NameTheToken(t *testing.T) {
	valid, _ := access.NewText()
	f := fullService()
	h := New(Options{Service: withTokens(f, map[string]*access.Principal{
		valid: {Actor: "jan", Role: access.Admin, Namespace: job.DefaultNamespace, Bodies: true},
	}), Logger: quiet, Access: AccessOptions{Tokens: []logs.Secret{"the root's token"}}})
	change := func(method, path, body, token string) {
		w := call(t, h, method, path, body, "Authorization", "Bearer "+token)
		require.Less(t, w.Code, 300, "%s %s: %s", method, path, w.Body)
	}
	for token, want := range map[string]string{valid: "jan", "the root's token": access.Root} {
		change(http.MethodPost, "/v1/jobs", `{"url": "http://a.example"}`, token)
		require.Equal(t, want, f.news[len(f.news)-1].CreatedBy)
		change(http.MethodPost, "/v1/batch", `{"jobs": [{"url": "http://a.example"}]}`, token)
		require.Equal(t, want, f.news[len(f.news)-1].CreatedBy)
		change(http.MethodPatch, "/v1/jobs/plain", `{"retries": 1}`, token)
		require.Equal(t, want, f.edits[len(f.edits)-1].Actor)
		f.actor = ""
		change(http.MethodPost, "/v1/jobs/plain/run", "", token)
		require.Equal(t, want, f.actor)
		f.actor = ""
		change(http.MethodDelete, "/v1/jobs/running", "", token)
		require.Equal(t, want, f.actor)
		change(http.MethodPost, "/v1/jobs/dead/revive", "", token)
		require.Equal(t, want, f.revival.Actor)
		for _, request := range [][3]string{
			{http.MethodPut, "/v1/topics/t", "{}"},
			{http.MethodPatch, "/v1/topics/t", "{}"},
			{http.MethodPost, "/v1/topics/t/pause", ""},
			{http.MethodPut, "/v1/topics/t/lanes/a", `{"lane_concurrency": 3}`},
			{http.MethodPost, "/v1/topics/t/lanes/a/resume", ""},
			{http.MethodPut, "/v1/topics/t/lanes/a", `{"lane_concurrency": 3}`},
			{http.MethodDelete, "/v1/topics/t/lanes/a", ""},
			{http.MethodPost, "/v1/topics/t/secrets", ""},
			{http.MethodPut, "/v1/schedules/s", `{"every": "1h", "job": {"url": "http://a.example"}}`},
			{http.MethodPost, "/v1/schedules/s/pause", ""},
		} {
			f.actor = ""
			change(request[0], request[1], request[2], token)
			require.Equal(t, want, f.actor, request)
		}
		f.actor = ""
		change(http.MethodDelete, "/v1/topics/t/secrets/"+f.topics["t"].Policy.Secrets[0].ID, "", token)
		require.Equal(t, want, f.actor)
	}
}

func TestBodies_AreNotSentElsewhereByATokenThatMayNotReadThem(t *testing.T) {
	valid, _ := access.NewText()
	headers := map[string][]string{"X-Pin": {"1234"}, "X-Team": {"shop"}} // shown as [redacted], and as it is
	callback := policy.Callback{URL: "http://a.example", Headers: headers}
	for target, want := range map[string]struct {
		status int
		text   string
	}{
		`PATCH /v1/jobs/plain {"url": ` +
			`"http://mine.example"}`: {403, "url"},
		`PATCH /v1/jobs/plain {"body_text": ` +
			`"[redacted]"}`: {422, "/body_text"},
		`PATCH /v1/jobs/plain {"body_text": ` +
			`"redacted"}`: {200, ""},
		`POST /v1/jobs/dead/revive {"url": ` +
			`"http://mine.example"}`: {403, "url"},
		`POST /v1/jobs/dead/revive {"expires_in": ` +
			`"1h"}`: {200, ""},
		`POST /v1/dead/revive {"topic": "a", "url": ` +
			`"http://mine.example"}`: {403, "url"},
		`POST /v1/work {"action": "revive", "where": {"topic": "a"}, "change": {"url": ` +
			`"http://mine.example"}}`: {403, "url"},
		`POST /v1/work {"action": "edit", "where": {"topic": "a"}, "change": {"retries": 1}}`: {202, ""},
		`POST /v1/jobs {"url": "http://a.example", "body_text": "[redacted]"}`:                {422, "/body_text"},
		`POST /v1/jobs {"url": "http://a.example", "body_text": "mine"}`:                      {201, ""},

		`POST /v1/jobs {"url": "http://a.example", "on_dead": ` +
			`"http://mine.example"}`: {403, "on_dead"},
		`POST /v1/jobs {"topic": "a", "on_delivered": {"url": ` +
			`"http://mine.example"}}`: {403, "on_delivered"},
		`POST /v1/jobs {"url": "http://a.example", "on_dead": null}`: {201, ""},
		`PATCH /v1/topics/moved {"url": ` +
			`"http://mine.example"}`: {422, `"/headers/X-Pin"`},
		`PATCH /v1/topics/moved {"url": "http://mine.example", "headers": {"X-Pin": "2"}}`: {200, ""},
		`PATCH /v1/topics/moved {"url": "http://a.example/new"}`:                           {200, ""},
		`PATCH /v1/topics/moved {"on_delivered": {"url": ` +
			`"http://mine.example"}}`: {422, `"/on_delivered/headers/X-Pin"`},
		`PATCH /v1/topics/moved {"on_dead": {"url": ` +
			`"http://mine.example"}}`: {422, `"/on_dead/headers/X-Pin"`},
		`PATCH /v1/topics/moved {"on_backlog": {"url": ` +
			`"http://mine.example"}}`: {422, `"/on_backlog/headers/X-Pin"`},
		`PATCH /v1/topics/moved/lanes/a {"url": ` +
			`"http://mine.example"}`: {422, `"/headers/X-Pin"`},
		`PUT /v1/topics/moved {"url": "http://mine.example", "on_dead": {"url": "http://mine.example"}}`: {200, ""},
	} {
		method, rest, _ := strings.Cut(target, " ")
		path, body, _ := strings.Cut(rest, " ")
		for _, bodies := range []bool{false, true} {
			f := fullService()
			f.topics["moved"] = store.Topic{Name: "moved", Policy: policy.Topic{
				URL: "http://a.example", Headers: headers, OnDelivered: &callback, OnDead: &callback,
				OnBacklog: &policy.Backlog{Callback: callback, MoreThan: 1},
			}}
			f.own["moved/a"] = store.Lane{Settings: policy.Lane{URL: "http://a.example", Headers: headers}}
			h := New(Options{Logger: quiet, Service: withTokens(f, map[string]*access.Principal{
				valid: {Role: access.Admin, Namespace: job.DefaultNamespace, Bodies: bodies},
			})})
			w := call(t, h, method, path, body, "Authorization", "Bearer "+valid)
			if bodies {
				require.Less(t, w.Code, 300, "%s: %s", target, w.Body)
				continue
			}
			require.Equal(t, want.status, w.Code, "%s: %s", target, w.Body)
			require.Contains(t, w.Body.String(), want.text, target)
		}
	}
}
