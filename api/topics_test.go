package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestPutTopic_SetsTheWholePolicy(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	w := call(t, h, http.MethodPut, "/v1/topics/order.close", `{"ladder": ["15s", 180], "retries": 5, "jitter": 0,
		"timeout": "5s", "max_age": "2d", "workers": 8, "lane_concurrency": 2, "deliver": "pull", "url": `+
		`"https://shop.example/",
		"headers": {"x-a": ["1", "2"]}, "give_up_on": ["4xx"], "keep_delivered": {"for": "1h", "max": 5, `+
		`"max_bytes": "1MiB"},
		"keep_dead": {"max_bytes": 0}, "id_window": "0s"}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, policy.Topic{
		Ladder: policy.Ladder{15 * time.Second, 3 * time.Minute}, Retries: new(5), Jitter: new(0.0),
		Timeout: 5 * time.Second, MaxAge: 48 * time.Hour, Workers: 8, LaneConcurrency: 2, Deliver: policy.DeliverPull,
		URL: "https://shop.example/", Headers: map[string][]string{"X-A": {"1", "2"}}, GiveUpOn: []string{"4xx"},
		KeepDelivered: policy.Retention{For: new(time.Hour), Max: new(int64(5)), MaxBytes: new(int64(1 << 20))},
		KeepDead:      policy.Retention{MaxBytes: new(int64(0))}, IDWindow: new(time.Duration(0)),
	}, f.topics["order.close"].Policy)

	w = call(t, h, http.MethodPut, "/v1/topics/order.close", `{"deliver": null}`)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, policy.Topic{}, f.topics["order.close"].Policy, "omitted fields take their defaults")
	require.EqualValues(t, 2, decodeResponse(t, w)["revision"])
}

// A client that knows nothing of deliver must not have jobs pushed that have no URL.
func TestPutTopic_MustNameDeliverUnlessTheTopicIsPushed(t *testing.T) {
	const path = "/v1/topics/a"
	for _, deliver := range []policy.Deliver{policy.DeliverPull, policy.DeliverHandler} {
		f := newFake()
		h := handlerOf(f)
		put := func(method, body string) { require.Equal(t, http.StatusOK, call(t, h, method, path, body).Code, body) }
		put(http.MethodPut, `{}`)
		put(http.MethodPatch, fmt.Sprintf(`{"deliver": %q}`, deliver))
		w := call(t, h, http.MethodPut, path, `{"retries": 5}`)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code)
		require.Equal(t, []string{"/deliver"}, problemIn(t, w).fields())
		require.Contains(t, w.Body.String(), fmt.Sprintf(`send \"%s\" to keep that, or \"push\"`, deliver))
		require.Equal(t, policy.Topic{Deliver: deliver}, f.topics["a"].Policy, "nothing is stored")
		put(http.MethodPut, fmt.Sprintf(`{"retries": 5, "deliver": %q}`, deliver))
		put(http.MethodPatch, `{"retries": 6}`)
		require.Equal(t, policy.Topic{Retries: new(6), Deliver: deliver}, f.topics["a"].Policy)
		put(http.MethodPut, `{"deliver": "push"}`)
		put(http.MethodPut, `{}`)
	}
}

func TestPutTopic_KeepsAPause(t *testing.T) {
	for _, path := range []string{"/v1/topics/a", "/v1/topics/a/lanes/b"} {
		h := handlerOf(newFake())
		paused := func(method, body string) any {
			t.Helper()
			w := call(t, h, method, path, body)
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			return decodeResponse(t, w)["paused"]
		}
		require.Equal(t, false, paused(http.MethodPut, `{"url": "http://a.example/"}`))
		require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, path+"/pause", "").Code)
		require.Equal(t, true, paused(http.MethodPut, `{"url": "http://b.example/"}`), path)
		require.Equal(t, true, paused(http.MethodPut, `{}`), path)
		require.Equal(t, true,
			paused(http.MethodPut, `{"url": "http://b.example/", "paused": false, "paused_at": null}`), path)
		require.Equal(t, http.StatusOK, call(t, h, http.MethodPost, path+"/resume", "").Code)
		require.Equal(t, false, paused(http.MethodPut,
			`{"url": "http://b.example/", "paused": true, "pause_note": 5, "updated_at": 5, "updated_by": "x"}`), path)
	}
}

func TestPutTopic_KeepsSecretHeadersLeftOutOrRedacted(t *testing.T) {
	stored := map[string][]string{"Authorization": {"Bearer x"}, "X-Token": {"y"}, "X-A": {"1"}}
	for body, want := range map[string]map[string][]string{
		`{}`: {"Authorization": {"Bearer x"}, "X-Token": {"y"}},
		`{"headers": {"authorization": "[redacted]", "X-B": ` +
			`"2"}}`: {"Authorization": {"Bearer x"}, "X-Token": {"y"}, "X-B": {"2"}},
		`{"headers": {"authorization": "Bearer z"}}`:                {"Authorization": {"Bearer z"}, "X-Token": {"y"}},
		`{"headers": {"authorization": null, "X-A": "[redacted]"}}`: {"X-Token": {"y"}, "X-A": {"1"}},
		`{"headers": null}`: nil,
	} {
		f := newFake()
		f.topics["a"] = store.Topic{Name: "a", Revision: 3, Policy: policy.Topic{Headers: stored}}
		w := call(t, handlerOf(f), http.MethodPut, "/v1/topics/a", body)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		require.Equal(t, want, f.topics["a"].Policy.Headers, body)
		require.NotContains(t, w.Body.String(), "Bearer")
	}
}

func TestPatchTopic_ChangesTheFieldsItNames(t *testing.T) {
	f := newFake()
	stored := policy.Topic{
		Retries: new(5), Timeout: time.Second, Workers: 8, Paused: true,
		Headers:  map[string][]string{"Authorization": {"Bearer x"}, "X-A": {"1"}, "X-B": {"2"}},
		KeepDead: policy.Retention{For: new(time.Hour), Max: new(int64(5))},
	}
	f.topics["a"] = store.Topic{Name: "a", Revision: 3, Policy: stored}
	w := call(t, handlerOf(f), http.MethodPatch, "/v1/topics/a",
		`{"retries": null, "timeout": "2s", "headers": {"x-a": null, "X-C": "3"}, "keep_dead": {"for": null, `+
			`"max": 6}}`,
		"Content-Type", "application/merge-patch+json")
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, policy.Topic{
		Timeout: 2 * time.Second, Workers: 8, Paused: true,
		Headers:  map[string][]string{"Authorization": {"Bearer x"}, "X-B": {"2"}, "X-C": {"3"}},
		KeepDead: policy.Retention{Max: new(int64(6))},
	}, f.topics["a"].Policy)
	require.Equal(t, time.Hour, *stored.KeepDead.For, "what was stored is not written to")

	call(t, handlerOf(f), http.MethodPatch, "/v1/topics/a", `{"headers": null, "keep_dead": null, "give_up_on": []}`)
	require.Equal(t,
		policy.Topic{Timeout: 2 * time.Second, Workers: 8, Paused: true, GiveUpOn: []string{}}, f.topics["a"].Policy)

	for _, target := range []string{"/v1/topics/b", "/v1/topics/b%20c"} {
		require.Equal(t, http.StatusNotFound, call(t, handlerOf(f), http.MethodPatch, target, `{}`).Code)
	}
}

func TestChangeTopic_Answers409WhenContended(t *testing.T) {
	f := newFake()
	f.topics["a"] = store.Topic{Name: "a", Revision: 3}
	f.busy = true
	for target, body := range map[string]string{
		"POST /v1/topics/a/pause": "", "PUT /v1/topics/a": "{}", "PATCH /v1/topics/a": `{"workers": 1}`,
		"PUT /v1/topics/a/lanes/b":  "{}",
		"POST /v1/topics/a/secrets": "", "DELETE /v1/topics/a/secrets/b": "", "DELETE /v1/topics/a/lanes/b": "",
	} {
		method, path, _ := strings.Cut(target, " ")
		w := call(t, handlerOf(f), method, path, body)
		require.Equal(t, http.StatusConflict, w.Code, target)
		problemIn(t, w)
	}
}

// Settings that are not readable are shown as a pause. A change of a part of them would lose the rest.
func TestChangeTopic_Answers409ForUnreadableSettings(t *testing.T) {
	f := newFake()
	for target, want := range map[string]int{
		"POST /v1/topics/a/pause": 409, "POST /v1/topics/a/resume": 409, `PATCH /v1/topics/a {"workers": 1}`: 409,
		"POST /v1/topics/a/secrets": 409, "POST /v1/topics/a/lanes/b/resume": 409,
		`PATCH /v1/topics/a/lanes/b {"lane_concurrency": 1}`: 409, "PUT /v1/topics/a {}": 200,
		`PUT /v1/topics/a/lanes/b {"lane_concurrency": 1}`: 200, "DELETE /v1/topics/a/lanes/b": 204,
	} {
		f.topics["a"] = store.Topic{Name: "a", Revision: 3, Policy: policy.Topic{Paused: true}}
		f.own["a/b"] = store.Lane{Revision: 3, Settings: policy.Lane{Paused: true}}
		f.bad = store.ErrUnreadable
		parts := append(strings.SplitN(target, " ", 3), "")
		w := call(t, handlerOf(f), parts[0], parts[1], parts[2])
		require.Equal(t, want, w.Code, target)
		if want == http.StatusConflict {
			problemIn(t, w)
		}
	}
}

func TestTopic_IsPausedAndResumed(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	f.topics["a"] = store.Topic{Name: "a", Policy: policy.Topic{Workers: 8}}
	require.Equal(t, true, decodeResponse(t, call(t, h, http.MethodPost, "/v1/topics/a/pause", ""))["paused"])
	require.True(t, f.topics["a"].Policy.Paused)
	require.Equal(t, false, decodeResponse(t, call(t, h, http.MethodPost, "/v1/topics/a/resume", "{}"))["paused"])
	require.Equal(t, policy.Topic{Workers: 8}, f.topics["a"].Policy)
	w := call(t, h, http.MethodPost, "/v1/topics/b/pause", "")
	require.Equal(t, http.StatusNotFound, w.Code)
	problemIn(t, w)
}

func TestTopics_ArePaged(t *testing.T) {
	f := newFake()
	for _, name := range []string{"a", "b", "c"} {
		f.topics[name] = store.Topic{Name: name}
	}
	h := handlerOf(f)
	names := func(query string) ([]string, any) { return listed(t, h, "/v1/topics"+query, "topic") }
	all, next := names("")
	require.Equal(t, []string{"a", "b", "c"}, all)
	require.Nil(t, next)
	all, next = names("?limit=2")
	require.Equal(t, []string{"a", "b"}, all)
	require.Equal(t, request.Topics.Encode("b"), next)
	all, next = names("?limit=2&cursor=" + request.Topics.Encode("b"))
	require.Equal(t, []string{"c"}, all)
	require.Nil(t, next)
	all, _ = names("?cursor=" + request.Topics.Encode("aa"))
	require.Equal(t, []string{"b", "c"}, all)
}

func TestStats_AddUpAndPageThroughLanes(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	require.JSONEq(t, `{"totals": {"registered": 0, "scheduled": 0, "ready": 0, "running": 0, "delivered": 0, "dead": 0,
		"cancelled": 0, "oldest_due_at": null, "breakers_open": 0, "lanes_failing": 0, "unfinished_bytes": 0},
		"items": [], "next_cursor": null}`, call(t, h, http.MethodGet, "/v1/stats", "").Body.String())
	f.counts = []store.TopicStats{
		{
			Topic: "a", Registered: 21, Scheduled: 1, Ready: 2, Running: 3, Delivered: 4, Dead: 5, Cancelled: 6,
			OldestDue: epoch.Add(time.Hour), OpenBreakers: 2, Bytes: 32,
		},
		{Topic: "b", Registered: 1, Scheduled: 1, OldestDue: epoch, Bytes: 3},
		{Topic: "c", Registered: 1, Delivered: 1, OpenBreakers: 1, LanesFailing: 4},
	}
	totals, _ := decodeResponse(t, call(t, h, http.MethodGet, "/v1/stats", ""))["totals"].(map[string]any)
	require.Equal(t, map[string]any{
		"registered": 23.0, "scheduled": 2.0, "ready": 2.0, "running": 3.0, "delivered": 5.0, "dead": 5.0,
		"cancelled": 6.0, "breakers_open": 3.0, "lanes_failing": 4.0, "unfinished_bytes": 35.0,
		"oldest_due_at": "2030-01-31T08:00:00.123Z",
	}, totals)

	page := decodeResponse(t, call(t, h, http.MethodGet, "/v1/stats?limit=2", ""))
	require.Equal(t, totals, page["totals"], "the totals are of all topics")
	require.Len(t, page["items"], 2)
	require.Equal(t, request.Topics.Encode("b"), page["next_cursor"])
	page = decodeResponse(t, call(t, h, http.MethodGet, "/v1/stats?limit=2&cursor="+request.Topics.Encode("b"), ""))
	require.Len(t, page["items"], 1)
	require.Nil(t, page["next_cursor"])

	f.lanes = []store.LaneStats{{Lane: "l1", Scheduled: 1}, {Lane: "l2", Ready: 2}, {Lane: "l3", Running: 3}}
	got := decodeResponse(t, call(t, h, http.MethodGet, "/v1/topics/a/stats?limit=2", ""))
	require.EqualValues(t, 21, got["registered"])
	require.Equal(t, request.Lanes.Encode("l2"), got["next_cursor"])
	require.Len(t, got["items"], 2)
	got = decodeResponse(t,
		call(t, h, http.MethodGet, "/v1/topics/a/stats?limit=2&cursor="+request.Lanes.Encode("l2"), ""))
	require.Equal(t, []any{
		map[string]any{
			"lane": "l3", "scheduled": 0.0, "ready": 0.0, "running": 3.0,
			"breaker": "closed", "cooldown_until": nil, "health": nil, "last_failure": nil,
		},
	}, got["items"])
	require.Nil(t, got["next_cursor"])

	f.topics["put"] = store.Topic{Name: "put"}
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/v1/topics/put/stats", "").Code)
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, "/v1/topics/none/stats", "").Code)
	require.Equal(t, http.StatusUnprocessableEntity, call(t, h, http.MethodGet, "/v1/stats?topic=a", "").Code)
}

func TestTopicStats_CountsOneLane(t *testing.T) {
	f := newFake()
	f.lanes = []store.LaneStats{
		{Lane: "l1", Scheduled: 1},
		{Lane: "l2", Scheduled: 1, Ready: 2, Running: 3, BreakerOpen: true},
	}
	h := handlerOf(f)
	for lane, want := range map[string]string{
		"l2": `{"topic": "a", "lane": "l2", "scheduled": 1, "ready": 2, "running": 3, "breaker": "half_open", ` +
			`"cooldown_until": null, "health": null, "last_failure": null}`,
		"none": `{"topic": "a", "lane": "none", "scheduled": 0, "ready": 0, "running": 0, "breaker": "closed", ` +
			`"cooldown_until": null, "health": null, "last_failure": null}`,
	} {
		w := call(t, h, http.MethodGet, "/v1/topics/a/stats?lane="+lane, "")
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.JSONEq(t, want, w.Body.String())
	}
	for _, wrong := range []string{"lane=a+b", "lane=l1&limit=2", "lane=l1&cursor=" + request.Lanes.Encode("l1")} {
		w := call(t, h, http.MethodGet, "/v1/topics/a/stats?"+wrong, "")
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, wrong)
		require.Equal(t, []string{"?lane"}, problemIn(t, w).fields(), wrong)
	}
}

func TestDeleteTopic_AsksTheServiceAndExplainsWhatIsLeft(t *testing.T) {
	f := newFake()
	f.topics["a"] = store.Topic{Name: "a", Revision: 7}
	h := handlerOf(f)
	for target, status := range map[string]int{
		"/v1/topics/none": 404, "/v1/topics/a%20b": 404, "/v1/topics/_callbacks": 422,
		"/v1/topics/_work?purge=true": 422, "/v1/topics/a?purge=yes": 422, "/v1/topics/a?force=true": 422,
	} {
		w := call(t, h, http.MethodDelete, target, "")
		require.Equal(t, status, w.Code, target)
		problemIn(t, w)
	}
	require.Equal(t, http.StatusPreconditionFailed,
		call(t, h, http.MethodDelete, "/v1/topics/a", "", "If-Match", `"6"`).Code)
	require.Equal(t, http.StatusUnprocessableEntity,
		call(t, h, http.MethodDelete, "/v1/topics/a", `{"purge": true}`).Code)

	for _, c := range []struct {
		err    store.TopicInUseError
		query  string
		detail string
	}{
		{
			store.TopicInUseError{Unfinished: 12, Running: 3},
			"",
			"the topic has 12 unfinished jobs, of which 3 are running: wait until they have ended, or cancel them " +
				"with purge=true",
		},
		{
			store.TopicInUseError{Unfinished: 12, Running: 3},
			"?purge=true",
			"the topic has 12 unfinished jobs, of which 3 are running: repeat the request to continue",
		},
		{
			store.TopicInUseError{Unfinished: 3, Running: 3},
			"?purge=true",
			"the topic has 3 unfinished jobs, of which 3 are running: they are cancelled when their attempts end, " +
				"repeat the request then",
		},
		{store.TopicInUseError{}, "?purge=true", "the topic was not removed in time: repeat the request to continue"},
	} {
		f.bad = &c.err
		w := call(t, h, http.MethodDelete, "/v1/topics/a"+c.query, "")
		require.Equal(t, http.StatusConflict, w.Code)
		p := problemIn(t, w)
		require.Equal(t, "wrong_state", p.Code)
		require.Equal(t, c.detail, p.Detail)
	}

	f.bad, f.deletions = nil, nil
	w := call(t, h, http.MethodDelete, "/v1/topics/a?purge=true", "", "If-Match", `"7"`)
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Empty(t, w.Body.String())
	require.Equal(t,
		[]store.TopicDeletion{{Namespace: job.DefaultNamespace, Name: "a", IfRevision: 7, Purge: true}}, f.deletions)
}

func TestDeleteTopic_LogsWhatItPurged(t *testing.T) {
	var log testkit.Log
	f := newFake()
	f.topics["a"] = store.Topic{Name: "a"}
	f.deleted, f.bad = store.TopicDeleted{Cancelled: 5, Purged: 2}, &store.TopicInUseError{Unfinished: 1}
	h := New(Options{Service: f, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.Equal(t, http.StatusConflict, call(t, h, http.MethodDelete, "/v1/topics/a?purge=true", "").Code)
	require.Contains(t, log.String(), `topic=a cancelled=5 purged=2`)
	require.NotContains(t, log.String(), `action=topic.delete `)
	f.deleted, f.bad = store.TopicDeleted{}, nil
	require.Equal(t, http.StatusNoContent, call(t, h, http.MethodDelete, "/v1/topics/a", "").Code)
	require.Contains(t, log.String(), `action=topic.delete `)
}
