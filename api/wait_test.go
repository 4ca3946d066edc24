package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// waitBody is a job whose end is waited for.
const waitBody = `{"id": "new", "url": "http://a.example/", "body": {"order": 4711}}`

// waitedJob is an answer.
type waitedJob struct {
	State      string
	Body       any
	Durability *struct{ Replicas int }
	WaitingFor any `json:"waiting_for"`
	Attempts   []struct {
		Status       int
		ResponseBody string `json:"response_body"`
	}
	// Events is null when the member is missing.
	Events []any
}

// deliver ends a job, as its receiver's answer would.
func (f *fake) deliver(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[id]
	j.State, j.Durability = job.Delivered, nil
	j.History = []job.Attempt{{
		N: 1, Kind: job.KindAttempt, StartedAt: epoch, Status: 200,
		Verdict: "delivered", Body: []byte("done"),
	}}
	f.jobs[id] = j
}

// requireWaited requires an answer with the schema of a registration, and decodes it.
func requireWaited(t *testing.T, body io.Reader) (got waitedJob) {
	t.Helper()
	text, err := io.ReadAll(body)
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(text, &value))
	contract().at("components", "schemas", "WaitedJob").holds(t, "waited", value)
	require.NoError(t, json.Unmarshal(text, &got))
	return got
}

func TestWait_AnswersWithTheEndedJobLongerThanEveryTimeout(t *testing.T) {
	f := newFake()
	f.waitForEnd = func(ctx context.Context) error {
		time.Sleep(limits.ReadTimeout + 2*time.Second)
		f.deliver("new")
		return context.Cause(ctx)
	}
	serveInSynctest(t, handlerOf(f), func(t *testing.T, _ *http.Server, conn net.Conn, _ <-chan struct{}) {
		in := bufio.NewReader(conn)
		ask := func(request, body string) *http.Response {
			go func() {
				_, _ = io.WriteString(conn,
					request+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ")
				_, _ = io.WriteString(conn, jsonNumber(len(body))+"\r\n\r\n")
				if body != "" {
					time.Sleep(3 * time.Second)
					_, _ = io.WriteString(conn, body)
				}
			}()
			resp, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			return resp
		}
		began := time.Now()
		resp := ask("POST /v1/jobs?wait=60s", waitBody)
		require.Equal(t, limits.ReadTimeout+5*time.Second, time.Since(began))
		require.Equal(t, http.StatusCreated, resp.StatusCode)
		require.Equal(t, "/v1/jobs/new", resp.Header.Get("Location"))
		require.False(t, resp.Close, "the connection stays")
		got := requireWaited(t, resp.Body)
		require.Equal(t, "delivered", got.State)
		require.Equal(t, map[string]any{"order": 4711.0}, got.Body)
		require.Equal(t, 200, got.Attempts[0].Status)
		require.Equal(t, "done", got.Attempts[0].ResponseBody)

		resp = ask("POST /v1/jobs?wait=60s", waitBody)
		require.Equal(t, http.StatusOK, resp.StatusCode, "it was registered before")
		requireWaited(t, resp.Body)
		resp = ask("GET /v1/jobs/new?wait=60", "")
		require.Equal(t, http.StatusOK, resp.StatusCode)
		_, err := io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		resp = ask("GET /v1/jobs/new", "")
		require.Equal(t, http.StatusOK, resp.StatusCode, "the wait's deadlines do not reach another request")
		require.Equal(t, []time.Duration{time.Minute, time.Minute, time.Minute}, f.waits)
	})
}

func jsonNumber(n int) string {
	text, _ := json.Marshal(n)
	return string(text)
}

func TestWait_EndsWhenTheClientLeaves(t *testing.T) {
	f := newFake()
	var cause error
	f.waitForEnd = func(ctx context.Context) error {
		<-ctx.Done()
		cause = context.Cause(ctx)
		return cause
	}
	a, end := newAPI(Options{Service: f, Logger: quiet, MaxWaiting: 1})
	defer end()
	h := a.handler(Options{}, end)
	serveInSynctest(t, h, func(t *testing.T, _ *http.Server, conn net.Conn, returned <-chan struct{}) {
		_, err := io.WriteString(conn, "POST /v1/jobs?wait=60s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
			"application/json\r\nContent-Length: "+
			jsonNumber(len(waitBody))+"\r\n\r\n"+waitBody)
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, f.waits, 1)
		require.Equal(t, 1, a.waiting.InUse())
		require.Zero(t, a.bodies.InUse(), "requests that wait take no room of others")
		began := time.Now()
		require.NoError(t, conn.Close())
		<-returned
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, cause, context.Canceled)
		require.Zero(t, a.waiting.InUse())
		require.Contains(t, f.jobs, "new", "it stays registered")
	})
}

func TestWait_IsBounded(t *testing.T) {
	f := newFake()
	f.jobs["old"] = job.Job{Spec: job.Spec{ID: "old"}, Progress: job.Progress{State: job.Scheduled, Version: 1}}
	began, release := make(chan struct{}), make(chan struct{})
	f.waitForEnd = func(context.Context) error {
		began <- struct{}{}
		<-release
		return nil
	}
	h := New(Options{Service: f, Logger: quiet, MaxWaiting: 2})
	answers := make(chan *httptest.ResponseRecorder, 2)
	go func() { answers <- call(t, h, http.MethodPost, "/v1/jobs?wait=60s", waitBody) }()
	go func() { answers <- call(t, h, http.MethodGet, "/v1/jobs/old?wait=60s", "") }()
	<-began
	<-began
	registrations := f.calls
	for _, w := range []*httptest.ResponseRecorder{
		call(t, h, http.MethodPost, "/v1/jobs?wait=1s", `{"id": "more", "url": "http://a.example/"}`),
		call(t, h, http.MethodGet, "/v1/jobs/old?wait=1s", ""),
	} {
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		p := problemIn(t, w)
		require.Equal(t, "too_many_waiting", p.Code)
		require.Contains(t, p.Detail, "room for 2")
	}
	require.Equal(t, registrations, f.calls, "nothing is registered")
	require.Equal(t, http.StatusCreated, call(t, h, http.MethodPost, "/v1/jobs", `{"url": "http://a.example/"}`).Code)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/v1/jobs/old", "").Code)
	close(release)
	<-answers
	<-answers
	f.waitForEnd = nil
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/v1/jobs/old?wait=1s", "").Code)
}

// Consumers that wait for jobs take no requests from those that register, read or report.
func TestWait_IsBoundedTogetherWithLeases(t *testing.T) {
	f := fullService()
	began, release := make(chan struct{}), make(chan struct{})
	f.waitForEnd = func(context.Context) error {
		began <- struct{}{}
		<-release
		return nil
	}
	f.waitForLeases = func() {
		began <- struct{}{}
		<-release
	}
	h := New(Options{Service: f, Logger: quiet, MaxWaiting: 3})
	const lease, settle = "/v1/topics/order.close/lease", "/v1/leases"
	done := `"done": [{"lease": "` + leaseText("order.close", "a") + `"}]`
	next := `"next": {"topic": "order.close", "wait": "30s"}`
	var waiting sync.WaitGroup
	wait := func(path, body string) {
		waiting.Go(func() { call(t, h, http.MethodPost, path, body) })
		<-began
	}
	wait(lease, `{"wait": "60s"}`)
	wait(settle, "{"+next+"}")
	full := call(t, h, http.MethodPost, lease, `{"wait": "60s"}`)
	require.Equal(t, http.StatusTooManyRequests, full.Code, "a quarter is left to those who wait for the end of jobs")
	require.Contains(t, problemIn(t, full).Detail, "requests that wait for jobs to lease: this process has room for 2")
	wait("/v1/jobs?wait=60s", waitBody)
	f.waitForLeases = nil
	for path, body := range map[string]string{"/v1/jobs?wait=60s": waitBody, lease: `{"wait": 1}`, settle: "{" + next +
		"}"} {
		w := call(t, h, http.MethodPost, path, body)
		require.Equal(t, http.StatusTooManyRequests, w.Code, path)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.Equal(t, "too_many_waiting", problemIn(t, w).Code)
	}
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, lease, "").Code, "without a wait")
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, settle, "{"+done+"}").Code)
	f.leaseRequests = nil
	w := call(t, h, http.MethodPost, settle, "{"+done+", "+next+"}")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Contains(t, w.Body.String(), `"result":"ok"`)
	require.Equal(t, []store.LeaseRequest{{Namespace: "default", Topic: "order.close", Max: 1}},
		f.leaseRequests, "without a wait")
	close(release)
	waiting.Wait()
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, lease, `{"wait": 1}`).Code)
}

func TestWait_RefusesInvalidValues(t *testing.T) {
	f := newFake()
	f.jobs["old"] = job.Job{Spec: job.Spec{ID: "old"}, Progress: job.Progress{State: job.Delivered, Version: 1}}
	h := handlerOf(f)
	for _, value := range []string{
		"", "-1s", "-5", "60.001", "61s", "1h", "5x", "1s1s", "nan", "inf", "0x1p2", "1_0",
		"%20", "9999999999999999999999", "30s&wait=30s",
	} {
		for method, target := range map[string]string{
			"POST": "/v1/jobs", "GET": "/v1/jobs/old", "HEAD": "/v1/jobs/old",
		} {
			w := call(t, h, method, target+"?wait="+value, waitBody)
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, "%s %s", method, value)
			p := problemIn(t, w)
			require.Len(t, p.Errors, 1, value)
			require.Equal(t, "?wait", p.Errors[0].Field)
		}
	}
	require.Empty(t, f.waits)
	require.Zero(t, f.calls)
	for target, method := range map[string]string{
		"/v1/batch": "POST", "/v1/jobs": "GET", "/v1/topics/a": "PUT", "/v1/jobs/old": "PATCH",
		"/v1/jobs/old/run": "POST", "/v1/jobs/old/revive": "POST",
	} {
		w := call(t, h, method, target+"?wait=30s", "{}")
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, target)
		require.Contains(t, w.Body.String(), "is not a parameter of this path")
	}
	for value, wait := range map[string]time.Duration{
		"0": 0, "0s": 0, "30": 30 * time.Second, "1.5": 1500 * time.Millisecond, "500ms": 500 * time.Millisecond,
		"60": time.Minute, "1m": time.Minute,
	} {
		f.waits = nil
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/v1/jobs/old?%77ait="+value, "").Code, value)
		require.Equal(t, []time.Duration{wait}, f.waits)
	}
}

func TestWait_AnswersARegistrationWhateverHappensAfterwards(t *testing.T) {
	for name, fail := range map[string]func(f *fake) error{
		"store":   func(*fake) error { return &store.UnavailableError{Reason: "it is down"} },
		"removed": func(f *fake) error { clear(f.jobs); return nil },
		"fault":   func(*fake) error { return errors.New("the disk is on fire") },
		"revoked": func(f *fake) error { delete(f.callers, fakeToken); f.deliver("new"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.callers[fakeToken] = &access.Principal{
				Role:      access.Publish,
				Namespace: job.DefaultNamespace, Bodies: true,
			}
			f.register = func(n job.New) store.RoutedResult {
				result := f.insert(n)
				result.Job.URL, result.Job.Lane, result.Job.Durability = "", "topic.example:443",
					&job.Durability{Replicas: 1}
				return result
			}
			f.waitForEnd = func(context.Context) error { return fail(f) }
			h := New(Options{Service: f, Logger: quiet, Access: AccessOptions{Tokens: []logs.Secret{"root"}}})
			w := call(t, h, http.MethodPost, "/v1/jobs?wait=60s", waitBody, "Authorization", "Bearer "+fakeToken)
			require.Equal(t, http.StatusCreated, w.Code, w.Body)
			require.Equal(t, "/v1/jobs/new", w.Header().Get("Location"))
			require.JSONEq(t, `{"id": "new", "topic": "default", "lane": "[redacted]", "durability": {"replicas": 1, `+
				`"synced": false}}`, w.Body.String(),
				"nothing is known of its state, and the token may not read that of the topic")
			var value any
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &value))
			contract().at("components", "schemas", "UnreadJob").holds(t, "unread", value)

			if name != "removed" {
				f.callers[fakeToken] = &access.Principal{
					Role:      access.Publish,
					Namespace: job.DefaultNamespace, Bodies: true,
				}
			}
			w = call(t, h, http.MethodGet, "/v1/jobs/new?wait=60s", "", "Authorization", "Bearer "+fakeToken)
			want := map[string]int{"store": 503, "removed": 404, "fault": 500, "revoked": 401}[name]
			require.Equal(t, want, w.Code, w.Body)
		})
	}
}

func TestWait_ClosesConnectionsWhenTheProcessStops(t *testing.T) {
	for _, stops := range []bool{false, true} {
		f := fullService()
		var closing atomic.Bool
		h := New(Options{Service: f, Logger: quiet, Closing: closing.Load})
		f.waitForEnd = func(context.Context) error { closing.Store(stops); return nil }
		f.waitForLeases = func() { closing.Store(stops) }
		done := `"done": [{"lease": "` + leaseText("order.close", "a") + `"}]`
		for _, c := range [][3]string{
			{"POST", "/v1/jobs?wait=30s", waitBody},
			{"GET", "/v1/jobs/new?wait=30s", ""},
			{"POST", "/v1/topics/order.close/lease", `{"wait": "30s"}`},
			{"POST", "/v1/leases", "{" + done + `, "next": {"wait": "30s"}}`},
		} {
			closing.Store(false)
			w := call(t, h, c[0], c[1], c[2])
			require.Less(t, w.Code, 300)
			require.Equal(t, stops, w.Header().Get("Connection") == "close", c[1])
		}
	}
}

func TestWait_ShowsWhatTheTokenMayRead(t *testing.T) {
	f := fullService()
	f.callers[fakeToken] = &access.Principal{
		Role: access.Publish, Namespace: job.DefaultNamespace,
		Topics: access.Topics{"order.*"},
	}
	h := New(Options{Service: f, Logger: quiet, Access: AccessOptions{Tokens: []logs.Secret{"root"}}})
	auth := []string{"Authorization", "Bearer " + fakeToken}
	f.waitForEnd = func(context.Context) error { f.deliver("new"); return nil }
	w := call(t, h, http.MethodPost, "/v1/jobs?wait=30s",
		strings.Replace(waitBody, "{", `{"topic": "order.close", `, 1), auth...)
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
	require.NotContains(t, w.Body.String(), "4711")
	require.Equal(t, "[redacted]", requireWaited(t, w.Body).Attempts[0].ResponseBody)
	require.Equal(t, http.StatusForbidden, call(t, h, http.MethodPost, "/v1/jobs?wait=30s", waitBody, auth...).Code)
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, "/v1/jobs/plain?wait=30s", "", auth...).Code)
	require.Len(t, f.waits, 1)
}
