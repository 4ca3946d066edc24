package topicpages_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
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
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

func TestLane_SaysWhatHoldsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order",
			client.Policy{Breaker: &client.Breaker{Failures: new(1), Open: time.Hour}, LaneConcurrency: 1})
		show := func(name string) string { return lead(t, site.Get("topics/order/lanes/"+name).OK()) }
		require.Equal(t, "No job waits.", show("x"))
		site.Register(client.Job{ID: "a", Topic: "order", URL: "https://fine.example/", Delay: time.Minute})
		require.Equal(t, "No job is ready: 1 job waits.", show("fine.example:443"))
		site.Register(client.Job{ID: "b", Topic: "order", URL: "https://refused.example/"})
		site.Advance(time.Second)
		require.Equal(t, "The breaker is open after failures in a row: when its cooldown ends, one job is attempted "+
			"as a probe. It ends at 01:00:00 (in 1h). 1 job waits. Its last attempt failed 1s ago, because the "+
			"connection was refused.",
			show("refused.example:443"))
		site.Register(client.Job{ID: "c", Topic: "order", URL: "https://busy.example/"})
		site.Advance(time.Second)
		require.Contains(t, show("busy.example:443"), "The receiver asked for a pause (Retry-After), which holds for "+
			"the whole lane. It ends at 00:01:01 (in")
		_, err := site.API.PauseLane(t.Context(), "order", "fine.example:443", "maintenance")
		require.NoError(t, err)
		require.Equal(t, "Paused by root since 00:00:02 (just now): “maintenance”. 1 job waits.",
			show("fine.example:443"))
		_, err = site.API.PauseTopic(t.Context(), "order", "all of it")
		require.NoError(t, err)
		require.Equal(t, "Its topic is paused by root since 00:00:02 (just now): “all of it”. 1 job waits.",
			show("fine.example:443"))
	})
}

func TestLane_SaysThatItsBreakerIsOpenAlsoWithoutJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{Breaker: &client.Breaker{Failures: new(1), Open: time.Hour}})
		site.Register(client.Job{ID: "a", Topic: "order", Lane: "x", URL: "https://down.example/", Retries: new(0)})
		site.Advance(time.Second)
		require.Equal(t, "The breaker is open. No job waits.", lead(t, site.Get("topics/order/lanes/x").OK()))
	})
}

func TestLane_SaysWhomReadyJobsWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "pull", client.Policy{Deliver: "pull"})
		for range 3 {
			site.Register(client.Job{Topic: "pull", Lane: "x"})
		}
		site.Advance(2 * time.Minute)
		page := site.Get("topics/pull/lanes/x").OK()
		require.Equal(t, "Nothing holds it, but no attempt is running: 3 jobs are ready for a client that leases "+
			"from the topic.", lead(t, page))
		require.Contains(t, page, `class="lead sentence warn"`)
		_, err := site.API.Lease(t.Context(), "pull", client.LeaseOptions{Max: 1, Lease: time.Minute})
		require.NoError(t, err)
		require.Equal(t, "Nothing holds it: 1 attempt is running. 2 jobs wait.",
			lead(t, site.Get("topics/pull/lanes/x").OK()))
	})
}

func TestLane_SaysWhenItIsNotKnownWhatHoldsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := consoletest.New(t, consoletest.Options{Pages: []web.Pages{
			topicpages.New(new(recent.Answers)),
		}, WrapAPI: func(
			api http.Handler,
		) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/lanes/troubled" {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"items": [], "total": 0, "looked_at": 0, "exact": false}`)
					return
				}
				api.ServeHTTP(w, r)
			})
		}})
		put(t, site, "pull", client.Policy{Deliver: "pull"})
		site.Register(client.Job{Topic: "pull", Lane: "x"})
		site.Advance(time.Second)
		require.Equal(t, "Whether something holds it is not known now. 1 job waits.",
			lead(t, site.Get("topics/pull/lanes/x").OK()))
	})
}

func TestLane_AtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{Ordered: new(true), Timeout: time.Minute})
		site.Register(
			client.Job{ID: "a", Topic: "order", Lane: "x", URL: "https://slow.example/"},
			client.Job{ID: "b", Topic: "order", Lane: "x", URL: "https://slow.example/"},
		)
		site.Advance(time.Second)
		page := site.Get("topics/order/lanes/x").OK()
		require.NotContains(t, lead(t, page), "Nothing holds it")
		require.Contains(t, page, `<span class="value">1</span> <span class="note">of 1</span>`)
	})
}

func TestLane_SaysWhatHoldsItBehindManyWorseLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{LaneRate: "1/h"})
		put(t, site, "worse", client.Policy{})
		_, err := site.API.PauseTopic(t.Context(), "worse", "")
		require.NoError(t, err)
		for i := range 25 { // more than a search lists
			site.Register(client.Job{Topic: "worse", Lane: fmt.Sprint("l", i), URL: "https://fine.example/"})
		}
		site.Register(
			client.Job{ID: "a", Topic: "order", Lane: "x", URL: "https://fine.example/"},
			client.Job{ID: "b", Topic: "order", Lane: "x", URL: "https://fine.example/"},
		)
		site.Advance(time.Second)
		page := site.Get("topics/order/lanes/x").OK()
		require.Contains(t, lead(t, page), "The lane has used up its lane_rate of 1/h")
		require.Contains(t, page, `<a href="../../../topics/order">Settings of topic order</a>`)
		require.NotContains(t, page, "Nothing holds it")
	})
}

func TestLane_ShowsItsSettingsAndJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{URL: "https://fine.example/hooks", LaneConcurrency: 4})
		_, err := site.API.PutLane(t.Context(), "order", "[::1]:8080", client.LaneSettings{
			LaneRate:  "5/s",
			ManagedBy: "shop", Headers: client.Headers{"Authorization": {"s3cret"}},
		})
		require.NoError(t, err)
		site.Register(
			client.Job{ID: "a", Topic: "order", Lane: "[::1]:8080"},
			client.Job{ID: "b", Topic: "order", Lane: "[::1]:8080", Delay: time.Hour},
			client.Job{ID: "c", Topic: "order", Lane: "[::1]:8080", URL: "https://down.example/", Retries: new(0)},
		)
		site.Advance(time.Second)
		page := site.Golden("lane", "topics/order/lanes/%5B::1%5D:8080")
		require.NotContains(t, page, "s3cret")
		require.Contains(t, page, `href="../../../jobs?lane=%5B%3A%3A1%5D%3A8080&amp;topic=order"`)
		require.Contains(t, page, `placeholder="https://fine.example/hooks"`)
	})
}

func TestLane_IsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{})
		const path = "topics/order/lanes/pay.example.com:443"
		rev := revision(t, site.Get(path).OK())
		page := site.Follow(site.Post(path, "revision", rev, "lane_rate", "5/s", "ordered", "true")).OK()
		require.Contains(t, consoletest.Text(page),
			"Lane pay.example.com:443 of topic order is changed: lane_rate and ordered.")
		page = site.Post(path, "revision", "0", "lane_rate", "7/s").Is(http.StatusPreconditionFailed)
		require.Contains(t, page, `value="7/s"`)
		require.Contains(t, consoletest.Text(page), "saving again changes lane_rate.")
		page = site.Post(path, "revision", revision(t, page), "lane_rate", "lots", "url",
			"nonsense").Is(http.StatusUnprocessableEntity)
		require.Contains(t, page, `value="lots"`)
		require.Contains(t, consoletest.Text(page), "url: must")
		require.Contains(t, consoletest.Text(site.Follow(site.Post(path, "revision", "2", "lane_rate", "5/s")).OK()),
			"Nothing was changed")

		require.Contains(t, consoletest.Text(site.Follow(site.Post(path+"/pause", "note", "x")).OK()), "is paused")
		require.Contains(t, consoletest.Text(site.Follow(site.Post(path+"/resume")).OK()), "is resumed")
		site.Post(path+"/delete", "revision", "99").Is(http.StatusPreconditionFailed)
		require.Contains(t, consoletest.Text(site.Follow(site.Post(path+
			"/delete", "revision", revision(t, site.Get(path).OK()))).OK()), "are deleted")
		require.Contains(t, consoletest.Text(site.Follow(site.Post(path+"/delete", "revision", "0")).OK()),
			"The lane has no settings.")
	})
}

func TestSecrets_AreAddedShownOnceAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, path := range []string{"topics/order", "topics/order/lanes/x.y:1"} {
			site := signedIn(t)
			put(t, site, "order", client.Policy{})
			if path == "topics/order" {
				site.Golden("topic-secrets", path+"/secrets")
			}
			require.Contains(t, lead(t, site.Get(path+"/secrets").OK()), map[bool]string{true: "Attempts are not " +
				"signed", false: "those of its topic sign"}[path == "topics/order"])
			page := site.Follow(site.Post(path+"/secrets", "kind", "ed25519", "secret", "")).OK()
			require.Regexp(t, `whsk_[A-Za-z0-9+/]{20}`, consoletest.Text(page))
			require.Contains(t, page, "whpk_")
			page = site.Get(path + "/secrets").OK()
			require.NotRegexp(t, `whsk_[A-Za-z0-9+/]{20}`, consoletest.Text(page))
			require.Contains(t, lead(t, page), "Attempts are signed with 1 secret")
			page = site.Post(path+
				"/secrets", "kind", "hmac", "secret", "whsec_short").Is(http.StatusUnprocessableEntity)
			require.Contains(t, consoletest.Text(page), "secret: ")
			require.NotContains(t, page, "whsec_short", "a secret is not sent back")
			page = site.Follow(site.Post(path+"/secrets", "kind", "hmac")).OK()
			require.Regexp(t, `whsec_[A-Za-z0-9+/]{20}`, consoletest.Text(page))
			require.Contains(t, lead(t, page), "2 secrets")
			var first string
			for s, err := range site.API.Secrets(
				t.Context(), "order", map[bool]string{false: "x.y:1"}[path == "topics/order"],
			) {
				require.NoError(t, err)
				first = s.ID
			}
			page = site.Follow(site.Post(path + "/secrets/" + first + "/remove")).OK()
			require.Contains(t, consoletest.Text(page), "Secret "+first+" of")
			require.Contains(t,
				consoletest.Text(site.Follow(site.Post(path+"/secrets/"+first+"/remove")).OK()), "gone already")
		}
	})
}

// hostile are texts that must not become HTML.
const hostile = `<script>alert(1)</script>"><img src=x onerror=alert(1)>`

func TestPages_EscapeWhatOthersWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := consoletest.New(t, consoletest.Options{
			Pages:  []web.Pages{topicpages.New(new(recent.Answers))},
			Tokens: true, Deliver: func(job.Request) policy.Result {
				return policy.Result{Class: policy.ClassRefused, Error: hostile}
			},
		})
		site.SignIn(consoletest.RootToken)
		created, err := site.API.CreateToken(t.Context(), client.TokenRequest{Name: "mia", Role: "operate"})
		require.NoError(t, err)
		callback := &client.Callback{
			URL:     "https://x.example/?q=%3Cscript%3E&\"<script>alert(1)</script>",
			Headers: client.Headers{"X-A": {hostile}},
		}
		p := client.Policy{
			URL:     "https://x.example/<script>alert(1)</script>\"><img%20src=x>",
			Headers: client.Headers{"X-A": {hostile}}, Success: &client.Success{BodyEquals: hostile},
			OnDead: callback, OnDelivered: callback, Breaker: &client.Breaker{Failures: new(1), Open: time.Hour},
		}
		if _, err := site.API.PutTopic(t.Context(), "order", p); err != nil { // the API may refuse such a URL
			p.OnDead, p.OnDelivered, p.URL = nil, nil, "https://x.example/"
			put(t, site, "order", p)
		}
		_, err = site.API.PatchLane(t.Context(), "order", "x",
			client.LaneSettings{Headers: client.Headers{"X-A": {hostile}}})
		require.NoError(t, err)
		site.Register(client.Job{ID: "a", Topic: "order", Lane: "x", URL: "https://x.example/"})
		site.Advance(time.Second)
		pages := map[string]string{}
		show := func() {
			for _, path := range []string{
				"topics", "topics/order", "topics/order/policy", "topics/order/secrets",
				"topics/order/delete", "topics/order/lanes/x", "topics/order/lanes/x/secrets",
			} {
				pages[path] = site.Get(path).OK()
			}
		}
		show()
		for path, page := range pages {
			requireEscaped(t, path, page)
		}
		require.Contains(t, pages["topics/order/lanes/x"], "&lt;script&gt;alert(1)", "the receiver's error")
		mia := site.Client(created.Token)
		_, err = mia.PauseTopic(t.Context(), "order", hostile)
		require.NoError(t, err)
		_, err = mia.PauseLane(t.Context(), "order", "x", hostile)
		require.NoError(t, err)
		show()
		for path, page := range pages {
			requireEscaped(t, path, page)
		}
		require.Contains(t, pages["topics"], "&lt;script&gt;alert(1)", "the note of the pause")
		titles := make(map[string]string)
		for path, page := range pages {
			_, rest, _ := strings.Cut(page, "<title>")
			title, _, _ := strings.Cut(rest, "</title>")
			require.Empty(t, titles[title], "%s has the title of %s", path, titles[title])
			titles[title] = path
		}
		for _, path := range []string{
			"topics/order/policy", "topics/order/policy/preview", "topics/order/lanes/x",
			"topics/order/secrets", "topics/order/pause",
		} {
			rev := "0"
			if found := revisionField.FindStringSubmatch(site.Get(strings.TrimSuffix(strings.TrimSuffix(path,
				"/preview"), "/pause")).OK()); found != nil {
				rev = found[1]
			}
			page := site.Post(path, "timeout", hostile, "ladder", hostile, "headers", hostile, "url", hostile, "secret",
				hostile, "kind", hostile, "note", hostile+strings.Repeat("x", 500), "revision", rev)
			page.Is(http.StatusUnprocessableEntity)
			requireEscaped(t, path, page.Body.String())
		}
		for _, path := range []string{"topics/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "topics/a%22%3E%3Cimg%20src=x%3E"} {
			requireEscaped(t, path, site.Get(path).OK())
		}
	})
}

func requireEscaped(t *testing.T, path, page string) {
	t.Helper()
	for _, bad := range []string{"<script>alert", "<img", "onerror=alert(1)>"} {
		require.NotContains(t, page, bad, path)
	}
}

func TestTopic_IsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := signedIn(t)
		put(t, site, "order", client.Policy{})
		for path, want := range map[string]string{
			"topics?live=1": `<div id="live-topics">`, "topics/order?live=1": `<div id="live-topic-lead">`,
			"topics/order/lanes/x?live=1": `<div id="live-lane-counts">`,
		} {
			res := site.Stream(t.Context(), path)
			require.Equal(t, http.StatusOK, res.StatusCode)
			lines := bufio.NewScanner(res.Body)
			found := false
			for !found && lines.Scan() && lines.Text() != "" {
				found = strings.Contains(lines.Text(), want)
			}
			require.True(t, found, path)
			require.NoError(t, res.Body.Close())
		}
	})
}
