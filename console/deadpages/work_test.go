package deadpages_test

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/consoletest"
)

// startWork sends the form that starts bulk work, as if the jobs were counted at this moment.
func startWork(site *consoletest.Site, fields ...string) *consoletest.Response {
	return site.Post("work", append(fields, "counted_at", time.Now().Format(time.RFC3339Nano))...)
}

func TestWork_SaysThatNoneIsRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		require.Contains(t, consoletest.Text(site.Golden("work-none", "work")), "No work is running.")
		page := consoletest.Text(site.Golden("order-empty", "work/new"))
		require.Contains(t, page, "Choose what to do with which jobs.")
		page = consoletest.Text(site.Get("work/new?state=dead&topic=pay").OK())
		require.Contains(t, page, "Selected: dead jobs of topic pay Revive… Delete… Select")
		require.Contains(t, consoletest.Text(site.Get("work/new?state=scheduled").OK()),
			"Selected: all scheduled jobs Cancel… Run… Edit… Select")
	})
}

// The way of somebody on call: from the dead letters to jobs that are delivered.
func TestWork_RevivesAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		die(site, "pay", "https://down.example/", "pay", 8)
		die(site, "mail", "https://status-410.example/", "gone", 2)
		site.SignIn(site.Token("mia", "operate"))

		page := site.Get("dead").OK()
		_, link, _ := strings.Cut(page, `href="./work/new?action=revive&amp;lane=down`)
		link, _, _ = strings.Cut(link, `"`)
		link = "work/new?action=revive&lane=down" + strings.ReplaceAll(link, "&amp;", "&")
		page = site.Golden("order-revive", link)
		text := consoletest.Text(page)
		require.Contains(t, text, "Exactly 8 jobs match. Nothing is changed yet.")
		require.Contains(t, text,
			"Selected: dead jobs of topic pay, in lane down.example:443, last answered 503, dead because all retries "+
				"are used up ")
		require.Contains(t, text, "Revive 8 jobs")
		require.NotContains(t, text, "I mean ALL")

		started := startWork(site, "action", "revive", "lane", "down.example:443", "status",
			"503", "reason", "exhausted", "rate", "2/s", "url", "https://fine.example/", "headers", "X-A: b")
		page = site.Follow(started).OK()
		require.Contains(t, consoletest.Text(page), "Begun by mia.")
		site.Advance(5 * time.Second)
		work, _, _ := strings.Cut(strings.TrimPrefix(started.Header().Get("Location"), "./"), "?")
		page = site.Golden("work-done", work)
		text = consoletest.Text(page)
		require.Contains(t, text, "8 of 8 jobs were revived.")
		require.Contains(t, text, "Begun by mia.")
		require.NotContains(t, text, "Stop")
		require.Contains(t, page, `href="../jobs?lane=down.example%3A443"`)

		page = consoletest.Text(site.Golden("work", "work"))
		require.Contains(t, page, "Revive dead jobs in lane down.example:443")
		job, err := site.API.Get(t.Context(), "pay-01")
		require.NoError(t, err)
		require.Equal(t, client.Delivered, job.State)
		require.Contains(t, consoletest.Text(site.Get("dead").OK()), "2 jobs are dead")
	})
}

func TestWork_ShowsProgressAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		die(site, "mail", "https://status-410.example/", "gone", 60)
		site.SignIn(site.Token("mia", "operate"))
		started := startWork(site, "action", "revive", "topic", "mail", "rate", "1/s")
		work := strings.TrimPrefix(started.Header().Get("Location"), "./")
		site.Advance(15 * time.Second)
		text := consoletest.Text(site.Golden("work-running", work))
		require.Contains(t, text, "Reviving 60 jobs at 1/s:")
		require.Contains(t, text, "left. Begun by mia.")
		list := consoletest.Text(site.Get("work").OK())
		require.Contains(t, list, "1 work is running: reviving 60 jobs at 1/s: 20 done; about 45s left.")

		page := site.Follow(site.Post(work + "/stop")).OK()
		require.Contains(t, consoletest.Text(page), "The work is stopped. 20 revived.", "no step was in progress")
		site.Advance(30 * time.Second)
		text = consoletest.Text(site.Get(work).OK())
		require.Contains(t, text, "Stopped after")
		require.NotContains(t, text, "Ends about")
		require.Contains(t, text, "were revived. Begun by mia.")
		require.Contains(t, consoletest.Text(site.Get("work").OK()), "No work is running.")
		page = site.Follow(site.Post(work + "/stop")).OK()
		require.Contains(t, consoletest.Text(page), "Stopped after")
		require.Contains(t, consoletest.Text(page), "The work is stopped. 20 revived.")
	})
}

func TestWork_HasPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		site.Register(client.Job{Topic: "none", URL: "https://status-410.example/", Retries: new(0)})
		site.Advance(time.Second)
		_, err := site.API.StartWork(t.Context(),
			client.WorkOrder{Action: client.ActionRevive, Where: client.Where{Topic: "none"}, Rate: "1/1h"})
		require.NoError(t, err)
		for range 60 {
			_, err := site.API.StartWork(t.Context(),
				client.WorkOrder{Action: client.ActionPurge, Where: client.Where{Topic: "other"}})
			require.NoError(t, err)
		}
		site.Advance(10 * time.Minute)
		page := site.Get("work").OK()
		require.Contains(t, consoletest.Text(page), "1 work is running")
		_, next, _ := strings.Cut(page, `rel="next" href="./`)
		next, _, _ = strings.Cut(next, `"`)
		require.Contains(t, consoletest.Text(site.Get(html.UnescapeString(next)).OK()), "Older work, the newest first.")
	})
}

func TestWork_ListsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		site.Register(client.Job{
			ID: "secret", URL: "https://status-410.example/",
			Headers: client.Headers{"Authorization": {"Bearer x"}},
		})
		site.Advance(time.Second)
		started := startWork(site, "action", "revive", "topic", "default", "url", "https://fine.example/")
		site.Advance(5 * time.Second)
		page := consoletest.Text(site.Follow(started).OK())
		require.Contains(t, page, "0 of 1 job was revived, 1 failed.")
		require.Contains(t, page, "Jobs that were not changed")
		require.Contains(t, page, "secret")
	})
}

func TestOrder_OfAllNeedsATickedBox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "mail", "https://status-410.example/", "gone", 3)
		for _, kind := range []string{"", "all", "registered"} {
			page := site.Get("work/new?action=purge&kind=" + kind).OK()
			require.Contains(t, consoletest.Text(page), "Exactly 3 jobs match.")
			require.Contains(t, consoletest.Text(page), "I mean ALL dead jobs")
			require.Contains(t, consoletest.Text(page), "of the namespace default")
			page = startWork(site, "action", "purge", "kind", kind).Is(http.StatusUnprocessableEntity)
			require.Contains(t, consoletest.Text(page), "must be ticked")
		}
		stats, err := site.API.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, stats.Totals.Dead)
		for _, kind := range []string{"all", ""} {
			started := startWork(site, "action", "purge", "all", "yes", "kind", kind)
			site.Advance(5 * time.Second)
			require.Contains(t, consoletest.Text(site.Follow(started).OK()), "Delete dead jobs", kind)
		}
		require.Contains(t, consoletest.Text(site.Get("dead").OK()), "No job is dead.")
	})
}

// hidden returns the hidden fields of the form that starts the work.
func hidden(page string) []string {
	var fields []string
	_, form, _ := strings.Cut(page, `<form class="stack"`)
	for _, input := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" `+
		`value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		fields = append(fields, input[1], html.UnescapeString(input[2]))
	}
	return fields
}

// What the reader has confirmed is the number that was counted.
func TestOrder_LeavesOutJobsThatComeAfterTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "pay", "https://status-410.example/", "old", 6)
		site.Register(client.Job{
			ID: "long", Topic: "pay", URL: "https://down.example/",
			Ladder: []time.Duration{time.Minute}, Retries: new(1),
		})
		wait := func(prefix string, n int) {
			for i := range n {
				site.Register(client.Job{
					ID: fmt.Sprintf("%s-%d", prefix, i), Topic: "later",
					URL: "https://fine.example/", Delay: time.Hour,
				})
			}
			site.Advance(time.Second)
		}
		wait("old", 5)
		orders := map[string]string{
			"action=purge&topic=pay&status=410": "6 of 6 jobs were deleted.",
			"action=purge&topic=pay&status=503": "No job matches",
			"action=cancel&topic=later":         "5 of 5 jobs were cancelled.",
		}
		pages := make(map[string]string)
		for query := range orders {
			pages[query] = site.Get("work/new?" + query).OK()
		}
		require.Contains(t, consoletest.Text(pages["action=purge&topic=pay&status=410"]), "Exactly 6 jobs match.")
		all := site.Get("work/new?action=revive").OK()
		die(site, "pay", "https://status-410.example/", "new", 4)
		wait("new", 3)
		site.Advance(2 * time.Minute) // the other job is dead, too
		for query, want := range orders {
			if strings.HasPrefix(want, "No job") {
				require.Contains(t, consoletest.Text(pages[query]), want)
				continue
			}
			started := site.Post("work", hidden(pages[query])...)
			site.Advance(5 * time.Second)
			require.Contains(t, consoletest.Text(site.Follow(started).OK()), want)
		}
		require.Contains(t, consoletest.Text(site.Get("dead").OK()), "5 jobs are dead; 4 of them")
		started := site.Post("work", append(hidden(all), "all", "yes")...)
		site.Advance(5 * time.Second)
		require.Contains(t, consoletest.Text(site.Follow(started).OK()), "No job matched.")

		require.Contains(t,
			consoletest.Text(site.Get("work/new?action=purge&ended_before=90s").OK()), "Exactly 4 jobs match.")
		started = site.Post("work", hidden(site.Get("work/new?action=purge&ended_before=90s").OK())...)
		site.Advance(5 * time.Second)
		require.Contains(t, consoletest.Text(site.Follow(started).OK()), "4 of 4 jobs were deleted.",
			"an earlier bound stays")
	})
}

// Dead jobs are revived because nobody got them. Others were delivered, or somebody did not want them to be.
func TestOrder_AsksBeforeItRevivesOthersThanDeadJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "pay", "https://status-410.example/", "dead", 1)
		site.Register(client.Job{ID: "delivered", Topic: "pay", URL: "https://fine.example/"})
		site.Register(client.Job{ID: "cancelled", Topic: "pay", URL: "https://fine.example/", Delay: time.Hour})
		_, err := site.API.Cancel(t.Context(), "cancelled")
		require.NoError(t, err)
		site.Advance(time.Second)
		for states, want := range map[string]string{
			"":               "",
			"dead":           "",
			"delivered":      "Revive 1 job? Delivered jobs reach their receivers again.",
			"dead,cancelled": "Revive 2 jobs? Cancelled jobs are sent after all.",
			"dead,delivered,cancelled": "Revive 3 jobs? Delivered jobs reach their receivers again, and cancelled " +
				"ones are sent after all.",
		} {
			page := site.Get("work/new?action=revive&topic=pay&state=" + states).OK()
			if want == "" {
				require.NotContains(t, page, "data-confirm", states)
				continue
			}
			_, sentence, _ := strings.Cut(want, "? ")
			require.Contains(t, page, "<li>"+sentence+"</li>", "it is readable without JavaScript")
			require.Contains(t, page, `data-confirm="`+want+`"`, states)
			require.Contains(t, page, `class="lead sentence warn"`, states)
			require.Contains(t, consoletest.Text(page), "Jobs that end after this count are not touched.")
		}
	})
}

// The reader sends a form again when the answer is lost or late.
func TestOrder_StartsWorkOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		die(site, "pay", "https://status-410.example/", "pay", 30)
		site.SignIn(site.Token("mia", "operate", "pay"))
		form := append(
			hidden(site.Get("work/new?action=revive&topic=pay&label=customer:pay&state=dead,delivered&ended_after=1h").
				OK()), "rate", "1/s",
		)
		first := site.Post("work", form...)
		first.Is(http.StatusSeeOther)
		site.Advance(5 * time.Second)
		again := site.Post("work", form...)
		require.Contains(t, consoletest.Text(site.Follow(again).OK()),
			"Nothing was started: this work was begun before")
		require.Equal(t, first.Header().Get("Location"), again.Header().Get("Location"))
		works, err := site.API.WorkPage(t.Context(), client.PageOptions{})
		require.NoError(t, err)
		require.Len(t, works.Items, 1)

		site.Advance(time.Second)
		other := append(
			hidden(site.Get("work/new?action=revive&topic=pay&label=customer:pay&state=dead,delivered&ended_after=1h").
				OK()), "rate", "1/s",
		)
		require.NotEqual(t, first.Header().Get("Location"), site.Post("work", other...).Header().Get("Location"),
			"another count is another work")
		site.Advance(10 * time.Minute)
		require.Contains(t, consoletest.Text(site.Follow(site.Post("work", form...)).OK()), "Begun by mia.")
		site.Advance(10 * time.Second)
		require.Contains(t, consoletest.Text(site.Get("work").OK()), "0 of 0 jobs",
			"what was revived ended later than the count")
	})
}

// A form that does not say when its jobs were counted would change others.
func TestOrder_NeedsTheTimeOfTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for _, counted := range []string{"", "now"} {
			die(site, "pay", "https://status-410.example/", "pay"+counted, 2)
			page := site.Post("work", "action", "purge", "topic", "pay", "counted_at",
				counted).Is(http.StatusUnprocessableEntity)
			require.Contains(t, consoletest.Text(page), "The form does not say when the jobs were counted")
			started := site.Post("work", hidden(page)...)
			started.Is(http.StatusSeeOther)
		}
	})
}

func TestOrder_ChangesUnfinishedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		var jobs []client.Job
		for _, id := range []string{"a", "b", "c"} {
			jobs = append(jobs, client.Job{
				ID: id, Topic: "pay", URL: "https://fine.example/", Delay: time.Hour,
				Labels: map[string]string{"id": id},
			})
		}
		site.Register(jobs...)
		site.Advance(time.Second)
		page := consoletest.Text(site.Golden("order-edit", "work/new?action=edit&topic=pay&state=scheduled"))
		require.Contains(t, page, "Selected: scheduled jobs of topic pay ")
		page = consoletest.Text(startWork(site, "action", "edit", "topic", "pay").Is(http.StatusUnprocessableEntity))
		require.Contains(t, page, "Fill in at least one field")
		page = startWork(site, "action", "edit", "topic", "pay", "retries", "many", "url",
			"https://other.example/").Is(http.StatusUnprocessableEntity)
		require.Contains(t, page, `value="https://other.example/"`)
		require.Contains(t, page, `value="many"`)
		require.NotContains(t, page, "url=https", "links have no fields of the form, which may be secret")

		for _, c := range []struct {
			form []string
			want string
		}{
			{[]string{"action", "edit", "topic", "pay", "retries", "4", "labels", "team=shop"}, "3 of 3 jobs were " +
				"edited."},
			{[]string{"action", "run", "id_prefix", "a", "rate", ""}, "1 of 1 job was made due."},
			{[]string{"action", "cancel", "topic", "pay", "label", "team:shop", "state", "scheduled"}, "2 of 2 jobs " +
				"were cancelled."},
		} {
			started := startWork(site, c.form...)
			started.Is(http.StatusSeeOther)
			site.Advance(5 * time.Second)
			require.Contains(t, consoletest.Text(site.Follow(started).OK()), c.want)
		}
		job, err := site.API.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, client.Delivered, job.State)
		require.Equal(t, 4, *job.Retries)
		require.Contains(t, consoletest.Text(site.Get("work/new?action=cancel&topic=pay").OK()),
			"No job matches: there is nothing to cancel.")
	})
}

func TestOrder_SaysWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "mail", "https://status-410.example/", "gone", 1)
		for query, want := range map[string]string{
			"action=revive&topic=a+b":                      "must name a topic",
			"action=run&topic=mail&state=dead":             "must be one or several of",
			"action=cancel&topic=mail&ended_after=1h":      "requires a state",
			"action=revive&topic=mail&status=x":            "must be a status",
			"action=purge&topic=_work":                     "must be a topic whose jobs are sent",
			"action=revive&topic=mail&created_before=1y&x": "must be a time",
		} {
			require.Contains(t,
				consoletest.Text(site.Get("work/new?"+query).Is(http.StatusUnprocessableEntity)), want, query)
		}
		require.Contains(t, consoletest.Text(startWork(site, "action", "revive", "topic", "mail", "rate", "", "delay",
			"1m").Is(http.StatusUnprocessableEntity)),
			"requires rate or lane_rate")
		page := startWork(site, "action", "revive", "topic", "mail", "rate", "fast", "lane_rate", "1/s", "headers",
			"X", "expires_in", "1h").
			Is(http.StatusUnprocessableEntity)
		require.Contains(t, consoletest.Text(page), "line 1 must be a name and a value")
		page = startWork(site, "action", "revive", "topic", "mail", "rate", "fast", "expires_in", "1h", "url",
			"ftp://x").Is(http.StatusUnprocessableEntity)
		require.Contains(t, page, `id="e-rate"`)
		require.Contains(t, page, `value="fast"`)
		require.Contains(t, page, `value="1h"`)
		page = startWork(site, "action", "edit", "topic", "mail", "retries", "many").Is(http.StatusUnprocessableEntity)
		require.Contains(t, consoletest.Text(page), "retries: must be a whole number")
		require.NotContains(t, page, `href="#f-retries"`, "no job matches, so there is no form with the field")
		require.Contains(t, consoletest.Text(startWork(site, "action", "melt", "topic",
			"mail").Is(http.StatusUnprocessableEntity)), "must be revive")
		require.Contains(t, consoletest.Text(site.Get("work/missing").Is(http.StatusNotFound)), "no such work")
		site.Post("work/missing/stop").Is(http.StatusNotFound)
	})
}

func TestWork_ForRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		die(site, "mail", "https://status-410.example/", "gone", 1)
		work, err := site.API.StartWork(t.Context(),
			client.WorkOrder{Action: client.ActionRevive, Where: client.Where{Topic: "mail"}, Rate: "1/1h"})
		require.NoError(t, err)
		for role, reads := range map[string]int{"read": http.StatusOK, "publish": http.StatusForbidden} {
			site.SignIn(site.Token(role, role))
			site.Get("work").Is(reads)
			page := site.Get("work/" + work.ID).Is(reads)
			require.NotContains(t, page, "/stop")
			site.Get("work/new?action=revive&topic=mail").Is(http.StatusForbidden)
			startWork(site, "action", "revive", "topic", "mail").Is(http.StatusForbidden)
			site.Post("work/" + work.ID + "/stop").Is(http.StatusForbidden)
		}
		site.SignIn(site.Token("other", "operate", "pay.*"))
		site.Get("work/" + work.ID).Is(http.StatusNotFound)
		require.Contains(t,
			consoletest.Text(site.Get("work/new?action=revive").Is(http.StatusForbidden)), "a topic is required")
		site.Get("work/new?action=revive&topic=mail").Is(http.StatusForbidden)
		startWork(site, "action", "revive", "topic", "mail").Is(http.StatusForbidden)
		startWork(site, "action", "purge", "all", "yes").Is(http.StatusForbidden)
		site.SignIn(site.Token("admin", "admin"))
		site.Get("work/new?action=revive&topic=mail").OK()
	})
}

// A token that may not read bodies may not send them elsewhere.
func TestOrder_OfATokenWithoutBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		die(site, "mail", "https://status-410.example/", "gone", 1)
		blind, err := site.API.CreateToken(t.Context(),
			client.TokenRequest{Name: "blind", Role: "operate", Bodies: new(false)})
		require.NoError(t, err)
		site.SignIn(blind.Token)
		form := []string{"action", "revive", "topic", "mail", "url", "https://fine.example/"}
		page := startWork(site, form...).Is(http.StatusForbidden)
		require.Contains(t, consoletest.Text(page), "cannot send those of jobs to another URL")
		require.Contains(t, page, `value="https://fine.example/"`, "what was typed stays")
		startWork(site, form[:4]...).Is(http.StatusSeeOther)
	})
}

func TestWork_UpdatesWhileItIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "mail", "https://status-410.example/", "gone", 60)
		work := strings.TrimPrefix(startWork(site, "action", "revive", "topic", "mail", "rate",
			"2/s").Header().Get("Location"), "./")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		stream := site.Stream(ctx, work+"?live=1")
		defer func() { _ = stream.Body.Close() }()
		var seen []string
		lines := bufio.NewScanner(stream.Body)
		for lines.Scan() {
			if _, lead, ok := strings.Cut(lines.Text(), `class="lead`); ok {
				seen = append(seen, lead)
				if strings.Contains(lead, "60 of 60 jobs were revived.") {
					break
				}
			}
		}
		require.Greater(t, len(seen), 3)
		require.Contains(t, seen[1], "Reviving 60 jobs at 2/s:")
	})
}

func TestWork_EscapesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "pay", "https://status-410.example/", "pay", 1)
		for _, hostile := range []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`} {
			harmless := func(page string) {
				t.Helper()
				require.NotContains(t, page, "<script>alert")
				require.NotContains(t, page, "<img")
			}
			for _, name := range []string{
				"action", "topic", "lane", "reason", "state", "status", "kind", "label",
				"id_prefix", "ended_after", "created_before", "more", "cursor",
			} {
				harmless(site.Get("work/new?action=revive&" + url.Values{name: {hostile}}.Encode()).Body.String())
				harmless(site.Get("work?" + url.Values{name: {hostile}}.Encode()).Body.String())
			}
			for _, name := range []string{
				"action", "topic", "rate", "lane_rate", "url", "headers", "expires_in",
				"retries", "ladder", "labels", "all",
			} {
				harmless(startWork(site, "action", "edit", "id_prefix", "pay", name, hostile).Body.String())
				harmless(startWork(site, "action", "revive", "id_prefix", "pay", name, hostile).Body.String())
			}
			started := startWork(site, "action", "revive", "label", "customer:"+hostile, "headers", "X-A: "+hostile,
				"url", "https://fine.example/?"+url.QueryEscape(hostile))
			harmless(site.Follow(started).OK())
			harmless(site.Get("work").OK())
		}
	})
}

// A filter that is misspelt or given twice must not select more than the reader means.
func TestOrder_RefusesWhatItCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "pay", "https://down.example/", "down", 3)
		die(site, "pay", "https://status-410.example/", "gone", 2)
		for _, query := range []string{
			"topic=pay&stauts=410", "topic=pay&reason=&reason=gave_up", "topic=pay&status=4xx",
		} {
			for _, action := range []string{"", "&action=purge", "&action=melt"} {
				page := site.Get("work/new?" + query + action).Is(http.StatusUnprocessableEntity)
				text := consoletest.Text(page)
				require.Contains(t, text, "These jobs cannot be counted.", query+action)
				require.NotContains(t, text, "Selected:", query+action)
				require.NotContains(t, page, "work/new?", query+action)
				require.NotContains(t, page, `method="post" action="../work"`, query+action)
			}
		}
		require.Contains(t, consoletest.Text(site.Get("work/new?topic=pay&stauts=410").
			Is(http.StatusUnprocessableEntity)), "stauts: is not a filter")
		for _, wrong := range [][]string{{"stauts", "410"}, {"reason", "", "reason", "gave_up"}, {"retries", "3"}} {
			page := startWork(site,
				append([]string{"action", "purge", "topic", "pay"}, wrong...)...).Is(http.StatusUnprocessableEntity)
			require.NotContains(t, consoletest.Text(page), "Delete 5 jobs")
		}
		site.Advance(5 * time.Second)
		stats, err := site.API.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 5, stats.Totals.Dead)
		require.Contains(t,
			consoletest.Text(site.Get("work/new?topic=pay&status=410&action=purge").OK()), "Exactly 2 jobs match.")
	})
}
