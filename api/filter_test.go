package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// morning is a time in parameters.
var morning = time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC)

const every = job.KindRegistered

// filters are queries of lists of jobs, and the filters that they make.
var filters = map[string]store.Filter{
	"":        {Kind: every},
	"topic=a": {Topic: "a", Kind: every},
	"topic=a&lane=b:80&label=k:v:w&label=tier:gold&limit=7&status=503": {
		Topic: "a", Lane: "b:80", Kind: every,
		Labels: []store.Label{{Key: "k", Value: "v:w"}, {Key: "tier", Value: "gold"}}, Limit: 7, Status: 503,
	},
	"lane=b":                         {Lane: "b", Kind: every},
	"state=dead":                     {Kind: every, States: []job.State{job.Dead}},
	"state=ready&state=dead":         {Kind: every, States: []job.State{job.Dead, job.Ready}},
	"state=scheduled,ready,ready":    {Kind: every, States: []job.State{job.Ready, job.Scheduled}},
	"state=":                         {Kind: every},
	"topic=_callbacks":               {Topic: "_callbacks"},
	"topic=_callbacks&kind=callback": {Topic: "_callbacks", Kind: job.KindCallback},
	"kind=all":                       {},
	"kind=backlog&order=oldest":      {Kind: job.KindBacklog, Oldest: true},
	"kind=registered&order=newest":   {Kind: every},
	"reason=cancelled":               {Kind: every, Reason: job.ReasonCancelled},
	"reason=expired&state=dead":      {Kind: every, Reason: policy.ReasonExpired, States: []job.State{job.Dead}},
	"within=50ms":                    {Kind: every, Within: 50 * time.Millisecond},
	"status=200&state=scheduled":     {Kind: every, Status: 200, States: []job.State{job.Scheduled}},
	"error_class=timeout_dial":       {Kind: every, ErrorClass: policy.ClassTimeoutDial},
	"error_class=any":                {Kind: every, ErrorClass: store.AnyError},
	"error_class=unknown":            {Kind: every, ErrorClass: store.UnknownAnswer},
	"id_prefix=order-47":             {Kind: every, IDPrefix: "order-47"},
	"id_prefix=rb:order":             {Kind: every, IDPrefix: "rb:order"},
	"created_after=2030-01-31T08:00:00Z&created_before=2030-01-31T10:00:00%2B01:00": {
		Kind: every, Created: store.TimeRange{After: morning, Before: morning.Add(time.Hour)},
	},
	"due_before=2030-01-31T08:00:00Z": {Kind: every, Due: store.TimeRange{Before: morning}},
	"ended_after=2030-01-31T08:00:00Z&state=dead,ready": {
		Kind: every, Ended: store.TimeRange{After: morning}, States: []job.State{job.Dead, job.Ready},
	},
}

func TestList_ReadsFilters(t *testing.T) {
	for query, want := range filters {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodGet, "/v1/jobs?"+query, "")
		require.Equal(t, http.StatusOK, w.Code, "%s: %s", query, w.Body.String())
		want.Namespace = job.DefaultNamespace
		if want.Limit == 0 {
			want.Limit = request.DefaultListLimit
		}
		f.filter.Created.Before = inUTC(f.filter.Created.Before)
		requireFilter(t, want, f.filter, query)
	}
}

// requireFilter requires a filter of a step of a search.
func requireFilter(t *testing.T, want, got store.Filter, query string) {
	t.Helper()
	require.LessOrEqual(t, got.Within, searchStep)
	want.Within, got.Within = 0, 0
	require.Equal(t, want, got, query)
}

func inUTC(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

func TestDead_ReadsFilters(t *testing.T) {
	for query, want := range filters {
		if strings.Contains(query, "state=") || strings.Contains(query, "cancelled") {
			continue
		}
		want.Namespace, want.States = job.DefaultNamespace, []job.State{job.Dead}
		if want.Limit == 0 {
			want.Limit = request.DefaultListLimit
		}
		for path, by := range map[string]store.GroupBy{
			"/v1/dead?":                          {},
			"/v1/dead/groups?by=lane,status&":    {Lane: true, Status: true},
			"/v1/dead/groups?by=topic%2Creason&": {Topic: true, Reason: true},
			"/v1/dead/groups?by=error_class&":    {ErrorClass: true},
			"/v1/dead/groups?by=lane&within=5s&": {Lane: true, Within: 5 * time.Second},
		} {
			if strings.Contains(path, "groups") && (strings.Contains(query, "limit") ||
				strings.Contains(query, "order") || strings.Contains(query, "within")) {
				continue
			}
			f := newFake()
			w := call(t, handlerOf(f), http.MethodGet, path+query, "")
			require.Equal(t, http.StatusOK, w.Code, "%s: %s", query, w.Body.String())
			f.filter.Created.Before = inUTC(f.filter.Created.Before)
			if strings.Contains(path, "groups") {
				want.Within = by.Within
				require.Equal(t, want, f.filter, query)
			} else {
				requireFilter(t, want, f.filter, query)
			}
			f.by.AcquireTurn = nil
			require.Equal(t, by, f.by, path)
		}
	}
}

func TestList_RefusesInvalidParameters(t *testing.T) {
	for query, fields := range map[string][]string{
		"topic=a b":                           {"?topic"},
		"state=lost":                          {"?state"},
		"state=dead,lost&state=ready":         {"?state"},
		"limit=0":                             {"?limit"},
		"limit=501":                           {"?limit"},
		"limit=x&x=1":                         {"?limit", "?x"},
		"created_after=x&created_before=y":    {"?created_after", "?created_before"},
		"due_after=2030-01-31T08":             {"?due_after"},
		"after=2030-01-31T08:00:00Z":          {"?after"},
		"label=x":                             {"?label"},
		"label=a:b&label=x":                   {"?label"},
		strings.Repeat("label=a:b&", 17):      {"?label"},
		"lane=a/b":                            {"?lane"},
		"topic=a&topic=b":                     {"?topic"},
		"cursor=%zz":                          {"?"},
		"label=a%20b:c&=":                     {"?label", "?"},
		"reason=tired":                        {"?reason"},
		"status=0":                            {"?status"},
		"status=1000":                         {"?status"},
		"status=2xx":                          {"?status"},
		"id_prefix=a.b":                       {"?id_prefix"},
		"kind=mine":                           {"?kind"},
		"order=up":                            {"?order"},
		"within=11s":                          {"?within"},
		"within=soon":                         {"?within"},
		"state=ready&reason=expired":          {"?reason"},
		"state=dead&reason=cancelled":         {"?reason"},
		"state=cancelled&reason=expired":      {"?reason"},
		"kind=registered&topic=_callbacks":    {"?kind"},
		"kind=callback&topic=a":               {"?kind"},
		"cursor=x":                            {"?cursor"},
		"cursor=" + strings.Repeat("e", 2000): {"?cursor"},
		"due_after=2030-01-31T08:00:00Z&due_before=2030-01-31T08:00:00Z":     {"?due_before"},
		"ended_after=2030-01-31T08:00:00Z&state=ready,running":               {"?ended_after"},
		"ended_before=2030-01-31T08:00:00Z&state=scheduled":                  {"?ended_before"},
		"ended_before=2030-01-31T08:00:00Z&ended_after=2030-02-01T08:00:00Z": {"?ended_before"},
	} {
		w := call(t, handlerOf(newFake()), http.MethodGet, "/v1/jobs?"+strings.ReplaceAll(query, " ", "%20"), "")
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, query)
		require.ElementsMatch(t, fields, problemIn(t, w).fields(), query)
	}
	for query, fields := range map[string][]string{
		"/v1/dead?state=dead":                        {"?state"},
		"/v1/dead?reason=cancelled":                  {"?reason"},
		"/v1/dead/groups":                            {"?by"},
		"/v1/dead/groups?by=lane,x":                  {"?by"},
		"/v1/dead/groups?by=lane&within=11s":         {"?within"},
		"/v1/dead/groups?by=lane&limit=5&cursor=a":   {"?limit", "?cursor"},
		"/v1/dead/groups?by=lane&by=topic&reason=no": {"?by", "?reason"},
	} {
		w := call(t, handlerOf(newFake()), http.MethodGet, query, "")
		require.ElementsMatch(t, fields, problemIn(t, w).fields(), query)
	}
	w := call(t, handlerOf(newFake()), http.MethodGet, "/v1/dead?reason=tired", "")
	for _, reason := range policy.Reasons() {
		require.Contains(t, problemIn(t, w).Errors[0].Detail, string(reason), "the reasons are listed")
	}
}

func TestList_ContinuesAtItsCursor(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	f.page = store.Page{
		Jobs: []job.Job{{
			Spec: job.Spec{
				ID: "a", Header: map[string][]string{"Authorization": {"Bearer x"}},
				Body: []byte("1"), BodyKind: job.BodyJSON,
			},
			History: []job.Attempt{{N: 1}},
		}},
		More: true, Scanned: 4711,
		Reached: store.Position{Ended: true, At: 1_900_000_000_000, Shard: 3, Tie: "default/order-1"},
	}
	const query = "/v1/jobs?topic=t&state=dead,ready&label=a:b&limit=1"
	got := decodeResponse(t, call(t, h, http.MethodGet, query, ""))
	require.EqualValues(t, 4711, got["scanned"])
	items, _ := got["items"].([]any)
	require.Len(t, items, 1)
	item, _ := items[0].(map[string]any)
	require.NotContains(t, item, "body")
	require.NotContains(t, item, "attempts")
	require.Equal(t, map[string]any{"Authorization": "[redacted]"}, item["headers"])

	cursor, _ := got["next_cursor"].(string)
	first := f.filter
	require.Zero(t, first.After)
	reached := f.page.Reached
	f.page = store.Page{Jobs: f.page.Jobs}
	for _, same := range []string{
		query, "/v1/jobs?state=ready&state=dead&label=a:b&topic=t&order=newest&limit=1",
	} {
		w := call(t, h, http.MethodGet, same+"&cursor="+cursor, "")
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		require.Equal(t, reached, f.filter.After)
		f.filter.After = store.Position{}
		require.Equal(t, first, f.filter)
		require.Nil(t, decodeResponse(t, w)["next_cursor"], "it is the last page")
	}
	w := call(t, h, http.MethodGet, strings.Replace(query, "limit=1", "limit=7", 1)+"&cursor="+cursor, "")
	require.Equal(t, http.StatusOK, w.Code, "limit may change")
	for _, other := range []string{
		"/v1/jobs?", query + "&order=oldest", query + "&status=200", "/v1/dead?topic=t&label=a:b",
		"/v1/jobs?topic=u&state=dead,ready&label=a:b",
	} {
		w := call(t, h, http.MethodGet, other+"&cursor="+cursor, "")
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, other)
		require.Equal(t, []string{"?cursor"}, problemIn(t, w).fields())
		require.Contains(t, problemIn(t, w).Errors[0].Detail, "another list")
	}
	f.err = store.ErrCursor
	w = call(t, h, http.MethodGet, query+"&cursor="+cursor, "")
	require.Equal(t, []string{"?cursor"}, problemIn(t, w).fields())
	f.err, f.page = nil, store.Page{}
	w = call(t, h, http.MethodGet, "/v1/jobs", "")
	require.JSONEq(t, `{"items": [], "next_cursor": null, "scanned": 0}`, w.Body.String())
}

func TestDeadGroups_AreNullWhereTheyAreNotGrouped(t *testing.T) {
	f := newFake()
	f.groups = store.Groups{Scanned: 9, Groups: []store.Group{
		{GroupKey: store.GroupKey{Lane: "l", Status: 503}, Count: 7, ID: "a", EndedAt: morning},
		{GroupKey: store.GroupKey{Lane: "m", ErrorClass: policy.ClassDNS}, Count: 2, ID: "b", EndedAt: morning},
	}}
	require.JSONEq(t, `{"items": [
		{"topic": null, "lane": "l", "reason": null, "status": 503, "error_class": null, "count": 7, `+
		`"sample": {"id": "a", "ended_at": "2030-01-31T08:00:00.000Z"}},
		{"topic": null, "lane": "m", "reason": null, "status": null, "error_class": "dns", "count": 2, `+
		`"sample": {"id": "b", "ended_at": "2030-01-31T08:00:00.000Z"}}
	], "exact": false, "scanned": 9}`,
		call(t, handlerOf(f), http.MethodGet, "/v1/dead/groups?by=lane,status", "").Body.String())
}

func TestTimes_ThatJSONCannotShowAreRefusedOrReadInUTC(t *testing.T) {
	for text, status := range map[string]int{
		"2030-01-31T08:00:00+24:00": 0, "2030-01-31T08:00:00+23:60": 0, "2030-01-31T08:00:00-24:00": 0,
		"9999-12-31T23:00:00+01:00": 0,
		"0000-12-31T23:00:00Z":      422, "9999-12-31T23:00:00-02:00": 422, "0001-01-01T00:00:00+01:00": 422,
	} {
		for _, c := range []struct {
			method, path, body string
			status             int
		}{
			{http.MethodPost, "/v1/work", `{"action": "revive", "where": {"ended_after": "` + text +
				`"}}`, http.StatusAccepted},
			{http.MethodPost, "/v1/dead/revive", `{"topic": "a", "ended_before": "` + text + `"}`, http.StatusAccepted},
			{http.MethodGet, "/v1/jobs?limit=1&created_after=" + url.QueryEscape(text), "", http.StatusOK},
		} {
			f := newFake()
			w := call(t, handlerOf(f), c.method, c.path, c.body)
			if status != 0 {
				c.status = status
			}
			require.Equal(t, c.status, w.Code, "%s %s %s: %s", c.method, c.path, text, w.Body)
			_, err := json.Marshal([]any{f.order, f.filter})
			require.NoError(t, err, text)
		}
	}
}
