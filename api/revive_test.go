package api

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestRevive_RequiresANewExpiryAfterTheOld(t *testing.T) {
	f := newFake()
	dead := job.Job{Spec: job.Spec{ID: "a", Queue: job.Queue{Namespace: "default"}}}
	dead.State, dead.Reason = job.Dead, policy.ReasonExpired
	f.jobs["a"] = dead
	h := handlerOf(f)
	for _, body := range []string{``, `{}`, `{"delay": "1m"}`, `{"expires_in": null}`} {
		w := call(t, h, http.MethodPost, "/v1/jobs/a/revive", body)
		require.Equal(t, http.StatusConflict, w.Code, body)
		require.Contains(t, w.Body.String(), "expired", body)
	}
	for _, body := range []string{
		`{"expires_in": "0s"}`, `{"expires_in": "1m", "delay": "2m"}`,
		`{"url": "ftp://b.example/"}`, `{"expires_in": "-1s"}`,
		`{"headers": {"Host": "a"}}`, `{"headers": {"Authorization": "[redacted]"}}`, `{"headers": 1}`, `{"body": 1}`,
	} {
		require.Equal(t, http.StatusUnprocessableEntity,
			call(t, h, http.MethodPost, "/v1/jobs/a/revive", body).Code, body)
	}
	w := call(t, h, http.MethodPost, "/v1/jobs/a/revive", `{"expires_in": "10m", "delay": "1m"}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, store.Revival{Ref: dead.Ref(), Delay: time.Minute, ExpiresIn: 10 * time.Minute}, f.revival)
	w = call(t, h, http.MethodPost, "/v1/jobs/a/revive",
		`{"url": "https://b.example/", "headers": {"x-a": "1"}, "expires_in": 5}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, store.Revival{
		Ref: dead.Ref(), URL: "https://b.example/", Header: map[string][]string{"X-A": {"1"}},
		ExpiresIn: 5 * time.Second,
	}, f.revival)
	call(t, h, http.MethodPost, "/v1/jobs/a/revive", `{"headers": null, "expires_in": 5}`)
	require.Equal(t, map[string][]string{}, f.revival.Header, "null removes them")
	w = call(t, h, http.MethodPost, "/v1/dead/revive", `{"topic": "t", "expires_in": "1h"}`)
	require.Equal(t, http.StatusAccepted, w.Code, w.Body.String())
	require.Equal(t, time.Hour, f.order.ExpiresIn)
}

func TestRegister_RefusesAnExpiryBeforeTheDueTime(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	at := func(d time.Duration) string { return `"` + time.Now().Add(d).UTC().Format(time.RFC3339Nano) + `"` }
	past := time.Now().Add(-time.Hour)
	for body, ok := range map[string]bool{
		`"delay": "10m", "expires_in": "5m"`:                                  false,
		`"delay": "10m", "expires_in": "10m"`:                                 true,
		`"run_at": ` + at(time.Hour) + `, "expires_at": ` + at(time.Minute):   false,
		`"run_at": ` + at(-time.Minute) + `, "expires_at": ` + at(-time.Hour): false,
		`"run_at": ` + at(-time.Hour) + `, "expires_in": "1s"`:                true,
		`"expires_at": ` + at(time.Hour):                                      true,
	} {
		w := call(t, h, http.MethodPost, "/v1/jobs", `{"url": "https://a.example/", `+body+`}`)
		require.Equal(t, ok, w.Code < 300, "%s: %s", body, w.Body.String())
		if !ok {
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, body)
			require.Contains(t, w.Body.String(), "/expires_", body)
		}
	}
	// Rules that depend on the time are checked by the service, where ids are known.
	f.register = func(n job.New) store.RoutedResult {
		require.Equal(t, past.UnixMilli(), n.ExpiresAt.UnixMilli())
		return store.RoutedResult{InsertResult: store.InsertResult{Outcome: store.Existing, Job: job.Job{Spec: n.Spec}}}
	}
	again := `{"id": "a", "url": "https://a.example/", "expires_at": "` + past.UTC().Format(time.RFC3339Nano) + `"}`
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, "/v1/jobs", again).Code)
	for kind, body := range map[string]string{"application/json": `{"jobs": [` + again +
		`]}`, "application/x-ndjson": again + "\n"} {
		w := call(t, h, http.MethodPost, "/v1/batch", body, "Content-Type", kind)
		require.Contains(t, w.Body.String(), `"status":200`, w.Body.String())
	}
	// A change always names a new expiry.
	w := call(t, h, http.MethodPatch, "/v1/jobs/made", `{"expires_at": `+at(-time.Minute)+`}`)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code, w.Body.String())
}
