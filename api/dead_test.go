package api

import (
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

func TestDead_IsAShortFormOfWork(t *testing.T) {
	after := time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC)
	for body, want := range map[string]struct {
		filter store.Filter
		ids    []string
		where  string
	}{
		`{"topic": "t"}`: {filter: store.Filter{Topic: "t"}, where: `{"topic": "t"}`},
		`{"all": true}`:  {where: `{"all": true}`},
		`{"all": true, "topic": null, "ids": null, "dry_run": false}`: {where: `{"all": true}`},
		`{"ids": ["a", "rb:a:0", ` +
			`"a"]}`: {ids: []string{"a", "rb:a:0"}, where: `{"ids_count": 2}`},
		`{"topic": "t", "lane": "l", "label": "a:b:c", "reason": "exhausted", "status": 503, "ended_after": ` +
			`"2030-01-31T08:00:00Z",
			"ended_before": "2030-01-31T09:00:00Z", "all": false}`: {filter: store.Filter{
			Topic: "t", Lane: "l", Labels: []store.Label{{Key: "a", Value: "b:c"}}, Reason: policy.ReasonExhausted,
			Status: 503, Ended: store.TimeRange{After: after, Before: after.Add(time.Hour)},
		}},
		`{"label": ["a:b", "c:d"], "id_prefix": "o", "error_class": "any", ` +
			`"created_after": "2030-01-31T08:00:00Z", ` +
			`"due_before": "2030-01-31T08:00:00Z", "lane": "l"}`: {filter: store.Filter{
			Labels: []store.Label{{Key: "a", Value: "b"}, {Key: "c", Value: "d"}}, IDPrefix: "o", Lane: "l",
			ErrorClass: store.AnyError,
			Created:    store.TimeRange{After: after}, Due: store.TimeRange{Before: after},
		}},
	} {
		want.filter.Namespace, want.filter.Kind, want.filter.States = "default", job.KindRegistered,
			[]job.State{job.Dead}
		for path, action := range map[string]store.WorkAction{
			"/v1/dead/revive": store.WorkRevive, "/v1/dead/purge": store.WorkPurge,
		} {
			f := newFake()
			w := call(t, handlerOf(f), http.MethodPost, path, body)
			require.Equal(t, http.StatusAccepted, w.Code, w.Body.String())
			require.Equal(t, "/v1/work/"+f.work.ID, w.Header().Get("Location"))
			require.Equal(t, want.filter, f.order.Filter, body)
			require.Equal(t, want.ids, f.order.IDs, body)
			require.Equal(t, action, f.order.Action)
			if want.where != "" {
				require.JSONEq(t, want.where, string(f.order.Where))
			}
		}
	}
}

func TestReviveDead_TakesAPaceAndChanges(t *testing.T) {
	f := newFake()
	w := call(t, handlerOf(f), http.MethodPost, "/v1/dead/revive", `{"topic": "t", "rate": "50/s", "lane_rate": `+
		`"5/90s", "url": "https://b.example/",
		"headers": {"authorization": "Bearer hunter2"}, "delay": 1.5, "expires_in": "1h"}`)
	require.Equal(t, http.StatusAccepted, w.Code, w.Body.String())
	require.Equal(t, policy.Rate{Starts: 50, Per: time.Second}, f.order.Rate)
	require.Equal(t, policy.Rate{Starts: 5, Per: 90 * time.Second}, f.order.LaneRate)
	require.Equal(t, "https://b.example/", f.order.URL)
	require.Equal(t, map[string][]string{"Authorization": {"Bearer hunter2"}}, f.order.Header)
	require.Equal(t, 1500*time.Millisecond, f.order.Delay)
	require.Equal(t, time.Hour, f.order.ExpiresIn)
	require.JSONEq(t, `{"url": "https://b.example/", "headers": {"authorization": "[redacted]"}, "delay": 1.5, `+
		`"expires_in": "1h"}`, string(f.order.Change))
	require.NotContains(t, w.Body.String(), "hunter2")
	h := handlerOf(f)
	for _, body := range []string{
		`{"topic": "t", "delay": "1s"}`, `{"topic": "t", "rate": "", "delay": "1s"}`,
		`{"topic": "t", "rate": "5/s", "delay": "3654d"}`,
		`{"topic": "t", "rate": "5/s", "delay": "-1s"}`, `{"topic": "t", "rate": "5/s", "delay": "soon"}`,
	} {
		w := call(t, h, http.MethodPost, "/v1/dead/revive", body)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, body)
		require.Equal(t, []string{"/delay"}, problemIn(t, w).fields(), body)
	}
	w = call(t, h, http.MethodPost, "/v1/dead/purge", `{"topic": "t", "delay": "1s"}`)
	require.Equal(t, []string{"/delay"}, problemIn(t, w).fields())
	f.bad = &job.InvalidError{Errors: []job.FieldError{{Field: "/change/url", Detail: "may not be called"}}}
	w = call(t, h, http.MethodPost, "/v1/dead/revive", `{"all": true, "url": "http://169.254.169.254/"}`)
	require.Equal(t, []string{"/url"}, problemIn(t, w).fields(), "where the request has it")
	f.bad, f.err = nil, store.ErrUnavailable
	require.Equal(t, http.StatusServiceUnavailable, call(t, h, http.MethodPost, "/v1/dead/purge", `{"all": true}`).Code)
}

func TestSelection_RefusesEmptyAndContradictoryOnes(t *testing.T) {
	many := `{"ids": ["` + strings.Repeat(`a","`, request.MaxSelectedIDs) + `a"]}`
	for body, fields := range map[string][]string{
		`{}`:                                    {""},
		`{"dry_run": true}`:                     {""},
		`{"all": false}`:                        {""},
		`{"topic": null, "ids": null}`:          {""},
		`{"topic": ""}`:                         {"/topic"},
		`{"ids": []}`:                           {"/ids"},
		`{"ids": ["a", "a b", 5, "a.b"]}`:       {"/ids/1", "/ids/2", "/ids/3"},
		`{"ids": "a"}`:                          {"/ids"},
		many:                                    {"/ids"},
		`{"ids": ["a"], "topic": "t"}`:          {"/ids"},
		`{"all": true, "topic": "t"}`:           {"/all"},
		`{"all": true, "ids": ["a"]}`:           {"/all"},
		`{"all": "yes"}`:                        {"/all"},
		`{"topic": "t", "lane": ""}`:            {"/lane"},
		`{"kind": "x"}`:                         {"/kind"},
		`{"topic": "a b", "lane": "b/c"}`:       {"/topic", "/lane"},
		`{"reason": "tired", "status": 0}`:      {"/reason", "/status"},
		`{"error_class": "broken"}`:             {"/error_class"},
		`{"error_class": "dns", "status": 500}`: {"/error_class"},
		`{"status": "503", "ended_after": 5, "ended_before": "now", "label": "x", "dry_run": 1, ` +
			`"x": 1}`: {"/status", "/ended_after", "/ended_before", "/label", "/dry_run", "/x"},
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
		`{"rate": "5/s"}`: {""},
	} {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPost, "/v1/dead/revive", body)
		require.ElementsMatch(t, fields, problemIn(t, w).fields(), w.Body.String())
		f.requireUnchanged(t)
	}
	f := newFake()
	w = call(t, handlerOf(f), http.MethodPost, "/v1/dead/purge",
		`{"all": true, "rate": "5/s", "url": "https://a.example/"}`)
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
	require.Equal(t, http.StatusAccepted, w.Code, "%.300s", w.Body.String())
	require.Equal(t, ids, f.order.IDs)
}
