package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// pausable are the paths of what can be paused.
var pausable = []string{"/v1/topics/a", "/v1/topics/a/lanes/b"}

func TestPause_ShowsSinceWhenByWhomAndWhy(t *testing.T) {
	for _, path := range pausable {
		f := storedSettings()
		h := handlerOf(f)
		state := func(method, path, body string) []any {
			t.Helper()
			w := call(t, h, method, path, body)
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			got := decodeResponse(t, w)
			return []any{got["paused"], got["paused_at"], got["paused_by"], got["pause_note"]}
		}
		require.Equal(t, []any{false, nil, nil, nil}, state(http.MethodGet, path, ""))
		before := time.Now().Add(-time.Millisecond)
		paused := state(http.MethodPost, path+"/pause", `{"note": "the receiver moves"}`)
		require.Equal(t, []any{true, paused[1], nil, "the receiver moves"}, paused)
		at, err := time.Parse(time.RFC3339, paused[1].(string))
		require.NoError(t, err)
		require.WithinRange(t, at, before, time.Now())
		require.Equal(t, paused, state(http.MethodGet, path, ""))
		require.Equal(t, paused, state(http.MethodPut, path, `{"url": "http://a.example/"}`))
		require.Equal(t, paused, state(http.MethodPatch, path, `{"url": "http://b.example/"}`))

		require.Equal(t, paused, state(http.MethodPost, path+"/pause", ""), "a repeated pause changes nothing")
		require.Equal(t, []any{true, paused[1], nil, "ask Mia"},
			state(http.MethodPost, path+"/pause", `{"note": "ask Mia"}`))
		require.Equal(t, []any{false, nil, nil, nil}, state(http.MethodPost, path+"/resume", ""))
		require.Equal(t, policy.Pause{}, f.topics["a"].Policy.Pause)
		require.Equal(t, policy.Pause{}, f.own["a/b"].Settings.Pause)
		require.Nil(t, state(http.MethodPost, path+"/pause", `{"note": null}`)[3])
	}
}

func TestPause_RefusesInvalidNotes(t *testing.T) {
	long := strings.Repeat("ü", policy.MaxPauseNote)
	for _, path := range pausable {
		for body, want := range map[string]int{
			`{"note": 5}`: 422, `{"more": 1}`: 422, `{"note": "` + long + `"}`: 200,
			`{"note": "` + long + `x"}`: 422, `[]`: 422, `{"note": "a", "note": "b"}`: 400, `{`: 400,
			`{"note": "` + strings.Repeat(`\u0001`, policy.MaxPauseNote) + `"}`: 200,
			`{"note": "` + strings.Repeat("x", 16<<10) + `"}`:                   413,
		} {
			f := storedSettings()
			w := call(t, handlerOf(f), http.MethodPost, path+"/pause", body)
			require.Equal(t, want, w.Code, body)
			if want != http.StatusOK {
				problemIn(t, w)
				requireSameSettings(t, f, path)
			}
		}
		w := call(t, handlerOf(storedSettings()), http.MethodPost, path+"/resume", `{"note": "x"}`)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	}
}

func TestPatch_RefusesReadOnlyMembers(t *testing.T) {
	for path, members := range map[string]string{
		"/v1/topics/a":         "topic revision durability paused paused_at paused_by pause_note",
		"/v1/topics/a/lanes/b": "topic lane revision durability paused paused_at paused_by pause_note",
	} {
		for member := range strings.FieldsSeq(members) {
			f := storedSettings()
			w := call(t, handlerOf(f), http.MethodPatch, path, `{"`+member+`": null}`)
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, member)
			p := problemIn(t, w)
			require.Equal(t, []string{"/" + member}, p.fields())
			require.NotContains(t, p.Errors[0].Detail, "is not a field")
			requireSameSettings(t, f, member)
		}
	}
}

// TestPut_AcceptsWhatGetReturned reads topics and lanes with every member set, and with each alone, and puts them back.
func TestPut_AcceptsWhatGetReturned(t *testing.T) {
	full := fullService()
	topic, lane := full.topics["order.close"], full.own["order.close/a"]
	topic.Policy.Ladder, topic.Policy.Retries, topic.Policy.Jitter = policy.Ladder{time.Second}, new(3), new(0.25)
	topic.Policy.Timeout, topic.Policy.MaxAge, topic.Policy.Workers, topic.Policy.LaneConcurrency = time.Second,
		time.Hour, 5, 6
	topic.Policy.Ordered, lane.Settings.Ordered = true, true
	topic.Policy.ManagedBy, lane.Settings.ManagedBy = "shop", "shop"
	lane.Settings.Subscription = policy.Subscription{
		Subscribe: []string{"order.*"}, SubscribeLabels: map[string]string{"region": "eu"},
	}
	topic.Policy.GiveUpOn, topic.Policy.IDWindow = []string{}, new(time.Duration(0))
	topic.Policy.Success.Status, topic.Policy.Deliver = []string{"200"}, policy.DeliverPull
	chain, key := newCertificate(t)
	topic.Policy.ClientCert = &policy.ClientCert{Chain: chain, Key: policy.Sealed(key)}
	topic.Policy.KeepDelivered = policy.Retention{
		For: new(time.Duration(0)),
		Max: new(int64(0)), MaxBytes: new(int64(7)),
	}
	var topics, lanes []map[string]any
	for _, own := range []any{topic.Policy, lane.Settings} {
		text, err := json.Marshal(own)
		require.NoError(t, err)
		var members map[string]any
		require.NoError(t, json.Unmarshal(text, &members))
		list := &topics
		if _, ok := own.(policy.Lane); ok {
			list = &lanes
		}
		fields := slices.DeleteFunc(reflect.VisibleFields(reflect.TypeOf(own)),
			func(f reflect.StructField) bool { return f.Anonymous })
		require.Len(t, members, len(fields), "a member is not set")
		*list = append(*list, members, map[string]any{})
		for name, value := range members {
			*list = append(*list, map[string]any{name: value})
		}
	}
	for _, query := range []string{"", "?defaults=false"} {
		for _, members := range topics {
			f := newFake()
			f.topics["a"] = store.Topic{Name: "a", Revision: 1, Policy: decodeInto[policy.Topic](t, members)}
			requirePutBack(t, f, "/v1/topics/a"+query)
			if query != "" {
				require.Equal(t, decodeInto[policy.Topic](t, members), withoutMethods(f.topics["a"].Policy),
					"what was stored stays as it was")
			}
		}
	}
	for _, members := range lanes {
		f := newFake()
		f.own["a/b"] = store.Lane{Revision: 1, Settings: decodeInto[policy.Lane](t, members)}
		if f.own["a/b"].Settings.IsZero() {
			continue // a lane without settings is not found
		}
		requirePutBack(t, f, "/v1/topics/a/lanes/b")
		require.Equal(t, decodeInto[policy.Lane](t, members), f.own["a/b"].Settings)
	}
}

// decodeInto decodes the stored form of settings.
func decodeInto[T any](t *testing.T, members map[string]any) (settings T) {
	t.Helper()
	text, err := json.Marshal(members)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &settings))
	return settings
}

// withoutMethods removes the default methods of callbacks, which answers always show.
func withoutMethods(p policy.Topic) policy.Topic {
	clean := func(c *policy.Callback) {
		if c.Method == http.MethodPost {
			c.Method = ""
		}
		if len(c.Include) == 0 {
			c.Include = nil
		}
	}
	for _, c := range []**policy.Callback{&p.OnDelivered, &p.OnDead} {
		if *c != nil {
			copied := **c
			clean(&copied)
			*c = &copied
		}
	}
	if p.OnBacklog != nil {
		copied := *p.OnBacklog
		clean(&copied.Callback)
		p.OnBacklog = &copied
	}
	return p
}

// requirePutBack requires that the answer of a GET can be put, and that nothing changes but the revision.
func requirePutBack(t *testing.T, f *fake, target string) {
	t.Helper()
	h := handlerOf(f)
	before := call(t, h, http.MethodGet, target, "")
	require.Equal(t, http.StatusOK, before.Code)
	path, _, _ := strings.Cut(target, "?")
	put := call(t, h, http.MethodPut, path, before.Body.String(), "If-Match", before.Header().Get("ETag"))
	require.Equal(t, http.StatusOK, put.Code, put.Body.String())
	after := call(t, h, http.MethodGet, target, "")
	require.NotEqual(t, before.Header().Get("ETag"), after.Header().Get("ETag"))
	require.JSONEq(t, withoutRevision(t, before.Body.Bytes()), withoutRevision(t, after.Body.Bytes()))
}

func TestTopic_ShowsOnlyWhatWasSet(t *testing.T) {
	f := newFake()
	f.topics["a"] = store.Topic{Name: "a", Revision: 3, Policy: policy.Topic{
		Retries: new(0), GiveUpOn: []string{}, Breaker: policy.Breaker{Open: time.Minute},
		KeepDead: policy.Retention{Max: new(int64(0))}, Success: policy.Success{BodyEquals: "ok"},
	}, Updated: policy.Update{At: epoch, By: "anna"}}
	h := handlerOf(f)
	want := `{"topic": "a", "revision": 3, "ladder": null, "retries": 0, "jitter": null, "timeout": null, "max_age": ` +
		`null, "workers": null,
		"lane_concurrency": null, "rate": null, "lane_rate": null, "ordered": false, "deliver": null, "url": null, ` +
		`"headers": null,
		"success": {"status": null, "body_equals": "ok", "body_contains": null}, "give_up_on": [],
		"breaker": {"failures": null, "open": "1m"}, "on_delivered": null, "on_dead": null, "on_backlog": null, ` +
		`"client_cert": null,
		"keep_delivered": null, "keep_dead": {"for": null, "max": 0, "max_bytes": null}, "id_window": null, ` +
		`"managed_by": null, "paused": false,
		"paused_at": null, "paused_by": null, "pause_note": null, "updated_at": "2030-01-31T08:00:00.123Z", ` +
		`"updated_by": "anna", "durability": null}`
	require.JSONEq(t, want, call(t, h, http.MethodGet, "/v1/topics/a?defaults=false", "").Body.String())
	require.JSONEq(t, `{"items": [`+want+`], "next_cursor": null}`,
		call(t, h, http.MethodGet, "/v1/topics?defaults=false", "").Body.String())
	for _, query := range []string{"", "?defaults=true"} {
		require.NotContains(t, call(t, h, http.MethodGet, "/v1/topics/a"+query, "").Body.String(), `"ladder":null`)
		require.NotContains(t, call(t, h, http.MethodGet, "/v1/topics"+query, "").Body.String(), `"ladder":null`)
	}
	for _, path := range []string{"/v1/topics/a", "/v1/topics"} {
		for _, query := range []string{"?defaults=no", "?defaults=0", "?default=false"} {
			require.Equal(t, http.StatusUnprocessableEntity, call(t, h, http.MethodGet, path+query, "").Code)
		}
	}
}

func TestPause_RefusesTopicsOfRingbacksOwnJobs(t *testing.T) {
	f := storedSettings()
	f.topics["_work"] = store.Topic{Name: "_work"}
	h := handlerOf(f)
	for path, status := range map[string]int{
		"POST /v1/topics/_work/pause": 422, "POST /v1/topics/_work/resume": 422, "PATCH /v1/topics/_work": 422,
		"PUT /v1/topics/_work":                      422,
		"POST /v1/topics/_work/lanes/default/pause": 422, "POST /v1/topics/_callbacks/pause": 200,
	} {
		method, path, _ := strings.Cut(path, " ")
		require.Equal(t, status, call(t, h, method, path, `{}`).Code, "%s %s", method, path)
	}
	require.False(t, f.topics["_work"].Policy.Paused)
}
