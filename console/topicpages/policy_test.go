package topicpages_test

import (
	"context"
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
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/topicpages"
	"github.com/ringback/ringback/console/web"
)

var (
	laneLink = regexp.MustCompile(`<td><a class="nobreak" href="[^"]*/lanes/([^"]+)"`)
	// revisionField is the field of a form with the revision that it shows.
	revisionField = regexp.MustCompile(`name="revision" value="(\d+)"`)

	nextLink = regexp.MustCompile(`rel="next" href="(?:\.\./)*(?:\./)?([^"]+)"`)
)

// cutAfter is strings.Cut.
func cutAfter(text, sep string) (before, after string, found bool) { return strings.Cut(text, sep) }

// revision returns the revision in the form of a page.
func revision(t *testing.T, page string) string {
	t.Helper()
	found := revisionField.FindStringSubmatch(page)
	require.NotNil(t, found)
	return found[1]
}

func TestPolicy_ShowsWhatIsSetAndTheDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{
			Ladder:  []time.Duration{time.Minute, time.Hour},
			Headers: client.Headers{"Authorization": {"Bearer s3cret"}, "X-A": {"1"}},
			Breaker: &client.Breaker{Open: time.Minute}, ManagedBy: "shop",
		})
		page := site.Golden("topic-policy", "topics/order/policy")
		require.Equal(t, "Topic order sets 4 fields: ladder, headers and 2 more.", lead(t, page))
		require.NotContains(t, page, "s3cret")
		require.Contains(t, page, "Authorization: [redacted]")
	})
}

func TestPolicy_ChangesOnlyWhatWasTyped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{
			Headers: client.Headers{"Authorization": {"Bearer s3cret"}, "X-A": {"1"}},
			Breaker: &client.Breaker{Failures: new(3), Open: time.Minute},
			URL:     "https://fine.example/", Timeout: 3 * time.Second,
		})
		rev := revision(t, site.Get("topics/order/policy").OK())
		page := site.Follow(site.Post("topics/order/policy", "revision", rev, "timeout", "5s", "breaker.open", "",
			"headers", "Authorization: [redacted]\r\nX-B: 2", "retries", "4")).OK()
		require.Contains(t, consoletest.Text(page), "Topic order is changed:")
		got, err := site.API.GetTopicSettings(t.Context(), "order")
		require.NoError(t, err)
		require.Equal(t, client.Headers{"Authorization": {"[redacted]"}, "X-B": {"2"}}, got.Headers)
		require.Equal(t, 5*time.Second, got.Timeout)
		require.Equal(t, &client.Breaker{Failures: new(3)}, got.Breaker)
		require.Equal(t, "https://fine.example/", got.URL)
		require.Equal(t, 4, *got.Retries)

		rev = revision(t, site.Get("topics/order/policy").OK())
		require.Contains(t, consoletest.Text(site.Follow(site.Post("topics/order/policy", "revision", rev, "timeout",
			" 5s")).OK()), "Nothing was changed")
	})
}

func TestPolicy_RemovesACallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		const path = "topics/order/policy"
		backlog := &client.Backlog{URL: "https://fine.example/", OlderThan: time.Minute}
		put(t, site, "order", client.Policy{OnDead: &client.Callback{URL: "https://fine.example/"}, OnBacklog: backlog})
		page := site.Get(path).OK()
		require.Equal(t,
			"Topic order sets 3 fields: on_dead.url, on_backlog.older_than and on_backlog.url.", lead(t, page))
		text := consoletest.Text(site.Follow(site.Post(path, "revision", revision(t, page), "on_dead.url", "",
			"on_backlog.url", "")).OK())
		require.Contains(t, text, "Topic order is changed: on_dead and on_backlog.")
		got, err := site.API.GetTopicSettings(t.Context(), "order")
		require.NoError(t, err)
		require.Nil(t, got.OnDead)
		require.Nil(t, got.OnBacklog)
	})
}

func TestPolicy_TakesZeroOfTheIDWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{IDWindow: new(time.Hour)})
		rev := revision(t, site.Get("topics/order/policy").OK())
		site.Follow(site.Post("topics/order/policy", "revision", rev, "id_window", "0")).OK()
		page := site.Get("topics/order/policy").OK()
		require.Regexp(t, `name="id_window" value="0s"`, page)
		got, err := site.API.GetTopicSettings(t.Context(), "order")
		require.NoError(t, err)
		require.Equal(t, new(time.Duration(0)), got.IDWindow)
		site.Follow(site.Post("topics/order/policy", "revision", revision(t, page), "id_window", "")).OK()
		got, err = site.API.GetTopicSettings(t.Context(), "order")
		require.NoError(t, err)
		require.Nil(t, got.IDWindow, "empty is the default")
	})
}

func TestPolicy_SaysWhatIsInvalidAndKeepsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{})
		rev := revision(t, site.Get("topics/order/policy").OK())
		page := site.Post("topics/order/policy", "revision", rev, "timeout", "soon", "rate",
			"5/s").Is(http.StatusUnprocessableEntity)
		require.Contains(t, page, `value="soon"`)
		require.Contains(t, page, `value="5/s"`)
		require.Regexp(t, `id="f-timeout"[^>]*aria-invalid="true"`, page)
		page = site.Post("topics/order/policy", "revision", rev, "timeout", "1h", "ladder", "15s, 90d", "on_dead.url",
			"nonsense", "rate", "lots", "success.status", "none").Is(http.StatusUnprocessableEntity)
		text := consoletest.Text(page)
		for _, want := range []string{"timeout: must", "ladder:", "on_dead.url: must", "rate:", "success.status:"} {
			require.Contains(t, text, want)
		}
		got, err := site.API.GetTopicSettings(t.Context(), "order")
		require.NoError(t, err)
		require.Zero(t, got.Timeout)
	})
}

func TestPolicy_IsNotOverwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{Timeout: time.Second, ManagedBy: "shop"})
		rev := revision(t, site.Get("topics/order/policy").OK())
		mia := site.Client(site.Token("mia", "admin"))
		site.Advance(time.Minute)
		_, err := mia.PatchTopic(t.Context(), "order", client.Policy{Workers: 7})
		require.NoError(t, err)
		page := site.Post("topics/order/policy", "revision", rev, "timeout", "5s", "workers",
			"").Is(http.StatusPreconditionFailed)
		text := consoletest.Text(page)
		require.Contains(t, text,
			"mia changed these settings at 00:01:00, since you opened the form. What you typed is kept.")
		require.Contains(t, text, "the files of shop")
		require.Contains(t, text, "saving again changes timeout and workers.")
		require.Contains(t, page, `name="timeout" value="5s"`)
		require.NotEqual(t, rev, revision(t, page))
		site.Follow(site.Post("topics/order/policy", "revision", revision(t, page), "timeout", "5s")).OK()
		got, err := site.API.GetTopicSettings(t.Context(), "order")
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, got.Timeout)
		require.Equal(t, 7, got.Workers)
	})
}

func TestForms_ShowWhatSomebodyChangedWhileTheyWereSaved(t *testing.T) {
	for path, race := range map[string]func(context.Context, *client.Client) error{
		"topics/order/policy": func(ctx context.Context, api *client.Client) error {
			_, err := api.PatchTopic(ctx, "order", client.Policy{LaneConcurrency: 7})
			return err
		},
		"topics/order/lanes/x": func(ctx context.Context, api *client.Client) error {
			_, err := api.PatchLane(ctx, "order", "x", client.LaneSettings{LaneConcurrency: 7})
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var site *consoletest.Site
			site = consoletest.New(t, consoletest.Options{Pages: []web.Pages{
				topicpages.New(new(recent.Answers)),
			}, WrapAPI: func(
				api http.Handler,
			) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("If-Match")+r.Header.Get("If-None-Match") != "" {
						if err := race(r.Context(), site.API); err != nil {
							t.Error(err)
						}
					}
					api.ServeHTTP(w, r)
				})
			}})
			put(t, site, "order", client.Policy{})
			before := revision(t, site.Get(path).OK())
			page := site.Post(path, "revision", before, "lane_rate", "5/s", "lane_concurrency",
				"").Is(http.StatusPreconditionFailed)
			require.NotEqual(t, before, revision(t, page), path)
			require.Contains(t, page, `name="lane_rate" value="5/s"`, path)
			for _, name := range []string{"lane_rate", "lane_concurrency"} {
				require.Regexp(t, `saving again changes [a-z_ ]*\b`+name+`\b`, consoletest.Text(page), path)
			}
		})
	}
}

func TestPolicy_OfANewTopicCreatesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		page := site.Get("topics/new/policy").OK()
		require.Equal(t, "There is no topic new yet: saving creates it.", lead(t, page))
		require.Equal(t, "0", revision(t, page))
		site.Follow(site.Post("topics/new/policy", "revision", "0", "ladder", "1s, 2s")).OK()
		got, err := site.API.GetTopicSettings(t.Context(), "new")
		require.NoError(t, err)
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, got.Ladder)
		site.Post("topics/_own/policy", "revision", "0", "ladder", "1s").Is(http.StatusUnprocessableEntity)
	})
}

func TestPolicy_IsShownWhileItIsTyped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{Timeout: 3 * time.Second})
		form := url.Values{"revision": {"1"}, "ladder": {"1m, 2m"}, "jitter": {"lots"}}
		part := site.Do(http.MethodPost, "topics/order/policy/preview", form, "HX-Request", "true").OK()
		require.NotContains(t, part, "<main")
		require.Contains(t, part, "jitter: must be a number")
		page := site.Do(http.MethodPost, "topics/order/policy/preview", form)
		require.Equal(t, http.StatusUnprocessableEntity, page.Code)
		form.Del("jitter")
		part = site.Do(http.MethodPost, "topics/order/policy/preview", form, "HX-Request", "true").OK()
		require.Contains(t, part, `<dd class="lines">1m, 2m</dd>`)
		require.Contains(t, part, `<dd class="lines">2 <span class="muted">default</span></dd>`)
		require.Contains(t, part, "2 retries: 1m, 3m after the first attempt.")
		whole := site.Do(http.MethodPost, "topics/order/policy/preview", form).OK()
		require.Contains(t, whole, `<dd class="lines">1m, 2m</dd>`)
		require.Contains(t, whole, `name="ladder" value="1m, 2m"`)
		got, err := site.API.GetTopicSettings(t.Context(), "order")
		require.NoError(t, err)
		require.Nil(t, got.Ladder, "nothing is stored")
	})
}

func TestPages_SayWhoChangedSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{})
		mia := site.Client(site.Token("mia", "admin"))
		site.Advance(time.Minute)
		_, err := mia.PatchTopic(t.Context(), "order", client.Policy{Workers: 7})
		require.NoError(t, err)
		_, err = mia.PutLane(t.Context(), "order", "x", client.LaneSettings{LaneConcurrency: 3})
		require.NoError(t, err)
		_, err = site.API.AddSecret(t.Context(), "order", "x", client.NewSecret{})
		require.NoError(t, err)
		_, err = mia.AddSecret(t.Context(), "order", "", client.NewSecret{})
		require.NoError(t, err)
		for path, name := range map[string]string{
			"topics/order": "mia", "topics/order/policy": "mia", "topics/order/lanes/x": "root",
		} {
			require.Contains(t, consoletest.Text(site.Get(path).OK()), "Changed by "+name+", 00:01:00", path)
		}
		require.Contains(t, site.Get("topics/order/secrets").OK(), "<td>mia</td>")
		require.Contains(t, site.Get("topics/order/lanes/x/secrets").OK(), "<td>root</td>")
		require.NotContains(t, consoletest.Text(site.Get("topics/order/lanes/y").OK()), "Changed by")
	})
}

func TestPages_SayWhenSettingsWereChangedWithoutTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		put(t, site, "order", client.Policy{})
		require.Contains(t, consoletest.Text(site.Get("topics/order/policy").OK()), "Changed 00:00:00")
		site.Register(client.Job{Topic: "adhoc", URL: "https://fine.example/"})
		require.NotContains(t, site.Get("topics/adhoc").OK(), "Changed ")
		page := site.Post("topics/order/policy", "revision", "9", "timeout", "5s").Is(http.StatusPreconditionFailed)
		require.Contains(t, consoletest.Text(page), "Somebody changed these settings since you opened the form")
	})
}

func TestPolicy_OfANewTopicIsNotOverwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		site.Register(client.Job{ID: "a", Topic: "adhoc", URL: "https://fine.example/", Delay: time.Hour})
		for _, topic := range []string{"fresh", "adhoc"} {
			path := "topics/" + topic + "/policy"
			rev := revision(t, site.Get(path).OK())
			require.Equal(t, "0", rev)
			put(t, site, topic, client.Policy{
				Timeout: 7 * time.Second, Workers: 3, URL: "https://shop.example/",
				LaneRate: "5/s", Rate: "9/s",
			})
			typed := []string{
				"revision", rev, "timeout", "", "workers", "", "url", "", "lane_rate", "",
				"rate", "", "retries", "4",
			}
			page := site.Post(path, typed...).Is(http.StatusPreconditionFailed)
			require.Contains(t, consoletest.Text(page), "saving again changes retries, ")
			for _, name := range []string{"timeout", "workers", "url", "lane_rate", "rate"} {
				require.Regexp(t, `saving again changes [a-z_, ]*\b`+name+`\b`, consoletest.Text(page))
			}
			require.Contains(t, page, `name="retries" value="4"`)
			got, err := site.API.GetTopicSettings(t.Context(), topic)
			require.NoError(t, err)
			require.Equal(t, 7*time.Second, got.Timeout)
			require.Nil(t, got.Retries)
		}
	})
}

func TestPolicy_OfAFormThatIsWrongOrPreviewedIsNotOverwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{Timeout: time.Second})
		rev := revision(t, site.Get("topics/order/policy").OK())
		_, err := site.API.PatchTopic(t.Context(), "order", client.Policy{Workers: 7})
		require.NoError(t, err)
		for _, path := range []string{"topics/order/policy", "topics/order/policy/preview"} {
			page := site.Post(path, "revision", rev, "timeout", "soon", "workers", "").Is(http.StatusPreconditionFailed)
			require.Contains(t, consoletest.Text(page), "saving again changes timeout and workers.")
			require.Contains(t, page, `value="soon"`)
		}
	})
}

func TestForms_WithoutARevisionAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{})
		_, err := site.API.PatchLane(t.Context(), "order", "x", client.LaneSettings{LaneConcurrency: 3})
		require.NoError(t, err)
		for _, path := range []string{
			"topics/order/policy", "topics/order/policy/preview", "topics/order/lanes/x",
			"topics/order/lanes/x/delete", "topics/order/delete",
		} {
			for _, rev := range []string{"", "x", "-1", "1.0"} {
				page := site.Post(path, "revision", rev, "url",
					"https://shop.example/").Is(http.StatusUnprocessableEntity)
				require.Contains(t, consoletest.Text(page),
					"does not say which revision it showed, so nothing was changed", path)
			}
		}
		got, err := site.API.GetLane(t.Context(), "order", "x")
		require.NoError(t, err)
		require.Equal(t, int64(1), got.Revision)
	})
}

func TestPolicy_DoesNotShowAPrivateKeyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{})
		const key = "-----BEGIN PRIVATE KEY-----\ns3cret"
		for _, sent := range [][]string{
			{"topics/order/policy", "revision", "1", "timeout", "soon"},
			{"topics/order/policy/preview", "revision", "1"},
			{"topics/order/policy", "revision", "9"},
		} {
			page := site.Post(sent[0],
				append(sent[1:], "client_cert.chain", "a chain", "client_cert.key", key)...).Body.String()
			require.Contains(t, page, "a chain", sent)
			require.NotContains(t, page, "s3cret", sent)
			require.Contains(t, page, "paste it again", sent)
		}
	})
}
