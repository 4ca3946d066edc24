package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestDead_RevivesAndPurgesByAFilterOrIDs(t *testing.T) {
	after := time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		body  string
		which store.Selection
	}{
		{`{"topic": "t"}`, store.Selection{Filter: store.Filter{Topic: "t"}}},
		{`{"all": true}`, store.Selection{}},
		{`{"all": true, "topic": null, "ids": null, "dry_run": true}`, store.Selection{DryRun: true}},
		{`{"ids": ["a", "rb:a:0"], "dry_run": false}`, store.Selection{IDs: []string{"a", "rb:a:0"}}},
		{
			`{"topic": "t", "lane": "l", "label": "a:b:c", "reason": "exhausted", "status": 503, "ended_after": "2030-01-31T08:00:00Z",
				"ended_before": "2030-01-31T09:00:00Z", "dry_run": true, "all": false}`,
			store.Selection{DryRun: true, Filter: store.Filter{
				Topic: "t", Lane: "l", Labels: []store.Label{{Key: "a", Value: "b:c"}}, Reason: policy.ReasonExhausted, Status: 503,
				Ended: store.TimeRange{After: after, Before: after.Add(time.Hour)},
			}},
		},
		{`{"status": 503}`, store.Selection{Filter: store.Filter{Status: 503}}},
		{`{"ended_before": "2030-01-31T08:00:00Z"}`, store.Selection{Filter: store.Filter{Ended: store.TimeRange{Before: after}}}},
		{
			`{"label": ["a:b", "c:d"], "id_prefix": "o", "created_after": "2030-01-31T08:00:00Z", "due_before": "2030-01-31T08:00:00Z", "lane": "l"}`,
			store.Selection{Filter: store.Filter{
				Labels: []store.Label{{Key: "a", Value: "b"}, {Key: "c", Value: "d"}}, IDPrefix: "o", Lane: "l",
				Created: store.TimeRange{After: after}, Due: store.TimeRange{Before: after},
			}},
		},
	} {
		c.which.Filter.Namespace, c.which.Filter.Kind, c.which.Filter.States = "default", job.KindRegistered, []job.State{job.Dead}
		for path, done := range map[string]string{"/v1/dead/revive": "revived", "/v1/dead/purge": "purged"} {
			f := newFake()
			f.worked = store.BulkResult{Matched: 7, Done: 5}
			w := call(t, handlerOf(f), http.MethodPost, path, c.body)
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			require.Equal(t, []store.Selection{c.which}, f.which, c.body)
			want := map[string]any{"dry_run": c.which.DryRun, "matched": 7.0, done: 5.0, "failed": []any{}, "more": false}
			if done == "revived" {
				want["next_delay"] = nil
			}
			require.Equal(t, want, decodeResponse(t, w))
			require.Zero(t, f.plan)
		}
	}
}

func TestReviveDead_TakesAPaceAndAURL(t *testing.T) {
	f := newFake()
	w := call(t, handlerOf(f), http.MethodPost, "/v1/dead/revive", `{"topic": "t", "rate": "50/s", "lane_rate": "5/90s", "url": "https://b.example/"}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, store.RevivePlan{
		Rate: policy.Rate{Starts: 50, Per: time.Second}, LaneRate: policy.Rate{Starts: 5, Per: 90 * time.Second}, URL: "https://b.example/",
	}, f.plan)
	w = call(t, handlerOf(f), http.MethodPost, "/v1/dead/revive", `{"ids": ["a"], "rate": "50/s", "lane_rate": "", "url": null, "delay": null}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, store.RevivePlan{Rate: policy.Rate{Starts: 50, Per: time.Second}}, f.plan)
	require.Contains(t, w.Body.String(), `"next_delay":null`)
}

func TestReviveDead_ContinuesThePaceAfterADelay(t *testing.T) {
	f := newFake()
	f.worked = store.BulkResult{Matched: 6000, Done: 6000, More: true, NextDelay: 2*time.Minute + 20*time.Microsecond}
	h := handlerOf(f)
	got := decodeResponse(t, call(t, h, http.MethodPost, "/v1/dead/revive", `{"topic": "t", "rate": "50/s"}`))
	require.Equal(t, "2m1ms", got["next_delay"], "rounded so that no start is too early")
	for body, delay := range map[string]time.Duration{
		`{"topic": "t", "rate": "50/s", "delay": "2m0.001s"}`: 2*time.Minute + time.Millisecond,
		`{"topic": "t", "lane_rate": "5/s", "delay": 1.5}`:    1500 * time.Millisecond,
		`{"ids": ["a"], "rate": "5/s", "delay": "0s"}`:        0,
	} {
		require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, "/v1/dead/revive", body).Code, body)
		require.Equal(t, delay, f.plan.Delay, body)
	}
	for _, body := range []string{
		`{"topic": "t", "delay": "1s"}`, `{"topic": "t", "rate": "", "delay": "1s"}`, `{"topic": "t", "rate": "5/s", "delay": "3654d"}`,
		`{"topic": "t", "rate": "5/s", "delay": "-1s"}`, `{"topic": "t", "rate": "5/s", "delay": "soon"}`,
	} {
		w := call(t, h, http.MethodPost, "/v1/dead/revive", body)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, body)
		require.Equal(t, []string{"/delay"}, problemIn(t, w).fields(), body)
	}
	w := call(t, h, http.MethodPost, "/v1/dead/purge", `{"topic": "t", "delay": "1s"}`)
	require.Equal(t, []string{"/delay"}, problemIn(t, w).fields())
}

func TestSelection_RefusesEmptyAndContradictoryOnes(t *testing.T) {
	many := `{"ids": ["` + strings.Repeat(`a","`, request.MaxSelectedIDs) + `a"]}`
	for body, fields := range map[string][]string{
		`{}`:                               {""},
		`{"dry_run": true}`:                {""},
		`{"all": false}`:                   {""},
		`{"topic": null, "ids": null}`:     {""},
		`{"topic": ""}`:                    {"/topic"},
		`{"ids": []}`:                      {"/ids"},
		`{"ids": ["a", "a b", 5, "a.b"]}`:  {"/ids/1", "/ids/2", "/ids/3"},
		`{"ids": "a"}`:                     {"/ids"},
		many:                               {"/ids"},
		`{"ids": ["a"], "topic": "t"}`:     {"/ids"},
		`{"all": true, "topic": "t"}`:      {"/all"},
		`{"all": true, "ids": ["a"]}`:      {"/all"},
		`{"all": "yes"}`:                   {"/all"},
		`{"topic": "t", "lane": ""}`:       {"/lane"},
		`{"kind": "x"}`:                    {"/kind"},
		`{"topic": "a b", "lane": "b/c"}`:  {"/topic", "/lane"},
		`{"reason": "tired", "status": 0}`: {"/reason", "/status"},
		`{"status": "503", "ended_after": 5, "ended_before": "now", "label": "x", "dry_run": 1, "x": 1}`: {"/status", "/ended_after", "/ended_before", "/label", "/dry_run", "/x"},
		`[]`: {""},
	} {
		for _, path := range []string{"/v1/dead/revive", "/v1/dead/purge"} {
			f := newFake()
			w := call(t, handlerOf(f), http.MethodPost, path, body)
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, body)
			p := problemIn(t, w)
			require.ElementsMatch(t, fields, p.fields(), "%.200s", w.Body.String())
			f.requireUnchanged(t)
		}
	}
	w := call(t, handlerOf(newFake()), http.MethodPost, "/v1/dead/purge", `{}`)
	require.Contains(t, problemIn(t, w).Errors[0].Detail, `"all": true`)

	for body, fields := range map[string][]string{
		`{"all": true, "rate": "x", "lane_rate": 5, "url": "ftp://a"}`: {"/rate", "/lane_rate", "/url"},
		`{"ids": ["a"], "lane_rate": "5/s"}`:                           {"/lane_rate"},
		`{"rate": "5/s"}`:                                              {""},
	} {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPost, "/v1/dead/revive", body)
		require.ElementsMatch(t, fields, problemIn(t, w).fields(), w.Body.String())
		f.requireUnchanged(t)
	}
	f := newFake()
	w = call(t, handlerOf(f), http.MethodPost, "/v1/dead/purge", `{"all": true, "rate": "5/s", "url": "https://a.example/"}`)
	require.ElementsMatch(t, []string{"/rate", "/url"}, problemIn(t, w).fields(), "a purge has no pace")
	w = call(t, handlerOf(f), http.MethodPost, "/v1/dead/purge", `{"topic": "a", "topic": "b"}`)
	require.Equal(t, http.StatusBadRequest, w.Code)
	w = call(t, handlerOf(f), http.MethodPost, "/v1/dead/purge", "")
	require.Equal(t, http.StatusUnsupportedMediaType, w.Code)
	f.requireUnchanged(t)
}

func TestSelection_FitsTenThousandOfTheLongestIDs(t *testing.T) {
	var ids []string
	for i := range request.MaxSelectedIDs {
		ids = append(ids, fmt.Sprintf("rb:%093d", i))
	}
	f := newFake()
	w := call(t, handlerOf(f), http.MethodPost, "/v1/dead/purge", `{"ids": ["`+strings.Join(ids, `", "`)+`"]}`)
	require.Equal(t, http.StatusOK, w.Code, "%.300s", w.Body.String())
	require.Equal(t, ids, f.which[0].IDs)
}

func TestReviveDead_ReportsFailuresWithoutInternals(t *testing.T) {
	f := newFake()
	astray := &job.InvalidError{Errors: []job.FieldError{{Field: "/headers/Authorization", Detail: "was not for that host"}}}
	f.worked = store.BulkResult{Matched: 3, Done: 1, More: true, Failed: []store.BulkFailure{
		{ID: "a", Err: &store.StateError{State: job.Running}},
		{ID: "b", Err: store.ErrNotFound},
		{ID: "c", Err: errors.New("dial 10.0.0.7: hunter2")},
		{ID: "d", Err: astray},
	}}
	w := call(t, handlerOf(f), http.MethodPost, "/v1/dead/revive", `{"ids": ["a", "b", "c", "d"], "url": "https://b.example/"}`)
	require.Contains(t, w.Body.String(), `"errors":[{"field":"/headers/Authorization","detail":"was not for that host"}]`)
	got := decodeResponse(t, w)
	require.Equal(t, true, got["more"])
	failed, _ := got["failed"].([]any)
	require.Len(t, failed, 4)
	for i, status := range []int{409, 404, 500, 422} {
		one, _ := failed[i].(map[string]any)
		p, _ := one["error"].(map[string]any)
		require.EqualValues(t, status, p["status"])
		require.NotContains(t, p["detail"], "hunter2")
	}

	f.bad = &job.InvalidError{Errors: []job.FieldError{{Field: "/url", Detail: "may not be called"}}}
	w = call(t, handlerOf(f), http.MethodPost, "/v1/dead/revive", `{"all": true, "url": "http://169.254.169.254/"}`)
	require.Equal(t, []string{"/url"}, problemIn(t, w).fields())
	f.bad, f.err = nil, store.ErrUnavailable
	require.Equal(t, http.StatusServiceUnavailable, call(t, handlerOf(f), http.MethodPost, "/v1/dead/purge", `{"all": true}`).Code)
}
