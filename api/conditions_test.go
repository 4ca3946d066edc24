package api

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestConditions_RefusesUnsupportedOnes(t *testing.T) {
	conditions := map[string]string{
		"If-Match": `"99"`, "If-None-Match": "*",
		"If-Unmodified-Since": "Sat, 29 Oct 1994 19:43:31 GMT",
	}
	for _, r := range new(api).routes() {
		for method, e := range r.methods {
			if method == http.MethodGet {
				continue
			}
			path := strings.NewReplacer("{namespace}", "a", "{topic}", "a", "{lane}", "b", "{id}", "c").Replace(r.path)
			for name, tag := range conditions {
				if slices.Contains(e.conditions, name) {
					continue
				}
				f := newFake()
				f.jobs["c"] = job.Job{Progress: job.Progress{State: job.Scheduled, Version: 1}}
				w := call(t, handlerOf(f), method, path, `{}`, name, tag)
				require.Equal(t, http.StatusBadRequest, w.Code, "%s %s %s", method, path, name)
				require.Contains(t, problemIn(t, w).Detail, name)
				f.requireUnchanged(t)
				require.EqualValues(t, 1, f.jobs["c"].Version)
				require.Equal(t, job.Scheduled, f.jobs["c"].State)
			}
		}
	}
}

// storedSettings returns a service with the topic a, its lane b and the namespace a, all with the revision 7, a secret
// s, and without jobs.
func storedSettings() *fake {
	f := newFake()
	f.topics["a"] = store.Topic{Name: "a", Revision: 7, Policy: policy.Topic{Secrets: []policy.Secret{{ID: "s"}}}}
	f.own["a/b"] = store.Lane{
		Revision: 7,
		Settings: policy.Lane{LaneConcurrency: 3, Secrets: []policy.Secret{{ID: "s"}}},
	}
	f.namespaces["a"] = job.Namespace{Name: "a", Revision: 7}
	f.scheduled["a"] = store.Schedule{
		Name: "a", Revision: 7,
		ScheduleSettings: store.ScheduleSettings{Spec: schedule.Spec{Cron: "@daily"}},
	}
	return f
}

// requireSameSettings requires that a service has the settings of storedSettings.
func requireSameSettings(t *testing.T, f *fake, change string) {
	t.Helper()
	require.Equal(t, storedSettings().topics, f.topics, change)
	require.Equal(t, storedSettings().own, f.own, change)
	require.Equal(t, storedSettings().namespaces, f.namespaces, change)
	require.Equal(t, storedSettings().fakeSchedules, f.fakeSchedules, change)
}

// settingsChanges are the changes of settings, with a body that each accepts.
func settingsChanges() (changes []string) {
	for _, r := range new(api).routes() {
		for method, e := range r.methods {
			if method != http.MethodGet && slices.Contains(e.conditions, "If-None-Match") {
				changes = append(changes, method+" "+strings.NewReplacer("{namespace}", "a", "{topic}", "a", "{lane}",
					"b", "{id}", "s", "{schedule}", "a").Replace(r.path))
			}
		}
	}
	slices.Sort(changes)
	return changes
}

func TestSettings_ChangeOnlyTheRequiredRevision(t *testing.T) {
	changes := settingsChanges()
	require.GreaterOrEqual(t, len(changes), 13)
	for _, change := range changes {
		method, path, _ := strings.Cut(change, " ")
		body := cmp.Or(samples[strings.Replace(change, "/schedules/a", "/schedules/{schedule}", 1)].body, "{}")
		for condition, met := range map[string]bool{
			`If-Match: "7"`: true, `If-Match: *`: true, `If-Match:  "7" `: true,
			`If-Match: W/"7"`: true, `If-Match: W/"6"`: false,
			`If-Match: "6"`: false, `If-Match: "8"`: false, `If-Match: "0"`: false, `If-None-Match: *`: false,
		} {
			name, tag, _ := strings.Cut(condition, ": ")
			f := storedSettings()
			w := call(t, handlerOf(f), method, path, body, name, tag)
			if met {
				require.Less(t, w.Code, 300, "%s %s %s", change, condition, w.Body)
				continue
			}
			require.Equal(t, http.StatusPreconditionFailed, w.Code, "%s %s", change, condition)
			require.Equal(t, "settings are stored, with the revision 7: read them again", problemIn(t, w).Detail)
			requireSameSettings(t, f, change)
		}
		for _, conditions := range [][]string{
			{"If-Match", "7"},
			{"If-Match", `W/7`},
			{"If-Match", `W/W/"7"`},
			{"If-Match", `w/"7"`},
			{"If-Match", `"7", "8"`},
			{"If-Match", `"x"`},
			{"If-Match", `"-1"`},
			{"If-Match", `"+7"`},
			{"If-Match", ""},
			{"If-None-Match", `"7"`},
			{"If-None-Match", ""},
			{"If-Match", `"7"`, "If-None-Match", "*"},
		} {
			f := storedSettings()
			w := call(t, handlerOf(f), method, path, body, conditions...)
			require.Equal(t, http.StatusBadRequest, w.Code, "%s %s", change, conditions)
			require.Equal(t, "invalid_request", problemIn(t, w).Code)
			requireSameSettings(t, f, change)
		}
	}
}

func TestSettings_AreCreatedOnlyOnce(t *testing.T) {
	for _, path := range []string{"/v1/topics/a", "/v1/topics/a/lanes/b"} {
		for _, condition := range [][]string{{"If-None-Match", "*"}, {"If-Match", `"0"`}} {
			f := newFake()
			h := handlerOf(f)
			w := call(t, h, http.MethodPut, path, "{}", "If-Match", "*")
			require.Equal(t, http.StatusPreconditionFailed, w.Code)
			require.Equal(t, "no settings are stored: their revision is 0", problemIn(t, w).Detail)
			f.requireUnchanged(t)
			w = call(t, h, http.MethodPut, path, `{"url": "http://a.example/"}`, condition...)
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			require.Equal(t, `"1"`, w.Header().Get("ETag"))
			w = call(t, h, http.MethodPut, path, `{"url": "http://b.example/"}`, condition...)
			require.Equal(t, http.StatusPreconditionFailed, w.Code)
			require.Equal(t, "http://a.example/", decodeResponse(t, call(t, h, http.MethodGet, path, ""))["url"])
		}
	}
}

func TestSettings_AreNotSentAgainUnlessTheyChanged(t *testing.T) {
	h := handlerOf(storedSettings())
	for _, path := range []string{"/v1/topics/a", "/v1/topics/a/lanes/b"} {
		for tags, status := range map[string]int{
			`"7"`: 304, `W/"7"`: 304, `"6", "7"`: 304, `"6" ,W/"7",`: 304, `*`: 304, `"6"`: 200,
			`"6", "77"`: 200, `"a,b", ""`: 200,
			`7`: 400, `"7`: 400, `"7" "8"`: 400, ``: 400, `,`: 400, `w/"7"`: 400, `W/7`: 400, `"7", *`: 400,
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				w := call(t, h, method, path, "", "If-None-Match", tags)
				require.Equal(t, status, w.Code, "%s %s", path, tags)
				if status < 400 {
					require.Equal(t, `"7"`, w.Header().Get("ETag"))
				}
				require.Equal(t, status == 304, w.Body.Len() == 0)
			}
		}
	}
}
