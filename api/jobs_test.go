package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestRegister_KeepsAJobAsItWasSent(t *testing.T) {
	f := newFake()
	body := "{ \"order\" :\n 4711, \"x\": \"\\u00fc<>\" }"
	w := call(t, handlerOf(f), http.MethodPost, "/v1/jobs", `{"id": "close-4711", "topic": "order.close", "lane": `+
		`"c-42",
		"url": "https://shop.example/hooks", "method": "PUT", "headers": {"x-tenant": "42", "X-B": ["1", "2"]},
		"body":  `+body+` , "delay": "30m", "retries": 0, "ladder": ["15s", 180], "timeout": 2.5, "expires_in": "3d",
		"labels": {"customer": "42"}}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.Equal(t, "/v1/jobs/close-4711", w.Header().Get("Location"))
	require.Equal(t, `"1"`, w.Header().Get("ETag"))
	require.Equal(t, []job.New{{
		Spec: job.Spec{
			ID: "close-4711", Queue: job.Queue{Namespace: "default", Topic: "order.close", Lane: "c-42"},
			URL: "https://shop.example/hooks", Method: "PUT",
			Header:      map[string][]string{"X-Tenant": {"42"}, "X-B": {"1", "2"}},
			ContentType: "application/json", BodyKind: job.BodyJSON, Body: []byte(body),
			Labels: map[string]string{"customer": "42"},
			Terms: policy.Terms{
				Ladder: policy.Ladder{15 * time.Second, 3 * time.Minute}, Retries: new(0),
				Timeout: 2500 * time.Millisecond,
			},
		},
		Delay: 30 * time.Minute, ExpiresIn: 72 * time.Hour,
	}}, f.news)
	require.Contains(t, w.Body.String(), `"body":`+body, "the body is answered byte for byte")
}

func TestRegister_ReadsThreeKindsOfBodies(t *testing.T) {
	cases := []struct {
		sent        string
		kind        job.BodyKind
		body        string
		contentType string
	}{
		{`{}`, job.BodyNone, "", ""},
		{`{"body": null}`, job.BodyJSON, "null", "application/json"},
		{`{"body": "x"}`, job.BodyJSON, `"x"`, "application/json"},
		{
			`{"body": [1, 2], "content_type": "application/vnd.x+json"}`, job.BodyJSON, "[1, 2]",
			"application/vnd.x+json",
		},
		{`{"body_text": "a\u00fc\n"}`, job.BodyText, "aü\n", "text/plain; charset=utf-8"},
		{`{"body_text": ""}`, job.BodyText, "", "text/plain; charset=utf-8"},
		{`{"body_text": null}`, job.BodyNone, "", ""},
		{`{"body_base64": "AP8="}`, job.BodyBase64, "\x00\xff", "application/octet-stream"},
		{`{"body_base64": "AP8"}`, job.BodyBase64, "\x00\xff", "application/octet-stream"},
		{`{"body": 1, "headers": {"content-type": "a/b"}}`, job.BodyJSON, "1", ""},
	}
	for _, c := range cases {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPost, "/v1/jobs", c.sent)
		require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
		require.Equal(t, c.kind, f.news[0].BodyKind, c.sent)
		require.Equal(t, c.body, string(f.news[0].Body), c.sent)
		require.Equal(t, c.contentType, f.news[0].ContentType, c.sent)
	}
}

func TestRegister_Answers200ToARepeat(t *testing.T) {
	h := handlerOf(newFake())
	require.Equal(t, http.StatusCreated, call(t, h, http.MethodPost, "/v1/jobs", `{"id": "a"}`).Code)
	w := call(t, h, http.MethodPost, "/v1/jobs", `{"id": "a"}`)
	require.Equal(t, http.StatusOK, w.Code)
	require.Empty(t, w.Header().Get("Location"))
	require.Equal(t, "a", decodeResponse(t, w)["id"])
}

func TestRegister_Answers409ToAnIDInUse(t *testing.T) {
	for _, c := range []struct {
		taken        job.TakenError
		code, detail string
		fields       []string
	}{
		{job.TakenError{ID: "a", Cancelled: true}, "wrong_state", "revive it to send it after all", nil},
		{
			job.TakenError{ID: "a", Differs: []job.FieldError{{Field: "/url"}, {Field: "/body"}}},
			"id_taken",
			"a different request",
			[]string{"/url", "/body"},
		},
		{job.TakenError{ID: "a"}, "id_taken", "a different request", nil},
	} {
		f := newFake()
		f.register = func(job.New) store.RoutedResult { return store.RoutedResult{Err: &c.taken} }
		w := call(t, handlerOf(f), http.MethodPost, "/v1/jobs", `{"id": "a"}`)
		require.Equal(t, http.StatusConflict, w.Code)
		p := problemIn(t, w)
		require.Equal(t, c.code, p.Code)
		require.Contains(t, p.Detail, c.detail)
		require.Equal(t, c.fields, p.fields())
	}
}

func TestFromError_HidesInternals(t *testing.T) {
	cases := []struct {
		err    error
		status int
		after  string
	}{
		{&job.InvalidError{Errors: []job.FieldError{{Field: "/url", Detail: "x"}}}, 422, ""},
		{&job.UndeclaredTopicError{Topic: "a"}, 422, ""},
		{store.ErrNotFound, 404, ""},
		{&store.StateError{State: job.Running}, 409, ""},
		{store.ErrVersion, 412, ""},
		{store.ErrContended, 409, ""},
		{store.ErrCursor, 422, ""},
		{store.ErrUnavailable, 503, "1"},
		{&store.UnavailableError{Reason: "secret-7", RetryAfter: 2500 * time.Millisecond}, 503, "3"},
		{context.DeadlineExceeded, 503, "1"},
		{context.Canceled, 503, "1"},
		{response.ErrTimeout, 503, "1"},
		{errors.New("secret-7"), 500, ""},
	}
	for _, c := range cases {
		f := newFake()
		f.err = errors.Join(c.err)
		for _, target := range []string{
			"POST /v1/jobs", "GET /v1/jobs?topic=a&state=dead", "GET /v1/jobs/a",
			"PATCH /v1/jobs/a", "DELETE /v1/jobs/a",
			"POST /v1/jobs/a/run", "POST /v1/jobs/a/revive", "GET /v1/topics", "GET /v1/topics/a", "PATCH /v1/topics/a",
			"POST /v1/topics/a/pause", "GET /v1/topics/a/stats", "GET /v1/stats", "GET /v1/dead",
			"POST /v1/dead/revive", "POST /v1/dead/purge", "GET /v1/topics/a/lanes", "GET /v1/topics/a/lanes/b",
			"PATCH /v1/topics/a/lanes/b", "DELETE /v1/topics/a/lanes/b", "POST /v1/topics/a/lanes/b/pause",
			"POST /v1/topics/a/secrets", "GET /v1/topics/a/secrets", "DELETE /v1/topics/a/secrets/b",
			"GET /v1/topics/a/keys", "POST /v1/topics/a/lanes/b/secrets", "GET /v1/topics/a/lanes/b/secrets",
			"GET /v1/topics/a/lanes/b/keys",
		} {
			method, path, _ := strings.Cut(target, " ")
			body := ""
			switch {
			case strings.Contains(path, "dead"):
				body = `{"all": true}`
			case strings.Contains(path, "lanes") && method == http.MethodPatch:
				body = `{"lane_concurrency": 2}`
			case method == http.MethodPatch, path == "/v1/jobs":
				body = `{"retries": 1}`
			}
			w := call(t, handlerOf(f), method, path, body)
			require.Equal(t, c.status, w.Code, "%s: %v", target, c.err)
			problemIn(t, w)
			require.Equal(t, c.after, w.Header().Get("Retry-After"), "%s: %v", target, c.err)
			require.NotContains(t, w.Body.String(), "secret-7")
		}
	}
}

// edited is a job with every editable field.
func edited(edit job.Edit) job.Spec {
	spec := job.Spec{
		ID: "a", Queue: job.Queue{Topic: "orders", Lane: "b"}, URL: "http://a.example/", Method: "PUT",
		Header: map[string][]string{"X-A": {"1"}}, ContentType: "application/json",
		BodyKind: job.BodyJSON, Body: []byte("1"), Labels: map[string]string{"x": "y"},
		Terms: policy.Terms{
			Ladder: policy.Ladder{time.Hour}, Retries: new(7), Timeout: time.Minute,
			OnDead: new(policy.Callback),
		},
	}
	spec, err := codec.Change(&spec, &edit.Spec, edit.Fields)
	if err != nil {
		panic(err)
	}
	return spec
}

func TestEdit_ChangesTheFieldsItNames(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	f.jobs["a"] = job.Job{Progress: job.Progress{State: job.Scheduled, Version: 1}}
	w := call(t, h, http.MethodPatch, "/v1/jobs/a", `{"delay": "0s", "url": "http://b.example/", "headers": {"x-b": `+
		`"1"},
		"body_text": "x", "retries": 3, "ladder": ["1s"], "timeout": "1s", "labels": {"a": "b"}, "expires_in": "1h"}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, `"2"`, w.Header().Get("ETag"))
	require.Equal(t, &job.TimeOrDelay{}, f.edits[0].Due)
	require.Equal(t, &job.TimeOrDelay{In: time.Hour}, f.edits[0].Expiry)
	wanted := edited(job.Edit{})
	wanted.URL, wanted.Header, wanted.Labels = "http://b.example/", map[string][]string{"X-B": {"1"}},
		map[string]string{"a": "b"}
	wanted.BodyKind, wanted.ContentType, wanted.Body = job.BodyText, "text/plain; charset=utf-8", []byte("x")
	wanted.Ladder, wanted.Retries, wanted.Timeout = policy.Ladder{time.Second}, new(3), time.Second
	require.Equal(t, wanted, edited(f.edits[0]))

	w = call(t, h, http.MethodPatch, "/v1/jobs/a", `{"headers": null, "labels": null, "ladder": null, "timeout": null,
		"expires_at": null, "body": null}`, "Content-Type", "application/merge-patch+json")
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Nil(t, f.edits[1].Due)
	require.Equal(t, &job.TimeOrDelay{}, f.edits[1].Expiry)
	wanted = edited(job.Edit{})
	wanted.Header, wanted.Labels, wanted.Ladder, wanted.Timeout, wanted.Body = nil, nil, nil, 0, []byte("null")
	require.Equal(t, wanted, edited(f.edits[1]))

	w = call(t, h, http.MethodPatch, "/v1/jobs/a",
		`{"run_at": "2031-01-31T09:00:00+01:00", "expires_at": "0001-01-01T00:00:00Z"}`)
	require.Equal(t, []string{"/expires_at"}, problemIn(t, w).fields())
	require.Len(t, f.edits, 2)
	call(t, h, http.MethodPatch, "/v1/jobs/a", `{"run_at": "2031-01-31T09:00:00+01:00"}`)
	require.True(t, f.edits[2].Due.At.Equal(time.Date(2031, 1, 31, 8, 0, 0, 0, time.UTC)))
	require.Empty(t, f.edits[2].Fields)
	require.Nil(t, f.edits[2].Expiry)
	for body, change := range map[string]func(*job.Spec){
		`{"url": "http://c.example/"}`: func(spec *job.Spec) { spec.URL = "http://c.example/" },
		`{"headers": {}}`:              func(spec *job.Spec) { spec.Header = map[string][]string{} },
		`{"retries": 0}`:               func(spec *job.Spec) { spec.Retries = new(0) },
		`{"timeout": "2s"}`:            func(spec *job.Spec) { spec.Timeout = 2 * time.Second },
		`{"labels": {"c": "d"}}`:       func(spec *job.Spec) { spec.Labels = map[string]string{"c": "d"} },
		`{"ladder": ["2s", ` +
			`"3s"]}`: func(spec *job.Spec) { spec.Ladder = policy.Ladder{2 * time.Second, 3 * time.Second} },
		`{"body": {}, "content_type": "application/a+json"}`: func(spec *job.Spec) {
			spec.ContentType, spec.Body = "application/a+json", []byte("{}")
		},
	} {
		f.edits = nil
		require.Equal(t, http.StatusOK, call(t, h, http.MethodPatch, "/v1/jobs/a", body).Code)
		wanted := edited(job.Edit{})
		change(&wanted)
		require.Equal(t, wanted, edited(f.edits[0]), body)
		require.Nil(t, f.edits[0].Due)
		require.Nil(t, f.edits[0].Expiry)
	}
}

func TestEdit_RefusesInvalidFields(t *testing.T) {
	for body, fields := range map[string][]string{
		`{}`: {""},
		`{"topic": "b", "lane": "c", "id": "d", "method": "PUT", ` +
			`"more": 1}`: {"/topic", "/lane", "/id", "/method", "/more"},
		`{"url": null, "retries": null, "delay": null, "run_at": null}`: {"/url", "/retries", "/delay", "/run_at"},
		`{"url": "", "timeout": 0, "ladder": [], "expires_in": 0}`:      {"/url", "/timeout", "/ladder", "/expires_in"},

		`{"content_type": "a/b"}`:                           {"/content_type"},
		`{"delay": "1s", "run_at": "2031-01-31T08:00:00Z"}`: {"/run_at"},
		`{"headers": {"Cookie": "[redacted]"}}`:             {"/headers/Cookie"},
	} {
		f := newFake()
		f.jobs["a"] = job.Job{Progress: job.Progress{State: job.Scheduled, Version: 1}}
		w := call(t, handlerOf(f), http.MethodPatch, "/v1/jobs/a", body)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, body)
		require.ElementsMatch(t, fields, problemIn(t, w).fields(), body)
		f.requireUnchanged(t)
	}
}

func TestIfMatch_IsPassedToTheService(t *testing.T) {
	for _, c := range []struct {
		path, method, tag string
		status            int
	}{
		{"/v1/jobs/a", http.MethodPatch, `"7"`, 200},
		{"/v1/jobs/a", http.MethodPatch, `*`, 200},
		{"/v1/jobs/a", http.MethodPatch, `"6"`, 412},
		{"/v1/jobs/a", http.MethodPatch, `7`, 400},
		{"/v1/jobs/a", http.MethodPatch, `W/"7"`, 200},
		{"/v1/jobs/a", http.MethodPatch, `W/"6"`, 412},
		{"/v1/jobs/a", http.MethodPatch, `W/7`, 400},
		{"/v1/jobs/a", http.MethodPatch, `W/*`, 400},
		{"/v1/jobs/a", http.MethodPatch, `"0"`, 400},
		{"/v1/jobs/a", http.MethodPatch, `"6", "7"`, 400},
		{"/v1/jobs/a/run", http.MethodPost, `"7"`, 200},
		{"/v1/jobs/a/run", http.MethodPost, `"6"`, 412},
		{"/v1/jobs/a/revive", http.MethodPost, `"7"`, 200},
		{"/v1/jobs/a/revive", http.MethodPost, `"6"`, 412},
		{"/v1/jobs/a/revive", http.MethodPost, `7`, 400},
		{"/v1/jobs/a", http.MethodDelete, `"7"`, 200},
		{"/v1/jobs/a", http.MethodDelete, `"6"`, 412},
		{"/v1/jobs/a", http.MethodDelete, `7`, 400},
		{"/v1/jobs/a", http.MethodDelete, `*`, 200},
	} {
		f := newFake()
		f.jobs["a"] = job.Job{Progress: job.Progress{State: job.Scheduled, Version: 7}}
		if c.path == "/v1/jobs/a/revive" {
			f.jobs["a"] = job.Job{Progress: job.Progress{State: job.Cancelled, Version: 7}}
		}
		body := ""
		if c.method == http.MethodPatch {
			body = `{"retries": 1}`
		}
		w := call(t, handlerOf(f), c.method, c.path, body, "If-Match", c.tag)
		require.Equal(t, c.status, w.Code, "%s %s", c.path, c.tag)
	}
}

func TestStateError_Is409WithAHint(t *testing.T) {
	for _, c := range []struct {
		target string
		state  job.State
		status int
	}{
		{"PATCH /v1/jobs/a", job.Running, 409},
		{"PATCH /v1/jobs/a", job.Dead, 409},
		{"PATCH /v1/jobs/a", job.Ready, 200},
		{"POST /v1/jobs/a/run", job.Delivered, 409},
		{"POST /v1/jobs/a/run", job.Scheduled, 200},
		{"POST /v1/jobs/a/revive", job.Scheduled, 409},
		{"POST /v1/jobs/a/revive", job.Dead, 200},
		{"DELETE /v1/jobs/a", job.Delivered, 409},
		{"DELETE /v1/jobs/a", job.Dead, 409},
		{"DELETE /v1/jobs/a", job.Running, 202},
		{"DELETE /v1/jobs/a", job.Scheduled, 200},
		{"DELETE /v1/jobs/a", job.Cancelled, 200},
	} {
		f := newFake()
		f.jobs["a"] = job.Job{Spec: job.Spec{ID: "a"}, Progress: job.Progress{State: c.state, Version: 1}}
		method, path, _ := strings.Cut(c.target, " ")
		body := ""
		if method == http.MethodPatch {
			body = `{"retries": 1}`
		}
		w := call(t, handlerOf(f), method, path, body)
		require.Equal(t, c.status, w.Code, "%s %s", c.target, c.state)
		if c.status == http.StatusConflict {
			require.Contains(t, problemIn(t, w).Detail, "the job is "+string(c.state)+": only")
		}
		if c.status == http.StatusAccepted {
			require.Equal(t, true, decodeResponse(t, w)["cancel_requested"])
		}
	}
}

func TestRun_MakesAJobDueNow(t *testing.T) {
	f := newFake()
	f.jobs["a"] = job.Job{Progress: job.Progress{State: job.Scheduled, Version: 1}}
	require.Equal(t, http.StatusOK, call(t, handlerOf(f), http.MethodPost, "/v1/jobs/a/run", "{}").Code)
	require.Equal(t, 1, f.runs)
}

func TestRequireNoBody_RefusesBodies(t *testing.T) {
	for _, target := range []string{
		"POST /v1/jobs/a/run", "POST /v1/jobs/a/revive", "DELETE /v1/jobs/a", "POST /v1/topics/a/pause",
		"POST /v1/topics/a/resume",
	} {
		method, path, _ := strings.Cut(target, " ")
		for _, body := range []string{`{"rate": "50/s"}`, strings.Repeat(" ", 200)} {
			f := newFake()
			f.jobs["a"] = job.Job{Progress: job.Progress{State: job.Scheduled, Version: 1}}
			w := call(t, handlerOf(f), method, path, body)
			require.GreaterOrEqual(t, w.Code, 400, target)
			require.Less(t, w.Code, 500, target)
			problemIn(t, w)
			f.requireUnchanged(t)
			require.Equal(t, job.Scheduled, f.jobs["a"].State)
		}
	}
}

func TestPathJob_Answers404ToInvalidIDs(t *testing.T) {
	for _, id := range []string{"a.b", "a%2Fb", strings.Repeat("a", 65), "%00", "ü"} {
		w := call(t, handlerOf(newFake()), http.MethodGet, "/v1/jobs/"+id, "")
		require.Equal(t, http.StatusNotFound, w.Code, id)
		problemIn(t, w)
	}
	f := newFake()
	f.jobs["rb:born"] = job.Job{Spec: job.Spec{ID: "rb:born"}}
	require.Equal(t, http.StatusOK, call(t, handlerOf(f), http.MethodGet, "/v1/jobs/rb:born", "").Code)
}

func TestGet_HidesSecretHeaders(t *testing.T) {
	for _, name := range []string{
		"Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "Proxy-Authorization", "X-Auth-Token",
		"My-Secret", "X-PASSWORD",
	} {
		f := newFake()
		f.jobs["a"] = job.Job{
			Spec:    job.Spec{Header: map[string][]string{name: {"hunter2"}}},
			History: []job.Attempt{{Header: map[string][]string{name: {"hunter2"}}}},
		}
		w := call(t, handlerOf(f), http.MethodGet, "/v1/jobs/a", "")
		require.NotContains(t, w.Body.String(), "hunter2", name)
		require.Equal(t, 2, strings.Count(w.Body.String(), "[redacted]"), name)
	}
}

func TestGet_ShowsResponseBodiesAsTextOrBase64(t *testing.T) {
	long := strings.Repeat("ü", job.MaxAttemptBody/2-1) + "a\xc3" // cut within a character
	for body, want := range map[string]string{
		"so":       `"response_body":"so"`,
		"\xff\xfe": `"response_body_base64":"//4="`,
		"\x00":     `"response_body_base64":"AA=="`,
		"a\xc3":    `"response_body_base64":"YcM="`,
		long:       `"response_body":"` + long[:len(long)-1] + `"`,
		"":         `"response_body":null,"response_body_base64":null}`,
	} {
		f := newFake()
		f.jobs["a"] = job.Job{History: []job.Attempt{{Kind: job.KindAttempt, Body: []byte(body)}}}
		require.Contains(t, call(t, handlerOf(f), http.MethodGet, "/v1/jobs/a", "").Body.String(), want)
	}
}

func TestGet_ShowsInvalidBodiesAsBase64(t *testing.T) {
	f := newFake()
	f.jobs["a"] = job.Job{Spec: job.Spec{BodyKind: job.BodyJSON, Body: []byte("{")}}
	require.Equal(t, "ew==", decodeResponse(t, call(t, handlerOf(f), http.MethodGet, "/v1/jobs/a", ""))["body_base64"])
}
