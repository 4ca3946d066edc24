package jobpages_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/consoletest"
	"github.com/ringback/ringback/console/jobpages"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

func TestJob_SaysWhatIsGoingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		few(t, site)
		for id, want := range map[string]string{
			"delivered-1": "Delivered 9s ago by attempt 1, which was answered 200 after 20ms.",
			"dead-1":      "Died 9s ago, because all retries are used up; attempt 1 was answered 503 after 20ms.",
			"retry-1":     "Attempt 2 of 2 follows in 54s; attempt 1 was answered 500 after 20ms.",
			"later-1":     "is due in 59m50s.",
			"cancelled-1": "Cancelled 10s ago, before an attempt.",
			"running-1":   "runs now.",
		} {
			require.Contains(t, consoletest.Text(site.Golden("job-"+id, "jobs/"+id)), want, id)
		}
		_, err := site.API.PauseTopic(t.Context(), "mail", "<b>moving</b>")
		require.NoError(t, err)
		site.Advance(10 * time.Second)
		page := site.Get("jobs/later-1").OK()
		text := consoletest.Text(page)
		require.Contains(t, text, "Attempt 1 of 10 waits. Topic mail is paused since ")
		require.Contains(t, text, "<b>moving</b>")
		require.NotContains(t, text, "POST /v1/topics")
		require.Contains(t, page, `action="../topics/mail/resume"`)
		require.Contains(t, consoletest.Text(site.Get("jobs/nothing").Is(http.StatusNotFound)), "Not found")
	})
}

// hostile are values that would be scripts if they were not escaped.
var hostile = []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`}

func TestJob_EscapesAllThatOthersControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := strings.Join(hostile, "")
		site := consoletest.New(t, consoletest.Options{
			Pages: []web.Pages{jobpages.New(new(recent.Answers))},
			Deliver: func(job.Request) policy.Result {
				return policy.Result{
					Status: 500, Duration: time.Millisecond, RemoteAddr: bad, Body: []byte(bad),
					Error: bad, Class: "other", Header: http.Header{"X-Bad": hostile}, Phases: policy.Phases{},
				}
			},
		})
		callback := &client.Callback{
			URL:     "https://a.example/?q=" + url.QueryEscape(bad),
			Headers: client.Headers{"X-Bad": hostile},
		}
		site.Register(client.Job{
			ID: "bad", URL: "https://a.example/<script>alert(1)</script>", Headers: client.Headers{"X-Bad": hostile},
			Body: client.Text(bad), ContentType: bad, Labels: map[string]string{"a": bad}, OnDead: callback,
			OnDelivered: callback, Ladder: []time.Duration{time.Hour},
		}, client.Job{ID: "bad-json", URL: "https://a.example/", Body: map[string]string{bad: bad}, Delay: time.Hour})
		site.Advance(time.Second)
		for _, path := range []string{
			"jobs", "jobs/bad", "jobs/bad-json", "jobs/bad/edit", "jobs/bad/copy",
			"jobs?label=a:" + url.QueryEscape(bad),
		} {
			page := site.Get(path).OK()
			require.NotContains(t, page, "<script>alert", path)
			require.NotContains(t, page, "<img", path)
			require.Contains(t, page, "bad", path)
		}
		require.Contains(t, site.Get("jobs/bad").OK(), "&lt;script&gt;alert(1)")
	})
}

func TestJob_ShowsBigIntegersAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		site.Register(client.Job{
			ID: "big", URL: "https://fine.example/",
			Body: json.RawMessage(`{"n":12345678901234567890,"e":1e400,"f":1.10}`), Delay: time.Hour,
			Headers: client.Headers{"Authorization": {"Bearer secret"}, "X-A": {"it's"}},
			Labels:  map[string]string{"order": "47 11"}, ExpiresIn: 2 * time.Hour,
			OnDead: client.NoCallback(), OnDelivered: &client.Callback{URL: "https://back.example/"},
		})
		site.Golden("job-big", "jobs/big")
		text := consoletest.Text(site.Get("jobs/big").OK())
		require.Contains(t, text, `{ "n": 12345678901234567890, "e": 1e400, "f": 1.10 }`)
		require.Contains(t, text, `--data-raw '{"n":12345678901234567890,"e":1e400,"f":1.10}'`)
		require.Contains(t, text, `-H 'Authorization: '"$AUTHORIZATION"`)
		require.NotContains(t, text, "Bearer secret")
		require.Contains(t, text, "Callback when dead none")
		require.Equal(t, []string{"../jobs?label=order%3A47+11"}, links(site.Get("jobs/big").OK(), "order=47 11"))
	})
}

func TestJob_LinksItsCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		site.Register(client.Job{
			ID: "a", URL: "https://fine.example/",
			OnDelivered: &client.Callback{URL: "https://fine.example/back"},
		})
		site.Advance(time.Second)
		to := links(site.Get("jobs/a").OK(), "rb:")
		require.Len(t, to, 1)
		page := site.Get(strings.TrimPrefix(to[0], "../")).OK()
		require.Equal(t, []string{"../jobs/a"}, links(page, "job a"))
		require.Empty(t, links(page, "Register a copy"))
		require.NotContains(t, page, "To register a copy", "the API refuses one")
	})
}

func TestJob_NamesTheSecretsThatTheCommandLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		site.Register(client.Job{
			ID: "a", URL: "https://fine.example/", Delay: time.Hour, Headers: client.Headers{"X-Team": {"shop"}},
			OnDead: &client.Callback{
				URL:     "https://fine.example/",
				Headers: client.Headers{"Authorization": {"Bearer secret"}},
			},
		})
		text := consoletest.Text(site.Get("jobs/a").OK())
		require.Contains(t, text,
			"It lacks secret headers, which the API does not show: on_dead.headers.Authorization.")
		require.NotContains(t, text, "Set the variables", "the receiver's command has none")
	})
}

func TestJob_SaysWhereALongBodyIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		site.Register(client.Job{
			ID: "a", URL: "https://fine.example/", Delay: time.Hour,
			Body: client.Text(strings.Repeat("x", 5<<10)),
		})
		site.SignIn(site.Token("mia", "admin"))
		page := site.Get("jobs/a").OK()
		text := consoletest.Text(page)
		require.Contains(t, text, "--data-binary @- < body")
		require.Contains(t, text,
			"save the body there first, because it is too long for a command. GET /v1/jobs/a of the API has it.")
		require.Contains(t, text, "The body is too long for a command that registers a copy.")
		require.Equal(t, []string{"../jobs/a/copy"}, links(page, "The form"))
		site.SignIn(site.Token("otto", "read"))
		require.NotContains(t, consoletest.Text(site.Get("jobs/a").OK()), "a command that registers a copy")
	})
}

func TestJob_HidesBodiesFromTokensThatMayNotReadThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		site.Register(client.Job{ID: "a", URL: "https://fine.example/", Body: client.Text("private"), Delay: time.Hour})
		created, err := site.API.CreateToken(t.Context(),
			client.TokenRequest{Name: "mia", Role: "admin", Bodies: new(false)})
		require.NoError(t, err)
		site.SignIn(created.Token)
		page := site.Get("jobs/a").OK()
		require.NotContains(t, page, "private")
		require.Contains(t, page, "Your token may not read bodies.")
		require.NotContains(t, page, "Copy as curl")

		require.Contains(t, site.Get("jobs/a/edit").OK(), "Your token may not read bodies")
		site.Post("jobs/a/edit", post(site.Get("jobs/a/edit").OK(), "retries", "7")...).Is(http.StatusSeeOther)
		site.Follow(site.Post("jobs/a/copy", post(site.Get("jobs/a/copy").OK(), "id", "b")...)).OK()
		a, err := site.API.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, "private", string(a.Body))
		require.Equal(t, 7, *a.Retries)
		b, err := site.API.Get(t.Context(), "b")
		require.NoError(t, err)
		require.Empty(t, b.Body)
	})
}

func TestActions_ChangeTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		few(t, site)
		site.SignIn(site.Token("mia", "operate"))
		state := func(id string) client.State {
			t.Helper()
			j, err := site.API.Get(t.Context(), id)
			require.NoError(t, err)
			return j.State
		}
		require.Contains(t, site.Follow(site.Post("jobs/later-1/run", "revision", "1")).OK(), "Job later-1 is due now.")
		site.Advance(time.Second)
		require.Equal(t, client.Delivered, state("later-1"))
		page := site.Get("jobs/later-1").OK()
		text := consoletest.Text(page)
		require.Contains(t, text, "run now by mia")

		require.Contains(t, site.Follow(site.Post("jobs/retry-1/cancel", "revision", "1")).OK(),
			"Job retry-1 is cancelled.")
		require.Contains(t, consoletest.Text(site.Get("jobs/retry-1").OK()),
			"Cancelled just now by mia, after 1 attempt.")
		require.Contains(t, consoletest.Text(site.Get("jobs/retry-1").OK()), " cancelled by mia ")
		require.Contains(t, site.Follow(site.Post("jobs/running-1/cancel", "revision", "1")).OK(),
			"as soon as its attempt has ended")
		text = consoletest.Text(site.Get("jobs/running-1").OK())
		require.Contains(t, text, "The job is cancelled unless it succeeds.")
		require.Contains(t, text, "cancellation requested by mia")
		require.NotContains(t, text, "cancelled by mia")

		require.Contains(t, site.Follow(site.Post("jobs/dead-1/revive", "revision", "1", "delay", "5m")).OK(),
			"Job dead-1 is revived, and due in 5m.")
		require.Equal(t, client.Scheduled, state("dead-1"))
		require.Contains(t, consoletest.Text(site.Get("jobs/dead-1").OK()), "revived by mia")
	})
}

func TestActions_SayWhyTheyWereNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		few(t, site)
		for path, status := range map[string]int{"retry-1/run": 412, "retry-1/cancel": 412, "dead-1/revive": 412} {
			page := site.Post("jobs/"+path, "revision", "77").Is(status)
			require.Contains(t, page, "it was changed while you looked at it", path)
		}
		require.Contains(t, consoletest.Text(site.Post("jobs/dead-1/run", "revision", "1").Is(http.StatusConflict)),
			"The job was not run: ")
		page := site.Post("jobs/dead-1/revive", "revision", "1", "delay", "soon").Is(http.StatusUnprocessableEntity)
		require.Contains(t, page, `value="soon"`)
		require.Regexp(t, `id="e-delay">[^<]*is not a duration`, page)
		site.Post("jobs/nothing/run").Is(http.StatusNotFound)

		site.Register(client.Job{
			ID: "expired", URL: "https://fine.example/",
			Delay: time.Minute, ExpiresIn: time.Minute,
		})
		_, err := site.API.Cancel(t.Context(), "expired")
		require.NoError(t, err)
		site.Advance(2 * time.Minute)
		require.Contains(t, site.Get("jobs/expired").OK(), "The expiry has passed")
		site.Post("jobs/expired/revive", "revision", "2").Is(http.StatusConflict)
		site.Post("jobs/expired/revive", "revision", "2", "expires_in", "1h").Is(http.StatusSeeOther)
	})
}

func TestRoutes_RefuseWhatTheRoleDoesNotAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		few(t, site)
		tokens := map[string]string{}
		for _, role := range []string{"read", "publish", "operate", "admin"} {
			tokens[role] = site.Token(role, role)
		}
		for _, route := range jobpages.New(new(recent.Answers)).Routes {
			path := strings.ReplaceAll(route.Path, "{id}", "dead-1")
			for role, token := range tokens {
				site.SignIn(token)
				code := site.Do(route.Method, path, url.Values{"revision": {"99"}}).Code
				allowed := access.Role(role).Allows(route.Action)
				require.Equal(t, allowed, code != http.StatusForbidden, "%s %s as %s: %d", route.Method, path, role,
					code)
			}
		}
		site.SignIn(tokens["read"])
		page := site.Get("jobs/later-1").OK()
		require.NotContains(t, page, "Run now")
		require.NotContains(t, page, "Cancel job")
		require.NotContains(t, page, "Edit")
		site.SignIn(tokens["publish"])
		page = site.Get("jobs/later-1").OK()
		require.NotContains(t, page, "Run now")
		require.Contains(t, page, "Cancel job")
		require.Contains(t, page, "Register a copy")
		require.NotContains(t, page, `href="../topics`)
	})
}

func TestJob_IsSmallWhateverTheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		site := consoletest.New(t, consoletest.Options{
			Pages: []web.Pages{jobpages.New(new(recent.Answers))},
			Deliver: func(job.Request) policy.Result {
				n++
				return policy.Result{
					Status: 500, Duration: time.Millisecond,
					Body: []byte(strings.Repeat(`"`, 1000) + strconv.Itoa(n/2)),
				}
			},
		})
		body := `["` + strings.Repeat(`a", "`, 10000) + `"]`
		site.Register(client.Job{
			ID: "a", URL: "https://fine.example/", Body: json.RawMessage(body),
			Ladder: []time.Duration{time.Second}, Retries: new(60),
		})
		site.Advance(3 * time.Minute)
		page := site.Get("jobs/a").OK()
		text := consoletest.Text(page)
		require.Contains(t, text, "41 earlier attempts no longer kept")
		require.Contains(t, text, "attempt 61 was answered 500")
		require.Contains(t, text, "The same as that of attempt 6")
		require.Contains(t, text, "the page has room for the newest")
		require.Contains(t, text, "--data-binary @- < body")
		require.Less(t, len(page), 100_000)
	})
}

func TestJob_LinksTheScheduleOfATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		_, err := site.API.PutSchedule(t.Context(), "report",
			client.ScheduleRequest{Every: time.Minute, Job: &client.ScheduleJob{URL: "https://fine.example/"}})
		require.NoError(t, err)
		site.Advance(2 * time.Minute)
		list := site.Get("jobs").OK()
		require.NotEmpty(t, links(list, "rb:s:report:"))
		page := site.Get(strings.TrimPrefix(links(list, "rb:s:report:")[0], "./")).OK()
		require.Equal(t, []string{"../schedules/report"}, links(page, "a tick of schedule report"))
	})
}
