package nowpage_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/consoletest"
	"github.com/ringback/ringback/console/nowpage"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newSite starts a site with the page.
func newSite(t *testing.T, o consoletest.Options) *consoletest.Site {
	t.Helper()
	o.Pages = []web.Pages{nowpage.New(new(recent.Answers))}
	return consoletest.New(t, o)
}

// lead returns the first sentence of the page.
func lead(t *testing.T, page string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, `<p class="lead`)
	require.True(t, ok)
	sentence, _, _ := strings.Cut(after, "</p>")
	_, sentence, _ = strings.Cut(sentence, ">")
	return strings.NewReplacer(" ,", ",", " .", ".", "( ", "(", " )", ")").Replace(consoletest.Text(sentence))
}

func TestNow_SaysHowToBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, consoletest.Options{})
		page := site.Golden("fresh", "")
		require.Equal(t, "No job has been registered yet.", lead(t, page))
		require.Contains(t, page, "curl http://localhost/v1/jobs")
		proxied := site.Do(http.MethodGet, "", nil, "X-Forwarded-Proto", "https",
			"X-Forwarded-Prefix", "/ringback/").OK()
		require.Contains(t, proxied, "curl https://localhost/ringback/v1/jobs")
		hostile := site.Do(http.MethodGet, "", nil, "X-Forwarded-Proto", "';id", "X-Forwarded-Prefix", "/$(id)").OK()
		require.Contains(t, hostile, "curl http://localhost/v1/jobs")
	})
}

func TestNow_SaysHowToBeginWithAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, consoletest.Options{Tokens: true})
		_, err := site.API.PutNamespace(t.Context(), "shop", client.NamespaceRequest{})
		require.NoError(t, err)
		site.SignIn(consoletest.RootToken)
		site.Advance(6 * time.Second)
		text := consoletest.Text(site.Get("@shop/").OK())
		require.Contains(t, text, `-H "Authorization: Bearer $RINGBACK_TOKEN"`)
		require.Contains(t, text, `-H 'Ringback-Namespace: shop'`)
		site.SignIn(site.Token("mia", "read"))
		text = consoletest.Text(site.Get("").OK())
		require.NotContains(t, text, "curl")
		require.Contains(t, text, "Your token may not register jobs")
	})
}

// register registers jobs with ids of the topic, to be delivered to a host.
func register(site *consoletest.Site, topic, host string, n int) {
	for i := range n {
		site.Register(client.Job{ID: topic + "-" + string(rune('a'+i)), Topic: topic, URL: "https://" + host + "/"})
	}
}

func TestNow_SaysThatCallbacksFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, consoletest.Options{})
		register(site, "early", "fine.example", 1)
		for i := range 4 {
			register(site, "order"+string(rune('a'+i)), "fine.example", 5)
			site.Advance(5 * time.Second)
		}
		site.Register(client.Job{ID: "later", URL: "https://fine.example/", Delay: time.Hour})
		page := site.Golden("flowing", "")
		require.Equal(t, "Callbacks flow.", lead(t, page))
		require.Contains(t, page, `class="lead sentence ok"`)
		site.Advance(3 * time.Minute)
		require.Regexp(t, `^Nothing is due: 1 job waits, the next one at \d\d:\d\d:\d\d\.$`, lead(t, site.Get("").OK()))
	})
}

func TestNow_NamesReceiversInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, consoletest.Options{})
		_, err := site.API.PutTopic(t.Context(), "mail", client.Policy{})
		require.NoError(t, err)
		_, err = site.API.PauseTopic(t.Context(), "mail", "until the template is mended")
		require.NoError(t, err)
		site.Get("").OK()
		register(site, "pay", "down.example", 12)
		register(site, "crm", "busy.example", 1)
		register(site, "mail", "fine.example", 3)
		site.Advance(5 * time.Second)
		register(site, "order", "fine.example", 3)
		site.Advance(5 * time.Second)
		page := site.Golden("trouble", "")
		require.Regexp(t, `^The receivers of 2 lanes fail: down\.example:443 of topic pay `+
			`\(since \d\d:\d\d:\d\d, 100\W+% of its latest attempts, `+
			`newest: answered 503, breaker open until \d\d:\d\d:\d\d\) `+
			`and busy\.example:443 of topic crm \(.*newest: answered 429, asked for a pause, left alone until `+
			`\d\d:\d\d:\d\d\)\. Topic mail is paused\. The oldest due job has waited for 10s\. `+
			`Some callbacks are delivered\.$`,
			lead(t, page))
		require.Contains(t, page, `href="./topics/pay/lanes/down.example:443"`)
		require.Contains(t, page, "until the template is mended")
	})
}

func TestNow_SaysThatNothingIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, consoletest.Options{})
		site.Get("").OK()
		register(site, "pay", "refused.example", 12)
		site.Advance(10 * time.Second)
		page := site.Get("").OK()
		require.Contains(t, page, `class="lead sentence bad"`)
		require.Regexp(t, `^The receiver of 1 lane fails: refused\.example:443 of topic pay `+
			`\(since \d\d:\d\d:\d\d, 100\W+% of its latest attempts, `+
			`newest: the connection was refused, breaker open until \d\d:\d\d:\d\d\)\. `+
			`The oldest due job has waited for 10s\. Nothing is being delivered\.$`, lead(t, page))
	})
}

func TestNow_SaysThatAPauseHoldsEverythingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, consoletest.Options{})
		_, err := site.API.PutTopic(t.Context(), "mail", client.Policy{})
		require.NoError(t, err)
		_, err = site.API.PauseTopic(t.Context(), "mail", "")
		require.NoError(t, err)
		register(site, "mail", "fine.example", 3)
		site.Get("").OK()
		site.Advance(61 * time.Second)
		require.Equal(t, "Nothing is being delivered: topic mail is paused.", lead(t, site.Get("").OK()))
	})
}

func TestNow_SaysHowManyJobsAPauseHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, consoletest.Options{WrapAPI: func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/lanes/troubled" { // which lists the worst lanes only
					_, _ = w.Write([]byte(`{"items": [{"topic": "mail", "lane": "a", "ready": 1, "reasons": ` +
						`[{"code": "topic_paused"}]}], "total": 20, "exact": true}`))
					return
				}
				h.ServeHTTP(w, r)
			})
		}})
		pause := func(topic string) {
			_, err := site.API.PutTopic(t.Context(), topic, client.Policy{})
			require.NoError(t, err)
			_, err = site.API.PauseTopic(t.Context(), topic, "")
			require.NoError(t, err)
		}
		pause("mail")
		register(site, "mail", "fine.example", 3)
		pause("sms")
		waiting := regexp.MustCompile(`(mail|sms)</a>.* data-label="Waiting">(.*)</td>`)
		texts := func() (all []string) {
			for _, row := range waiting.FindAllStringSubmatch(site.Get("").OK(), -1) {
				all = append(all, row[1]+" "+consoletest.Text(row[2]))
			}
			return all
		}
		require.Equal(t, []string{"mail 3", "sms 0"}, texts())
		for i := range 50 {
			site.Register(client.Job{Topic: fmt.Sprintf("a%d", i), URL: "https://fine.example/"})
		}
		require.Equal(t, []string{"mail –"}, texts(), "other topics are counted")
	})
}

func TestNow_ReadsCountersOfTopicsWithoutTheirLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit atomic.Value
		site := newSite(t, consoletest.Options{Tokens: true, WrapAPI: func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/topics/crm/stats" {
					limit.CompareAndSwap(nil, r.URL.Query().Get("limit"))
				}
				h.ServeHTTP(w, r)
			})
		}})
		register(site, "crm", "fine.example", 3)
		site.SignIn(site.Token("mia", "read", "crm"))
		site.Get("").OK()
		require.Equal(t, "1", limit.Load())
	})
}

func TestNow_ShowsTokensOfTopicsWhatTheyMaySee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, consoletest.Options{Tokens: true})
		register(site, "pay", "down.example", 12)
		register(site, "crm", "fine.example", 3)
		site.Advance(time.Second)
		site.SignIn(site.Token("mia", "read", "crm"))
		page := site.Get("").OK()
		require.Contains(t, consoletest.Text(page),
			"Your token may see the topic crm only: everything here is about it.")
		require.NotContains(t, page, "down.example")
		site.SignIn(site.Token("otto", "read", "crm", "order.*"))
		site.Get("").OK()
		site.Advance(5 * time.Second)
		register(site, "pay2", "fine.example", 1)
		site.Register(client.Job{ID: "another", Topic: "crm", URL: "https://fine.example/"})
		site.Advance(5 * time.Second)
		page = site.Golden("restricted", "")
		require.Equal(t, "Callbacks flow.", lead(t, page))
	})
}

func TestNow_ShowsHostileValuesAsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const script, image = `<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`
		site := newSite(t, consoletest.Options{Deliver: func(job.Request) policy.Result {
			return policy.Result{Class: policy.ClassRefused, Error: script + image, Duration: time.Millisecond}
		}})
		_, err := site.API.PutTopic(t.Context(), "mail", client.Policy{})
		require.NoError(t, err)
		_, err = site.API.PauseTopic(t.Context(), "mail", script+image)
		require.NoError(t, err)
		register(site, "pay", "a.example", 12) // the API refuses other ids, topics and lanes
		site.Get("").OK()
		site.Advance(10 * time.Second)
		page := site.Get("").OK()
		require.Contains(t, page, "breaker open")
		require.Contains(t, page, "&lt;script&gt;")
		for _, unescaped := range []string{"<script>alert", "<img"} {
			require.NotContains(t, page, unescaped)
		}
	})
}

func TestNow_UpdatesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, consoletest.Options{})
		page := site.Get("").OK()
		for _, block := range []string{"lead", "cards", "topics", "lanes", "paused", "charts", "server"} {
			require.Contains(t, page, `<div id="live-`+block+`">`)
		}
		ctx, cancel := context.WithCancel(t.Context())
		res := site.Stream(ctx, "?live=1")
		lines := bufio.NewScanner(res.Body)
		t.Cleanup(func() {
			cancel()
			_ = res.Body.Close()
		})
		for _, text := range []string{"No job has been registered yet.", "Callbacks flow."} {
			for !strings.Contains(lines.Text(), text) {
				require.True(t, lines.Scan())
			}
			register(site, "order", "fine.example", 3)
		}
	})
}

func TestNow_RequiresARoleThatReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, consoletest.Options{Tokens: true})
		for role, status := range map[string]int{
			"read": http.StatusOK, "operate": http.StatusOK, "admin": http.StatusOK, "publish": http.StatusForbidden,
		} {
			site.SignIn(site.Token(role, role))
			site.Get("").Is(status)
		}
	})
}

// failing is an API that answers some paths with 503 while it is on.
type failing struct {
	http.Handler

	paths  []string
	detail string
	on     atomic.Bool
}

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.on.Load() || !slices.Contains(f.paths, r.URL.Path) {
		f.Handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"status": http.StatusServiceUnavailable,
		"code":   "not_ready", "detail": f.detail,
	})
}

// newFailingSite starts a site whose API can fail.
func newFailingSite(t *testing.T, detail string, paths ...string) (*consoletest.Site, *failing) {
	t.Helper()
	f := &failing{paths: paths, detail: detail}
	return newSite(t, consoletest.Options{WrapAPI: func(h http.Handler) http.Handler {
		f.Handler = h
		return f
	}}), f
}

func TestNow_SaysThatTheProcessIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site, api := newFailingSite(t, "not ready: the store <b>does not</b> answer.", "/readyz", "/v1/stats",
			"/v1/lanes/troubled", "/v1/topics", "/v1/stream")
		register(site, "order", "fine.example", 3)
		api.on.Store(true)
		site.Get("").OK()
		page := site.Golden("not-ready", "")
		require.Equal(t, "This process is not ready: the store <b>does not</b> answer. It is not known whether "+
			"callbacks flow.", lead(t, page))
		require.NotContains(t, page, "<b>does")
	})
}

func TestNow_SearchesForTroubledLanesLessOftenWhereThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var searches atomic.Int32
		site := newSite(t, consoletest.Options{WrapAPI: func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/lanes/troubled" {
					searches.Add(1)
					time.Sleep(100 * time.Millisecond)
				}
				h.ServeHTTP(w, r)
			})
		}})
		register(site, "pay", "down.example", 12)
		for range 10 {
			site.Advance(time.Second)
			require.Contains(t, site.Get("").OK(), "breaker open")
		}
		require.EqualValues(t, 2, searches.Load(), "an answer is used for 5 s")
	})
}

func TestNow_CountsJobsLessOftenWhereThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counts atomic.Int32
		site := newSite(t, consoletest.Options{Tokens: true, WrapAPI: func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/stats" {
					counts.Add(1)
					time.Sleep(time.Second)
				}
				h.ServeHTTP(w, r)
			})
		}})
		site.SignIn(site.Token("mia", "read"))
		site.Get("").OK()
		register(site, "pay", "down.example", 12)
		site.Advance(13 * time.Second) // the sampler has renewed the answer after 11 s
		site.Get("").OK()
		counts.Store(0)
		mia, otto := site.Token("mia2", "read"), site.Token("otto", "read")
		for i := range 12 { // the pages of two tokens, and their samplers
			site.SignIn([]string{mia, otto}[i%2])
			require.Contains(t, consoletest.Text(site.Get("").OK()), "Waiting 12")
			site.Advance(time.Second)
		}
		require.EqualValues(t, 1, counts.Load())

		_, err := site.API.PutNamespace(t.Context(), "shop", client.NamespaceRequest{})
		require.NoError(t, err)
		site.SignIn(consoletest.RootToken)
		require.Contains(t, site.Get("@shop/").OK(), "No job has been registered yet.", "each namespace has its own")
	})
}
