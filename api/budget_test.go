package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// newBudgetedAPI returns an API and its body budget, which has room for one of the largest registrations.
func newBudgetedAPI(s Service) (http.Handler, *limits.BodyBudget) {
	o := Options{Service: s, Logger: quiet}
	a, end := newAPI(o)
	a.bodies = limits.NewBodyBudget((request.Limit(a.maxBody) + 1) * 3 / 2)
	return a.handler(o, end), a.bodies
}

func TestBodyBudget_FitsTheLargestRequest(t *testing.T) {
	for _, c := range []struct{ maxBody, large int64 }{
		{1, int64(capacity.LargeBodies.Whole)},
		{256 << 10, int64(capacity.LargeBodies.Whole)},
		{10 << 20, (request.Limit(10<<20) + 1) * 3 / 2},
	} {
		a, _ := newAPI(Options{Service: newFake(), MaxBody: c.maxBody})
		require.Equal(t, c.large, a.bodies.Large())
		require.Greater(t, a.bodies.Large(), int64(request.MaxBatchBytes))
	}
}

// upload is a request whose body is sent step by step.
type upload struct {
	*io.PipeWriter
	w    *httptest.ResponseRecorder
	done chan struct{}
}

func newUpload(t *testing.T, h http.Handler, path string, length int64) *upload {
	t.Helper()
	body, in := io.Pipe()
	u := &upload{PipeWriter: in, w: httptest.NewRecorder(), done: make(chan struct{})}
	r := httptest.NewRequest(http.MethodPost, path, body)
	r.ContentLength = length
	r.Header.Set("Content-Type", "application/json")
	go func() {
		defer close(u.done)
		h.ServeHTTP(u.w, r)
		_ = body.Close()
	}()
	return u
}

// send sends n bytes of white space; an error means that the request was refused.
func (u *upload) send(n int) error {
	for ; n > 0; n -= 32 << 10 {
		if _, err := u.Write([]byte(strings.Repeat(" ", min(n, 32<<10)))); err != nil {
			return err
		}
	}
	return nil
}

// finish ends the body with a text and returns the status.
func (u *upload) finish(text string) int {
	_, _ = io.WriteString(u, text)
	_ = u.Close()
	<-u.done
	return u.w.Code
}

func TestBodyBudget_BoundsUploadsInFlight(t *testing.T) {
	for length, total := range map[int64]int{-1: 1000 << 10, 1500 << 10: 1500 << 10} {
		const end = `{"id": "a"}`
		h, budget := newBudgetedAPI(newFake())

		// Announced bytes that do not arrive are not reserved.
		var silent []*upload
		for range 10 {
			silent = append(silent, newUpload(t, h, "/v1/jobs", length))
		}
		first := newUpload(t, h, "/v1/jobs", length)
		require.NoError(t, first.send(800<<10))
		second := newUpload(t, h, "/v1/jobs", length)
		_ = second.send(1200 << 10)
		<-second.done
		require.Equal(t, http.StatusServiceUnavailable, second.w.Code)
		require.Equal(t, "1", second.w.Header().Get("Retry-After"))
		require.Equal(t, "close", second.w.Header().Get("Connection"))
		problemIn(t, second.w)

		// A small one is taken all the same, and the first goes on.
		require.Equal(t, http.StatusCreated, call(t, h, http.MethodPost, "/v1/jobs", `{"id": "small"}`).Code)
		require.NoError(t, first.send(total-800<<10-len(end)))
		require.Equal(t, http.StatusCreated, first.finish(end))
		for _, u := range silent {
			u.finish("")
		}

		largest := newUpload(t, h, "/v1/jobs", -1)
		require.NoError(t, largest.send(int(request.Limit(defaultMaxBody))-len(end)), "what was held was given back")
		require.Equal(t, http.StatusOK, largest.finish(end))
		require.Zero(t, budget.InUse())
	}
}

func TestBodyBudget_HoldsLittleForSilentClients(t *testing.T) {
	const silent = 10
	h, budget := newBudgetedAPI(newFake())
	var uploads []*upload
	for range silent {
		u := newUpload(t, h, "/v1/jobs", capacity.SmallBody)
		_, err := u.Write([]byte(" "))
		require.NoError(t, err)
		uploads = append(uploads, u)
	}
	require.LessOrEqual(t, budget.InUse(), int64(silent*capacity.SmallBody/8))
	for _, u := range uploads {
		require.NoError(t, u.send(capacity.SmallBody-1-len("{}")))
		require.Less(t, u.finish("{}"), 300)
	}
	require.Zero(t, budget.InUse())
}

func TestBodyBudget_RefusesBeforeItReads(t *testing.T) {
	h, budget := newBudgetedAPI(newFake())
	full := budget.Meter(nil, capacity.Holder{})
	require.NoError(t, full.Reserve(budget.Large()))
	r := httptest.NewRequest(http.MethodPost, "/v1/batch", failingBody{})
	r.ContentLength = capacity.SmallBody + 1
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	full.Release()
	require.Zero(t, budget.InUse())
}

// failingBody is a body that must not be read.
type failingBody struct{}

func (failingBody) Read([]byte) (int, error) { panic("it is read") }

func TestBodyBudget_BoundsUnreadAnswers(t *testing.T) {
	f := newFake()
	body := strings.Repeat("x", capacity.SmallBody+1)
	f.jobs["a"] = job.Job{
		Spec:     job.Spec{ID: "a", BodyKind: job.BodyText, Body: []byte(body)},
		Progress: job.Progress{State: job.Scheduled, Version: 1},
	}
	h, budget := newBudgetedAPI(f)
	full := budget.Meter(nil, capacity.Holder{})
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/v1/jobs/a", "").Code)
	require.NoError(t, full.Reserve(budget.Large()))
	w := call(t, h, http.MethodGet, "/v1/jobs/a", "")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, "/v1/jobs/a/run", "").Code,
		"a completed call has a response")
	require.Equal(t, budget.Large(), budget.InUse())
}

func TestBodyBudget_CountsStreams(t *testing.T) {
	f := newFake()
	h, budget := newBudgetedAPI(f)
	var most int64
	f.register = func(n job.New) store.RoutedResult {
		most = max(most, budget.InUse())
		return store.RoutedResult{InsertResult: store.InsertResult{Outcome: store.Created, Job: job.Job{Spec: n.Spec}}}
	}
	long := `{"id": "long", "body_text": "` + strings.Repeat("x", 200<<10) + `"}`
	for _, one := range streamed(t, h, strings.Repeat(long+"\n", 20)) {
		require.Equal(t, http.StatusCreated, one.Status)
	}
	require.Greater(t, most, int64(len(long)))
	require.Less(t, most, int64(2<<20))
	require.Zero(t, budget.InUse())

	full := budget.Meter(nil, capacity.Holder{})
	require.NoError(t, full.Reserve(budget.Large()))
	got := streamed(t, h, `{"id": "a"}`+"\n"+strings.Repeat(`{"id": "b"}`+"\n", 2_000)+long)
	require.Len(t, got, 2_002)
	for _, one := range got[:2_001] {
		require.Equal(t, http.StatusCreated, one.Status, "short lines need no room")
	}
	require.Equal(t, http.StatusServiceUnavailable, got[2_001].Status)
	require.Nil(t, got[2_001].Index)
	require.Contains(t, got[2_001].Error.Detail, "line 2002")
	require.Equal(t, budget.Large(), budget.InUse())
}

func TestBodyBudget_IsKeptByRequestsAtOnce(t *testing.T) {
	var most int64
	var mu sync.Mutex
	f := newFake()
	h, budget := newBudgetedAPI(f)
	f.register = func(n job.New) store.RoutedResult {
		mu.Lock()
		most = max(most, budget.InUse())
		mu.Unlock()
		return store.RoutedResult{InsertResult: store.InsertResult{Outcome: store.Created, Job: job.Job{Spec: n.Spec}}}
	}
	server := httptest.NewUnstartedServer(h)
	server.Config = Server(h, quiet)
	server.Start()
	defer server.Close()
	body := `{"jobs": [{}` + strings.Repeat(" ", 300<<10) + `]}`
	var all sync.WaitGroup
	answers := make(chan *http.Response, 40)
	for range cap(answers) {
		all.Go(func() {
			resp, err := server.Client().Post(server.URL+"/v1/batch", "application/json", strings.NewReader(body))
			if err == nil {
				answers <- resp
			}
		})
	}
	all.Wait()
	require.Len(t, answers, cap(answers), "every client gets an answer")
	for range cap(answers) {
		resp := <-answers
		if resp.StatusCode != http.StatusOK {
			require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
			require.Equal(t, "1", resp.Header.Get("Retry-After"))
		}
		require.NoError(t, resp.Body.Close())
	}
	require.LessOrEqual(t, most, budget.Large()+int64(capacity.Bodies.Whole-capacity.LargeBodies.Whole))
}

// An upload that stalls is ended, and its budget is released.
func TestReadBody_EndsAnUploadThatStalls(t *testing.T) {
	h, budget := newBudgetedAPI(newFake())
	serveInSynctest(t, h, func(t *testing.T, _ *http.Server, conn net.Conn, _ <-chan struct{}) {
		began := time.Now()
		_, err := io.WriteString(conn, "POST /v1/batch HTTP/1.1\r\nHost: a\r\nContent-Type: "+
			"application/json\r\nContent-Length: "+
			strconv.Itoa(1<<20)+"\r\n\r\n"+strings.Repeat(" ", 100<<10))
		require.NoError(t, err)
		synctest.Wait()
		require.Positive(t, budget.InUse())
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(answer), "HTTP/1.1 408 "), "%s", answer)
		require.Less(t, time.Since(began), limits.StallTimeout+5*time.Second)
		require.Zero(t, budget.InUse())
	})
}

// The read deadlines of a large upload end with it: the call to the store has the time of a request.
func TestReadBody_LeavesNoDeadlineBehind(t *testing.T) {
	f := newFake()
	f.register = func(n job.New) store.RoutedResult {
		time.Sleep(limits.StallTimeout + 5*time.Second) // a bubble's time
		return store.RoutedResult{InsertResult: store.InsertResult{Outcome: store.Created, Job: job.Job{Spec: n.Spec}}}
	}
	h, _ := newBudgetedAPI(contextService{f})
	serveInSynctest(t, h, func(t *testing.T, _ *http.Server, conn net.Conn, _ <-chan struct{}) {
		body := `{"jobs": [{}` + strings.Repeat(" ", 100<<10) + `]}`
		_, err := io.WriteString(conn, "POST /v1/batch HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: "+
			"application/json\r\n"+
			"Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Contains(t, string(answer), `"status":201`)
	})
}

// contextService fails registrations whose context has ended.
type contextService struct{ *fake }

func (s contextService) FindStore(context.Context, string) (Store, error) { return s, nil }

func (s contextService) Register(ctx context.Context, jobs []job.New) []store.RoutedResult {
	results := s.fake.Register(ctx, jobs)
	for i := range results {
		if ctx.Err() != nil {
			results[i] = store.RoutedResult{Err: ctx.Err()}
		}
	}
	return results
}
