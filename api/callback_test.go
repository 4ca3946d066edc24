package api

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestCallback_IsAURLOrAnObject(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	w := call(t, h, http.MethodPost, "/v1/jobs", `{"id": "a", "on_delivered": "https://a.example/callback", `+
		`"on_dead": {"url": "https://b.example/callback",
		"method": "PUT", "headers": {"authorization": "Bearer hunter2", "X-A": ["1", "2"]}, "retries": 0, "timeout": `+
		`"5s", "include": ["body", "query"]}}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.Equal(t, &policy.Callback{URL: "https://a.example/callback"}, f.news[0].OnDelivered)
	require.Equal(t, &policy.Callback{
		URL: "https://b.example/callback", Method: "PUT",
		Headers: map[string][]string{"Authorization": {"Bearer hunter2"}, "X-A": {"1", "2"}},
		Retries: new(0), Timeout: 5 * time.Second, Include: []string{"body", "query"},
	}, f.news[0].OnDead)
	require.NotContains(t, w.Body.String(), "hunter2")
	got := decodeResponse(t, w)
	require.Equal(t, map[string]any{
		"url": "https://a.example/callback", "method": "POST", "headers": nil, "retries": nil,
		"timeout": nil, "include": []any{},
	}, got["on_delivered"], "responses have the object")
	require.Equal(t, map[string]any{
		"url": "https://b.example/callback", "method": "PUT",
		"headers": map[string]any{"Authorization": "[redacted]", "X-A": []any{"1", "2"}},
		"retries": 0.0, "timeout": "5s", "include": []any{"body", "query"},
	}, got["on_dead"])

	w = call(t, h, http.MethodPost, "/v1/jobs", `{"id": "b", "on_delivered": null, "on_dead": {"url": `+
		`"https://b.example/", "method": null, "headers": null,
		"retries": null, "timeout": null, "include": null}}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.Equal(t, &policy.Callback{Off: true}, f.news[1].OnDelivered, "none, also not the topic's")
	require.Equal(t, &policy.Callback{URL: "https://b.example/"}, f.news[1].OnDead)
	require.Equal(t, map[string]any{
		"url": nil, "method": "POST", "headers": nil, "retries": nil, "timeout": nil, "include": []any{},
	}, decodeResponse(t, w)["on_delivered"])
	require.Equal(t, http.StatusUnprocessableEntity, call(t, h, http.MethodPost, "/v1/jobs", `{"on_dead": {}}`).Code)
}

func TestCallback_IsReadInBatchesAndStreams(t *testing.T) {
	for kind, body := range map[string]string{
		"application/json": `{"jobs": [{"id": "a", "on_dead": "https://a.example/"}, {"id": "b", "on_dead": ` +
			`{"url": "x"}}]}`,
		request.ContentTypeNDJSON: "{\"id\": \"a\", \"on_dead\": \"https://a.example/\"}\n{\"id\": \"b\", " +
			"\"on_dead\": {\"url\": \"x\"}}",
	} {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPost, "/v1/batch", body, "Content-Type", kind)
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, w.Body.String(), "/on_dead/url")
		require.Len(t, f.news, 1)
		require.Equal(t, "https://a.example/", f.news[0].OnDead.URL)
	}
}

func TestEdit_RefusesCallbacks(t *testing.T) {
	f := newFake()
	f.jobs["a"] = job.Job{Progress: job.Progress{State: job.Scheduled, Version: 1}}
	w := call(t, handlerOf(f), http.MethodPatch, "/v1/jobs/a",
		`{"on_dead": "https://a.example/", "on_delivered": null}`)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	p := problemIn(t, w)
	require.ElementsMatch(t, []string{"/on_dead", "/on_delivered"}, p.fields())
	require.Contains(t, p.Errors[0].Detail, "cannot be changed")
	f.requireUnchanged(t)
}

func TestTopicCallbacks_AreKeptMergedAndRemoved(t *testing.T) {
	stored := func() policy.Topic {
		return policy.Topic{
			OnDead: &policy.Callback{
				URL: "https://a.example/", Retries: new(5),
				Headers: map[string][]string{"Authorization": {"Bearer x"}, "X-A": {"1"}},
			},
			OnBacklog: &policy.Backlog{
				Callback:  policy.Callback{URL: "https://a.example/", Headers: map[string][]string{"X-Token": {"y"}}},
				OlderThan: time.Minute,
			},
		}
	}
	token := map[string][]string{"Authorization": {"Bearer x"}}
	for _, c := range []struct {
		method, body string
		dead         *policy.Callback
	}{
		{"PUT", `{}`, nil},
		{"PUT", `{"on_dead": null}`, nil},
		{"PUT", `{"on_dead": "https://a.example/"}`, &policy.Callback{URL: "https://a.example/"}},
		{"PUT", `{"on_dead": {"url": ` +
			`"https://a.example/b"}}`, &policy.Callback{URL: "https://a.example/b", Headers: token}},
		{"PUT", `{"on_dead": {"url": "https://a.example/b", "headers": {"authorization": "[redacted]", "x-b": ` +
			`"2"}}}`, &policy.Callback{
			URL: "https://a.example/b", Headers: map[string][]string{"Authorization": {"Bearer x"}, "X-B": {"2"}},
		}},
		{"PUT", `{"on_dead": {"url": "https://b.example/", "headers": {"authorization": "Bearer ` +
			`y"}}}`, &policy.Callback{
			URL: "https://b.example/", Headers: map[string][]string{"Authorization": {"Bearer y"}},
		}},
		{"PUT", `{"on_dead": {"url": "https://b.example/", "headers": {"Authorization": ` +
			`null}}}`, &policy.Callback{URL: "https://b.example/"}},
		{"PUT", `{"on_dead": {"url": "https://b.example/", "headers": ` +
			`null}}`, &policy.Callback{URL: "https://b.example/"}},
		{"PATCH", `{"workers": 1}`, stored().OnDead},
		{"PATCH", `{"on_dead": null}`, nil},
		{"PATCH", `{"on_dead": "https://b.example/"}`, &policy.Callback{URL: "https://b.example/"}},
		{"PATCH", `{"on_dead": {"url": "https://A.example:443/b"}}`, &policy.Callback{
			URL: "https://A.example:443/b", Retries: new(5), Headers: stored().OnDead.Headers,
		}},
		{"PATCH", `{"on_dead": {"url": "https://b.example/", "headers": {"Authorization": null}}}`, &policy.Callback{
			URL: "https://b.example/", Retries: new(5), Headers: map[string][]string{"X-A": {"1"}},
		}},
		{"PATCH", `{"on_dead": {"retries": null, "headers": {"x-a": null}, "timeout": "1s"}}`, &policy.Callback{
			URL: "https://a.example/", Timeout: time.Second, Headers: token,
		}},
	} {
		f := newFake()
		before := stored()
		f.topics["a"] = store.Topic{Name: "a", Revision: 3, Policy: before}
		w := call(t, handlerOf(f), c.method, "/v1/topics/a", c.body)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		require.Equal(t, c.dead, f.topics["a"].Policy.OnDead, "%s %s", c.method, c.body)
		require.Equal(t, stored(), before, "what was stored is not written to")
		require.NotContains(t, w.Body.String(), "Bearer")
	}

	f := newFake()
	f.topics["a"] = store.Topic{Name: "a", Revision: 3, Policy: stored()}
	require.Equal(t, http.StatusOK, call(t, handlerOf(f), http.MethodPatch, "/v1/topics/a",
		`{"on_backlog": {"more_than": 5, "older_than": null}}`).Code)
	want := stored().OnBacklog
	want.OlderThan, want.MoreThan = 0, 5
	require.Equal(t, want, f.topics["a"].Policy.OnBacklog)
	w := call(t, handlerOf(f), http.MethodPatch, "/v1/topics/a", `{"on_backlog": {"url": null, "more_than": null}}`)
	require.ElementsMatch(t, []string{"/on_backlog", "/on_backlog/url"}, problemIn(t, w).fields())
	require.Equal(t, http.StatusOK, call(t, handlerOf(f), http.MethodPut, "/v1/topics/a",
		`{"on_backlog": {"url": "https://a.example/b", "older_than": "5m"}}`).Code)
	require.Equal(t, &policy.Backlog{
		Callback:  policy.Callback{URL: "https://a.example/b", Headers: map[string][]string{"X-Token": {"y"}}},
		OlderThan: 5 * time.Minute,
	}, f.topics["a"].Policy.OnBacklog)
}

func TestCallbackTopic_HasAPolicyAndNoJobsOfClients(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	for _, target := range []string{
		"/v1/topics/_callbacks", "/v1/topics/_callbacks/stats", "/v1/topics/_callbacks/lanes",
	} {
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, target, "").Code, target)
	}
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPut, "/v1/topics/_callbacks", `{"ladder": ["1s"]}`).Code)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPatch, "/v1/topics/_callbacks", `{"workers": 5}`).Code)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, "/v1/topics/_callbacks/pause", "").Code)
	stored := f.topics[job.CallbackTopic].Policy
	require.Equal(t,
		policy.Topic{Ladder: policy.Ladder{time.Second}, Workers: 5, Paused: true, Pause: stored.Pause}, stored)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, "/v1/topics/_callbacks/lanes/a/pause", "").Code)

	w := call(t, h, http.MethodPut, "/v1/topics/_callbacks", `{"on_dead": "https://a.example/", "on_delivered": `+
		`"https://a.example/",
		"on_backlog": {"url": "https://a.example/", "more_than": 5}}`)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.ElementsMatch(t, []string{"/on_dead", "/on_delivered", "/on_backlog"}, problemIn(t, w).fields())
	require.Equal(t, 5, f.topics[job.CallbackTopic].Policy.Workers)

	w = call(t, h, http.MethodPost, "/v1/jobs", `{"topic": "_callbacks"}`)
	require.Equal(t, []string{"/topic"}, problemIn(t, w).fields())
	require.Empty(t, f.news)
	f.page = store.Page{Jobs: []job.Job{{Spec: job.Spec{ID: "rb:a:0", Kind: job.KindCallback, Origin: "a"}}}}
	w = call(t, h, http.MethodGet, "/v1/jobs?topic=_callbacks&state=dead", "")
	require.Contains(t, w.Body.String(), `"kind":"callback","origin":"a"`)
}

func TestTopicCallbacks_NameTheFieldThatTheServiceRefuses(t *testing.T) {
	f := newFake()
	f.bad = &job.InvalidError{Errors: []job.FieldError{{Field: "/on_dead/url", Detail: "may not be called"}}}
	w := call(t, handlerOf(f), http.MethodPut, "/v1/topics/a", `{"on_dead": "http://169.254.169.254/"}`)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Equal(t, []string{"/on_dead/url"}, problemIn(t, w).fields())
}

func TestRedactCallback_HidesSecretHeaders(t *testing.T) {
	for body, want := range map[string]string{
		`{"job": {"headers": {"X-Auth": ["hunter2"], "A": ["1"]}, "body": {"headers": {"Cookie": 1}}}, "response": ` +
			`null}`: `{"job":{"headers":{"X-Auth":"[redacted]","A":["1"]},"body":{"headers": {"Cookie": ` +
			`1}}},"response":null}`,
		` {"attempt": {"response_headers": {"set-\u0063ookie": "hunter2"}, "status": ` +
			`1.50}} `: `{"attempt":{"response_headers":{"set-cookie":"[redacted]"},"status":1.50}}`,
		`{"job": {"headers": null}}`: `{"job":{"headers":null}}`,
		`{}`:                         `{}`,
		` [1, 2] `:                   `[1, 2] `,
		`"x"`:                        `"x"`,
	} {
		f := newFake()
		f.jobs["rb:a:0"] = job.Job{Spec: job.Spec{
			ID: "rb:a:0", Kind: job.KindCallback,
			BodyKind: job.BodyJSON, Body: []byte(body),
		}}
		w := call(t, handlerOf(f), http.MethodGet, "/v1/jobs/rb:a:0", "")
		require.Contains(t, w.Body.String(), `"body":`+want+`,"body_text"`)
		require.NotContains(t, w.Body.String(), "hunter2")
		decodeResponse(t, w)
	}
}
