package schedulepages_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/consoletest"
	"github.com/ringback/ringback/console/schedulepages"
	"github.com/ringback/ringback/console/web"
)

func newSite(t *testing.T, tokens bool) *consoletest.Site {
	t.Helper()
	return consoletest.New(t, consoletest.Options{Pages: []web.Pages{schedulepages.New()}, Tokens: tokens})
}

// put puts a schedule.
func put(t *testing.T, site *consoletest.Site, name string, s client.ScheduleRequest) {
	t.Helper()
	if s.Job == nil {
		s.Job = &client.ScheduleJob{URL: "https://fine.example/" + name}
	}
	_, err := site.API.PutSchedule(t.Context(), name, s)
	require.NoError(t, err)
}

// putSome puts schedules of several kinds, two and a half hours ago.
func putSome(t *testing.T, site *consoletest.Site) {
	t.Helper()
	put(t, site, "daily-report", client.ScheduleRequest{
		Cron: "0 8 * * MON-FRI", Timezone: "Europe/Berlin", Overlap: "skip", Note: "the report of the board",
		Job: &client.ScheduleJob{
			Topic: "report", URL: "https://fine.example/report",
			Body: map[string]any{"kind": "daily"},
		},
	})
	put(t, site, "every-second", client.ScheduleRequest{Every: time.Second, EndsAt: time.Now().Add(3 * time.Second)})
	put(t, site, "nightly",
		client.ScheduleRequest{Cron: "0 * * * *", Job: &client.ScheduleJob{URL: "https://refused.example/nightly"}})
	put(t, site, "poll", client.ScheduleRequest{Cron: "*/5 * * * *", StartsAt: time.Now().Add(150 * time.Minute)})
	site.Advance(150 * time.Minute)
	_, err := site.API.PauseSchedule(t.Context(), "nightly", "the warehouse moves, ask Mia")
	require.NoError(t, err)
}

func TestList_SaysWhatRunsAndWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		require.Contains(t, consoletest.Text(site.Golden("list-empty", "schedules")), "There are no schedules")
		put(t, site, "reconcile", client.ScheduleRequest{Cron: "49 * * * *"})
		require.Contains(t, consoletest.Text(site.Get("schedules").OK()),
			"1 schedule; the next tick is reconcile in 49m.")
		require.NoError(t, site.API.DeleteSchedule(t.Context(), "reconcile"))
		putSome(t, site)
		text := consoletest.Text(site.Golden("list", "schedules"))
		require.Contains(t, text, "2 of 4 schedules run; nightly is paused: the warehouse moves, ask Mia; "+
			"every-second has ended; the next tick is poll in 5m.")
		require.Contains(t, text, "At 08:00 on Monday to Friday, Europe/Berlin")
	})
}

func TestList_PausesAndResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		put(t, site, "a", client.ScheduleRequest{Every: time.Hour})
		site.SignIn(site.Token("mia", "operate"))
		page := site.Follow(site.Post("schedules/a/pause", "from", "list", "note", "lunch")).OK()
		require.Contains(t, consoletest.Text(page), "Schedule a is paused")
		require.Contains(t, consoletest.Text(page), "The one schedule does not run; a is paused by mia: lunch.")
		require.Contains(t, page, `aria-label="Resume a"`)
		page = site.Follow(site.Post("schedules/a/resume", "from", "list")).OK()
		require.Contains(t, consoletest.Text(page), "1 schedule; the next tick is a in")
		site.Post("schedules/none/pause").Is(http.StatusNotFound)

		site.SignIn(site.Token("otto", "read"))
		require.NotContains(t, site.Get("schedules").OK(), "Pause a")
		site.Post("schedules/a/pause").Is(http.StatusForbidden)
		site.Post("schedules/a/resume").Is(http.StatusForbidden)
	})
}

func TestList_HasPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for i := range 51 {
			name := fmt.Sprintf("schedule-%02d", i)
			put(t, site, name, client.ScheduleRequest{
				Cron: "*/20 * * * *", Timezone: "Europe/Berlin",
				Note: strings.Repeat("n", 1000),
			})
			if i%2 == 0 {
				_, err := site.API.PauseSchedule(t.Context(), name, strings.Repeat("p", 500))
				require.NoError(t, err)
			}
		}
		site.Advance(time.Hour)
		page := site.Get("schedules").OK()
		require.Less(t, len(page), 100_000)
		require.Contains(t, consoletest.Text(page),
			"25 of 50 schedules on this page run; schedule-00, schedule-02 and 23 more are paused; the next tick is")
		next := regexp.MustCompile(`rel="next" href="\./schedules(\?[^"]*)"`).FindStringSubmatch(page)
		require.NotNil(t, next)
		rest := site.Get("schedules" + html.UnescapeString(next[1])).OK()
		require.Contains(t, consoletest.Text(rest), "The one schedule on this page does not run; schedule-50 is paused")
	})
}

func TestSchedule_SaysWhenItRunsAndWhatCameOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		put(t, site, "berlin", client.ScheduleRequest{
			Cron: "30 2 1,26 1,3 *", Timezone: "Europe/Berlin", Overlap: "skip", Jitter: time.Minute, MaxRuns: 100,
			PauseAfterDead: 3, Note: "ask Mia", Job: &client.ScheduleJob{
				Topic: "report", URL: "https://fine.example/report", Headers: client.Headers{"X-A": {"1", "2"}},
				Body:   map[string]any{"kind": "daily"},
				Labels: map[string]string{"team": "shop"}, OnDead: &client.Callback{URL: "https://fine.example/dead"},
			},
		})
		require.Contains(t, consoletest.Text(site.Get("schedules/berlin").OK()), "Runs at 02:30 on the 1st and the "+
			"26th of the month in January and March, Europe/Berlin; the next tick is in 1h30m; no tick has passed yet.")
		site.Advance(2*time.Hour + 2*time.Minute)
		text := consoletest.Text(site.Golden("schedule", "schedules/berlin"))
		require.Contains(t, text, "Europe/Berlin; the next tick is in 24d 23h")
		require.Contains(t, text, "the last one was delivered.")
		require.Contains(t, text, "02:30 does not exist on 2000-03-26, because clocks go forward: runs at 03:00")
		_, err := site.API.PauseSchedule(t.Context(), "berlin", "summer.")
		require.NoError(t, err)
		site.Advance(time.Minute)
		require.Contains(t, consoletest.Text(site.Get("schedules/berlin").OK()), "Paused 1m ago: summer. Resumed, it "+
			"runs at 02:30 on the 1st and the 26th of the month in January and March, Europe/Berlin.")
		site.Get("schedules/none").Is(http.StatusNotFound)
	})
}

func TestSchedule_SaysThatABodyIsInBase64(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		put(t, site, "bytes", client.ScheduleRequest{
			Every: time.Hour,
			Job:   &client.ScheduleJob{URL: "https://fine.example/", Body: []byte{0, 1}},
		})
		put(t, site, "text", client.ScheduleRequest{
			Every: time.Hour,
			Job:   &client.ScheduleJob{URL: "https://fine.example/", Body: client.Text("a")},
		})
		require.Contains(t, site.Get("schedules/bytes").OK(), `<dd class="lines">bytes, here in base64</dd>`)
		require.NotContains(t, site.Get("schedules/text").OK(), "base64")
	})
}

func TestSchedule_SaysWhatWasWrongWithTheLastTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		site.Advance(time.Minute)
		put(t, site, "dies", client.ScheduleRequest{
			Every: time.Hour,
			Job:   &client.ScheduleJob{URL: "https://refused.example/", Retries: new(0)},
		})
		put(t, site, "slow", client.ScheduleRequest{Every: 20 * time.Minute, Overlap: "skip", Job: &client.ScheduleJob{
			URL: "https://refused.example/", Retries: new(1000), Ladder: []time.Duration{24 * time.Hour},
		}})
		put(t, site, "new", client.ScheduleRequest{Every: time.Hour, EndsAt: time.Now().Add(time.Hour)})
		site.Advance(time.Hour)
		require.Contains(t, consoletest.Text(site.Get("schedules/dies").OK()), "the job of the last one is dead.")
		require.Contains(t, consoletest.Text(site.Get("schedules/slow").OK()),
			"the last one was skipped: the job of the tick before was unfinished.")
		list := site.Get("schedules").OK()
		require.Contains(t, list, `href="./schedules/new/ticks"`)
		require.Contains(t, consoletest.Text(list),
			"the job of the last tick of dies is dead; new has ended; the next tick is")
		require.Contains(t, consoletest.Text(site.Get("schedules/new/ticks").OK()),
			"No tick is left; the last one was delivered.")
	})
}

func TestSchedule_RunsAndIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		put(t, site, "a", client.ScheduleRequest{Every: time.Hour})
		site.SignIn(site.Token("mia", "admin"))
		to := site.Post("schedules/a/run")
		to.Is(http.StatusSeeOther)
		require.Regexp(t, `^\.\./\.\./jobs/[0-9a-z]+$`, to.Header().Get("Location"))
		page := site.Get("schedules/a").OK()
		require.Contains(t, page, `<input type="hidden" name="revision" value="1">`)
		put(t, site, "a", client.ScheduleRequest{Every: time.Minute})
		require.Contains(t, consoletest.Text(site.Follow(site.Post("schedules/a/delete", "revision", "1")).OK()),
			"was changed meanwhile, and was not deleted")
		require.Contains(t, consoletest.Text(site.Follow(site.Post("schedules/a/delete", "revision", "2")).OK()),
			"Schedule a is deleted.")
		site.Get("schedules/a").Is(http.StatusNotFound)

		put(t, site, "a", client.ScheduleRequest{Every: time.Hour})
		for role, refused := range map[string][]string{
			"operate": {"delete"}, "read": {"run", "delete", "pause", "resume"},
		} {
			site.SignIn(site.Token("otto-"+role, role))
			page := site.Get("schedules/a").OK()
			for _, action := range refused {
				require.NotContains(t, page, "a/"+action, role)
				site.Post("schedules/a/" + action).Is(http.StatusForbidden)
			}
		}
	})
}

// fields returns the names and values of a form's fields, as a browser would send them.
func fields(t *testing.T, page string) []string {
	t.Helper()
	_, form, ok := strings.Cut(page, `id="schedule-form"`)
	require.True(t, ok)
	form, _, _ = strings.Cut(form, "</form>")
	var all []string
	for _, m := range regexp.MustCompile(`<input type="(\w+)"[^>]* name="([^"]+)" `+
		`value="([^"]*)"([^>]*)>|<textarea[^>]* name="([^"]+)"[^>]*>\n([^<]*)</textarea>|(?s:<select[^>]* `+
		`name="([^"]+)".*?</select>)`).FindAllStringSubmatch(form, -1) {
		switch {
		case m[7] != "":
			if chosen := regexp.MustCompile(`value="([^"]*)" selected`).FindStringSubmatch(m[0]); chosen != nil {
				all = append(all, m[7], html.UnescapeString(chosen[1]))
			}
		case m[5] != "":
			all = append(all, m[5], html.UnescapeString(m[6]))
		case m[1] != "checkbox" || strings.Contains(m[4], "checked"):
			all = append(all, m[2], html.UnescapeString(m[3]))
		}
	}
	return all
}

// with returns fields of which one has another value.
func with(fields []string, name, value string) []string {
	fields = slices.Clone(fields)
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == name {
			fields[i+1] = value
		}
	}
	return fields
}

func TestForm_CreatesAndChangesSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		site.SignIn(site.Token("mia", "admin"))
		site.Golden("new", "schedules/new")
		done := site.Post("schedules/new", "name", "daily", "cron", "0 8 * * *", "timezone", "Europe/Berlin",
			"job.url", "https://fine.example/", "job.body", "{\"kind\": \"daily\"}", "job.body_as", "json",
			"job.headers", "Authorization: Bearer hunter2\r\nX-A: 1", "overlap", "skip", "paused",
			"true", "note", "ask Mia")
		require.Contains(t, consoletest.Text(site.Follow(done).OK()), "Schedule daily is saved.")
		was, err := site.API.GetSchedule(t.Context(), "daily")
		require.NoError(t, err)
		require.Equal(t, "paused by mia", was.State+" by "+was.PausedBy)
		require.Equal(t, "skip", was.Overlap)

		page := site.Golden("edit", "schedules/daily/edit")
		require.NotContains(t, page, "hunter2")
		site.Follow(site.Post("schedules/daily/edit", fields(t, page)...)).OK()
		is, err := site.API.GetSchedule(t.Context(), "daily")
		require.NoError(t, err)
		require.Equal(t, int64(2), is.Revision)
		require.Equal(t, was.ScheduleRequest, is.ScheduleRequest, "nothing was changed")

		changed := with(fields(t, page), "jitter", "5m")
		conflict := site.Post("schedules/daily/edit", changed...).Is(http.StatusPreconditionFailed)
		require.Contains(t, consoletest.Text(conflict),
			"mia changed the schedule daily at 00:00:00, since you opened the form. What you typed is kept.")
		require.Contains(t, conflict, `name="jitter" value="5m"`)
		require.Contains(t, consoletest.Text(conflict),
			"Compared with the schedule as it is now, saving again changes jitter.")
		require.Contains(t, conflict, `name="revision" value="2"`)
		saved := site.Follow(site.Post("schedules/daily/edit", fields(t, conflict)...)).OK()
		require.Contains(t, consoletest.Text(saved), "Jitter 5m")
		require.Contains(t, is.Job.Headers, "Authorization")
		shorter := with(fields(t, site.Get("schedules/daily/edit").OK()), "job.headers", "X-A: 1")
		site.Follow(site.Post("schedules/daily/edit", shorter...)).OK()
		is, err = site.API.GetSchedule(t.Context(), "daily")
		require.NoError(t, err)
		require.Equal(t, client.Headers{"X-A": {"1"}}, is.Job.Headers)
	})
}

// A schedule that is changed after its page has read it, and before it is put, is not overwritten either.
func TestForm_ComparesWithWhatSomebodyElseStoredMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var between func()
		site := consoletest.New(t, consoletest.Options{Pages: []web.Pages{
			schedulepages.New(),
		}, Tokens: true, WrapAPI: func(
			next http.Handler,
		) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut && between != nil {
					between()
				}
				next.ServeHTTP(w, r)
			})
		}})
		put(t, site, "a", client.ScheduleRequest{Every: time.Hour})
		otto := site.Client(site.Token("otto", "admin"))
		site.SignIn(site.Token("mia", "admin"))
		page := site.Get("schedules/a/edit").OK()
		site.Advance(time.Minute)
		between = func() {
			_, err := otto.PutSchedule(t.Context(), "a", client.ScheduleRequest{
				Every: time.Hour, Note: "ask Otto",
				Job: &client.ScheduleJob{URL: "https://fine.example/a"},
			})
			require.NoError(t, err)
		}
		conflict := site.Post("schedules/a/edit",
			with(fields(t, page), "jitter", "5m")...).Is(http.StatusPreconditionFailed)
		require.Contains(t, consoletest.Text(conflict), "otto changed the schedule a at 00:01:00, since you opened "+
			"the form. What you typed is kept. "+
			"Compared with the schedule as it is now, saving again changes jitter and note.")
		between = nil
		site.Follow(site.Post("schedules/a/edit", fields(t, conflict)...)).OK()
		require.Contains(t, consoletest.Text(site.Get("schedules/a").OK()), "Changed by mia, 1 Jan 2000, 00:01:00 UTC")
	})
}

func TestForm_SaysWhatIsWrongAtEachField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for _, c := range []struct{ field, value, want string }{
			{"jitter", "soon", `id="e-jitter">&#34;soon&#34; is not a duration`},
			{"name", "", `id="e-name">is required`},
			{"name", "a b", `id="e-name">`},
			{"cron", "* * *", `id="e-cron">`},
			{"timezone", "Mars/Olympus", `id="e-timezone">`},
			{"every", "15m", `id="e-every">`},
			{"job.url", "ftp://a", `id="e-job.url">`},
			{"job.headers", "Host: a", `id="e-job.headers">`},
			{"job.body", "{", `id="e-job.body">is not JSON`},
			{"job.topic", "_work", `id="e-job.topic">`},
			{"catch_up.window", "400d", `id="e-catch_up.window">`},
			{"pause_after_dead", "21", `id="e-pause_after_dead">`},
			{"ends_at", "tomorrow", `id="e-ends_at">must be a time`},
		} {
			form := with([]string{
				"name", "a", "cron", "0 8 * * *", "timezone", "", "every", "", "jitter", "", "job.url",
				"https://fine.example/", "job.headers", "", "job.body", "", "job.body_as", "json", "job.topic", "",
				"catch_up.window", "", "pause_after_dead", "", "ends_at", "", "note", "kept",
			}, c.field, c.value)
			answer := site.Post("schedules/new", form...)
			require.Equal(t, http.StatusUnprocessableEntity, answer.Code, c.field)
			page := answer.Body.String()
			require.Contains(t, page, c.want, c.field)
			require.Contains(t, page, "\nkept</textarea>", c.field)
			require.Contains(t, page, `<a href="#f-`+c.field+`">`, c.field)
			requireTargets(t, page)
		}
		put(t, site, "taken", client.ScheduleRequest{Every: time.Hour})
		page := site.Post("schedules/new", "name", "taken", "every", "2h", "job.url",
			"https://fine.example/").Is(http.StatusPreconditionFailed)
		require.Contains(t, consoletest.Text(page), "there is a schedule with this name")
		requireTargets(t, page)
		site.Post("schedules/none/edit", "every", "2h").Is(http.StatusNotFound)
	})
}

// requireTargets requires that a page has the fields that its errors lead to.
func requireTargets(t *testing.T, page string) {
	t.Helper()
	links := regexp.MustCompile(`href="#(f-[^"]*)"`).FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, links)
	for _, link := range links {
		require.Contains(t, page, ` id="`+link[1]+`"`)
	}
}

func TestForm_PreviewsTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		site.SignIn(site.Token("mia", "admin"))
		form := url.Values{
			"cron": {"30 2 26 3 *"}, "timezone": {"Europe/Berlin"}, "jitter": {"soon"}, "name": {"a"},
			"job.url": {"https://fine.example/"},
		}
		part := site.Do(http.MethodPost, "schedules/preview", form, "HX-Request", "true").OK()
		require.True(t, strings.HasPrefix(part, `<legend>When</legend>`), part)
		require.NotContains(t, part, `../`, "the page that it becomes a part of has another path")
		require.Contains(t, part, "02:30 does not exist on 2000-03-26, because clocks go forward: runs at 03:00")
		require.Contains(t, part, "Runs at 02:30 on the 26th of March, Europe/Berlin.")
		whole := site.Do(http.MethodPost, "schedules/preview", form).OK()
		require.Contains(t, whole, "Runs at 02:30 on the 26th of March, Europe/Berlin.")
		require.Contains(t, whole, `name="name" value="a"`)
		require.Contains(t, whole, `name="job.url" value="https://fine.example/"`)
		require.Contains(t, whole, `action="../schedules/new"`)

		form.Set("starts_at", "2001-01-01 00:00")
		part = site.Do(http.MethodPost, "schedules/preview", form, "HX-Request", "true").OK()
		require.NotContains(t, part, "2000-03-26")
		require.Contains(t, part, "26 Mar 2001")
		form.Set("cron", "30 25 * * *")
		part = site.Do(http.MethodPost, "schedules/preview", form, "HX-Request", "true").OK()
		require.Contains(t, part, `<span class="field-error" id="e-cron">`)
		require.NotContains(t, part, "Runs at")
		form.Set("every", "x")
		require.Contains(t,
			site.Do(http.MethodPost, "schedules/preview", form, "HX-Request", "true").OK(), `id="e-every">`)
		require.NotContains(t,
			site.Do(http.MethodPost, "schedules/preview", url.Values{}, "HX-Request", "true").OK(), "field-error")

		put(t, site, "a", client.ScheduleRequest{Every: time.Hour})
		form = url.Values{"schedule": {"a"}, "revision": {"1"}, "every": {"90m"}}
		whole = site.Do(http.MethodPost, "schedules/preview", form).OK()
		require.Contains(t, whole, `action="../schedules/a/edit"`)
		require.Contains(t, whole, `name="revision" value="1"`)
		require.NotContains(t, whole, "is managed by")
		put(t, site, "a", client.ScheduleRequest{Every: time.Hour, ManagedBy: "shop"})
		whole = site.Do(http.MethodPost, "schedules/preview", form).OK()
		require.Contains(t, whole, "This schedule is managed by “shop”")
		require.Contains(t, whole, `name="revision" value="1"`, "what the reader has seen")
		form.Set("schedule", "deleted")
		require.Contains(t, site.Do(http.MethodPost, "schedules/preview", form).OK(), `name="every" value="90m"`)

		site.SignIn(site.Token("otto", "operate"))
		site.Get("schedules/new").Is(http.StatusForbidden)
		site.Get("schedules/a/edit").Is(http.StatusForbidden)
		site.Post("schedules/new", "name", "b").Is(http.StatusForbidden)
		site.Post("schedules/a/edit").Is(http.StatusForbidden)
		require.NotContains(t, site.Get("schedules").OK(), "schedules/new")
		require.NotContains(t, site.Get("schedules/a").OK(), "a/edit")
		site.SignIn(site.Token("rita", "publish"))
		site.Post("schedules/preview").Is(http.StatusForbidden)
	})
}

// hostile are values of users and receivers.
var hostile = []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`}

func TestPages_EscapeValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for i, bad := range hostile {
			name := []string{"a", "b"}[i]
			put(t, site, name, client.ScheduleRequest{
				Every: time.Hour, Note: bad, Job: &client.ScheduleJob{
					URL:     "https://fine.example/?q=" + strings.ReplaceAll(bad, " ", "%20"),
					Headers: client.Headers{"X-A": {bad}}, Body: client.Text(bad), ContentType: "text/plain",
					Labels: map[string]string{"a": bad},
					OnDead: &client.Callback{URL: "https://fine.example/?q=" + strings.ReplaceAll(bad, " ", "%20")},
				},
			})
			_, err := site.API.PauseSchedule(t.Context(), name, bad)
			require.NoError(t, err)
			for _, path := range []string{"schedules", "schedules/" + name, "schedules/" + name +
				"/edit", "schedules/new?name=" + url.QueryEscape(bad)} {
				requireEscaped(t, site.Get(path).OK())
			}
			form := url.Values{}
			page := site.Get("schedules/new").OK() + site.Get("schedules/"+name+"/edit").OK()
			for _, field := range regexp.MustCompile(` name="([^"]+)"`).FindAllStringSubmatch(page, -1) {
				form.Set(field[1], bad)
			}
			requireEscaped(t, site.Do(http.MethodPost, "schedules/new", form).Is(http.StatusUnprocessableEntity))
			requireEscaped(t, site.Do(http.MethodPost, "schedules/preview", form, "HX-Request", "true").OK())
			requireEscaped(t, site.Do(http.MethodPost, "schedules/preview", form).OK())
		}
	})
}

func requireEscaped(t *testing.T, page string) {
	t.Helper()
	for _, bad := range []string{"<script>alert", "<img", `" onerror`} {
		require.NotContains(t, page, bad)
	}
}

func TestBackfill_CountsFirstAndShowsItsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		put(t, site, "hourly", client.ScheduleRequest{Cron: "@hourly"})
		site.SignIn(site.Token("mia", "operate"))
		require.Contains(t, site.Get("schedules/hourly").OK(), `href="../schedules/hourly/backfill"`)
		require.Contains(t, site.Get("schedules/hourly/backfill").OK(), `value="1999-12-31 00:00"`)
		const query = "after=1999-12-31+00:00&before=1999-12-31T10:00:00Z&rate=1/s"
		page := site.Golden("backfill", "schedules/hourly/backfill?"+query)
		require.Contains(t, consoletest.Text(page), "10 ticks would run, at 1/s.")
		form := []string{"after", "1999-12-31 00:00", "before", "1999-12-31T10:00:00Z", "rate", "1/s", "revision", "1"}

		put(t, site, "hourly", client.ScheduleRequest{Cron: "*/30 * * * *"})
		changed := site.Post("schedules/hourly/backfill", form...).Is(http.StatusPreconditionFailed)
		require.Contains(t, consoletest.Text(changed), "counted again")
		require.Contains(t, consoletest.Text(changed), "20 ticks would run")
		require.Contains(t, changed, `name="revision" value="2"`)
		begun := site.Follow(site.Post("schedules/hourly/backfill", with(form, "revision", "2")...)).OK()
		require.Contains(t, consoletest.Text(begun), "The backfill of 20 ticks has begun.")
		site.Advance(5 * time.Second)
		page = site.Get("schedules/hourly").OK()
		require.Regexp(t, `<progress max="20" value="[1-9]"`, page)
		require.Contains(t, consoletest.Text(page), "by mia")
		require.Contains(t, consoletest.Text(site.Get("schedules/hourly/backfill?"+query).OK()),
			"A new backfill replaces it.")
		_, err := site.API.PauseSchedule(t.Context(), "hourly", "")
		require.NoError(t, err)
		require.Contains(t, consoletest.Text(site.Get("schedules/hourly").OK()), "goes on when the schedule is resumed")
		_, err = site.API.ResumeSchedule(t.Context(), "hourly")
		require.NoError(t, err)
		site.Advance(time.Minute)
		page = site.Get("schedules/hourly").OK()
		require.Contains(t, consoletest.Text(page), "has run 20 of 20 ticks.")
		require.NotContains(t, page, "<progress")
	})
}

func TestBackfill_SaysWhatIsWrongAtEachField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		put(t, site, "a", client.ScheduleRequest{Every: time.Second})
		site.SignIn(site.Token("mia", "operate"))
		form := []string{"after", "1999-12-31", "before", "1999-12-31 00:01", "rate", "", "revision", "1"}
		for _, c := range []struct{ field, value, want string }{
			{"after", "", "is required"},
			{"after", "yesterday", "is not a time"},
			{"before", "2999-01-01", ""},
			{"before", "1999-12-30", ""},
			{"before", "1999-12-31 23:00", "selects more than 10000 ticks"},
			{"rate", "1000/s", ""},
			{"rate", hostile[0], ""},
			{"after", hostile[1], ""},
		} {
			changed := with(form, c.field, c.value)
			query := url.Values{}
			for i := 0; i < len(changed); i += 2 {
				query.Set(changed[i], changed[i+1])
			}
			for heading, page := range map[string]string{
				"Nothing was " +
					"changed": site.Post("schedules/a/backfill", changed...).Is(http.StatusUnprocessableEntity),
				"The ticks cannot be " +
					"counted": site.Get("schedules/a/backfill?" + query.Encode()).Is(http.StatusUnprocessableEntity),
			} {
				require.Contains(t, page, "<h2>"+heading+"</h2>", c.value)
				require.Contains(t, page, `id="e-`+c.field+`">`+c.want, c.value)
				requireEscaped(t, page)
			}
		}
		one := site.Get("schedules/a/backfill?after=1999-12-31T00:00:00Z&before=1999-12-31T00:00:00.001Z").OK()
		require.Contains(t, consoletest.Text(one), "1 tick would run")
		none := site.Get("schedules/a/backfill?after=1999-12-31T00:00:00.001Z&before=1999-12-31T00:00:00.002Z").OK()
		require.Contains(t, consoletest.Text(none), "There is no tick in this time.")
		require.NotContains(t, none, "Start the backfill")
		site.SignIn(site.Token("otto", "read"))
		require.NotContains(t, site.Get("schedules/a").OK(), "a/backfill")
		site.Get("schedules/a/backfill").Is(http.StatusForbidden)
		site.Post("schedules/a/backfill", form...).Is(http.StatusForbidden)
	})
}

// A token that may not read bodies gets a placeholder, which cannot be saved.
func TestEdit_OfATokenWithoutBodiesSaysThatTheBodyMustBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		put(t, site, "report", client.ScheduleRequest{
			Cron: "0 8 * * *",
			Job:  &client.ScheduleJob{URL: "https://fine.example/", Body: client.Text("hello")},
		})
		put(t, site, "empty", client.ScheduleRequest{Cron: "0 8 * * *"})
		const note = "Your token may not read bodies, so the form has [redacted] instead of the body of the job."
		site.SignIn(site.Token("ops", "admin"))
		require.NotContains(t, consoletest.Text(site.Get("schedules/report/edit").OK()), note)
		blind, err := site.API.CreateToken(t.Context(),
			client.TokenRequest{Name: "blind", Role: "admin", Bodies: new(false)})
		require.NoError(t, err)
		site.SignIn(blind.Token)
		require.NotContains(t, consoletest.Text(site.Get("schedules/empty/edit").OK()), note)
		shown := site.Get("schedules/report/edit").OK()
		require.Contains(t, consoletest.Text(shown), note)
		_, revision, _ := strings.Cut(shown, `name="revision" value="`)
		revision, _, _ = strings.Cut(revision, `"`)
		form := []string{
			"schedule", "report", "revision", revision, "cron", "0 9 * * *", "job.url",
			"https://fine.example/", "job.body_as", "text", "job.body",
		}
		page := site.Post("schedules/report/edit", append(form, "[redacted]")...).Is(http.StatusUnprocessableEntity)
		require.Contains(t, consoletest.Text(page), note)
		site.Post("schedules/report/edit", append(form, "hello again")...).Is(http.StatusSeeOther)
	})
}
