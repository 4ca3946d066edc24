package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// fullSchedule returns a schedule that has every member, with a job that has every field.
func fullSchedule(spec job.Spec) store.Schedule {
	spec.ID, spec.Namespace = "", ""
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	at := time.Date(2030, 3, 31, 1, 0, 0, 0, time.UTC)
	return store.Schedule{
		Namespace: "default", Name: "daily", Revision: 9, CreatedAt: epoch, CreatedBy: "mia", Paused: true,
		Pause: policy.Pause{At: epoch, By: "mia", Note: "ask Mia"},
		ScheduleSettings: store.ScheduleSettings{
			Spec: schedule.Spec{
				Cron: "30 2 * * *", Timezone: "Europe/Berlin", Jitter: time.Minute, StartsAt: epoch,
				EndsAt: epoch.AddDate(9, 0, 0),
			},
			Job: spec, ExpiresIn: time.Hour, Overlap: store.OverlapSkip,
			CatchUp: store.CatchUp{Window: time.Hour, Runs: store.CatchUpAll},
			MaxRuns: 100, PauseAfterDead: 3, Note: "the daily report",
		},
		Description: "At 02:30 every day, Europe/Berlin",
		Delay:       20 * time.Second,
		Next: []schedule.Tick{{
			At: at, Local: at.In(berlin),
			Note: "02:30 does not exist on 2030-03-31, because clocks go forward: runs at 03:00",
		}},
		Last: []store.ScheduleTick{
			{At: at.AddDate(0, 0, -2), Outcome: store.TickRun, JobID: "rb:s:daily:1901061000", JobState: job.Delivered},
			{At: at.AddDate(0, 0, -1), Outcome: store.TickMissed, Reason: "no process was there in time"},
		},
		Counts: store.ScheduleCounts{Run: 20, Skipped: 1, Missed: 2, Failed: 3},
		Backfill: &store.Backfill{
			After: epoch.AddDate(0, 0, -7), Before: epoch, Rate: policy.Rate{Starts: 5, Per: time.Second}, Total: 7,
			Actor: "mia", CreatedAt: epoch, Done: 2, EndedAt: epoch.Add(time.Minute),
		},
	}
}

func TestSchedules_ArePutReadListedPausedRunAndDeleted(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	const path = "/v1/schedules/daily"
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, path, "").Code)
	w := call(t, h, http.MethodPut, path,
		`{"every": "15m", "offset": "2m", "job": {"topic": "order.close", "body": {"n":  1}, "expires_in": "1h"}}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, `"1"`, w.Header().Get("ETag"))
	s := f.scheduled["daily"]
	require.Equal(t, schedule.Spec{Every: 15 * time.Minute, Offset: 2 * time.Minute}, s.Spec)
	require.Equal(t, store.CatchUp{Window: time.Hour, Runs: store.CatchUpLast}, s.CatchUp)
	require.Equal(t, store.OverlapAllow, s.Overlap)
	require.Equal(t, time.Hour, s.ExpiresIn)
	require.Contains(t, w.Body.String(), `"job":{"topic":"order.close","expires_in":"1h","body":{"n":  1}}`)
	require.Contains(t, call(t, h, http.MethodGet, "/v1/schedules?limit=1", "").Body.String(), `"name":"daily"`)
	require.Equal(t, []string{"?limit"},
		problemIn(t, call(t, h, http.MethodGet, "/v1/schedules?limit=101", "")).fields())

	require.Contains(t, call(t, h, http.MethodPost, path+"/pause", `{"note": "ask Mia"}`).Body.String(),
		`"pause_note":"ask Mia"`)
	require.Contains(t, call(t, h, http.MethodPut, path, `{"cron": "@daily", "job": {}}`).Body.String(),
		`"pause_note":"ask Mia"`, "a PUT keeps the pause")
	require.Contains(t, call(t, h, http.MethodPut, path,
		`{"cron": "@daily", "job": {}, "paused": false}`).Body.String(), `"paused":false,"paused_at":null`)
	require.Contains(t, call(t, h, http.MethodPut, path, `{"cron": "@daily", "job": {}, "paused": true}`).Body.String(),
		`"state":"paused"`)
	require.Contains(t, call(t, h, http.MethodPost, path+"/resume", "").Body.String(), `"paused":false`)

	w = call(t, h, http.MethodPost, path+"/run", "")
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
	require.Equal(t, "/v1/jobs/made", w.Header().Get("Location"))
	require.Equal(t, http.StatusNoContent, call(t, h, http.MethodDelete, path, "").Code)
	for _, verb := range []string{"GET ", "DELETE ", "POST /run", "POST /pause", "POST /resume"} {
		method, rest, _ := strings.Cut(verb, " ")
		w := call(t, h, method, path+rest, "")
		require.Equal(t, http.StatusNotFound, w.Code, verb)
		require.Contains(t, w.Body.String(), "no such schedule", verb)
	}
}

// A client that reads a schedule and puts it back changes nothing, secret headers included.
func TestSchedules_AcceptWhatGetReturned(t *testing.T) {
	f := fullService()
	h := handlerOf(f)
	was := f.scheduled["daily"]
	read := call(t, h, http.MethodGet, "/v1/schedules/daily", "").Body.String()
	require.NotContains(t, read, "hunter2")
	w := call(t, h, http.MethodPut, "/v1/schedules/daily", read)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	was.Revision++
	was.Job.OnDelivered.Method = http.MethodPost // its default is shown
	is := f.scheduled["daily"]
	require.Equal(t, []string{}, is.Job.OnDelivered.Include)
	is.Job.OnDelivered.Include = nil
	require.Equal(t, was, is)

	moved := strings.Replace(read, `"url":"https://shop.example/hooks/close"`, `"url":"https://other.example/"`, 1)
	require.NotEqual(t, read, moved)
	p := problemIn(t, call(t, h, http.MethodPut, "/v1/schedules/daily", moved))
	require.Equal(t, []string{"/job/headers/Authorization"}, p.fields(), "a secret does not move to another origin")
}

func TestSchedules_NameEveryFault(t *testing.T) {
	for body, fields := range map[string][]string{
		`{}`:                                {"/job", "/cron"},
		`{"job": null, "cron": "@daily"}`:   {"/job"},
		`{"job": [], "cron": "@daily"}`:     {"/job"},
		`{"job": {}, "cron": "0 0 30 2 *"}`: {"/cron"},
		`{"job": {}, "cron": "` + strings.Repeat("1,", 200_000) + `1 * * * *"}`: {"/cron"},
		`{"job": {}, "cron": "@daily", "timezone": ` +
			`"Mars/Olympus"}`: {"/timezone"},
		`{"job": {}, "cron": "@daily", "every": "1m"}`: {"/every"},
		`{"job": {}, "every": "1ms"}`:                  {"/every"},
		`{"job": {}, "every": 0}`:                      {"/every"},
		`{"job": {}, "every": "1m", "jitter": "25h"}`:  {"/jitter"},
		`{"job": {}, "every": "1m", "starts_at": "2030-01-02T00:00:00Z", "ends_at": ` +
			`"2030-01-01T00:00:00Z"}`: {"/ends_at"},
		`{"job": {}, "every": "1m", "overlap": "queue", "catch_up": {"runs": "some", "window": "400d"}, "max_runs": ` +
			`0, "pause_after_dead": 21,
			"note": "` + strings.Repeat("ü", 1001) + `", "more": 1}`: {
			"/more", "/overlap", "/catch_up/runs", "/catch_up/window", "/max_runs", "/pause_after_dead", "/note",
		},
		`{"job": {"id": "a", "delay": "1s", "run_at": "2030-01-01T00:00:00Z", "expires_at": "2030-01-01T00:00:00Z", ` +
			`"more": 1}, "every": "1m"}`: {
			"/job/id", "/job/delay", "/job/run_at", "/job/expires_at", "/job/more",
		},
		`{"job": {"url": "ftp://a", "headers": {"Host": "x", "cookie": "[redacted]"}, "on_dead": {"url": ""}, ` +
			`"topic": "_work"}, "every": "1m"}`: {
			"/job/headers/cookie", "/job/topic", "/job/url", "/job/headers/Host", "/job/on_dead/url",
		},
	} {
		f := newFake()
		p := problemIn(t, call(t, handlerOf(f), http.MethodPut, "/v1/schedules/a", body))
		require.Equal(t, "invalid_field", p.Code, "%.200s", body)
		require.ElementsMatch(t, fields, p.fields(), "%.200s", body)
		require.Empty(t, f.scheduled, "nothing is stored")
	}
	large := `{"every": "1m", "job": {"body_text": "` + strings.Repeat("a", store.MaxScheduleBody+1) + `"}}`
	require.Equal(t, []string{"/job/body_text"},
		problemIn(t, call(t, handlerOf(newFake()), http.MethodPut, "/v1/schedules/a", large)).fields())
	w := call(t, handlerOf(newFake()), http.MethodPut, "/v1/schedules/a",
		`{"every": "1m", "job": {"url": "http://a", "url": "http://b"}}`)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "/job/url")
	for _, name := range []string{"preview", strings.Repeat("a", 41), "a.b", "%20"} {
		w := call(t, handlerOf(newFake()), http.MethodPut, "/v1/schedules/"+name, `{"every": "1m", "job": {}}`)
		require.GreaterOrEqual(t, w.Code, 400, name)
		require.Less(t, w.Code, 500, name)
	}
}

func TestSchedules_HaveEveryFieldOfTheContract(t *testing.T) {
	for _, name := range sortedKeys(document(t).at("components", "schemas", "ScheduleRequest").properties()) {
		requireKnown(t, name, request.DecodeSchedule(null(name), new(store.Schedule), 1000, ""))
	}
	for _, name := range sortedKeys(document(t).at("components", "schemas", "ScheduleJob").properties()) {
		requireKnown(t, name,
			request.DecodeSchedule([]byte(`{"job": `+string(null(name))+`}`), new(store.Schedule), 1000, ""))
	}
	names := sortedKeys(document(t).at("components", "schemas", "Schedule").properties())
	require.Equal(t, names, sortedKeys(document(t).at("components", "schemas", "ScheduleRequest").properties()),
		"PUT accepts what GET returned")
}

// What is known of an unreadable schedule is shown, so that who reads and puts it loses nothing of it.
func TestSchedules_ShowTheJobsOfUnreadableOnes(t *testing.T) {
	f := fullService()
	inUnknownZone := fullSchedule(job.Spec{URL: "https://shop.example/"})
	inUnknownZone.Timezone, inUnknownZone.Unreadable = "Mars/Olympus", true
	f.scheduled = map[string]store.Schedule{
		"daily": inUnknownZone,
		"torn":  {Name: "torn", Namespace: "default", Unreadable: true, Revision: 3},
	}
	valid, _ := access.NewText()
	withTokens(f, map[string]*access.Principal{valid: {
		Role: access.Read, Namespace: "default",
		Topics: access.Topics{job.DefaultTopic},
	}})
	shown := call(t, New(Options{Service: f, Logger: quiet}), http.MethodGet, "/v1/schedules/daily", "",
		"Authorization", "Bearer "+valid).Body.String()
	require.Contains(t, shown, `"state":"unreadable"`)
	require.Contains(t, shown, `"url":"https://shop.example/"`)
	f.callers = nil
	require.Contains(t, call(t, New(Options{Service: f, Logger: quiet}), http.MethodGet, "/v1/schedules/torn",
		"").Body.String(), `"job":null`)
}

func TestPreview_ShowsTicksInLocalTime(t *testing.T) {
	h := handlerOf(newFake())
	w := call(t, h, http.MethodGet,
		"/v1/schedules/preview?cron=30+2+*+*+*&timezone=Europe/Berlin&from=2026-03-28T12:00:00Z&limit=2", "")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.JSONEq(t, `{"items": [
		{"at": "2026-03-29T01:00:00.000Z", "local": "2026-03-29T03:00:00+02:00", "due_at": "2026-03-29T01:00:00.000Z",
			"note": "02:30 does not exist on 2026-03-29, because clocks go forward: runs at 03:00"},
		{"at": "2026-03-30T00:30:00.000Z", "local": "2026-03-30T02:30:00+02:00", "due_at": `+
		`"2026-03-30T00:30:00.000Z", "note": null}],
		"description": "At 02:30 every day, Europe/Berlin"}`, w.Body.String())
	require.Contains(t, call(t, h, http.MethodGet,
		"/v1/schedules/preview?every=15m&offset=2m&from=2026-03-28T12:00:00Z&limit=1", "").Body.String(), "12:02")
	for query, field := range map[string]string{
		"": "?cron", "cron=x": "?cron", "cron=@daily&limit=101": "?limit", "cron=@daily&limit=x": "?limit",
		"every=5": "?every", "every=x": "?every", "cron=@daily&timezone=x": "?timezone",
		"cron=@daily&from=now": "?from", "cron=@daily&job=1": "?job", "cron=@daily&cron=@daily": "?cron",
	} {
		require.Contains(t,
			problemIn(t, call(t, h, http.MethodGet, "/v1/schedules/preview?"+query, "")).fields(), field, query)
	}
}

func TestBackfill_CountsInADryRunAndIsStored(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	const path = "/v1/schedules/a/backfill"
	body := func(more string) string {
		return `{"after": "2020-01-01T00:00:00Z", "before": "2020-01-02T00:00:00Z"` + more + `}`
	}
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodPost, path, body("")).Code)
	call(t, h, http.MethodPut, "/v1/schedules/a", `{"every": "1m", "job": {}}`)
	w := call(t, h, http.MethodPost, path, body(`, "dry_run": true`))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.JSONEq(t, `{"dry_run": true, "total": 1440}`, w.Body.String())
	require.Nil(t, f.scheduled["a"].Backfill)
	w = call(t, h, http.MethodPost, path, body(`, "rate": "5/s"`))
	require.Equal(t, http.StatusAccepted, w.Code, w.Body)
	require.Equal(t, policy.Rate{Starts: 5, Per: time.Second}, f.scheduled["a"].Backfill.Rate)
	require.Equal(t, int64(1440), f.scheduled["a"].Backfill.Total)
	for body, field := range map[string]string{
		`{}`: "/after", `{"after": "2020-01-01T00:00:00Z"}`: "/before",
		body(`, "rate": "101/s"`): "/rate", body(`, "rate": "x"`): "/rate",
		body(`, "more": 1`): "/more", `{"after": "2020-01-01T00:00:00Z", "before": "2999-01-01T00:00:00Z"}`: "/before",
		`{"after": "2020-01-01T00:00:00Z", "before": "2020-01-01T00:00:00Z"}`: "/before",
		`{"after": "2019-01-01T00:00:00Z", "before": "2020-01-01T00:00:00Z"}`: "/before",
	} {
		require.Contains(t, problemIn(t, call(t, h, http.MethodPost, path, body)).fields(), field, body)
	}
}

// A token that may not read bodies sees none, and one that is restricted to topics only the schedules of those.
func TestSchedules_AreShownAsFarAsTheTokenAllows(t *testing.T) {
	valid, _ := access.NewText()
	p := &access.Principal{Role: access.Admin, Namespace: "default", Topics: access.Topics{"order.*"}}
	f := withTokens(fullService(), map[string]*access.Principal{valid: p})
	other := fullSchedule(job.Spec{Queue: job.Queue{Topic: "mails"}})
	other.Name = "other"
	f.scheduled["other"] = other
	h := New(Options{Service: f, Logger: quiet})
	ask := func(status int, method, path, body string) string {
		t.Helper()
		w := call(t, h, method, path, body, "Authorization", "Bearer "+valid)
		require.Equal(t, status, w.Code, w.Body)
		return w.Body.String()
	}
	list := ask(http.StatusOK, http.MethodGet, "/v1/schedules", "")
	require.Contains(t, list, `"name":"daily"`)
	require.NotContains(t, list, `"name":"other"`)
	for _, shown := range []string{list, ask(http.StatusOK, http.MethodGet, "/v1/schedules/daily", "")} {
		require.Contains(t, shown, `"body_text":"[redacted]"`)
		require.NotContains(t, shown, "4711")
	}
	ask(http.StatusForbidden, http.MethodPut, "/v1/schedules/daily", `{"cron": "@daily", "job": {"topic": "mails"}}`)
	ask(http.StatusForbidden, http.MethodPut, "/v1/schedules/new", `{"cron": "@daily", "job": {}}`)
	ask(http.StatusNotFound, http.MethodPut, "/v1/schedules/other",
		`{"cron": "@daily", "job": {"topic": "order.close"}}`)
	f.scheduled["torn"] = store.Schedule{Name: "torn", Namespace: "default", Unreadable: true, Revision: 3}
	require.NotContains(t, ask(http.StatusOK, http.MethodGet, "/v1/schedules", ""), `"name":"torn"`,
		"its topic is not known")
	for _, name := range []string{"other", "torn"} { // also with a wrong revision, which must not show that it exists
		for _, header := range []string{"", `"1"`} {
			for _, c := range []struct{ method, path, body string }{
				{http.MethodPut, "", `{"cron": "@daily", "job": {"topic": "order.close"}}`},
				{http.MethodPost, "/pause", ""},
				{http.MethodPost, "/run", ""},
				{http.MethodDelete, "", ""},
			} {
				headers := []string{"Authorization", "Bearer " + valid}
				if header != "" && c.path != "/run" {
					headers = append(headers, "If-Match", header)
				}
				w := call(t, h, c.method, "/v1/schedules/"+name+c.path, c.body, headers...)
				require.Equal(t, http.StatusNotFound, w.Code, "%s %s%s: %s", c.method, name, c.path, w.Body)
			}
		}
	}
	answer := ask(http.StatusUnprocessableEntity, http.MethodPut, "/v1/schedules/daily",
		ask(http.StatusOK, http.MethodGet, "/v1/schedules/daily", ""))
	require.Contains(t, answer, `"field":"/job/body_text"`, "the placeholder is no body")
	require.Equal(t, int64(9), f.scheduled["daily"].Revision, "nothing was changed")
}
