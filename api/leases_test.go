package api

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// leaseText returns the text of a client's lease.
func leaseText(topic, id string) string {
	l := store.ClientLease{
		ID: id, Queue: job.Queue{Topic: topic, Lane: "a"},
		Token: "7K2QJ7HNTAAAAAAAAAAAAAAAA2", LeasedAt: epoch,
	}
	return l.String()
}

func TestLease_ReadsItsFields(t *testing.T) {
	f := fullService()
	require.Equal(t, http.StatusOK, call(t, handlerOf(f), "POST", "/v1/topics/order.close/lease", "").Code)
	require.Equal(t, http.StatusOK, call(t, handlerOf(f), "POST", "/v1/topics/order.close/lease",
		`{"max": 32, "wait": "30s", "lease": 60, "lanes": ["customer-*", "a", "*"], "request": true}`).Code)
	require.Equal(t, []store.LeaseRequest{
		{Namespace: "default", Topic: "order.close", Max: 1},
		{
			Namespace: "default", Topic: "order.close", Max: 32, Wait: 30 * time.Second, Lease: time.Minute,
			Lanes: []string{"customer-*", "a", "*"}, Request: true,
		},
	}, f.leaseRequests)
	require.Empty(t, f.released)
}

func TestLease_RefusesBadInput(t *testing.T) {
	many := `["` + strings.Repeat(`a", "`, 40) + `a"]`
	for body, fields := range map[string]string{
		`{"max": 0}`:               "/max",
		`{"max": 101}`:             "/max",
		`{"max": "many"}`:          "/max",
		`{"wait": "61s"}`:          "/wait",
		`{"wait": -1}`:             "/wait",
		`{"lease": "0s"}`:          "/lease",
		`{"lease": "13h"}`:         "/lease",
		`{"lanes": []}`:            "/lanes",
		`{"lanes": "a"}`:           "/lanes",
		`{"lanes": ["a b", ""]}`:   "/lanes/0 /lanes/1",
		`{"lanes": ["a*b", "**"]}`: "/lanes/0 /lanes/1",
		`{"lanes": ` + many + `}`:  "/lanes",
		`{"topic": "a"}`:           "/topic",
		`{"request": "yes"}`:       "/request",
	} {
		f := fullService()
		w := call(t, handlerOf(f), "POST", "/v1/topics/order.close/lease", body)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, "%s: %s", body, w.Body)
		for field := range strings.FieldsSeq(fields) {
			require.Contains(t, w.Body.String(), `"field":"`+field+`"`, body)
		}
		require.Empty(t, f.leaseRequests, body)
	}
	require.Equal(t, http.StatusNotFound, call(t, handlerOf(fullService()), "POST", "/v1/topics/a%20b/lease", "").Code)
}

// The request is that of a push, with its signature. Only those who ask for it get it.
func TestLease_HasTheRequestOfAPush(t *testing.T) {
	f := fullService()
	require.Contains(t,
		call(t, handlerOf(f), "POST", "/v1/topics/order.close/lease", "").Body.String(), `"request":null`)
	j := &f.leased[0]
	j.Request = &job.Request{
		Ref: j.Ref(), Queue: j.Queue, URL: "https://shop.example/hooks", Method: "PUT", Body: j.Body,
		Attempt: 2, DueAt: epoch,
		Header: map[string][]string{"X-Many": {"1", "2"}}, Credentials: job.Credentials{Signer: fixedSigner("v1,abc")},
	}
	body := call(t, handlerOf(f), "POST", "/v1/topics/order.close/lease", `{"request": true}`).Body.String()
	require.Contains(t, body, `"request":{"method":"PUT","url":"https://shop.example/hooks","headers":{`+
		`"Ringback-Attempt":"2","Ringback-Due-At":"1896076800123","Ringback-Retries-Left":"0",`+
		`"Ringback-Topic":"order.close","Webhook-Id":"close-4711",`+
		`"Webhook-Signature":"v1,abc","Webhook-Timestamp":"`)
	require.Contains(t, body, `"X-Many":["1","2"]}}`)
	j.Request.Header["bad name"] = []string{"1"}
	require.NotContains(t,
		call(t, handlerOf(f), "POST", "/v1/topics/order.close/lease", `{"request": true}`).Body.String(), `"method"`)
}

// fixedSigner is a job.Signer.
type fixedSigner string

func (s fixedSigner) Sign(string, time.Time, []byte) string { return string(s) }

func TestSettleLeases_ReadsAnswersAndReleases(t *testing.T) {
	f := fullService()
	f.leaseErrs = []error{nil, nil, nil}
	a, b, c := leaseText("order.close", "a"), leaseText("order.close", "b"), leaseText("order.close", "c")
	w := call(t, handlerOf(f), "POST", "/v1/leases", fmt.Sprintf(`{"release": [{"lease": %q}], "answered": [
		{"lease": %q, "status": 503, "after": "30s", "nonretryable": true, "response": "busy"}, {"lease": %q, `+
		`"status": 200}]}`, c, a, b))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Contains(t, w.Body.String(),
		`"answered":[{"index":0,"id":"a","result":"ok"},{"index":1,"id":"b","result":"ok"}]`)
	require.Contains(t, w.Body.String(), `"release":[{"index":0,"id":"c","result":"ok"}]`)
	for i := range f.reports {
		f.reports[i].Lease = store.ClientLease{}
	}
	require.Equal(t, []store.LeaseReport{
		{
			Result: store.LeaseAnswered, Status: 503, After: new(30 * time.Second), NonRetryable: true,
			Response: []byte("busy"),
		},
		{Result: store.LeaseAnswered, Status: 200},
		{Result: store.LeaseRelease},
	}, f.reports)
}

func TestLease_AnswersErrors(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{&store.NotPulledError{Topic: "order.close"}, 409, "wrong_state"},
		{store.ErrStopping, 503, "shutting_down"},
		{&store.UnavailableError{Reason: "down"}, 503, "store_unavailable"},
		{errors.New("a bug"), 500, "internal"},
	} {
		f := fullService()
		f.err = c.err
		for path, body := range map[string]string{
			"/v1/topics/order.close/lease": "", "/v1/leases": `{"next": {"topic": "order.close"}}`,
		} {
			w := call(t, handlerOf(f), "POST", path, body)
			require.Equal(t, c.status, w.Code, "%s: %s", path, w.Body)
			require.Contains(t, w.Body.String(), `"code":"`+c.code+`"`)
		}
	}
}

func TestSettleLeases_ReadsItsFields(t *testing.T) {
	f := fullService()
	a, b, c, d := leaseText("order.close", "a"), leaseText("order.close", "b"), leaseText("order.close", "c"),
		leaseText("order.close", "d")
	f.leaseErrs = []error{
		nil, store.ErrLeaseLost, &store.UnavailableError{Reason: "down"}, nil, nil,
		store.ErrCancelRequested,
	}
	w := call(t, handlerOf(f), "POST", "/v1/leases", fmt.Sprintf(`{
		"extend": [{"lease": %q, "for": "5m"}],
		"dead": [{"lease": %q, "reason": "no such customer"}],
		"retry": [{"lease": %q}, {"lease": %q, "after": 0, "error": "no disk"}],
		"done": [{"lease": %q, "response": "ok"}, {"lease": %q, "response": {"pages":  3}}],
		"next": {"max": 7, "wait": "1s"}}`, a, b, c, d, a, b))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Contains(t, w.Body.String(), `{"done":[{"index":0,"id":"a","result":"ok"},{"index":1,"id":"b",`+
		`"result":"lost"}],"answered":[],`+
		`"retry":[{"index":0,"id":"c","result":"unavailable"},{"index":1,"id":"d","result":"ok"}],"dead":[{"index":0,`+
		`"id":"b","result":"ok"}],`+
		`"release":[],"extend":[{"index":0,"id":"a","result":"ok","cancel_requested":true}],`+
		`"items":[{"id":"close-4711"`)
	require.Equal(t,
		[]store.LeaseRequest{{Namespace: "default", Topic: "order.close", Max: 7, Wait: time.Second}}, f.leaseRequests)
	for i, want := range []store.LeaseReport{
		{Result: store.LeaseDone, Response: []byte("ok")},
		{Result: store.LeaseDone, Response: []byte(`{"pages":  3}`)},
		{Result: store.LeaseRetry},
		{Result: store.LeaseRetry, After: new(time.Duration(0)), Error: "no disk"},
		{Result: store.LeaseDead, Error: "no such customer"},
		{Result: store.LeaseExtend, For: 5 * time.Minute},
	} {
		want.Lease = f.reports[i].Lease
		require.Equal(t, want, f.reports[i])
		require.Equal(t, "default", want.Lease.Queue.Namespace)
		require.Equal(t, epoch, want.Lease.LeasedAt)
	}
}

// Such a text may be a lease of another version. It must not keep the other reports from being settled.
func TestSettleLeases_TakesTextsThatAreNoLeasesForLostOnes(t *testing.T) {
	good, signed := leaseText("order.close", "a"), leaseText("order.close", "b")
	bad := []string{
		"AAAA", strings.Repeat("A", 2000), good + "A", good[:len(good)-2],
		signed[:len(signed)-22], "not base64",
	}
	valid, _ := access.NewText()
	for _, text := range bad {
		for body, next := range map[string]int{
			`{"done": [{"lease": "BAD"}, {"lease": "GOOD"}], "extend": [{"lease": "BAD", "for": "1m"}], "next": {}}`: 1,
			`{"done": [{"lease": "BAD"}], "next": {"topic": "order.close"}}`:                                         1,
			`{"done": [{"lease": "BAD"}], "next": {}}`:                                                               0,
		} {
			f := fullService()
			f.leaseErrs = slices.Repeat([]error{store.ErrLeaseLost}, 3)
			p := &access.Principal{
				Role: access.Operate, Namespace: job.DefaultNamespace, Bodies: true,
				Topics: access.Topics{"order.*"},
			}
			h := New(Options{Service: withTokens(f, map[string]*access.Principal{valid: p}), Logger: quiet})
			w := call(t, h, "POST", "/v1/leases", strings.NewReplacer("BAD", text, "GOOD", good).Replace(body),
				"Authorization", "Bearer "+valid)
			require.Equal(t, http.StatusOK, w.Code, "%s: %s", body, w.Body)
			require.Contains(t, w.Body.String(), `"done":[{"index":0,"id":"","result":"lost"}`)
			require.Equal(t, store.ClientLease{}, f.reports[0].Lease)
			require.Len(t, f.leaseRequests, next)
		}
	}
}

func TestSettleLeases_RefusesBadInput(t *testing.T) {
	good, other := leaseText("order.close", "a"), leaseText("other", "a")
	tooMany := strings.Repeat(`{"lease": "`+good+`"}, `, store.MaxBatch) + `{"lease": "` + good + `"}`
	for body, fields := range map[string]string{
		`{}`:                           "",
		`{"done": null, "next": null}`: "",
		`{"done": {}}`:                 "/done",
		`{"done": [1]}`:                "/done/0",
		`{"done": [{}]}`:               "/done/0/lease",
		`{"done": [{"lease": 1}]}`:     "/done/0/lease",
		`{"done": [{"lease": ""}]}`:    "/done/0/lease",
		`{"done": [{"lease": "` + good + `", "after": 1}]}`:                             "/done/0/after",
		`{"retry": [{"lease": "` + good + `", "after": "31d"}]}`:                        "/retry/0/after",
		`{"retry": [{"lease": "` + good + `", "after": -1}]}`:                           "/retry/0/after",
		`{"dead": [{"lease": "` + good + `"}]}`:                                         "/dead/0/reason",
		`{"dead": [{"lease": "` + good + `", "reason": ""}]}`:                           "/dead/0/reason",
		`{"extend": [{"lease": "` + good + `"}]}`:                                       "/extend/0/for",
		`{"extend": [{"lease": "` + good + `", "for": "13h"}]}`:                         "/extend/0/for",
		`{"extend": [{"lease": "` + good + `", "for": "1ms"}]}`:                         "/extend/0/for",
		`{"done": [` + tooMany + `]}`:                                                   "/done",
		`{"next": {}}`:                                                                  "/next/topic",
		`{"next": {"topic": "a b"}}`:                                                    "/next/topic",
		`{"next": {"topic": "a", "max": 1000}}`:                                         "/next/max",
		`{"next": {"topic": "a", "wait": "1h"}}`:                                        "/next/wait",
		`{"done": [{"lease": "` + good + `"}, {"lease": "` + other + `"}], "next": {}}`: "/next/topic",
		`{"more": []}`: "/more",
		`{"answered": [{"lease": "` + good + `"}]}`:                                      "/answered/0/status",
		`{"answered": [{"lease": "` + good + `", "status": 99}]}`:                        "/answered/0/status",
		`{"answered": [{"lease": "` + good + `", "status": "200"}]}`:                     "/answered/0/status",
		`{"answered": [{"lease": "` + good + `", "status": 200, "after": "31d"}]}`:       "/answered/0/after",
		`{"answered": [{"lease": "` + good + `", "status": 200, "nonretryable": "no"}]}`: "/answered/0/nonretryable",
		`{"release": [{"lease": "` + good + `", "after": "1s"}]}`:                        "/release/0/after",
	} {
		f := fullService()
		w := call(t, handlerOf(f), "POST", "/v1/leases", body)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, "%.200s: %s", body, w.Body)
		for field := range strings.FieldsSeq(fields) {
			require.Contains(t, w.Body.String(), `"field":"`+field+`"`, "%.200s", body)
		}
		require.Empty(t, f.reports, "%.200s", body)
		require.Empty(t, f.leaseRequests, "%.200s", body)
	}
	twice := call(t, handlerOf(fullService()), "POST", "/v1/leases", `{"done": [], "done": []}`)
	require.Equal(t, http.StatusBadRequest, twice.Code)
}

func TestLeases_NeedATokenThatReadsBodiesOfItsTopics(t *testing.T) {
	valid, _ := access.NewText()
	handler := func(p access.Principal) http.Handler {
		p.Role, p.Namespace = access.Operate, job.DefaultNamespace
		return New(Options{
			Service: withTokens(fullService(), map[string]*access.Principal{valid: &p}), Logger: quiet,
			Access: AccessOptions{Tokens: []logs.Secret{"the root's token"}},
		})
	}
	ask := func(p access.Principal, path, body string) int {
		return call(t, handler(p), "POST", path, body, "Authorization", "Bearer "+valid).Code
	}
	const lease, settle = "/v1/topics/order.close/lease", "/v1/leases"
	next, done := `{"next": {"topic": "order.close"}}`, `{"done": [{"lease": "`+leaseText("order.close", "a")+`"}]}`
	for _, p := range []access.Principal{{Bodies: true}, {Bodies: true, Topics: access.Topics{"order.*"}}} {
		require.Equal(t, 200, ask(p, lease, ""))
		require.Equal(t, 200, ask(p, settle, next))
		require.Equal(t, 200, ask(p, settle, done))
	}
	other := access.Principal{Bodies: true, Topics: access.Topics{"invoice"}}
	require.Equal(t, 403, ask(other, lease, ""))
	require.Equal(t, 403, ask(other, settle, next))
	require.Equal(t, 403, ask(other, settle, done))
	require.Equal(t, 403, ask(access.Principal{}, lease, ""))
	require.Equal(t, 403, ask(access.Principal{}, settle, next))
	require.Equal(t, 200, ask(access.Principal{}, settle, done), "settling shows no body")
}

// brokenWriter fails after some bytes, or when it is flushed.
type brokenWriter struct {
	*httptest.ResponseRecorder
	fails bool
}

func (w brokenWriter) Write(b []byte) (int, error) {
	if w.fails {
		return len(b) / 2, errors.New("connection reset")
	}
	return w.ResponseRecorder.Write(b)
}

func (w brokenWriter) FlushError() error { return errors.New("connection reset") }

func TestLease_ReleasesWhatTheClientHasNotReceived(t *testing.T) {
	for _, fails := range []bool{true, false} {
		for path, body := range map[string]string{
			"/v1/topics/order.close/lease": "{}", "/v1/leases": `{"next": {"topic": "order.close"}}`,
		} {
			f := fullService()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			handlerOf(f).ServeHTTP(brokenWriter{httptest.NewRecorder(), fails}, r)
			require.Equal(t, f.leased, f.released, path)
		}
	}
}

func TestLease_NeedsATokenThatIsValidAfterTheWait(t *testing.T) {
	const lease, settle = "/v1/topics/order.close/lease", "/v1/leases"
	done := `"done": [{"lease": "` + leaseText("order.close", "a") + `"}]`
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{lease, `{"wait": "30s"}`, http.StatusUnauthorized},
		{settle, `{"next": {"topic": "order.close", "wait": "30s"}}`, http.StatusUnauthorized},
		{settle, "{" + done + `, "next": {"wait": "30s"}}`, http.StatusOK},
	} {
		f := fullService()
		f.callers[fakeToken] = &access.Principal{Role: access.Operate, Namespace: job.DefaultNamespace, Bodies: true}
		f.waitForLeases = func() { delete(f.callers, fakeToken) }
		h := New(Options{Service: f, Logger: quiet, Access: AccessOptions{Tokens: []logs.Secret{"root"}}})
		w := call(t, h, http.MethodPost, c.path, c.body, "Authorization", "Bearer "+fakeToken)
		require.Equal(t, c.status, w.Code, w.Body)
		require.NotEmpty(t, f.leased)
		require.Equal(t, f.leased, f.released, c.body)
		if c.status == http.StatusOK {
			require.Contains(t, w.Body.String(), `"items":[]`)
			require.Contains(t, w.Body.String(), `"result":"ok"`)
		}
	}
}

func TestLease_AnswersLongerThanEveryTimeout(t *testing.T) {
	f := fullService()
	const answered = time.Minute + limits.Timeout - time.Second // after the wait jobs are claimed
	f.waitForLeases = func() { time.Sleep(answered) }
	serveInSynctest(t, handlerOf(f), func(t *testing.T, _ *http.Server, conn net.Conn, _ <-chan struct{}) {
		began := time.Now()
		body := `{"done": [{"lease": "` + leaseText("order.close", "a") + `"}], "next": {"wait": "60s"}}`
		go func() {
			_, _ = io.WriteString(conn, "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
				"application/json\r\nContent-Length: "+
				jsonNumber(len(body))+"\r\n\r\n")
			time.Sleep(limits.ReadTimeout - time.Second)
			_, _ = io.WriteString(conn, body)
		}()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, limits.ReadTimeout-time.Second+answered, time.Since(began))
	})
}
