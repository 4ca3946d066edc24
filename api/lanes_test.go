package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestLane_IsPutPatchedPausedAndDeleted(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	const path = "/v1/topics/order.close/lanes/customer-42"
	w := call(t, h, http.MethodGet, path, "")
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Contains(t, problemIn(t, w).Detail, "create them, or")

	w = call(t, h, http.MethodPut, path, `{"url": "https://a.example/", "headers": {"authorization": "Bearer `+
		`hunter2", "X-A": "1"},
		"lane_concurrency": 4, "lane_rate": "5/90s", "ordered": true}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	want := policy.Lane{
		URL: "https://a.example/", Headers: map[string][]string{"Authorization": {"Bearer hunter2"}, "X-A": {"1"}},
		LaneConcurrency: 4, Ordered: true, LaneRate: policy.Rate{Starts: 5, Per: 90 * time.Second},
	}
	settings := func() policy.Lane { return f.own["order.close/customer-42"].Settings }
	require.Equal(t, want, settings())
	require.JSONEq(t, `{"topic": "order.close", "lane": "customer-42", "revision": 1, "url": "https://a.example/", `+
		`"paused": false,
		"paused_at": null, "paused_by": null, "pause_note": null, "updated_at": null, "updated_by": null,
		"headers": {"Authorization": "[redacted]", "X-A": "1"}, "lane_concurrency": 4, "lane_rate": "5/1m30s", `+
		`"ordered": true, "managed_by": null, "subscribe": null, "subscribe_labels": null, `+
		`"durability": null}`, w.Body.String())
	require.JSONEq(t, w.Body.String(), call(t, h, http.MethodGet, path, "").Body.String())

	for body, then := range map[string]func(*policy.Lane){
		`{"lane_concurrency": null, "headers": {"x-a": null}}`: func(l *policy.Lane) {
			l.LaneConcurrency, l.Headers = 0, map[string][]string{"Authorization": {"Bearer hunter2"}}
		},
		`{"lane_rate": "", "url": null}`:               func(l *policy.Lane) { l.LaneRate, l.URL = policy.Rate{}, "" },
		`{"headers": {"Authorization": "[redacted]"}}`: func(*policy.Lane) {},
		`{"headers": null}`:                            func(l *policy.Lane) { l.Headers = nil },
	} {
		f.own["order.close/customer-42"] = store.Lane{Revision: 1, Settings: want}
		require.Equal(t, http.StatusOK,
			call(t, h, http.MethodPatch, path, body, "Content-Type", "application/merge-patch+json").Code, body)
		changed := want
		then(&changed)
		require.Equal(t, changed, settings(), body)
	}

	f.own["order.close/customer-42"] = store.Lane{Revision: 1, Settings: want}
	require.Equal(t, true, decodeResponse(t, call(t, h, http.MethodPost, path+"/pause", "{}"))["paused"])
	require.True(t, settings().Paused)
	require.Equal(t, false, decodeResponse(t, call(t, h, http.MethodPost, path+"/resume", ""))["paused"])
	require.Equal(t, want, settings())

	w = call(t, h, http.MethodDelete, path, "")
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Empty(t, w.Body.String())
	require.Empty(t, f.own)
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodDelete, path, "").Code)
	require.Equal(t, true, decodeResponse(t, call(t, h, http.MethodPost, path+"/pause", ""))["paused"],
		"a lane without settings can be paused")
}

func TestPutLane_KeepsSecrets(t *testing.T) {
	secrets := []policy.Secret{{ID: "s", Value: "x1:sealed"}}
	stored := policy.Lane{
		URL:     "https://a.example/",
		Headers: map[string][]string{"X-Token": {"y"}, "X-A": {"1"}}, Secrets: secrets,
	}
	for body, want := range map[string]policy.Lane{
		`{}`: {Headers: map[string][]string{"X-Token": {"y"}}, Secrets: secrets},
		`{"headers": {"x-token": "[redacted]", "X-B": ` +
			`"2"}}`: {Headers: map[string][]string{"X-Token": {"y"}, "X-B": {"2"}}, Secrets: secrets},
		`{"headers": null}`: {Secrets: secrets},
	} {
		f := newFake()
		f.own["a/b"] = store.Lane{Revision: 1, Settings: stored}
		w := call(t, handlerOf(f), http.MethodPut, "/v1/topics/a/lanes/b", body)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		require.Equal(t, want, f.own["a/b"].Settings, body)
		require.NotContains(t, w.Body.String(), "sealed")
	}
}

func TestLane_PathMayHoldHostsAndPorts(t *testing.T) {
	f := newFake()
	for path, lane := range map[string]string{
		"a.example:443": "a.example:443", "[::1]:80": "[::1]:80", "%5B%3A%3A1%5D%3A81": "[::1]:81",
	} {
		w := call(t, handlerOf(f), http.MethodPut, "/v1/topics/a/lanes/"+path, `{"lane_concurrency": 2}`)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		require.Equal(t, lane, decodeResponse(t, w)["lane"])
		require.Contains(t, f.own, "a/"+lane)
	}
}

func TestPutLane_RefusesInvalidFields(t *testing.T) {
	for body, fields := range map[string][]string{
		`{"url": "ftp://a", "headers": {"Host": "x"}, "lane_concurrency": 0, "lane_rate": "x", "workers": 1, ` +
			`"ordered": "yes"}`: {
			"/url", "/headers/Host", "/lane_concurrency", "/lane_rate", "/workers", "/ordered",
		},
		`{"lane_concurrency": 10001, "secrets": [], "headers": {"X-Token": ` +
			`"[redacted]"}}`: {"/lane_concurrency", "/secrets", "/headers/X-Token"},
		`[]`: {""},
	} {
		for _, method := range []string{http.MethodPut, http.MethodPatch} {
			f := newFake()
			w := call(t, handlerOf(f), method, "/v1/topics/a/lanes/b", body)
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, body)
			require.ElementsMatch(t, fields, problemIn(t, w).fields(), w.Body.String())
			f.requireUnchanged(t)
		}
	}
	f := newFake()
	for target, status := range map[string]int{
		"PUT /v1/topics/_a/lanes/b%2Fc": 422, "PUT /v1/topics/a/lanes/b%20c": 422,
		"POST /v1/topics/_a/lanes/b/pause": 422, "GET /v1/topics/a/lanes/b%20c": 404,
		"GET /v1/topics/a%20b/lanes/b": 404, "DELETE /v1/topics/a/lanes/b%2Fc": 404, "GET /v1/topics/a/lanes": 404,
		"GET /v1/topics/a%20b/lanes": 404, "GET /v1/topics/a/lanes?cursor=a/b": 422, "GET /v1/topics/a/lanes?x=1": 422,
		"PUT /v1/topics/a/lanes/" + strings.Repeat("a", 129): 422,
	} {
		method, path, _ := strings.Cut(target, " ")
		body := ""
		if method == http.MethodPut {
			body = "{}"
		}
		w := call(t, handlerOf(f), method, path, body)
		require.Equal(t, status, w.Code, target)
		problemIn(t, w)
	}
	w := call(t, handlerOf(f), http.MethodPut, "/v1/topics/_a/lanes/b%20c", "{}")
	require.Equal(t, []string{"/topic", "/lane"}, problemIn(t, w).fields())
	require.Equal(t, http.StatusUnprocessableEntity,
		call(t, handlerOf(f), http.MethodPost, "/v1/topics/a/lanes/b/pause", `{"x": 1}`).Code)
	f.requireUnchanged(t)
}

func TestLanes_PagesThroughLanesWithSettings(t *testing.T) {
	f := newFake()
	for _, name := range []string{"a/1", "a/2", "a/3", "b/4"} {
		f.own[name] = store.Lane{Revision: 1, Settings: policy.Lane{Paused: true}}
	}
	names := func(query string) ([]string, any) { return listed(t, handlerOf(f), "/v1/topics/a/lanes"+query, "lane") }
	all, next := names("")
	require.Equal(t, []string{"1", "2", "3"}, all)
	require.Nil(t, next)
	all, next = names("?limit=2")
	require.Equal(t, []string{"1", "2"}, all)
	require.Equal(t, request.Lanes.Encode("2"), next)
	all, next = names("?limit=2&cursor=" + request.Lanes.Encode("2"))
	require.Equal(t, []string{"3"}, all)
	require.Nil(t, next)
	f.topics["c"] = store.Topic{Name: "c"}
	require.JSONEq(t, `{"items": [], "next_cursor": null}`,
		call(t, handlerOf(f), http.MethodGet, "/v1/topics/c/lanes", "").Body.String())
}

func TestTopicStats_ShowsBreakers(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		lane    store.LaneStats
		breaker string
		until   bool
	}{
		{store.LaneStats{}, "closed", false},
		{store.LaneStats{CooldownUntil: now.Add(time.Hour)}, "closed", true},
		{store.LaneStats{CooldownUntil: now.Add(-time.Hour)}, "closed", false},
		{store.LaneStats{BreakerOpen: true, CooldownUntil: now.Add(time.Hour)}, "open", true},
		{store.LaneStats{BreakerOpen: true, CooldownUntil: now.Add(-time.Hour)}, "half_open", false},
		{store.LaneStats{BreakerOpen: true}, "half_open", false},
	} {
		f := newFake()
		f.counts = []store.TopicStats{{Topic: "a", Registered: 1, OpenBreakers: 1}}
		f.lanes = []store.LaneStats{c.lane}
		f.lanes[0].Lane = "b"
		got := decodeResponse(t, call(t, handlerOf(f), http.MethodGet, "/v1/topics/a/stats", ""))
		require.EqualValues(t, 1, got["breakers_open"])
		lanes, _ := got["items"].([]any)
		lane, _ := lanes[0].(map[string]any)
		require.Equal(t, c.breaker, lane["breaker"])
		require.Equal(t, c.until, lane["cooldown_until"] != nil)
	}
}

func TestPutLane_NamesTheFieldThatTheServiceRefuses(t *testing.T) {
	f := newFake()
	f.bad = &job.InvalidError{Errors: []job.FieldError{{Field: "/url", Detail: "may not be called"}}}
	w := call(t, handlerOf(f), http.MethodPut, "/v1/topics/a/lanes/b", `{"url": "http://169.254.169.254/"}`)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Equal(t, []string{"/url"}, problemIn(t, w).fields())
}

func TestTroubledLanes_AreBoundedAndThoseThatTheTokenMaySee(t *testing.T) {
	valid, _ := access.NewText()
	p := &access.Principal{Role: access.Read, Namespace: "default"}
	h := New(Options{Service: withTokens(fullService(), map[string]*access.Principal{valid: p}), Logger: quiet})
	ask := func(status int, query string) map[string]any {
		t.Helper()
		w := call(t, h, http.MethodGet, "/v1/lanes/troubled"+query, "", "Authorization", "Bearer "+valid)
		require.Equal(t, status, w.Code, w.Body)
		return decodeResponse(t, w)
	}
	require.Len(t, ask(http.StatusOK, "")["items"], 2)
	got := ask(http.StatusOK, "?limit=1")
	require.Len(t, got["items"], 1)
	require.EqualValues(t, 2, got["total"])
	for query, field := range map[string]string{
		"?limit=0": "?limit", "?limit=501": "?limit", "?cursor=a": "?cursor", "?topic=a%20b": "?topic",
		"?topic=seen&lane=a%20b": "?lane", "?lane=b": "?lane", "?topic=seen&topic=x": "?topic",
		"?code=due": "?code", "?code=x": "?code",
	} {
		w := call(t, h, http.MethodGet, "/v1/lanes/troubled"+query, "", "Authorization", "Bearer "+valid)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, query)
		require.Equal(t, []string{field}, problemIn(t, w).fields(), query)
	}
	for query, most := range map[string]int{
		"?code=lane_full": 1, "?code=failing": 0,
		"?topic=seen": 1, "?topic=seen&lane=b": 1, "?topic=seen&lane=a": 0, "?topic=unknown": 0,
	} {
		require.Len(t, ask(http.StatusOK, query)["items"], most, query)
	}
	p.Topics = access.Topics{"order.*"}
	require.Empty(t, ask(http.StatusOK, "?topic=seen&lane=b")["items"])
	got = ask(http.StatusOK, "")
	require.EqualValues(t, 1, got["total"])
	lanes, _ := got["items"].([]any)
	lane, _ := lanes[0].(map[string]any)
	require.Equal(t, "order.close", lane["topic"])
	p.Topics = access.Topics{"invoice.*"}
	require.Empty(t, ask(http.StatusOK, "")["items"])
	p.Topics, p.Namespace = nil, "other"
	require.Empty(t, ask(http.StatusOK, "")["items"])
}
