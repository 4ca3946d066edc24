package app

import (
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

const (
	// scaleJobs is the number of jobs with which TestConsoleScale runs; RINGBACK_CONSOLE_JOBS sets another.
	scaleJobs = 1_000
	// scaleLanes is the largest number of lanes of a topic.
	scaleLanes = 1_000
	// lawfulJobs is the number of jobs from which on the time of a page is checked, too: somebody runs that by hand on
	// an idle machine.
	lawfulJobs = 1_000_000
	// Bounds of a page.
	maxPageBytes = 100_000
	maxPageTime  = 50 * time.Millisecond
)

// scalePages are paths below the console. WORK is the id of bulk work.
var scalePages = []string{
	"", "topics", "topics/scale.later", "topics/scale.paused", "topics/scale.dead", "topics/scale.failing",
	"topics/scale.later/policy", "topics/scale.later/secrets", "topics/scale.later/lanes/lane-7",
	"topics/scale.paused/lanes/lane-7", "topics/scale.dead/lanes/lane-7", "topics/scale.failing/lanes/lane-7",
	"topics/scale.dead/lanes/lane-7/secrets",
	"jobs", "jobs?topic=scale.later", "jobs?topic=scale.paused&state=ready", "jobs?state=scheduled",
	"jobs?state=dead", "jobs?lane=lane-7", "jobs?label=n%3A17", "jobs?label=n%3Anone", "jobs?label=n%3A17&state=dead",
	"jobs?label=n%3Anone&state=dead", "jobs?id_prefix=later-1",
	"jobs?id_prefix=none", "jobs?id=later-1", "jobs/later-1", "jobs/later-1/edit", "jobs/dead-1", "jobs/dead-1/copy",
	"dead", "dead?topic=scale.dead", "dead?topic=scale.dead&lane=lane-7", "dead?label=n%3A17", "dead?label=n%3Anone",
	"work", "work/WORK", "work/new?action=revive&topic=scale.dead", "work/new?action=revive",
	"work/new?action=cancel&topic=scale.later",
	"work/new?action=run&topic=scale.later&label=n%3Anone", "work/new?action=purge&topic=scale.dead&lane=lane-7",
	"schedules", "schedules/schedule-1", "schedules/new", "schedules/schedule-1/edit", "schedules/schedule-1/backfill",
	"settings", "settings/tokens", "settings/namespaces", "settings/in-force", "settings/checks", "try",
}

// TestConsoleScale_BoundsEveryPage requests pages of a store with many jobs: of 10, 8 wait for their time and 1 is
// dead. The others are in a paused topic, most of them due, in lanes that all have jobs that are not.
func TestConsoleScale_BoundsEveryPage(t *testing.T) {
	jobs := scaleJobs
	if text := os.Getenv("RINGBACK_CONSOLE_JOBS"); text != "" {
		var err error
		jobs, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	t.Run("SQLite", func(t *testing.T) { boundEveryPage(t, testOptions(t), jobs) })
	if jobs < lawfulJobs && !testkit.All {
		return // the pages have the same size on all stores, and few jobs say nothing about the time
	}
	t.Run("Redis", func(t *testing.T) {
		o := testOptions(t)
		o.Store = redistest.Start(t).URL()
		boundEveryPage(t, o, jobs)
	})
}

func boundEveryPage(t *testing.T, o Options, jobs int) {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	r := run(t, o)
	api, err := client.New("http://"+r.Addr(), client.Options{})
	require.NoError(t, err)
	defer api.Close()
	began := time.Now()
	work := fillConsole(t, api, jobs)
	t.Logf("%d jobs, registered in %.1f s", jobs, time.Since(began).Seconds())
	browser := &http.Client{Transport: new(http.Transport)}
	defer browser.CloseIdleConnections()
	var late []string
	for _, path := range scalePages {
		if path == "work/WORK" {
			path = "work/" + work
		}
		var times []time.Duration
		size, visits := 0, 1
		if jobs >= lawfulJobs {
			visits = 5
		}
		for range visits {
			began := time.Now()
			body := getPage(t, browser, "http://"+r.Addr()+"/console/"+path)
			times, size = append(times, time.Since(began)), max(size, len(body))
		}
		slices.Sort(times)
		name, err := url.PathUnescape(path)
		require.NoError(t, err)
		median, most := times[len(times)/2], times[len(times)-1]
		t.Logf("%-55s %6.1f ms, at most %6.1f ms, %6d B", name, median.Seconds()*1000, most.Seconds()*1000, size)
		require.LessOrEqual(t, size, maxPageBytes, path)
		if median > maxPageTime {
			late = append(late, name)
		}
	}
	if jobs >= lawfulJobs {
		require.Empty(t, late, "took longer than %s", maxPageTime)
	}
}

// goOn finds the link that goes on with a search.
var goOn = regexp.MustCompile(`href="([^"]*search=long[^"]*)" rel="next"`)

// TestConsoleScale_SearchesGoOnToTheEnd follows the links of a search that finds nothing.
func TestConsoleScale_SearchesGoOnToTheEnd(t *testing.T) {
	r := run(t, testOptions(t))
	api, err := client.New("http://"+r.Addr(), client.Options{})
	require.NoError(t, err)
	defer api.Close()
	browser := &http.Client{Transport: new(http.Transport)}
	defer browser.CloseIdleConnections()
	fillConsole(t, api, scaleJobs)
	for _, path := range []string{"jobs?label=n%3Anone", "dead?label=n%3Anone"} {
		at, err := url.Parse("http://" + r.Addr() + "/console/" + path)
		require.NoError(t, err)
		for pages := 0; ; pages++ {
			require.Less(t, pages, 20, "%s goes on for ever", path)
			link := goOn.FindStringSubmatch(getPage(t, browser, at.String()))
			if link == nil {
				break
			}
			at, err = at.Parse(html.UnescapeString(link[1]))
			require.NoError(t, err)
		}
	}
}

// getPage returns the HTML of a page.
func getPage(t *testing.T, browser *http.Client, address string) string {
	t.Helper()
	res, err := browser.Get(address)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", address, body)
	return string(body)
}

// fillConsole registers jobs, starts bulk work, and puts settings. It waits until all have ended that can, and returns
// the id of work.
func fillConsole(t *testing.T, api *client.Client, jobs int) (work string) {
	t.Helper()
	receiver := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }),
	)
	t.Cleanup(receiver.Close)
	policies := map[string]client.Policy{
		"scale.later": {}, "scale.paused": {}, "scale.dead": {Breaker: &client.Breaker{Failures: new(0)}, Workers: 64},
		"scale.failing": {Breaker: &client.Breaker{Failures: new(1), Open: time.Hour}, LaneConcurrency: 1},
	}
	for topic, p := range policies {
		p.URL = receiver.URL
		_, err := api.PutTopic(t.Context(), topic, p)
		require.NoError(t, err)
	}
	_, err := api.PauseTopic(t.Context(), "scale.paused", "for the test")
	require.NoError(t, err)
	each := func(yield func(client.Job) bool) {
		for n := range jobs {
			kind, n := n%10, n/10
			j := client.Job{
				ID: fmt.Sprintf("later-%d-%d", kind, n), Topic: "scale.later",
				Lane: fmt.Sprintf("lane-%d", n%scaleLanes), Delay: time.Hour + time.Duration(n)*time.Second,
				Labels: map[string]string{"n": strconv.Itoa(n % 100)}, Body: map[string]int{"n": n},
			}
			switch kind {
			case 0:
				j.ID, j.Topic, j.Delay, j.Retries = fmt.Sprintf("dead-%d", n), "scale.dead", 0, new(0)
			case 1:
				j.ID, j.Topic = fmt.Sprintf("paused-%d", n), "scale.paused"
				if n/scaleLanes%10 != 9 && n >= 1 {
					j.Delay = 0
				}
			case 2:
				j.ID = fmt.Sprintf("later-%d", n)
			case 3:
				if n/scaleLanes%10 == 0 {
					j.ID, j.Topic, j.Delay = fmt.Sprintf("failing-%d", n), "scale.failing", 0
				}
			}
			if !yield(j) {
				return
			}
		}
	}
	for result, err := range api.RegisterAll(t.Context(), each) {
		require.NoError(t, err)
		require.NoError(t, result.Err)
	}
	for range min(jobs/100, 1000) {
		w, err := api.StartWork(t.Context(), client.WorkOrder{
			Action: client.ActionRevive,
			Where:  client.Where{Topic: "scale.later", State: []client.State{client.Dead}},
		})
		require.NoError(t, err)
		work = w.ID
	}
	for n := range 50 {
		_, err := api.PutSchedule(t.Context(), fmt.Sprintf("schedule-%d", n), client.ScheduleRequest{
			Cron: "0 0 1 1 *", Timezone: "Europe/Berlin",
			Job: &client.ScheduleJob{Topic: "scale.later", URL: receiver.URL},
		})
		require.NoError(t, err)
		_, err = api.PutTopic(t.Context(), fmt.Sprintf("topic-%d", n), client.Policy{URL: receiver.URL})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		stats, err := api.Stats(t.Context())
		return err == nil && stats.Totals.Dead == int64((jobs+9)/10) && stats.Totals.Running == 0
	}, 5*time.Minute, 20*time.Millisecond)
	_, err = api.WaitWork(t.Context(), work, nil)
	require.NoError(t, err)
	return work
}
