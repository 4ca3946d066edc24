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
