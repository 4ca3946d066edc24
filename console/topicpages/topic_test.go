package topicpages_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console"
	"github.com/ringback/ringback/console/consoletest"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/topicpages"
	"github.com/ringback/ringback/console/web"
)

// lead returns the first sentence of a page.
func lead(t *testing.T, page string) string {
	t.Helper()
	_, after, ok := cutAfter(page, `<p class="lead sentence`)
	require.True(t, ok, "the page has no first sentence")
	_, after, _ = cutAfter(after, ">")
	text, _, _ := cutAfter(after, "</p>")
	return consoletest.Text(text)
}

func TestTopic_SaysWhatKeepsItsJobsFromBeingDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{Breaker: &client.Breaker{Failures: new(1), Open: time.Hour}})
		show := func() string { return lead(t, site.Get("topics/order").OK()) }
		require.Equal(t, "No job was registered yet.", show())
		site.Register(client.Job{ID: "a", Topic: "order", URL: "https://fine.example/"})
		site.Advance(time.Second)
		require.Equal(t, "No job waits: 1 delivered and 0 dead in all.", show())
		site.Register(client.Job{ID: "b", Topic: "order", URL: "https://fine.example/", Delay: 5 * time.Minute})
		require.Equal(t, "No job is late: 1 job waits, the next is due in 5m.", show())
		site.Register(client.Job{ID: "c", Topic: "order", URL: "https://refused.example/"})
		site.Advance(time.Second)
		require.Equal(t, "1 breaker is open, at refused.example:443: 2 jobs wait, the next is due in 15s.", show())
		_, err := site.Client(site.Token("Mia", "operate")).PauseTopic(t.Context(), "order", "receiver moves")
		require.NoError(t, err)
		site.Advance(2 * time.Minute)
		require.Equal(t, "Paused by Mia since 00:00:02 (2m ago): “receiver moves”. 2 jobs wait.", show())
	})
}

func TestTopic_SaysWhichLanesArePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		site.Register(client.Job{ID: "a", Topic: "order", Lane: "x", URL: "https://fine.example/", Delay: time.Minute})
		for _, lane := range []string{"x", "empty"} {
			_, err := site.API.PauseLane(t.Context(), "order", lane, "")
			require.NoError(t, err)
		}
		require.Equal(t, "Lane x is paused with 1 job: 1 job waits, the next is due in 1m.",
			lead(t, site.Get("topics/order").OK()))
	})
}

func TestTopic_SaysWhatIsLateBesideAPausedLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "pull", client.Policy{Deliver: "pull"})
		_, err := site.API.PauseLane(t.Context(), "pull", "x", "")
		require.NoError(t, err)
		site.Register(client.Job{ID: "a", Topic: "pull", Lane: "x"}, client.Job{ID: "b", Topic: "pull", Lane: "y"})
		site.Advance(3 * time.Minute)
		require.Equal(t, "Lane x is paused with 1 job: 2 jobs wait for a client that leases from the topic, and the "+
			"oldest was due 3m ago.",
			lead(t, site.Get("topics/pull").OK()))
	})
}

func TestTopic_SaysWhichLanesHaveACooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		for range 2 {
			site.Register(client.Job{Topic: "order", URL: "https://busy.example/"})
		}
		site.Advance(2 * time.Second)
		page := site.Get("topics/order").OK()
		require.Regexp(t,
			`^Lane busy\.example:443 has a cooldown until 00:01:00 \(in \d+s\): 2 jobs wait`, lead(t, page))
		require.Contains(t, page, `class="lead sentence warn"`)
		site.Register(client.Job{Topic: "order", URL: "https://busy.test/"})
		site.Advance(2 * time.Second)
		require.Contains(t, lead(t, site.Get("topics/order").OK()),
			"Lanes busy.example:443 and busy.test:443 have cooldowns: 3 jobs wait")
	})
}

func TestTopic_DoesNotSayThatJobsFlowWhoseAttemptsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{
			Ordered: new(true), Ladder: []time.Duration{time.Hour},
			Breaker: &client.Breaker{Failures: new(0)},
		})
		for range 3 {
			site.Register(client.Job{Topic: "order", URL: "https://down.example/"})
		}
		site.Advance(2 * time.Second)
		require.Equal(t, "No job is more than a minute late: 3 jobs wait.", lead(t, site.Get("topics/order").OK()))
		require.Equal(t, "The only topic: no job is more than a minute late.", lead(t, site.Get("topics").OK()))
		site.Advance(time.Minute)
		require.Equal(t, "Late: 3 jobs wait, and the oldest was due 1m2s ago.", lead(t, site.Get("topics/order").OK()))
		require.Equal(t, "Jobs of order are more than a minute late.", lead(t, site.Get("topics").OK()))
	})
}

func TestTopic_SaysThatABreakerIsHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{
			Breaker: &client.Breaker{Failures: new(1), Open: time.Minute},
			Ladder:  []time.Duration{time.Hour},
		})
		site.Register(client.Job{Topic: "order", URL: "https://refused.example/"})
		site.Advance(2 * time.Minute)
		require.Contains(t, lead(t, site.Get("topics/order").OK()),
			"1 breaker is half open, at refused.example:443: 1 job waits")
		require.Equal(t, "In order 1 breaker is open or half open.", lead(t, site.Get("topics").OK()))
	})
}

func TestTopic_BreakersOfLanesWithoutJobsHoldNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order",
			client.Policy{Breaker: &client.Breaker{Failures: new(1), Open: time.Hour}, Retries: new(0)})
		site.Register(client.Job{Topic: "order", URL: "https://refused.example/"})
		site.Advance(time.Second)
		page := site.Get("topics/order").OK()
		require.Equal(t, "No job waits: 0 delivered and 1 dead in all. 1 job died in the last hour.", lead(t, page))
		require.Contains(t, page, `class="lead sentence warn"`)
		require.Equal(t, "1 job of order died in the last hour.", lead(t, site.Get("topics").OK()))
		site.Register(client.Job{Topic: "order", URL: "https://fine.example/", Delay: time.Hour})
		require.Equal(t, "No job is late: 1 job waits, the next is due in 1h. 1 job died in the last hour.",
			lead(t, site.Get("topics/order").OK()))
	})
}

func TestTopic_IsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "pull", client.Policy{Deliver: "pull"})
		site.Register(client.Job{ID: "a", Topic: "pull", Lane: "x"})
		site.Advance(3 * time.Minute)
		require.Equal(t, "Late: 1 job waits for a client that leases from the topic, and the oldest was due 3m ago.",
			lead(t, site.Get("topics/pull").OK()))
	})
}

func TestTopic_ShowsCountsLanesAndPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{
			Breaker: &client.Breaker{Failures: new(1), Open: time.Hour},
			Ladder:  []time.Duration{time.Minute, time.Hour}, ManagedBy: "github.com/shop",
		})
		site.Register(
			client.Job{ID: "a", Topic: "order", URL: "https://fine.example/"},
			client.Job{ID: "b", Topic: "order", URL: "https://refused.example/"},
			client.Job{ID: "c", Topic: "order", URL: "https://slow.example/"},
			client.Job{ID: "d", Topic: "order", URL: "https://down.example/", Retries: new(0)},
		)
		_, err := site.API.PatchLane(t.Context(), "order", "customer-42", client.LaneSettings{LaneConcurrency: 3})
		require.NoError(t, err)
		_, err = site.API.PauseLane(t.Context(), "order", "[::1]:8080", "maintenance")
		require.NoError(t, err)
		site.Advance(time.Second)
		page := site.Golden("topic", "topics/order")
		require.Contains(t, page, `href="../topics/order/lanes/%5B::1%5D:8080"`)
		require.Contains(t, page, `href="../dead?topic=order"`)
		require.Contains(t, page, "set by the files of github.com/shop")
	})
}

func TestTopic_ThatDoesNotExistCanBeCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		page := site.Get("topics/new.one").OK()
		require.Equal(t, "There is no topic new.one.", lead(t, page))
		created := site.Follow(site.Post("topics/new.one/create")).OK()
		require.Contains(t, consoletest.Text(created), "Topic new.one is created, with the default policy.")
		again := site.Follow(site.Post("topics/new.one/create"))
		require.Contains(t, consoletest.Text(again.OK()), "Somebody else created the topic new.one meanwhile.")

		require.Contains(t, consoletest.Text(site.Get("topics/a%2Fb").OK()), "no topic has such a name")
		require.Contains(t, consoletest.Text(site.Post("topics/a%2Fb/create").Is(http.StatusUnprocessableEntity)),
			"Nothing was changed")
	})
}

func TestTopic_WithJobsOnlyHasAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		site.Register(client.Job{ID: "a", Topic: "adhoc", URL: "https://fine.example/", Delay: time.Minute})
		require.Equal(t, "No job is late: 1 job waits, the next is due in 1m.", lead(t, site.Get("topics/adhoc").OK()))
		page := site.Get("topics/adhoc/policy").OK()
		require.Contains(t, page, `placeholder="15s, 3m, 10m, 30m, 30m, 1h, 2h, 6h, 15h"`)
		site.Follow(site.Post("topics/adhoc/policy", "revision", "0", "timeout", "3s"))
		topic, err := site.API.GetTopicSettings(t.Context(), "adhoc")
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, topic.Timeout)
	})
}

func TestTopic_IsPausedAndResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		put(t, site, "order", client.Policy{})
		site.SignIn(site.Token("mia", "operate"))
		page := site.Follow(site.Post("topics/order/pause", "note", " receiver moves ")).OK()
		require.Contains(t, consoletest.Text(page), "Topic order is paused.")
		require.Contains(t, consoletest.Text(page),
			"Paused by mia since 00:00:00 (just now): “receiver moves”. 0 jobs wait.")
		require.Contains(t, page, "Resume the topic")
		long := make([]byte, 501)
		for i := range long {
			long[i] = 'x'
		}
		page = site.Post("topics/order/pause", "note", string(long)).Is(http.StatusUnprocessableEntity)
		require.Contains(t, consoletest.Text(page), "must be at most 500 characters")
		require.Contains(t, page, `value="`+string(long)+`"`, "what was typed is kept")
		page = site.Follow(site.Post("topics/order/resume")).OK()
		require.Contains(t, consoletest.Text(page), "Topic order is resumed.")
		topic, err := site.API.GetTopic(t.Context(), "order")
		require.NoError(t, err)
		require.False(t, topic.Paused)
	})
}

func TestTopic_IsDeletedWithItsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{})
		site.Register(
			client.Job{ID: "a", Topic: "order", URL: "https://fine.example/", Delay: time.Hour},
			client.Job{ID: "b", Topic: "order", URL: "https://down.example/", Retries: new(0)},
		)
		site.Advance(time.Second)
		page := site.Golden("topic-delete", "topics/order/delete")
		require.Equal(t, "Topic order has 1 unfinished job.", lead(t, page))
		page = site.Post("topics/order/delete", "revision", "1").Is(http.StatusConflict)
		require.Contains(t, consoletest.Text(page), "unfinished")
		page = site.Post("topics/order/delete", "revision", "99", "purge", "true").Is(http.StatusPreconditionFailed)
		require.Contains(t, consoletest.Text(page), "Somebody changed the topic meanwhile")
		require.Contains(t, page, `value="true" checked`)
		page = site.Follow(site.Post("topics/order/delete", "revision", "1", "purge", "true")).OK()
		require.Contains(t, consoletest.Text(page), "Topic order is deleted.")
		_, err := site.API.GetTopicSettings(t.Context(), "order")
		if err == nil {
			settings, err := site.API.GetTopicSettings(t.Context(), "order")
			require.NoError(t, err)
			require.Zero(t, settings.Revision, "only the records of its jobs are left")
		}
	})
}

func TestTopic_DoesNotTakeDeletedDeadJobsForDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		for range 3 {
			site.Register(client.Job{Topic: "order", URL: "https://down.example/", Retries: new(0)})
		}
		site.Advance(time.Second)
		_, err := site.API.StartWork(t.Context(),
			client.WorkOrder{Action: "purge", Where: client.Where{Topic: "order", State: []client.State{"dead"}}})
		require.NoError(t, err)
		site.Advance(time.Minute)
		page := site.Get("topics/order").OK()
		require.Equal(t, "The receiver of 1 lane fails (down.example:443 since 00:00:00: 100\u00a0% of its "+
			"latest attempts). "+
			"No job waits: 0 delivered and 3 dead in all. 3 jobs died in the last hour.", lead(t, page))
		require.Contains(t, consoletest.Text(page), "Dead 3 in all;")
		require.NotContains(t, page, `class="card bad"><span class="label">Dead`)
		require.Contains(t, consoletest.Text(site.Get("topics").OK()), "Dead in all")
		require.NotContains(t, consoletest.Text(site.Get("topics/order/delete").OK()), "3 dead")
	})
}

func TestTopic_IsDeletedInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{})
		site.Register(client.Job{ID: "long", Topic: "order", URL: "https://slow.example/"},
			client.Job{ID: "later", Topic: "order", URL: "https://fine.example/", Delay: time.Hour})
		site.Advance(time.Second)
		page := site.Post("topics/order/delete", "revision", "1", "purge", "true").Is(http.StatusConflict)
		later, err := site.API.Get(t.Context(), "later")
		require.NoError(t, err)
		require.Equal(t, client.Cancelled, later.State)
		require.Contains(t, page, "<h2>The topic is not deleted yet</h2>")
		require.Contains(t, page, "they are cancelled when their attempts end")
		require.NotContains(t, page, "Nothing was changed")
		site.Advance(time.Minute)
		require.Contains(t, consoletest.Text(site.Follow(site.Post("topics/order/delete", "revision", "1", "purge",
			"true")).OK()), "Topic order is deleted.")
	})
}

func TestTopic_SaysWhenADeletionTakesLongerThanAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, err := client.New(
			"http://localhost", client.Options{MaxRetries: -1, HTTP: &http.Client{Transport: &console.Transport{
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodDelete {
						<-r.Context().Done()
						http.Error(w, "", http.StatusServiceUnavailable)
						return
					}
					_, _ = io.WriteString(w, `{"topic": "order", "revision": 1, "items": []}`)
				}),
			}}},
		)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("revision=1&purge=true"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetPathValue("topic", "order")
		routes := topicpages.New(new(recent.Answers)).Routes
		i := slices.IndexFunc(routes,
			func(r web.Route) bool { return r.Method == http.MethodPost && r.Path == "topics/{topic}/delete" })
		answer, err := routes[i].Serve(&web.Visit{Request: r, API: api, Who: new(client.Principal)})
		require.NoError(t, err)
		page, ok := answer.(*web.Page)
		require.True(t, ok)
		require.Equal(t, http.StatusConflict, page.Status)
		require.Contains(t, fmt.Sprintf("%+v", page.Data), "send the form again until it succeeds")
	})
}

func TestTopic_LanesHavePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{})
		var names []string
		for i := range 60 {
			name := string(rune('a'+i/26)) + string(rune('a'+i%26))
			names = append(names, name)
			if i%2 == 0 {
				site.Register(client.Job{
					ID: "j" + name, Topic: "order", Lane: name,
					URL: "https://fine.example/", Delay: time.Hour,
				})
			}
			if i%3 != 1 {
				_, err := site.API.PatchLane(t.Context(), "order", name, client.LaneSettings{LaneConcurrency: 2})
				require.NoError(t, err)
			}
		}
		var expected, seen []string
		for i, name := range names {
			if i%2 == 0 || i%3 != 1 {
				expected = append(expected, name)
			}
		}
		for at := "topics/order"; at != ""; {
			page := site.Get(at).OK()
			require.Contains(t, lead(t, page), "No job is late: 30 jobs wait, the next is due in 1h.")
			rows := laneLink.FindAllStringSubmatch(page, -1)
			require.LessOrEqual(t, len(rows), 50)
			for _, row := range rows {
				seen = append(seen, row[1])
			}
			at = ""
			if next := nextLink.FindStringSubmatch(page); next != nil {
				at = next[1]
			}
		}
		require.Equal(t, expected, seen)
	})
}

func TestTopic_CountsTheBreakersOfOtherPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{
			Breaker: &client.Breaker{Failures: new(1), Open: time.Hour},
			Ladder:  []time.Duration{2 * time.Hour},
		})
		for i := range 26 {
			site.Register(client.Job{
				Topic: "order", Lane: fmt.Sprintf("l%02d", i),
				URL: "https://fine.example/", Delay: time.Hour,
			})
		}
		site.Register(client.Job{Topic: "order", Lane: "a", URL: "https://refused.example/"},
			client.Job{Topic: "order", Lane: "z", URL: "https://refused.example/"})
		site.Advance(time.Second)
		page := site.Get("topics/order").OK()
		require.Contains(t, lead(t, page), "2 breakers are open or half open, among them at a: 28 jobs wait")
		second := site.Get(nextLink.FindStringSubmatch(page)[1]).OK()
		require.Contains(t, lead(t, second), "2 breakers are open or half open, among them at z: 28 jobs wait")
	})
}

// postRoutes are all forms.
var postRoutes = []string{
	"topics/order/create", "topics/order/pause", "topics/order/resume", "topics/order/delete", "topics/order/policy",
	"topics/order/policy/preview", "topics/order/secrets", "topics/order/secrets/x/remove", "topics/order/lanes/x",
	"topics/order/lanes/x/pause", "topics/order/lanes/x/resume",
	"topics/order/lanes/x/delete", "topics/order/lanes/x/secrets", "topics/order/lanes/x/secrets/x/remove",
}

func TestForms_AreRefusedToReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		put(t, site, "order", client.Policy{})
		site.SignIn(site.Token("rita", "read"))
		for _, path := range postRoutes {
			site.Post(path, "note", "x", "timeout", "3s", "url", "https://x.example/").Is(http.StatusForbidden)
		}
		site.Get("topics/order/secrets").Is(http.StatusForbidden)
		site.Get("topics/order/delete").Is(http.StatusForbidden)
		for _, path := range []string{"topics/order", "topics/order/policy", "topics/order/lanes/x"} {
			page := site.Get(path).OK()
			require.NotRegexp(t, `method="post" action="[^"]*/(pause|resume|delete|secrets)"`, page, path)
			require.NotContains(t, page, ">Save<", path)
			require.NotContains(t, page, ">Secrets<", path)
		}
	})
}

func TestForms_AreRefusedForTopicsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		put(t, site, "order", client.Policy{})
		site.SignIn(site.Token("anna", "operate", "pay.*"))
		for _, path := range postRoutes {
			site.Post(path, "note", "x", "timeout", "3s", "url", "https://x.example/").Is(http.StatusForbidden)
		}
		for _, path := range []string{
			"topics/order", "topics/order/policy", "topics/order/delete",
			"topics/order/secrets", "topics/order/lanes/x", "topics/order/lanes/x/secrets",
		} {
			site.Get(path).Is(http.StatusForbidden)
		}
		site.Get("topics/pay.one").OK()
		site.Get("topics/pay.one/lanes/x").OK()
	})
}

func TestTopic_WithoutSettingsIsNotDeletedAfterItGotSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		site.Register(client.Job{ID: "a", Topic: "adhoc", URL: "https://fine.example/", Delay: time.Hour})
		rev := revision(t, site.Get("topics/adhoc/delete").OK())
		require.Equal(t, "0", rev)
		put(t, site, "adhoc", client.Policy{Workers: 3})
		page := site.Post("topics/adhoc/delete", "revision", rev, "purge", "true").Is(http.StatusPreconditionFailed)
		require.Contains(t, consoletest.Text(page), "Somebody changed the topic meanwhile")
		_, err := site.API.Get(t.Context(), "a")
		require.NoError(t, err)

		site.Register(client.Job{ID: "b", Topic: "other", URL: "https://fine.example/", Delay: time.Hour})
		require.Contains(t, consoletest.Text(site.Follow(site.Post("topics/other/delete", "revision", "0", "purge",
			"true")).OK()), "Topic other is deleted.")
	})
}
