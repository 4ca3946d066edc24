package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// secretTexts must not be in any response or log.
func secretTexts(key string) []string {
	private := strings.Split(key, "\n")[1]
	return []string{"hunter2", "x1:sealed", private, sharedBytes(), strings.TrimPrefix(keySecret.Text(), "whsk_")}
}

// serviceWithSecrets is a service with secrets in every field.
func serviceWithSecrets(key string) *fake {
	f := fullService()
	headers := map[string][]string{
		"Authorization": {"Bearer hunter2"},
		"X-Api-Key":     {"hunter2"}, "Cookie": {"a=hunter2"},
	}
	call := &policy.Callback{URL: "https://a.example/", Headers: headers}
	secrets := []policy.Secret{
		{ID: "1", CreatedAt: epoch, Value: policy.Sealed(sharedSecret.Text())},
		{ID: "2", CreatedAt: epoch, Value: policy.Sealed(keySecret.Text())},
	}
	f.topics["t"] = store.Topic{Name: "t", Revision: 1, Policy: policy.Topic{
		Headers: headers, OnDelivered: call, OnDead: call, OnBacklog: &policy.Backlog{Callback: *call, MoreThan: 1},
		Secrets: secrets, ClientCert: &policy.ClientCert{Chain: "chain", Key: policy.Sealed(key)},
	}}
	f.own["t/l"] = store.Lane{Revision: 1, Settings: policy.Lane{Headers: headers, Secrets: secrets}}
	f.jobs["j"] = job.Job{
		Spec: job.Spec{
			ID: "j", Queue: job.Queue{Topic: "t", Lane: "l"}, Header: headers,
			Terms: policy.Terms{OnDelivered: call, OnDead: call},
		},
		Progress: job.Progress{State: job.Scheduled, Version: 1},
		History:  []job.Attempt{{N: 1, Kind: job.KindAttempt, Header: headers}},
	}
	f.page = store.Page{Jobs: []job.Job{f.jobs["j"]}}
	return f
}

func TestSecrets_AreInNoAnswerAndNoLog(t *testing.T) {
	chain, key := newCertificate(t)
	cert := `{"chain": ` + jsonString(chain) + `, "key": ` + jsonString(key) + `}`
	headers := `{"Authorization": "Bearer hunter2", "X-Token": ["hunter2"]}`
	callback := `{"url": "https://a.example/", "headers": ` + headers + `}`
	requests := []struct{ target, body string }{
		{"GET /v1/jobs/j", ""},
		{"GET /v1/jobs/rb:dead:1", ""},
		{"GET /v1/jobs?topic=t&state=dead", ""},
		{"GET /v1/dead", ""},
		{
			"POST /v1/jobs",
			`{"id": "x", "headers": ` + headers + `, "on_dead": ` + callback + `, "on_delivered": ` + callback + `}`,
		},
		{"POST /v1/jobs", `{"id": "x y", "headers": ` + headers + `, "on_dead": ` + callback +
			`, "on_delivered": {"headers": ` + headers + `}}`},
		{
			"POST /v1/batch",
			`{"jobs": [{"id": "x", "on_dead": ` + callback + `}, {"id": "x y", "on_dead": ` + callback + `}]}`,
		},
		{"PATCH /v1/jobs/j", `{"headers": ` + headers + `}`},
		{"POST /v1/jobs/j/run", ""},
		{"DELETE /v1/jobs/j", ""},
		{"GET /v1/topics", ""},
		{"GET /v1/topics/t", ""},
		{"POST /v1/topics/t/pause", ""},
		{"GET /v1/topics/t/stats", ""},
		{"PUT /v1/topics/t", `{"headers": ` + headers + `, "on_dead": ` + callback + `, "client_cert": ` + cert + `}`},
		{"PATCH /v1/topics/t", `{"on_dead": ` + callback + `, "client_cert": ` + cert + `}`},
		{"PUT /v1/topics/t", `{"client_cert": {"chain": ` + jsonString(key) + `, "key": ` + jsonString("hunter2 "+key) +
			`}, "workers": "hunter2"}`},
		{"GET /v1/topics/t/secrets", ""},
		{"GET /v1/topics/t/keys", ""},
		{"GET /v1/topics/t/lanes/l/secrets", ""},
		{"GET /v1/topics/t/lanes/l/keys", ""},
		{"POST /v1/topics/t/secrets", `{"secret": "` + sharedSecret.Text() + `", "kind": "hmac"}`},
		{"POST /v1/topics/t/secrets", `{"secret": "` + keySecret.Text() + `!"}`},
		{"POST /v1/topics/t/secrets", `{"secret": "hunter2`},
		{"GET /v1/topics/t/lanes", ""},
		{"GET /v1/topics/t/lanes/l", ""},
		{"POST /v1/topics/t/lanes/l/pause", ""},
		{"PUT /v1/topics/t/lanes/l", `{"headers": ` + headers + `}`},
		{"PATCH /v1/topics/t/lanes/l", `{"headers": ` + headers + `, "url": "x"}`},
	}
	for _, r := range requests {
		// With a working service, and with one whose every call fails with a logged error.
		for _, fails := range []bool{false, true} {
			f := serviceWithSecrets(key)
			if fails {
				// Errors contain only values that print redacted.
				topic := f.topics["t"].Policy
				f.err = fmt.Errorf("put %v %+v %s: broken", topic.Secrets, *topic.ClientCert, topic.Secrets[0].Value)
			}
			var logs testkit.Log
			h := New(Options{Service: f, Logger: slog.New(slog.NewJSONHandler(&logs,
				&slog.HandlerOptions{Level: slog.LevelDebug}))})
			method, path, _ := strings.Cut(r.target, " ")
			w := call(t, h, method, path, r.body)
			require.True(t, json.Valid(w.Body.Bytes()), "%s: %s", r.target, w.Body)
			for _, secret := range secretTexts(key) {
				require.NotContains(t, w.Body.String(), secret, r.target)
				require.NotContains(t, logs.String(), secret, r.target)
				require.NotContains(t, fmt.Sprint(w.Header()), secret, r.target)
			}
		}
	}

	// The only response that contains a secret.
	var logs testkit.Log
	h := New(Options{Service: serviceWithSecrets(key), Logger: slog.New(slog.NewTextHandler(&logs,
		&slog.HandlerOptions{Level: slog.LevelDebug}))})
	w := call(t, h, http.MethodPost, "/v1/topics/t/secrets", `{"secret": "`+sharedSecret.Text()+`"}`)
	require.Equal(t, 1, strings.Count(w.Body.String(), sharedSecret.Text()))
	require.Contains(t, logs.String(), "msg=audit")
	require.NotContains(t, logs.String(), strings.TrimPrefix(sharedSecret.Text(), "whsec_"))
}
