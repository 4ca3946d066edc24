package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestWork_StartsListsAndStops(t *testing.T) {
	f := newFake()
	f.work = store.Work{
		ID: "w1", State: store.WorkRunning, CreatedAt: time.UnixMilli(1000).UTC(), Total: 9,
		ETA: time.UnixMilli(9000).UTC(), WorkCounts: store.WorkCounts{
			Matched: 3, Done: 2, Skipped: 1,
			Failures: []store.WorkFailure{{ID: "a", Reason: "not found"}},
		},
	}
	h := handlerOf(f)
	w := call(t, h, http.MethodPost, "/v1/work", `{"action": "revive", "where": {"topic": "orders", "status": 500},
		"change": {"url": "https://a.example/", "delay": "1m", "expires_in": "1h"}, "rate": "50/s", "lane_rate": `+
		`"5/s"}`)
	require.Equal(t, http.StatusAccepted, w.Code, w.Body)
	require.Equal(t, "/v1/work/w1", w.Header().Get("Location"))
	require.JSONEq(t, `{"id": "w1", "action": "revive", "where": {"topic": "orders", "status": 500},
		"change": {"url": "https://a.example/", "delay": "1m", "expires_in": "1h"}, "rate": "50/s", "lane_rate": "5/s",
		"state": "running", "waiting_for": null, "total": 9,
		"matched": 3, "exact": false, "done": 2, "failed": 0, "skipped": 1,
		"failures": [{"id": "a", "reason": "not found"}], "created_at": "1970-01-01T00:00:01.000Z", "ended_at": null,
		"eta_at": "1970-01-01T00:00:09.000Z", "created_by": null}`, w.Body.String())
	require.Equal(t, job.DefaultNamespace, f.order.Filter.Namespace)
	require.Equal(t, "orders", f.order.Filter.Topic)
	require.Equal(t, job.KindRegistered, f.order.Filter.Kind)
	require.Equal(t, policy.Rate{Starts: 50, Per: time.Second}, f.order.Rate)

	require.Contains(t, call(t, h, http.MethodGet, "/v1/work/w1", "").Body.String(), `"state":"running"`)
	require.Contains(t, call(t, h, http.MethodGet, "/v1/work?limit=3", "").Body.String(), `"next_cursor":null`)
	require.Equal(t, 3, f.filter.Limit)
	call(t, h, http.MethodGet, "/v1/work", "")
	require.Equal(t, 50, f.filter.Limit)
	require.Equal(t, []string{"?limit"}, problemIn(t, call(t, h, http.MethodGet, "/v1/work?limit=101", "")).fields())
	require.Contains(t, call(t, h, http.MethodPost, "/v1/work/w1/stop", "").Body.String(), `"state":"stopped"`)
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, "/v1/work/w2", "").Code)
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodPost, "/v1/work/w2/stop", "").Code)

	f.bad = &job.QuotaError{Quota: "unfinished work", Limit: "100", RetryAfter: time.Minute}
	w = call(t, h, http.MethodPost, "/v1/work", `{"action": "purge", "where": {"all": true}}`)
	require.Equal(t, http.StatusTooManyRequests, w.Code, w.Body)
	require.Equal(t, "60", w.Header().Get("Retry-After"))
}

func TestWork_HasTheStatesOfItsAction(t *testing.T) {
	for body, states := range map[string][]job.State{
		`"action": "revive"`:                         {job.Dead},
		`"action": "purge"`:                          {job.Dead},
		`"action": "cancel"`:                         {job.Scheduled, job.Ready, job.Running},
		`"action": "run"`:                            {job.Scheduled},
		`"action": "edit", "change": {"retries": 1}`: {job.Scheduled, job.Ready, job.Running},
		`"action": "purge", "where": {"state": "delivered,cancelled"}`:                 {job.Cancelled, job.Delivered},
		`"action": "revive", "where": {"state": ["delivered"], "ids": ["a", "a"]}`:     {job.Delivered},
		`"action": "cancel", "where": {"all": true, "state": "ready"}, "change": null`: {job.Ready},
	} {
		f := newFake()
		if !strings.Contains(body, "where") {
			body += `, "where": {"topic": "a"}`
		} else if !strings.Contains(body, "ids") && !strings.Contains(body, "all") {
			body = strings.Replace(body, `"where": {`, `"where": {"topic": "a", `, 1)
		}
		w := call(t, handlerOf(f), http.MethodPost, "/v1/work", "{"+body+"}")
		require.Equal(t, http.StatusAccepted, w.Code, "%s: %s", body, w.Body)
		require.Equal(t, states, f.order.Filter.States, body)
	}
}

func TestWork_OrdersAnEditLikePATCH(t *testing.T) {
	f := newFake()
	w := call(t, handlerOf(f), http.MethodPost, "/v1/work", `{"action": "edit", "where": {"topic": "a"}, "change": `+
		`{"url": "https://b.example/",
		"headers": {"authorization": "Bearer hunter2", "x-a": "1"}, "labels": null, "ladder": ["1s"], "retries": 3, `+
		`"timeout": "1s", "delay": "1h",
		"expires_at": null}}`)
	require.Equal(t, http.StatusAccepted, w.Code, w.Body)
	e := f.order.Edit
	require.ElementsMatch(t, []string{"url", "headers", "labels", "ladder", "retries", "timeout"}, e.Fields)
	require.Equal(t, "https://b.example/", e.Spec.URL)
	require.Equal(t, map[string][]string{"Authorization": {"Bearer hunter2"}, "X-A": {"1"}}, e.Spec.Header)
	require.Equal(t, 3, *e.Spec.Retries)
	require.Equal(t, &job.TimeOrDelay{In: time.Hour}, e.Due)
	require.Equal(t, &job.TimeOrDelay{}, e.Expiry)
	require.Contains(t, w.Body.String(), `"authorization":"[redacted]"`)
	require.NotContains(t, w.Body.String(), "hunter2")
	require.NotContains(t, string(f.order.Change), "hunter2", "it is stored only where it is sealed")
}

func TestWork_OrdersIDsWithoutAFilter(t *testing.T) {
	f := newFake()
	w := call(t, handlerOf(f), http.MethodPost, "/v1/work", `{"action": "purge", "where": {"ids": ["a", "b", "a"]}}`)
	require.Equal(t, http.StatusAccepted, w.Code, w.Body)
	require.Equal(t, []string{"a", "b"}, f.order.IDs, "each once")
	require.Contains(t, w.Body.String(), `"where":{"ids_count":2}`)
}

func TestWork_CountsInADryRun(t *testing.T) {
	f := newFake()
	f.groups = store.Groups{Exact: true, Groups: []store.Group{
		{GroupKey: store.GroupKey{Topic: "orders", Reason: policy.ReasonExhausted}, Count: 3},
		{GroupKey: store.GroupKey{Topic: "mails"}, Count: 1},
		{GroupKey: store.GroupKey{Topic: "_work"}, Count: 1},
	}}
	h := handlerOf(f)
	for _, where := range []string{`{"all": true}`, `{"ids": ["a", "b"]}`} {
		w := call(t, h, http.MethodPost, "/v1/work", `{"action": "revive", "where": `+where+`, "dry_run": true}`)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.JSONEq(t, `{"dry_run": true, "matched": 4, "exact": true, "groups": [
			{"topic": "orders", "reason": "exhausted", "count": 3}, {"topic": "mails", "reason": null, "count": 1}]}`,
			w.Body.String())
		require.Equal(t, []job.State{job.Dead}, f.filter.States)
	}
	require.Zero(t, f.by.Within)
	for _, path := range []string{"/v1/work", "/v1/dead/revive", "/v1/dead/purge"} {
		order := func(dry string) string {
			if path == "/v1/work" {
				return `{"action": "purge", "where": {"all": true}, "dry_run": ` + dry + `}`
			}
			return `{"all": true, "dry_run": ` + dry + `}`
		}
		require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, path+"?within=1.5s", order("true")).Code)
		require.Equal(t, 1500*time.Millisecond, f.by.Within, path)
		for _, refused := range []string{"0s", "0", "11s", "-1s", "soon"} {
			w := call(t, h, http.MethodPost, path+"?within="+refused, order("true"))
			require.Equal(t, []string{"?within"}, problemIn(t, w).fields(), refused)
		}
		require.Equal(t, []string{"?within"},
			problemIn(t, call(t, h, http.MethodPost, path+"?within=1s", order("false"))).fields())
	}
	require.Empty(t, f.order.Action, "nothing is started")
}

func TestWork_NamesEveryFault(t *testing.T) {
	for body, field := range map[string]string{
		`{"where": {"all": true}}`:                                         "/action",
		`{"action": "melt", "where": {"all": true}}`:                       "/action",
		`{"action": "purge"}`:                                              "/where",
		`{"action": "purge", "where": {}}`:                                 "/where",
		`{"action": "purge", "where": {"all": false}}`:                     "/where",
		`{"action": "purge", "where": {"state": "dead"}}`:                  "/where",
		`{"action": "purge", "where": {"all": true, "topic": "a"}}`:        "/where/all",
		`{"action": "purge", "where": {"ids": ["a"], "topic": "a"}}`:       "/where/ids",
		`{"action": "purge", "where": {"topic": "a b"}}`:                   "/where/topic",
		`{"action": "cancel", "where": {"topic": "_work"}}`:                "/where/topic",
		`{"action": "cancel", "where": {"kind": "work"}}`:                  "/where/topic",
		`{"action": "purge", "where": {"topic": "a", "state": "running"}}`: "/where/state",
		`{"action": "purge", "where": {"topic": "a", "state": []}}`:        "/where/state",
		`{"action": "run", "where": {"topic": "a", "state": "ready"}}`:     "/where/state",
		`{"action": "cancel", "where": {"topic": "a", "ended_after": ` +
			`"2030-01-31T08:00:00Z"}}`: "/where/ended_after",
		`{"action": "purge", "where": {"all": true}, "change": {"url": "https://a.example/"}}`: "/change",
		`{"action": "cancel", "where": {"all": true}, "change": {}}`:                           "/change",
		`{"action": "edit", "where": {"all": true}}`:                                           "/change",
		`{"action": "edit", "where": {"all": true}, "change": {}}`:                             "/change",
		`{"action": "edit", "where": {"all": true}, "change": []}`:                             "/change",
		`{"action": "edit", "where": {"all": true}, "change": {"url": "ftp://a"}}`:             "/change/url",
		`{"action": "edit", "where": {"all": true}, "change": {"body": 1}}`:                    "/change/body",
		`{"action": "edit", "where": {"all": true}, "change": {"topic": ` +
			`"b"}}`: "/change/topic",
		`{"action": "edit", "where": {"all": true}, "change": {"retries": 1}, "rate": "1/s"}`: "/rate",
		`{"action": "purge", "where": {"all": true}, "rate": "1/s"}`:                          "/rate",
		`{"action": "revive", "where": {"all": true}, "change": {"delay": ` +
			`"1m"}}`: "/change/delay",
		`{"action": "revive", "where": {"all": true}, "change": {"url": "ftp://a"}}`: "/change/url",
		`{"action": "revive", "where": {"all": true}, "change": {"body": "x"}}`:      "/change/body",
		`{"action": "revive", "where": {"all": true}, "change": {"headers": {"cookie": ` +
			`"[redacted]"}}}`: "/change/headers/cookie",
	} {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPost, "/v1/work", body)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, "%s: %s", body, w.Body)
		require.Contains(t, w.Body.String(), fmt.Sprintf(`"field":"%s"`, field), body)
		require.Empty(t, f.order.Action, body)
	}
	w := call(t, handlerOf(newFake()), http.MethodPost, "/v1/work",
		`{"action": "edit", "where": {"all": true}, "change": {"retries": 1, "retries": 2}}`)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "/change/retries")
}

// A token that is restricted to topics starts work for one of them, and reads, lists and stops exactly that.
func TestWork_OfARestrictedToken(t *testing.T) {
	valid, _ := access.NewText()
	f := withTokens(newFake(), map[string]*access.Principal{
		valid: {Role: access.Operate, Namespace: "shop", Topics: access.Topics{"order.*"}},
	})
	h := New(Options{Service: f, Logger: quiet})
	ask := func(status int, method, path, body string) string {
		t.Helper()
		w := call(t, h, method, path, body, "Authorization", "Bearer "+valid)
		require.Equal(t, status, w.Code, w.Body)
		return w.Body.String()
	}
	f.work = store.Work{ID: "w1", State: store.WorkRunning}
	ask(http.StatusForbidden, http.MethodPost, "/v1/work", `{"action": "cancel", "where": {"topic": "mails"}}`)
	ask(http.StatusForbidden, http.MethodPost, "/v1/work", `{"action": "cancel", "where": {"all": true}}`)
	ask(http.StatusForbidden, http.MethodPost, "/v1/work", `{"action": "cancel", "where": {"ids": ["a"]}}`)
	ask(http.StatusNotFound, http.MethodGet, "/v1/work/w1", "")
	ask(http.StatusNotFound, http.MethodPost, "/v1/work/w1/stop", "")
	require.Equal(t, store.WorkRunning, f.work.State)
	require.Contains(t, ask(http.StatusOK, http.MethodGet, "/v1/work", ""), `"items":[]`)
	ask(http.StatusAccepted, http.MethodPost, "/v1/work", `{"action": "cancel", "where": {"topic": "order.close"}}`)
	ask(http.StatusOK, http.MethodGet, "/v1/work/w1", "")
	require.Contains(t, ask(http.StatusOK, http.MethodGet, "/v1/work", ""), `"id":"w1"`)
	ask(http.StatusOK, http.MethodPost, "/v1/work/w1/stop", "")
	require.Equal(t, store.WorkStopped, f.work.State)
}

func TestReplay_SelectsEventsAndLanes(t *testing.T) {
	f := fullService()
	h := handlerOf(f)
	w := call(t, h, http.MethodPost, "/v1/work", `{"action": "replay", "rate": "10/s", "where": {"topic": "order.close",
		"type": "order.paid", "lane": "b", "state": "missed,dead", "created_after": "2030-01-31T08:00:00Z"}}`)
	require.Equal(t, http.StatusAccepted, w.Code, w.Body)
	require.Equal(t, store.WorkReplay, f.order.Action)
	require.Equal(t, "b", f.order.Filter.Lane)
	require.Equal(t, []job.State{job.Dead, store.Missed}, f.order.Filter.States)
	require.Equal(t, []store.Label{{Key: job.LabelEvent, Value: "order.paid"}}, f.order.Filter.Labels)
	w = call(t, h, http.MethodPost, "/v1/work",
		`{"action": "replay", "where": {"ids": ["e1", "e2"], "lane": "b", "state": "dead"}, "dry_run": true}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, []string{"e1", "e2"}, f.order.IDs)
	for where, fields := range map[string][]string{
		`{"all": true, "state": "ready"}`: {"/where/state"},
		`{"topic": "a", "type": "a.*"}`:   {"/where/type"},
		`{"lane": "b"}`:                   {"/where/topic"},
		`{"topic": "a", "status": 503, "due_after": "2030-01-31T08:00:00Z"}`: {"/where/status", "/where/due_after"},
		`{"ids": ["e"], "topic": "a"}`:                                       {"/where/ids"},
	} {
		w := call(t, h, http.MethodPost, "/v1/work", `{"action": "replay", "where": `+where+`}`)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, where)
		require.ElementsMatch(t, fields, problemIn(t, w).fields(), where)
	}
	w = call(t, h, http.MethodPost, "/v1/work", `{"action": "cancel", "where": {"topic": "a", "type": "b"}}`)
	require.Equal(t, []string{"/where/type"}, problemIn(t, w).fields())
	w = call(t, h, http.MethodPost, "/v1/work",
		`{"action": "replay", "where": {"all": true}, "change": {"url": "https://a.example"}}`)
	require.Equal(t, []string{"/change"}, problemIn(t, w).fields())
}
