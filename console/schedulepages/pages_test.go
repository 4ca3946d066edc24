package schedulepages_test

import (
	"net/http"
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
		Job: &client.ScheduleJob{Topic: "report", URL: "https://fine.example/report", Body: map[string]any{"kind": "daily"}},
	})
	put(t, site, "every-second", client.ScheduleRequest{Every: time.Second, EndsAt: time.Now().Add(3 * time.Second)})
	put(t, site, "nightly", client.ScheduleRequest{Cron: "0 * * * *", Job: &client.ScheduleJob{URL: "https://refused.example/nightly"}})
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
		require.Contains(t, consoletest.Text(site.Get("schedules").OK()), "1 schedule; the next tick is reconcile in 49m.")
		require.NoError(t, site.API.DeleteSchedule(t.Context(), "reconcile"))
		putSome(t, site)
		text := consoletest.Text(site.Golden("list", "schedules"))
		require.Contains(t, text, "2 of 4 schedules run; nightly is paused: the warehouse moves, ask Mia; every-second has ended; the next tick is poll in 5m.")
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
		for i := range 31 {
			put(t, site, "s"+string(rune('A'+i%26))+string(rune('a'+i/26)), client.ScheduleRequest{Cron: "*/8 * * * *"})
		}
		site.Advance(time.Hour)
		page := site.Get("schedules").OK()
		require.Less(t, len(page), 100_000)
		require.Contains(t, consoletest.Text(page), "30 schedules on this page; the next tick is")
		require.Contains(t, page, `rel="next"`)
	})
}

func TestSchedule_SaysWhenItRunsAndWhatCameOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		put(t, site, "berlin", client.ScheduleRequest{
			Cron: "30 2 1,26 1,3 *", Timezone: "Europe/Berlin", Overlap: "skip", Jitter: time.Minute, MaxRuns: 100, PauseAfterDead: 3, Note: "ask Mia",
			Job: &client.ScheduleJob{
				Topic: "report", URL: "https://fine.example/report", Headers: client.Headers{"X-A": {"1", "2"}}, Body: map[string]any{"kind": "daily"},
				Labels: map[string]string{"team": "shop"}, OnDead: &client.Callback{URL: "https://fine.example/dead"},
			},
		})
		require.Contains(t, consoletest.Text(site.Get("schedules/berlin").OK()), "Runs at 02:30 on the 1st and the 26th of the month in January and March, Europe/Berlin; the next tick is in 1h30m; no tick has passed yet.")
		site.Advance(2*time.Hour + 2*time.Minute)
		text := consoletest.Text(site.Golden("schedule", "schedules/berlin"))
		require.Contains(t, text, "Europe/Berlin; the next tick is in 24d 23h")
		require.Contains(t, text, "the last one was delivered.")
		require.Contains(t, text, "02:30 does not exist on 2000-03-26, because clocks go forward: runs at 03:00")
		_, err := site.API.PauseSchedule(t.Context(), "berlin", "summer.")
		require.NoError(t, err)
		site.Advance(time.Minute)
		require.Contains(t, consoletest.Text(site.Get("schedules/berlin").OK()), "Paused 1m ago: summer. Resumed, it runs at 02:30 on the 1st and the 26th of the month in January and March, Europe/Berlin.")
		site.Get("schedules/none").Is(http.StatusNotFound)
	})
}

func TestSchedule_SaysWhatWasWrongWithTheLastTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		site.Advance(time.Minute)
		put(t, site, "dies", client.ScheduleRequest{Every: time.Hour, Job: &client.ScheduleJob{URL: "https://refused.example/", Retries: new(0)}})
		put(t, site, "slow", client.ScheduleRequest{Every: 20 * time.Minute, Overlap: "skip", Job: &client.ScheduleJob{
			URL: "https://refused.example/", Retries: new(1000), Ladder: []time.Duration{24 * time.Hour},
		}})
		put(t, site, "new", client.ScheduleRequest{Every: time.Hour, EndsAt: time.Now().Add(time.Hour)})
		site.Advance(time.Hour)
		require.Contains(t, consoletest.Text(site.Get("schedules/dies").OK()), "the job of the last one is dead.")
		require.Contains(t, consoletest.Text(site.Get("schedules/slow").OK()), "the last one was skipped: the job of the tick before was unfinished.")
		require.Contains(t, site.Get("schedules").OK(), `href="./schedules/new/ticks"`)
		require.Contains(t, consoletest.Text(site.Get("schedules/new/ticks").OK()), "No tick is left; the last one was delivered.")
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
		require.Contains(t, consoletest.Text(site.Follow(site.Post("schedules/a/delete", "revision", "1")).OK()), "was changed meanwhile, and was not deleted")
		require.Contains(t, consoletest.Text(site.Follow(site.Post("schedules/a/delete", "revision", "2")).OK()), "Schedule a is deleted.")
		site.Get("schedules/a").Is(http.StatusNotFound)

		put(t, site, "a", client.ScheduleRequest{Every: time.Hour})
		for role, refused := range map[string][]string{"operate": {"delete"}, "read": {"run", "delete", "pause", "resume"}} {
			site.SignIn(site.Token("otto-"+role, role))
			page := site.Get("schedules/a").OK()
			for _, action := range refused {
				require.NotContains(t, page, "a/"+action, role)
				site.Post("schedules/a/" + action).Is(http.StatusForbidden)
			}
		}
	})
}
