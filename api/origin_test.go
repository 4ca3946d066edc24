package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestHeaders_RefuseToKeepSecretsForANewOrigin(t *testing.T) {
	headers := map[string][]string{"Authorization": {"Bearer hunter2"}, "X-A": {"1"}}
	callback := policy.Callback{URL: "https://a.example/", Headers: headers}
	const topic, lane = "/v1/topics/a", "/v1/topics/a/lanes/b"
	for _, c := range []struct{ target, before, body, field string }{
		{topic, "", `{"on_dead": {"url": "https://evil.example/"}}`, "/on_dead"},
		{topic, "", `{"on_delivered": {"url": "http://a.example/"}}`, "/on_delivered"},
		{topic, "", `{"on_dead": {"url": "https://evil.example/", "headers": {"authorization": ` +
			`"[redacted]"}}}`, "/on_dead"},
		{topic, "", `{"on_backlog": {"url": "https://evil.example/", "more_than": 1}}`, "/on_backlog"},
		{topic, "", `{"url": "https://evil.example/"}`, ""},
		{topic, "", `{"url": "https://evil.example/", "headers": {"authorization": "[redacted]"}}`, ""},
		{topic, `{"url": null}`, `{"url": "https://evil.example/"}`, ""},
		{lane, "", `{"url": "https://evil.example/"}`, ""},
		{lane, "", `{"url": "https://evil.example/", "headers": {"X-A": "2"}}`, ""},
		{lane, `{"url": null}`, `{"url": "https://evil.example/"}`, ""},
	} {
		for _, method := range []string{http.MethodPut, http.MethodPatch} {
			f := newFake()
			f.topics["a"] = store.Topic{Name: "a", Revision: 1, Policy: policy.Topic{
				URL: "https://a.example/", Headers: headers, OnDelivered: &callback, OnDead: &callback,
				OnBacklog: &policy.Backlog{Callback: callback, MoreThan: 1},
			}}
			f.own["a/b"] = store.Lane{Revision: 1, Settings: policy.Lane{URL: "https://a.example/", Headers: headers}}
			h := handlerOf(f)
			if c.before != "" {
				require.Equal(t, http.StatusOK, call(t, h, http.MethodPatch, c.target, c.before).Code)
			}
			w := call(t, h, method, c.target, c.body)
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, "%s %s: %s", method, c.body, w.Body.String())
			p := problemIn(t, w)
			require.Equal(t, []string{c.field + "/headers/Authorization"}, p.fields())
			require.Equal(t, request.ResendOnNewOrigin, p.Errors[0].Detail)
			require.NotContains(t, w.Body.String(), "hunter2")
		}
	}
}

// A header that may be a secret is bound to no origin. A client that may see it only as [redacted] must not obtain it
// by another URL.
func TestHeaders_KeepNoPlaceholderForANewOrigin(t *testing.T) {
	for url, want := range map[string]int{
		"https://a.example/x": http.StatusOK, "https://evil.example/": http.StatusUnprocessableEntity,
	} {
		f := newFake()
		f.topics["a"] = store.Topic{
			Name: "a", Revision: 1,
			Policy: policy.Topic{URL: "https://a.example/", Headers: map[string][]string{"X-Pin": {"1234"}}},
		}
		w := call(t, handlerOf(f), http.MethodPut, "/v1/topics/a",
			`{"url": "`+url+`", "headers": {"X-Pin": "[redacted]"}}`)
		require.Equal(t, want, w.Code, w.Body.String())
		require.Equal(t, []string{"1234"}, f.topics["a"].Policy.Headers["X-Pin"])
	}
}

func TestHeaders_AllowANewOriginWithResentOrRemovedSecrets(t *testing.T) {
	for header, want := range map[string]map[string][]string{
		`"Bearer new"`: {"Authorization": {"Bearer new"}, "X-A": {"1"}},
		`null`:         {"X-A": {"1"}},
	} {
		for _, target := range []string{"/v1/topics/a", "/v1/topics/a/lanes/b"} {
			headers := map[string][]string{"Authorization": {"Bearer hunter2"}, "X-A": {"1"}}
			f := newFake()
			f.topics["a"] = store.Topic{
				Name: "a", Revision: 1,
				Policy: policy.Topic{URL: "https://a.example/", Headers: headers},
			}
			f.own["a/b"] = store.Lane{Revision: 1, Settings: policy.Lane{URL: "https://a.example/", Headers: headers}}
			w := call(t, handlerOf(f), http.MethodPatch, target,
				`{"url": "https://b.example/", "headers": {"Authorization": `+header+`}}`)
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			if target == "/v1/topics/a" {
				require.Equal(t, want, f.topics["a"].Policy.Headers)
			} else {
				require.Equal(t, want, f.own["a/b"].Settings.Headers)
			}
		}
	}
}
