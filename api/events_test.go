package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

func TestSendEvent_PassesWhatWasSent(t *testing.T) {
	f := newFake()
	f.event = store.Event{ID: "made", Expanded: true}
	h := handlerOf(f)
	w := call(t, h, http.MethodPost, "/v1/events", `{"type": "order.paid", "topic": "merchants", "body": {"a":  1},
		"labels": {"region": "eu"}, "expires_in": "1h", "ladder": ["1s"], "on_dead": "https://a.example/dead"}`,
		"Idempotency-Key", `"e-7"`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
	require.Equal(t, "/v1/events/e-7", w.Header().Get("Location"))
	sent := f.events[0]
	require.Equal(t, "e-7", sent.ID)
	require.Equal(t, "order.paid", sent.Type)
	require.Empty(t, sent.Job.ID)
	require.Equal(t, "merchants", sent.Job.Topic)
	require.Equal(t, `{"a":  1}`, string(sent.Job.Body))
	require.Equal(t, job.BodyJSON, sent.Job.BodyKind)
	require.Equal(t, map[string]string{"region": "eu"}, sent.Job.Labels)
	require.Equal(t, time.Hour, sent.Job.ExpiresIn)
	require.Equal(t, "https://a.example/dead", sent.Job.OnDead.URL)

	f.event.Expanded = false
	w = call(t, h, http.MethodPost, "/v1/events", `{"type": "a", "delay": "1h"}`)
	require.Equal(t, http.StatusAccepted, w.Code)
	f.event.Known = true
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, "/v1/events", `{"type": "a"}`).Code)
	f.err = &job.TakenError{ID: "e"}
	require.Equal(t, http.StatusConflict, call(t, h, http.MethodPost, "/v1/events", `{"type": "a", "id": "e"}`).Code)
}

func TestSendEvent_RefusesBadInput(t *testing.T) {
	f := newFake()
	for body, fields := range map[string][]string{
		`{}`:                         {"/type"},
		`{"type": "a..b"}`:           {"/type"},
		`{"type": "a.*"}`:            {"/type"},
		`{"type": "a", "id": "a:b"}`: {"/id"},
		`{"type": "a", "id": "` + strings.Repeat("a", 41) + `"}`: {"/id"},
		`{"type": "a", "url": "https://a.example", "lane": "x", "method": "PUT", "headers": {}}`: {
			"/headers", "/lane", "/method", "/url",
		},
		`{"type": "a", "topic": "_events"}`:                              {"/topic"},
		`{"type": "a", "labels": {"rb.event": "b"}}`:                     {"/labels/rb.event"},
		`{"type": "a", "body": 1, "body_text": "a"}`:                     {"/body"},
		`{"type": "a", "delay": "1h", "run_at": "2030-01-01T00:00:00Z"}`: {"/run_at"},
		`{"type": "a", "nonsense": 1}`:                                   {"/nonsense"},
	} {
		w := call(t, handlerOf(f), http.MethodPost, "/v1/events", body)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, "%s: %s", body, w.Body)
		require.ElementsMatch(t, fields, problemIn(t, w).fields(), body)
	}
	require.Empty(t, f.events)
}

func TestSendEvents_ReportEachInOrder(t *testing.T) {
	f := newFake()
	f.event = store.Event{ID: "made", Expanded: true, Jobs: 3}
	w := call(t, handlerOf(f), http.MethodPost, "/v1/events/batch",
		`{"events": [{"type": "a", "id": "x"}, {"id": "y"}, {"type": "b"}]}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, []int{201, 422, 201}, statusesIn(t, w.Body.String()))
	require.Len(t, f.events, 2)
	for _, bad := range []string{`{}`, `{"events": {}}`, `{"jobs": []}`} {
		require.Equal(t, http.StatusUnprocessableEntity,
			call(t, handlerOf(f), http.MethodPost, "/v1/events/batch", bad).Code, bad)
	}
	many := `{"events": [` + strings.Repeat(`{"type": "a"},`, 1000) + `{"type": "a"}]}`
	require.Equal(t, http.StatusRequestEntityTooLarge,
		call(t, handlerOf(f), http.MethodPost, "/v1/events/batch", many).Code)
}

func TestEvents_AreFoundByTopicAndType(t *testing.T) {
	f := fullService()
	h := handlerOf(f)
	call(t, h, http.MethodGet, "/v1/events?topic=order.close&type=order.closed&label=region:eu&limit=7", "")
	require.Equal(t, "order.close", f.filter.Topic)
	require.Equal(t, []store.Label{{Key: "region", Value: "eu"}, {Key: job.LabelEvent, Value: "order.closed"}},
		f.filter.Labels)
	require.Equal(t, 7, f.filter.Limit)
	f.page = store.Page{More: true}
	next, _ := decodeResponse(t, call(t, h, http.MethodGet, "/v1/events?type=order.closed", ""))["next_cursor"].(string)
	require.NotEmpty(t, next)
	w := call(t, h, http.MethodGet, "/v1/events?type=order.closed&cursor="+url.QueryEscape(next), "")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, []string{"?type"}, problemIn(t, call(t, h, http.MethodGet, "/v1/events?type=a.*", "")).fields())
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, "/v1/events/none", "").Code)
}

func TestEvents_AreAnsweredWhenTheirJobsHaveEnded(t *testing.T) {
	f := fullService()
	h := New(Options{Service: f, Logger: quiet, MaxWaiting: 1})
	for _, c := range [][2]string{
		{http.MethodPost, "/v1/events?wait=20s"}, {http.MethodGet, "/v1/events/" + f.event.ID + "?wait=20s"},
	} {
		f.waits = nil
		body := ""
		if c[0] == http.MethodPost {
			body = `{"type": "a", "id": "` + f.event.ID + `"}`
		}
		w := call(t, h, c[0], c[1], body)
		require.Less(t, w.Code, 300, w.Body)
		require.Equal(t, []time.Duration{20 * time.Second}, f.waits)
		require.Equal(t, []string{"?wait"}, problemIn(t, call(t, h, c[0], c[1]+"1h", `{"type": "a"}`)).fields())
	}
}

func TestTestLane_AnswersWithTheEndedJob(t *testing.T) {
	f := fullService()
	f.waitForEnd = func(context.Context) error { f.deliver(job.EventJobID("test-1", "order.close", "a")); return nil }
	h := handlerOf(f)
	w := call(t, h, http.MethodPost, "/v1/topics/order.close/lanes/a/test?type=order.paid", "")
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
	require.Equal(t, "order.paid", f.eventType)
	require.Equal(t, []time.Duration{20 * time.Second}, f.waits)
	require.Equal(t, "delivered", requireWaited(t, w.Body).State)
	call(t, h, http.MethodPost, "/v1/topics/order.close/lanes/a/test?wait=1s", "")
	require.Equal(t, "test", f.eventType)
	require.Equal(t, []string{"?type"},
		problemIn(t, call(t, h, http.MethodPost, "/v1/topics/order.close/lanes/a/test?type=a.*", "")).fields())
	call(t, h, http.MethodGet, "/v1/topics/order.close/lanes?type=order.paid", "")
	require.Equal(t, "order.paid", f.eventType)
}

func TestEvents_HaveARetention(t *testing.T) {
	h := handlerOf(newFake())
	kept := `{"keep_delivered": {"for": "30d"}}`
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPut, "/v1/topics/_events", kept).Code)
	for _, c := range [][3]string{
		{http.MethodPut, "/v1/topics/_events", `{"timeout": "5s"}`},
		{http.MethodPut, "/v1/topics/_events/lanes/a", `{"lane_concurrency": 3}`},
		{http.MethodPut, "/v1/topics/_work", kept},
		{http.MethodPost, "/v1/topics/_events/pause", ""},
		{http.MethodDelete, "/v1/topics/_events", ""},
	} {
		require.Equal(t, http.StatusUnprocessableEntity, call(t, h, c[0], c[1], c[2]).Code, c)
	}
}
