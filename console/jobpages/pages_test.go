package jobpages_test

import (
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
	"github.com/ringback/ringback/console/jobpages"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/web"
)

func newSite(t *testing.T, tokens bool) *consoletest.Site {
	t.Helper()
	return consoletest.New(t, consoletest.Options{
		Pages: []web.Pages{jobpages.New(new(recent.Answers))}, Tokens: tokens,
	})
}

// few registers a job in each state.
func few(t *testing.T, site *consoletest.Site) {
	t.Helper()
	site.Register(
		client.Job{ID: "delivered-1", Topic: "order.close", URL: "https://fine.example/a"},
		client.Job{
			ID: "dead-1", Topic: "order.close", URL: "https://down.example/", Retries: new(0),
			Labels: map[string]string{"order": "4711"},
		},
		client.Job{
			ID: "retry-1", Topic: "order.close", URL: "https://status-500.example/",
			Ladder: []time.Duration{time.Minute},
		},
		client.Job{ID: "later-1", Topic: "mail", URL: "https://fine.example/", Delay: time.Hour},
		client.Job{ID: "cancelled-1", Topic: "mail", URL: "https://fine.example/", Delay: time.Hour},
		client.Job{ID: "running-1", Topic: "mail", URL: "https://slow.example/"},
	)
	_, err := site.API.Cancel(t.Context(), "cancelled-1")
	require.NoError(t, err)
	site.Advance(10 * time.Second)
}

func TestList_ShowsJobsOfEachState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		few(t, site)
		text := consoletest.Text(site.Golden("list", "jobs"))
		require.Contains(t, text, "2 jobs wait and 1 runs; 1 job was delivered and 1 died so far.")
		for _, want := range []string{
			"due in 59m50s", "next attempt in 54s; answered 500", "attempt 1 runs",
			"all retries are used up; answered 503; 9s ago", "answered 200; 9s ago",
		} {
			require.Contains(t, text, want)
		}
		text = consoletest.Text(site.Get("jobs?topic=mail").OK())
		require.Contains(t, text, "1 job waits and 1 runs in topic mail.")
		require.NotContains(t, text, "dead-1")
	})
}

func TestList_CountsWhatItLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		lead := func(query string) string {
			t.Helper()
			return consoletest.Text(regexp.MustCompile(`<p class="lead[^>]*>.*?</p>`).FindString(site.Get("jobs" +
				query).OK()))
		}
		site.Register(
			client.Job{
				ID: "done", URL: "https://fine.example/",
				OnDelivered: &client.Callback{URL: "https://status-500.example/"},
			},
			client.Job{ID: "dead", URL: "https://down.example/", Retries: new(0)},
			client.Job{ID: "later", URL: "https://fine.example/", Delay: time.Hour},
		)
		site.Advance(2 * time.Second)
		callbacks, err := site.API.JobPage(t.Context(), client.Query{Topic: "_callbacks"})
		require.NoError(t, err)
		require.Len(t, callbacks.Items, 1)
		require.False(t, callbacks.Items[0].State.Ended(), "the callback waits, too")

		require.Equal(t, "1 job waits; 1 job was delivered and 1 died so far.", lead(""))
		require.Equal(t, "1 job matches: scheduled or ready jobs.", lead("?state=scheduled,ready"))
		require.Equal(t, "1 job waits in topic _callbacks.", lead("?topic=_callbacks"))
		require.Equal(t, "1 job matches: dead jobs.", lead("?state=dead"))
		_, err = site.API.StartWork(t.Context(), client.WorkOrder{
			Action: client.ActionPurge,
			Where:  client.Where{State: []client.State{client.Dead}, All: true},
		})
		require.NoError(t, err)
		site.Advance(5 * time.Second)
		require.Equal(t, "1 job waits; 1 job was delivered and 1 died so far.", lead(""))
		require.Equal(t, "No job matches: dead jobs.", lead("?state=dead"))
		require.Equal(t, "No job matches: ready or dead jobs.", lead("?state=ready,dead"))
	})
}

func TestList_OfNothingSaysWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		text := consoletest.Text(site.Golden("list-empty", "jobs"))
		require.Contains(t, text, "There are no jobs.")
		require.Contains(t, text, "Send a test job")
	})
}

func TestList_FiltersByTheURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		few(t, site)
		page := site.Golden("list-filtered",
			"jobs?topic=order.close&state=dead&label=order%3D4711&status=503&created_after=1h&order=oldest")
		text := consoletest.Text(page)
		require.Contains(t, text, "1 job matches: dead jobs of topic order.close, with the label order=4711, last "+
			"answered 503, registered from")
		require.Contains(t, text, "dead-1")
		require.Contains(t, page, `name="label" value="order=4711"`)
		for query, want := range map[string][]string{
			"state=dead,delivered": {"2 jobs match: dead or delivered " +
				"jobs.", "dead-1", "delivered-1"},
			"state=scheduled&topic=mail": {"1 job matches: scheduled jobs of topic mail.", "later-1"},
			"state=ready":                {"No job matches: ready jobs."},
			"lane=fine.example:443": {"3 jobs match: jobs in lane " +
				"fine.example:443.", "later-1", "cancelled-1", "delivered-1"},
			"reason=exhausted": {
				"1 job matches: jobs dead because all retries are used up.", "dead-1",
			},
			"id_prefix=retry": {"1 job matches: jobs whose id begins with retry.", "retry-1"},
			"ended_before=1h": {"No job matches: jobs ended before"},
			"kind=callback":   {"No job matches: jobs of the kind callback."},
			"label=order:1&label=a=b": {"No job matches: jobs with the label order=1, with the " +
				"label a=b.", "Without label a=b"},
			"topic=nothing": {"No job matches: jobs of topic nothing."},
			"due_after=2000-01-01+00:00&state=running": {"1 job matches", "running-1"},
			"created_after=2000-01-01T00:00:00%2B01:00&topic=mail": {"3 jobs match: jobs of topic mail, registered " +
				"from 1999-12-31 23:00:00 on."},
		} {
			text := consoletest.Text(site.Get("jobs?" + query).OK())
			for _, part := range want {
				require.Contains(t, text, part, query)
			}
			if len(want) > 1 && strings.HasSuffix(want[1], "-1") {
				for _, id := range []string{"dead-1", "delivered-1", "retry-1", "later-1", "cancelled-1", "running-1"} {
					require.Equal(t, strings.Contains(strings.Join(want, " "), id),
						strings.Contains(text, id), "%s %s", query, id)
				}
			}
		}
	})
}

func TestList_SaysWhichFilterIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		few(t, site)
		for query, want := range map[string]string{
			"status=5": "status: must be a status", "label=x": "label: is not of the form name=value",
			"created_after=soon": "created_after: must be a time", "topic=a+b": "topic: must",
			"state=lost": "state: must be scheduled", "kind=x": "kind: must", "reason=x": "reason: must",
			"cursor=x": "cursor", "order=x": "order: must be newest or oldest",
		} {
			page := site.Get("jobs?" + query).Is(http.StatusUnprocessableEntity)
			require.Contains(t, consoletest.Text(page), want, query)
			require.Contains(t, page, "Nothing was searched", query)
			require.NotContains(t, page, "dead-1", query)
		}
	})
}

// links returns the links of a page whose text contains another.
func links(page, text string) (to []string) {
	for _, m := range regexp.MustCompile(`(?s)<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>`).FindAllStringSubmatch(page, -1) {
		if strings.Contains(consoletest.Text(m[2]), text) {
			to = append(to, html.UnescapeString(m[1]))
		}
	}
	return to
}

func TestList_HasPagesOf50(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for i := range 120 {
			site.Register(client.Job{
				ID: fmt.Sprintf("job-%03d", i), Lane: "a", URL: "https://fine.example/",
				Delay: time.Hour + time.Duration(i)*time.Second,
			})
		}
		seen := make(map[string]bool)
		path := "jobs?lane=a&created_after=1h&order=oldest"
		for n := 0; path != ""; n++ {
			require.Less(t, n, 4)
			page := site.Get(path).OK()
			ids := regexp.MustCompile(`<tr><td><a class="nobreak" href="[^"]*">(job-\d+)<`).FindAllStringSubmatch(page,
				-1)
			require.LessOrEqual(t, len(ids), 50)
			for _, id := range ids {
				require.False(t, seen[id[1]])
				seen[id[1]] = true
			}
			if n == 0 {
				require.Contains(t, page, "More than 50 jobs match: jobs in lane a")
			}
			site.Advance(time.Second) // the range of times stays as it was on the first page
			path = ""
			if next := links(page, "Next page"); len(next) > 0 {
				path = strings.TrimPrefix(next[0], "./")
			}
		}
		require.Len(t, seen, 120)
	})
}

func TestList_OpensTheJobOfAnID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		few(t, site)
		require.Equal(t, "./jobs/dead-1", site.Get("jobs?id=+dead-1+").Header().Get("Location"))
		for _, id := range []string{
			"nothing", "dead", "a/b", "..", "<script>alert(1)</script>", strings.Repeat("x", 300),
		} {
			page := site.Get("jobs?id=" + url.QueryEscape(id)).Is(http.StatusNotFound)
			require.Contains(t, page, "There is no job", id)
			require.NotContains(t, page, "<script>alert")
		}
		page := site.Get("jobs?id=dead").Is(http.StatusNotFound)
		to := links(page, "ids that begin")
		require.Len(t, to, 1)
		require.Contains(t, site.Get(strings.TrimPrefix(to[0], "./")).OK(), "dead-1")
	})
}

func TestList_LeadsToWorkOnAllThatMatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		few(t, site)
		site.SignIn(site.Token("mia", "operate"))
		page := site.Get("jobs?state=dead&topic=order.close&order=oldest").OK()
		require.Equal(t, []string{"./work/new?state=dead&topic=order.close"}, links(page, "Act on all"))
		require.Equal(t, []string{"./dead?topic=order.close"}, links(page, "Group these"))
		require.Empty(t, links(site.Get("jobs").OK(), "Act on all"))
		site.SignIn(site.Token("otto", "read"))
		require.Empty(t, links(site.Get("jobs?state=dead").OK(), "Act on all"))
	})
}

func TestList_IsABoxForAnIDWithAPublishToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		few(t, site)
		site.SignIn(site.Token("shop", "publish"))
		page := site.Golden("list-publish", "jobs")
		require.Contains(t, page, "Your token reads single jobs")
		require.NotContains(t, page, "dead-1")
		require.NotContains(t, page, "Filters")
		site.Get("jobs?id=dead-1").Is(http.StatusSeeOther)
	})
}

func TestList_WithATokenOfSomeTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		few(t, site)
		site.SignIn(site.Token("mia", "operate", "mail", "order.*"))
		page := site.Get("jobs").OK()
		require.Contains(t, consoletest.Text(page), "Choose a topic: your token is restricted to mail and order.*.")
		require.Equal(t, []string{"./jobs?topic=mail"}, links(page, "Jobs of topic"))
		require.Contains(t, site.Get("jobs?topic=order.close").OK(), "dead-1")
		site.Get("jobs?topic=other").Is(http.StatusForbidden)
	})
}

func TestList_RefusesUnknownParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		few(t, site)
		site.SignIn(site.Token("ops", "operate"))
		for query, want := range map[string]string{
			"topic=order.close&stauts=503":           "stauts: is not a filter: correct its name or remove it",
			"topic=order.close&kind=&kind=all":       "kind: is given twice: remove one",
			"topic=order.close&order=&order=oldest":  "order: is given twice: remove one",
			"state=dead&topic=order.close&__proto=1": "__proto: is not a filter",
		} {
			page := site.Get("jobs?" + query).Is(http.StatusUnprocessableEntity)
			require.Contains(t, consoletest.Text(page), want)
			require.NotContains(t, page, "dead-1", query)
			require.NotContains(t, page, "work/new", query)
			require.NotContains(t, page, "jobs?topic", query)
		}
		site.Get("jobs?id=&topic=order.close&state=&label=&order=&cursor=").OK()
		site.SignIn(site.Token("mia", "operate", "mail", "order.*"))
		page := site.Get("jobs?stauts=503").Is(http.StatusUnprocessableEntity)
		require.Contains(t, consoletest.Text(page), "stauts: is not a filter")
		require.Empty(t, links(page, "Jobs of topic"))
	})
}

func TestList_EscapesFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for _, value := range []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`} {
			for _, name := range []string{
				"id", "topic", "state", "lane", "label", "reason", "status", "kind",
				"id_prefix", "created_after", "order", "cursor",
			} {
				for _, query := range []url.Values{{name: {value}}, {name: {value, "a=" + value}}, {value: {value}}} {
					page := site.Get("jobs?" + query.Encode()).Body.String()
					require.NotContains(t, page, "<script>alert", name)
					require.NotContains(t, page, "<img", name)
				}
			}
		}
	})
}
