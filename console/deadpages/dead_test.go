package deadpages_test

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
	"github.com/ringback/ringback/console/deadpages"
	"github.com/ringback/ringback/console/web"
)

func newSite(t *testing.T, tokens bool) *consoletest.Site {
	t.Helper()
	return consoletest.New(t, consoletest.Options{Pages: []web.Pages{deadpages.New()}, Tokens: tokens})
}

// die registers n jobs at a URL that answers with an error, without retries.
func die(site *consoletest.Site, topic, url, prefix string, n int) {
	var jobs []client.Job
	for i := range n {
		jobs = append(jobs, client.Job{ID: fmt.Sprintf("%s-%02d", prefix,
			i+1), Topic: topic, URL: url, Retries: new(0), Labels: map[string]string{"customer": prefix}})
	}
	site.Register(jobs...)
	site.Advance(time.Second)
}

func TestDead_SaysThatNothingIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		page := consoletest.Text(site.Golden("dead-none", "dead"))
		require.Contains(t, page, "No job is dead.")
		require.NotContains(t, page, "Find")
		require.Contains(t, consoletest.Text(site.Get("dead?topic=mail").OK()), "No dead job matches.")
	})
}

func TestDead_ShowsGroupsAndTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "pay", "https://down.example:8443/", "pay", 4)
		die(site, "pay", "https://refused.example:8443/", "lost", 2)
		die(site, "mail", "https://status-410.example/", "gone", 1)
		page := consoletest.Text(site.Golden("dead", "dead"))
		require.Contains(t, page, "7 jobs are dead; 4 of them of topic pay at down.example:8443: answered 503.")

		page = consoletest.Text(site.Get("dead?lane=down.example:8443&status=503").OK())
		require.Contains(t, page, "4 dead jobs match, all of them of topic pay at down.example:8443: answered 503.")
		require.Contains(t, page, "pay-04")
		require.NotContains(t, page, "lost-01")
		require.Contains(t, page, "Revive all that match")
		require.Contains(t, consoletest.Text(site.Get("dead?lane=refused.example:8443").OK()),
			"2 dead jobs match, all of them of topic pay at refused.example:8443: no answer: the "+
				"connection was refused.")
		require.Contains(t, consoletest.Text(site.Get("dead?label=customer%3Dgone").OK()),
			"1 dead job matches, of topic mail at status-410.example:443:")
		require.Contains(t, consoletest.Text(site.Get("dead?ended_before=1h").OK()), "No dead job matches.")
	})
}

func TestDead_LinksSelectTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "pay", "https://down.example/", "pay", 2)
		page := site.Get("dead?topic=pay&label=customer:pay").OK()
		require.Contains(t, page,
			`href="./work/new?action=revive&amp;label=customer%3Apay&amp;lane=down.example%3A443&amp;`+
				`reason=exhausted&amp;status=503&amp;topic=pay"`)
		require.Contains(t, page,
			`href="./dead?label=customer%3Apay&amp;lane=down.example%3A443&amp;`+
				`reason=exhausted&amp;status=503&amp;topic=pay"`)
		require.Contains(t, page, `name="label" value="customer=pay"`)
	})
}

// Groups differ in one of topic, status and error class. Their links count, and so revive, exactly what they say.
func TestDead_LinksOfGroupsCountWhatTheyShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		_, err := site.API.PutTopic(t.Context(), "held", client.Policy{})
		require.NoError(t, err)
		_, err = site.API.PauseTopic(t.Context(), "held", "")
		require.NoError(t, err)
		for prefix, g := range map[string]struct {
			topic, url string
			jobs       int
		}{
			"a": {"pay", "https://status-500.example/", 5}, "b": {"mail", "https://status-500.example/", 2},
			"c": {"pay", "https://status-404.example/", 3}, "d": {"pay", "https://refused.example/", 2},
			"e": {"held", "https://status-500.example/", 1},
		} {
			for i := range g.jobs {
				site.Register(client.Job{
					ID: fmt.Sprint(prefix, i), Topic: g.topic, Lane: "shop", URL: g.url, Retries: new(0),
					ExpiresIn: time.Minute,
				})
			}
		}
		site.Advance(2 * time.Minute)
		page := site.Get("dead").OK()
		groups := regexp.MustCompile(`(?s)<td><span class="nobreak"><a href="\./([^"]+)">shop</a>.*?`+
			`<td class="num"[^>]*>(\d+)</td>.*?href="\./([^"]+)">Revive.*?href="\./([^"]+)">Delete`).
			FindAllStringSubmatch(page, -1)
		require.Len(t, groups, 5)
		text := func(link string) string { return consoletest.Text(site.Get(html.UnescapeString(link)).OK()) }
		for _, g := range groups {
			require.Contains(t, text(g[1]), g[2]+" dead job")
			require.Contains(t, text(g[3]), "Exactly "+g[2]+" job")
			require.Contains(t, text(g[4]), "Exactly "+g[2]+" job")
		}
	})
}

func TestDead_HasPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "pay", "https://status-410.example/", "pay", 60)
		page := consoletest.Text(site.Get("dead").OK())
		require.Contains(t, page, "Next page")
		require.Contains(t, page, "60 jobs are dead, all of them of topic pay at status-410.example:443: the topic "+
			"gives up on this status, last answered 410.")
		require.Contains(t, page, "pay-11 ")
		require.NotContains(t, page, "pay-10 ")
	})
}

func TestDead_HasPagesOfTheTimeBeforeNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "pay", "https://status-410.example/", "pay", 60)
		_, next, _ := strings.Cut(site.Get("dead?ended_after=90m&more=1").OK(), `rel="next" href="./`)
		next, _, _ = strings.Cut(next, `"`)
		site.Advance(time.Minute)
		page := site.Get(html.UnescapeString(next)).OK()
		require.Contains(t, consoletest.Text(page), "pay-10 ")
		require.NotContains(t, consoletest.Text(page), "pay-11 ")
		require.Contains(t, page, `href="./dead?ended_after=1999-12-31T22%3A30%3A01.01Z"`, "the first page")
	})
}

// Jobs are counted and listed at the same time, each in a bounded time: the list may find some first.
func TestDead_SaysAtLeastHowManyTheListHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var within []string
		site := consoletest.New(t, consoletest.Options{
			Pages: []web.Pages{deadpages.New()},
			WrapAPI: func(api http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/v1/dead/groups" {
						api.ServeHTTP(w, r)
						return
					}
					within = append(within, r.URL.Query().Get("within"))
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"items": [], "exact": false}`))
				})
			},
		})
		die(site, "pay", "https://down.example/", "pay", 2)
		require.Contains(t, consoletest.Text(site.Get("dead?topic=pay").OK()), "At least 2 dead jobs match.")
		require.Contains(t, consoletest.Text(site.Get("dead?search=long").OK()), "At least 2 jobs are dead.")
		require.Contains(t, consoletest.Text(site.Get("dead?topic=mail").OK()),
			"No dead job was found yet that matches: the search was cut short.")
		require.Equal(t, []string{"15ms", "750ms", "15ms"}, within)
	})
}

func TestDead_SaysWhatIsWrongWithAFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		page := site.Get("dead?status=5xx&topic=pay").Is(http.StatusUnprocessableEntity)
		require.Contains(t, page, `value="5xx"`)
		require.Contains(t, page, `value="pay"`)
		require.Contains(t, consoletest.Text(page), "must be a status of 100 to 999")
		for _, wrong := range []string{
			"topic=a+b", "reason=bad", "kind=odd", "label=x", "id_prefix=%2F", "ended_after=never", "lane=a%2Fb",
		} {
			page := consoletest.Text(site.Get("dead?" + wrong).Is(http.StatusUnprocessableEntity))
			require.Contains(t, page, "The jobs cannot be selected", wrong)
			require.Regexp(t, "must |is not of the form name=value", page, wrong)
		}
	})
}

func TestDead_EscapesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "pay", "https://down.example/", "pay", 1)
		for _, hostile := range []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`} {
			for _, name := range []string{
				"topic", "lane", "reason", "status", "kind", "label", "id_prefix",
				"ended_after", "created_before", "cursor", "more",
			} {
				page := site.Get("dead?" + url.Values{name: {hostile}}.Encode()).Body.String()
				require.NotContains(t, page, "<script>alert", name)
				require.NotContains(t, page, "<img", name)
			}
		}
	})
}

func TestDead_ForRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		die(site, "pay", "https://down.example/", "pay", 2)
		for role, status := range map[string]int{
			"read": http.StatusOK, "operate": http.StatusOK, "admin": http.StatusOK, "publish": http.StatusForbidden,
		} {
			site.SignIn(site.Token(role, role))
			page := site.Get("dead").Is(status)
			require.Equal(t, role == "operate" || role == "admin",
				status == http.StatusOK && len(page) > 0 && strings.Contains(page, "Revive…"), role)
		}
		site.SignIn(site.Token("pay", "operate", "pay"))
		require.Contains(t, consoletest.Text(site.Get("dead").OK()), "2 dead jobs match",
			"the only topic of the token is the filter")
		site.SignIn(site.Token("two", "operate", "pay", "mail.*"))
		require.Contains(t, consoletest.Text(site.Get("dead").OK()),
			"Name a topic: your token is restricted to pay and mail.*.")
		require.Contains(t, consoletest.Text(site.Get("dead?topic=other").Is(http.StatusForbidden)), "not allowed")
	})
}

func TestPages_AreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for i := range 1010 { // more groups than the API counts
			name := fmt.Sprintf("a-name-with-a-length-of-about-forty-%04d", i)
			site.Register(client.Job{
				ID: name, Topic: name, Lane: name, URL: "https://status-410.example/",
				Retries: new(0),
			})
		}
		site.Advance(time.Minute)
		page := site.Get("dead").OK()
		text := consoletest.Text(page)
		require.Contains(t, text, "At least 1,000 jobs are dead; 1 of them of topic a-name-with")
		require.Contains(t, text, "950 smaller groups are not shown: narrow the filter.")
		require.Less(t, len(page), 100_000)
		require.Contains(t, consoletest.Text(site.Get("dead?reason=gave_up").OK()), "At least 1,000 dead jobs match;")

		page = site.Get("work/new?action=revive").OK()
		text = consoletest.Text(page)
		require.Contains(t, text, "At least 1,000 jobs match. Nothing is changed yet.")
		require.Contains(t, text, "950 smaller groups are not shown.")
		require.Contains(t, text, "Revive all dead jobs")
		require.Less(t, len(page), 100_000)
		text = consoletest.Text(site.Get("work/new?action=revive&reason=gave_up").OK())
		require.Contains(t, text, "At least 1,000 jobs match. Nothing is changed yet.")
		require.Contains(t, text, "Revive the jobs that match")
	})
}

func TestDead_RefusesUnknownParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		die(site, "pay", "https://down.example/", "pay", 2)
		for query, want := range map[string]string{
			"topic=pay&laen=x":                 "laen: is not a filter: correct its name or remove it",
			"topic=pay&reason=&reason=gave_up": "reason: is given twice: remove one",
			"topic=pay&state=delivered":        "state: must be dead",
		} {
			page := site.Get("dead?" + query).Is(http.StatusUnprocessableEntity)
			require.Contains(t, consoletest.Text(page), want)
			require.Contains(t, consoletest.Text(page), "This filter cannot be read.")
			require.NotContains(t, page, "work/new", query)
		}
		require.Contains(t, consoletest.Text(site.Get("dead?topic=pay&state=dead&more=1").OK()), "2 dead jobs match")
	})
}
