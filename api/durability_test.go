package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestDurability_IsInAnswersToChanges(t *testing.T) {
	for _, c := range []struct {
		target, body string
		state        job.State
	}{
		{"POST /v1/jobs", `{"id": "a"}`, job.Scheduled},
		{"POST /v1/jobs", `{"id": "b"}`, job.Scheduled},
		{"PATCH /v1/jobs/a", `{"retries": 1}`, job.Scheduled},
		{"POST /v1/jobs/a/run", ``, job.Scheduled},
		{"POST /v1/jobs/a/revive", ``, job.Dead},
		{"DELETE /v1/jobs/a", ``, job.Scheduled},
		{"DELETE /v1/jobs/a", ``, job.Running},
		{"PUT /v1/topics/a", `{}`, ""},
		{"PATCH /v1/topics/a", `{"retries": 1}`, ""},
		{"POST /v1/topics/a/pause", ``, ""},
		{"POST /v1/topics/a/resume", ``, ""},
		{"PUT /v1/topics/a/lanes/b", `{"url": "http://a.example/"}`, ""},
		{"PATCH /v1/topics/a/lanes/b", `{"lane_concurrency": 2}`, ""},
		{"POST /v1/topics/a/lanes/b/pause", ``, ""},
	} {
		for _, reached := range []*job.Durability{nil, {}, {Replicas: 2}, {Replicas: 1, Synced: true}} {
			f := newFake()
			f.jobs["a"] = job.Job{Progress: job.Progress{State: c.state, Version: 1}, Durability: reached}
			f.topics["a"] = store.Topic{Name: "a", Revision: 1, Durability: reached}
			f.own["a/b"] = store.Lane{Durability: reached}
			f.register = func(n job.New) store.RoutedResult {
				return store.RoutedResult{InsertResult: store.InsertResult{
					Outcome: store.Created,
					Job:     job.Job{Spec: n.Spec, Durability: reached},
				}}
			}
			method, path, _ := strings.Cut(c.target, " ")
			got := decodeResponse(t, call(t, handlerOf(f), method, path, c.body))
			if reached == nil {
				require.Contains(t, got, "durability", c.target)
				require.Nil(t, got["durability"], c.target)
				continue
			}
			require.Equal(t, map[string]any{"replicas": float64(reached.Replicas), "synced": reached.Synced},
				got["durability"], c.target)
		}
	}
}

func TestDurability_IsNotInAnswersToReads(t *testing.T) {
	f := newFake()
	reached := &job.Durability{Replicas: 1}
	f.jobs["a"] = job.Job{Spec: job.Spec{ID: "a"}, Durability: reached}
	f.page = store.Page{Jobs: []job.Job{f.jobs["a"]}}
	f.topics["a"] = store.Topic{Name: "a", Durability: reached}
	f.own["a/b"] = store.Lane{Settings: policy.Lane{Paused: true}, Durability: reached}
	for _, path := range []string{
		"/v1/jobs/a", "/v1/jobs?topic=a&state=dead", "/v1/dead", "/v1/topics/a", "/v1/topics",
		"/v1/topics/a/lanes/b", "/v1/topics/a/lanes",
	} {
		w := call(t, handlerOf(f), http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, w.Code)
		require.NotContains(t, w.Body.String(), `"durability":{`, path)
	}
}
