package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestWork_StartsListsAndStops(t *testing.T) {
	f := newFake()
	f.work = store.Work{
		ID: "w1", State: store.WorkRunning, CreatedAt: time.UnixMilli(1000).UTC(),
		WorkCounts: store.WorkCounts{Matched: 3, Done: 2, Skipped: 1, Failures: []store.WorkFailure{{ID: "a", Reason: "not found"}}},
	}
	h := handlerOf(f)
	w := call(t, h, http.MethodPost, "/v1/work", `{"action": "revive", "where": {"topic": "orders", "status": 500},
		"change": {"url": "https://a.example/", "delay": "1m", "expires_in": "1h"}, "rate": "50/s", "lane_rate": "5/s"}`)
	require.Equal(t, http.StatusAccepted, w.Code, w.Body)
	require.JSONEq(t, `{"id": "w1", "action": "revive", "where": {"topic": "orders", "status": 500},
		"change": {"url": "https://a.example/", "delay": "1m", "expires_in": "1h"}, "rate": "50/s", "lane_rate": "5/s",
		"state": "running", "matched": 3, "exact": false, "done": 2, "failed": 0, "skipped": 1,
		"failures": [{"id": "a", "reason": "not found"}], "created_at": "1970-01-01T00:00:01.000Z", "ended_at": null,
		"created_by": null}`, w.Body.String())
	require.Equal(t, job.DefaultNamespace, f.order.Filter.Namespace)
	require.Equal(t, "orders", f.order.Filter.Topic)
	require.Equal(t, job.KindRegistered, f.order.Filter.Kind)
	require.Equal(t, policy.Rate{Starts: 50, Per: time.Second}, f.order.Rate)

	require.Contains(t, call(t, h, http.MethodGet, "/v1/work/w1", "").Body.String(), `"state":"running"`)
	require.Contains(t, call(t, h, http.MethodGet, "/v1/work?limit=3", "").Body.String(), `"next_cursor":null`)
	require.Contains(t, call(t, h, http.MethodPost, "/v1/work/w1/stop", "").Body.String(), `"state":"stopped"`)
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, "/v1/work/w2", "").Code)
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodPost, "/v1/work/w2/stop", "").Code)
}

func TestWork_OrdersIDsWithoutAFilter(t *testing.T) {
	f := newFake()
	w := call(t, handlerOf(f), http.MethodPost, "/v1/work", `{"action": "purge", "where": {"ids": ["a", "b"]}}`)
	require.Equal(t, http.StatusAccepted, w.Code, w.Body)
	require.Equal(t, []string{"a", "b"}, f.order.IDs)
	require.Empty(t, f.order.Filter.Namespace)
	require.Contains(t, w.Body.String(), `"where":null`)
}

func TestWork_CountsInADryRun(t *testing.T) {
	f := newFake()
	f.groups = store.Groups{Exact: true, Groups: []store.Group{
		{GroupKey: store.GroupKey{Topic: "orders", Reason: policy.ReasonExhausted}, Count: 3}, {GroupKey: store.GroupKey{Topic: "mails"}, Count: 1},
	}}
	f.worked.Matched = 2
	h := handlerOf(f)
	w := call(t, h, http.MethodPost, "/v1/work", `{"action": "revive", "where": {"all": true}, "dry_run": true}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.JSONEq(t, `{"dry_run": true, "matched": 4, "exact": true, "groups": [
		{"topic": "orders", "reason": "exhausted", "count": 3}, {"topic": "mails", "reason": null, "count": 1}]}`, w.Body.String())
	w = call(t, h, http.MethodPost, "/v1/work", `{"action": "purge", "where": {"ids": ["a", "b"]}, "dry_run": true}`)
	require.JSONEq(t, `{"dry_run": true, "matched": 2, "exact": true, "groups": []}`, w.Body.String())
	require.Empty(t, f.order.Action, "nothing is started")
}

func TestWork_NamesWhatIsWrong(t *testing.T) {
	for body, field := range map[string]string{
		`{"where": {"all": true}}`:                                                             "/action",
		`{"action": "melt", "where": {"all": true}}`:                                           "/action",
		`{"action": "purge"}`:                                                                  "/where",
		`{"action": "purge", "where": {}}`:                                                     "/where",
		`{"action": "purge", "where": {"all": false}}`:                                         "/where",
		`{"action": "purge", "where": {"all": true, "topic": "a"}}`:                            "/where/all",
		`{"action": "purge", "where": {"ids": ["a"], "topic": "a"}}`:                           "/where/ids",
		`{"action": "purge", "where": {"topic": "a b"}}`:                                       "/where/topic",
		`{"action": "purge", "where": {"state": "dead"}}`:                                      "/where/state",
		`{"action": "purge", "where": {"all": true}, "change": {"url": "https://a.example/"}}`: "/change",
		`{"action": "purge", "where": {"all": true}, "rate": "1/s"}`:                           "/rate",
		`{"action": "revive", "where": {"all": true}, "change": {"delay": "1m"}}`:              "/change/delay",
		`{"action": "revive", "where": {"all": true}, "change": {"body": "x"}}`:                "/change/body",
	} {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPost, "/v1/work", body)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, "%s: %s", body, w.Body)
		require.Contains(t, w.Body.String(), fmt.Sprintf(`"field":"%s"`, field), body)
		require.Empty(t, f.order.Action, body)
	}
}
