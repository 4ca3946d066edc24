package topicpages_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/consoletest"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/topicpages"
	"github.com/ringback/ringback/console/web"
)

func newSite(t *testing.T, tokens bool) *consoletest.Site {
	t.Helper()
	return consoletest.New(t, consoletest.Options{
		Pages: []web.Pages{topicpages.New(new(recent.Answers))}, Tokens: tokens,
	})
}

// signedIn is newSite with tokens, as root.
func signedIn(t *testing.T) *consoletest.Site {
	t.Helper()
	site := newSite(t, true)
	site.SignIn(consoletest.RootToken)
	return site
}

func put(t *testing.T, site *consoletest.Site, topic string, p client.Policy) {
	t.Helper()
	_, err := site.API.PutTopic(t.Context(), topic, p)
	require.NoError(t, err)
}

func TestTopics_WithoutTopicsSaysHowOneBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		page := consoletest.Text(site.Get("topics").OK())
		require.Contains(t, page, "There are no topics yet.")
		require.Contains(t, page, "It begins with its first job")
	})
}

func TestTopics_SaysWhichArePausedAndBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "shop.orders",
			client.Policy{Breaker: &client.Breaker{Failures: new(1), Open: time.Hour}, Retries: new(3)})
		put(t, site, "mail", client.Policy{Retries: new(0)})
		put(t, site, "unused", client.Policy{})
		mia := site.Client(site.Token("mia", "operate"))
		_, err := mia.PauseTopic(t.Context(), "unused", "the receiver moves")
		require.NoError(t, err)
		site.Register(
			client.Job{ID: "a", Topic: "shop.orders", URL: "https://refused.example/"},
			client.Job{ID: "b", Topic: "mail", URL: "https://fine.example/"},
			client.Job{ID: "c", Topic: "mail", URL: "https://down.example/"},
			client.Job{ID: "d", Topic: "mail", URL: "https://fine.example/", Delay: time.Hour},
		)
		site.Advance(time.Second)
		page := site.Golden("topics", "topics")
		require.Contains(t, consoletest.Text(page),
			"1 of 3 topics is paused; in shop.orders 1 breaker is open or half open; "+
				"1 job of mail died in the last hour.")
	})
}

func TestTopics_FlowAndAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		put(t, site, "pull", client.Policy{Deliver: "pull"})
		put(t, site, "push", client.Policy{})
		require.Contains(t, consoletest.Text(site.Get("topics").OK()), "2 topics: no job is more than a minute late.")
		require.NoError(t, site.API.DeleteTopic(t.Context(), "push", false))
		require.Equal(t, "The only topic: no job is more than a minute late.", lead(t, site.Get("topics").OK()))
		site.Register(client.Job{ID: "a", Topic: "pull"})
		site.Advance(2 * time.Minute)
		page := consoletest.Text(site.Get("topics").OK())
		require.Contains(t, page, "Jobs of pull are more than a minute late.")
		require.Contains(t, page, "2m late")
	})
}

func TestTopics_HasPagesOf50(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for i := range 51 {
			put(t, site, fmt.Sprintf("t%02d", i), client.Policy{})
		}
		site.Register(client.Job{ID: "a", Topic: "t50", URL: "https://fine.example/"})
		site.Advance(time.Second)
		first := site.Get("topics").OK()
		require.Contains(t, consoletest.Text(first), "The 50 topics of this page: no job is more than a minute late.")
		require.NotContains(t, first, ">t50<")
		require.Less(t, len(first), 100_000)
		next := regexp.MustCompile(`rel="next" href="./([^"]+)"`).FindStringSubmatch(first)
		require.NotNil(t, next)
		second := site.Get(next[1]).OK()
		require.Contains(t, second, ">t50<")
		require.Equal(t, "The only topic of this page: no job is more than a minute late.", lead(t, second))
		require.NotContains(t, second, ">t49<")
		require.Contains(t, second, "First page")
		require.Regexp(t, `(?s)>t50<.*<td class="num"[^>]*>1</td>`, second, "its counts")
	})
}

func TestTopics_CountsTheBreakersOfOtherPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for i := range 51 {
			put(t, site, fmt.Sprintf("t%02d", i),
				client.Policy{Breaker: &client.Breaker{Failures: new(1)}, Retries: new(0)})
		}
		site.Register(client.Job{Topic: "t00", URL: "https://down.example/"},
			client.Job{Topic: "t50", URL: "https://down.example/"})
		site.Advance(time.Second)
		page := site.Get("topics").OK()
		require.Equal(t, "1 breaker is open or half open in topics on other pages; "+
			"1 job of t00 died in the last hour.", lead(t, page),
			"that of t00 holds no job back")
		require.Contains(t, page, `class="lead sentence warn"`)
	})
}

func TestTopics_OpensOneByItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		require.Equal(t, "./topics/order.close", site.Get("topics?open=order.close").Header().Get("Location"))
		require.Equal(t, "./topics/a%2F..%2Fb", site.Get("topics?open=a/../b").Header().Get("Location"))
	})
}

func TestTopics_OfARestrictedTokenAreItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		put(t, site, "order", client.Policy{})
		put(t, site, "secret.plans", client.Policy{})
		site.SignIn(site.Token("mia", "read", "order", "unknown", "pay.*"))
		page := site.Get("topics").OK()
		text := consoletest.Text(page)
		require.Contains(t, text, "Your token sees only the topics order, unknown and pay.*. The only topic of this "+
			"page: no job is more than a minute late.")
		require.Contains(t, page, `href="./topics/order"`)
		require.NotContains(t, page, "secret.plans")
		require.NotContains(t, text, "2 topics")
	})
}

func TestTopics_OfARestrictedTokenMayBeUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		put(t, site, "order", client.Policy{})
		site.SignIn(site.Token("mia", "read", "pay.*"))
		page := consoletest.Text(site.Get("topics").OK())
		require.Contains(t, page, "Your token sees only the topics pay.*. ")
		require.NotContains(t, page, "There are no topics")
		require.NotContains(t, page, "order ")
		site.Get("topics/order").Is(http.StatusForbidden)
		site.Get("topics/pay.x/policy").OK()
	})
}

func TestTopics_AreRefusedToPublishers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		site.SignIn(site.Token("otto", "publish"))
		site.Get("topics").Is(http.StatusForbidden)
	})
}

func TestTopics_OfARestrictedTokenAreCountedUpTo20(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		var names []string
		for i := range 21 {
			names = append(names, fmt.Sprintf("t%02d", i))
			put(t, site, names[i], client.Policy{})
		}
		site.SignIn(site.Token("mia", "read", names...))
		require.Contains(t, lead(t, site.Get("topics").OK()),
			" The 20 topics of this page: no job is more than a minute late.")
		site.SignIn(site.Token("eva", "read", names[0]))
		require.Contains(t, lead(t, site.Get("topics").OK()), " The only topic: no job is more than a minute late.")
		_, err := site.API.PauseTopic(t.Context(), names[0], "")
		require.NoError(t, err)
		require.Contains(t, lead(t, site.Get("topics").OK()), " The only topic is paused.")
	})
}

func TestTopics_OfARestrictedTokenAreLookedUpUpTo20Times(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lookups atomic.Int64
		site := consoletest.New(t, consoletest.Options{Pages: []web.Pages{
			topicpages.New(new(recent.Answers)),
		}, Tokens: true, WrapAPI: func(
			api http.Handler,
		) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if rest, ok := strings.CutPrefix(r.URL.Path, "/v1/topics/"); ok && !strings.Contains(rest, "/") {
					lookups.Add(1)
				}
				api.ServeHTTP(w, r)
			})
		}})
		var names []string
		for i := range 64 {
			names = append(names, fmt.Sprintf("t%02d", i))
		}
		put(t, site, names[19], client.Policy{})
		put(t, site, names[20], client.Policy{})
		site.SignIn(site.Token("mia", "read", names...))
		lookups.Store(0)
		page := site.Get("topics").OK()
		require.Contains(t, page, ">t19<")
		require.NotContains(t, page, ">t20<")
		require.Contains(t, lead(t, page), "The only topic of this page")
		require.Equal(t, int64(20), lookups.Load())
	})
}
