package clienttest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/clienttest"
)

// shop records the requests that it gets.
type shop struct {
	got    []string
	at     []time.Time
	status int
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.got = append(s.got, r.Method+" "+r.Host+r.URL.Path+" "+string(body))
	s.at = append(s.at, time.Now())
	if s.status != 0 && r.URL.Path == "/close" {
		w.WriteHeader(s.status)
	}
}

func TestServer_DeliversWhenTheClockIsMoved(t *testing.T) {
	for _, url := range []string{
		"http://shop.example/close", "https://shop.example/close", "https://127.0.0.1:8443/close",
	} {
		synctest.Test(t, func(t *testing.T) {
			shop := new(shop)
			srv := clienttest.New(t, shop)
			began := time.Now()
			job, err := srv.Client().Register(t.Context(),
				client.Job{URL: url, Delay: 30 * time.Minute, Body: map[string]int{"order": 4711}})
			require.NoError(t, err)
			require.Equal(t, client.Scheduled, job.State)
			srv.Advance(29 * time.Minute)
			require.Empty(t, shop.got)
			srv.Advance(time.Minute)
			require.Len(t, shop.got, 1)
			require.True(t, strings.HasSuffix(shop.got[0], `/close {"order":4711}`), shop.got[0])
			require.WithinDuration(t, began.Add(30*time.Minute), shop.at[0], 20*time.Millisecond)
			job, err = srv.Client().Get(t.Context(), job.ID)
			require.NoError(t, err)
			require.Equal(t, client.Delivered, job.State)
			require.Equal(t, 200, job.LastStatus)
		})
	}
}

func TestServer_AcceptsAnAnswerBeforeTheBodyIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := clienttest.New(t,
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
		job, err := srv.Client().Register(t.Context(),
			client.Job{URL: "http://shop.example/", Body: make([]byte, 250<<10)})
		require.NoError(t, err)
		srv.Advance(0)
		job, err = srv.Client().Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, client.Delivered, job.State, string(job.Raw))
	})
}

func TestServer_RetriesAndCallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := &shop{status: http.StatusServiceUnavailable}
		srv := clienttest.New(t, shop)
		_, err := srv.Client().Register(t.Context(), client.Job{
			ID: "close-4711", URL: "http://shop.example/close", Ladder: []time.Duration{time.Minute, time.Hour},
			OnDead: &client.Callback{URL: "http://shop.example/dead"},
		})
		require.NoError(t, err)
		srv.Advance(time.Second)
		require.Len(t, shop.got, 1)
		srv.Advance(time.Minute * 11 / 10) // with the jitter
		require.Len(t, shop.got, 2)
		srv.Advance(time.Hour * 11 / 10)
		require.Len(t, shop.got, 4)
		require.Contains(t, shop.got[3], "/dead")
		job, err := srv.Client().Get(t.Context(), "close-4711")
		require.NoError(t, err)
		require.Equal(t, client.Dead, job.State)
		require.Equal(t, "exhausted", job.Reason)
	})
}

func TestServer_RunsSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := new(shop)
		srv := clienttest.New(t, shop)
		_, err := srv.Client().PutSchedule(t.Context(), "sync", client.ScheduleRequest{
			Every: 15 * time.Minute, Job: &client.ScheduleJob{URL: "https://shop.example/sync"},
		})
		require.NoError(t, err)
		srv.Advance(time.Hour)
		require.Len(t, shop.got, 4)
	})
}

func TestServer_RequiresABubble(t *testing.T) {
	failed := new(recorder)
	func() {
		defer func() { _ = recover() }()
		clienttest.New(failed, http.NotFoundHandler())
	}()
	require.Contains(t, failed.text, "synctest.Test")
}

// recorder is a test that fails.
type recorder struct {
	testing.TB

	text string
}

func (*recorder) Helper() {}

func (r *recorder) Fatal(args ...any) {
	r.text = fmt.Sprint(args...)
	panic("failed")
}
