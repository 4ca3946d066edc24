package console_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/consoletest"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/capacity"
)

// samplePages are pages for the tests: one that is live, one with a form, one that fails.
func samplePages() web.Pages {
	return web.Pages{
		Name: "sample",
		Files: fstest.MapFS{
			"templates/sample.html": {Data: []byte(`{{define "content"}}<h1>Sample</h1><p>{{.Who.Actor}} in ` +
				`{{.Namespace}}</p>{{live "total" .}}{{end}}` +
				`{{define "live-total"}}<b>{{.Data}}</b>{{end}}`)},
		},
		Routes: []web.Route{
			web.Get("", access.ReadStats, showSample),
			web.Get("deep/{name}", access.ReadStats, showSample),
			web.Post("deep/{name}", access.PauseTopic, func(v *web.Visit) (web.Answer, error) {
				return web.Done(v.Path("deep", v.PathValue("name")), "Paused <b>"+v.Form("note")+"</b>."), nil
			}),
			web.Get("missing", access.ReadJob, func(v *web.Visit) (web.Answer, error) {
				_, err := v.API.Get(v.Request.Context(), "nothing")
				return nil, err
			}),
			web.Get("root-only", access.ReadNamespaces, showSample),
		},
	}
}

func showSample(v *web.Visit) (web.Answer, error) {
	stats, err := v.API.Stats(v.Request.Context())
	if err != nil {
		return nil, err
	}
	return &web.Page{View: "sample", Title: "Sample", Section: "now", Data: stats.Totals.Registered}, nil
}

func newSite(t *testing.T, tokens bool) *consoletest.Site {
	t.Helper()
	return consoletest.New(t, consoletest.Options{Pages: []web.Pages{samplePages()}, Tokens: tokens})
}

func TestConsole_NeedsNoTokenWhereTheAPINeedsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		page := site.Get("").OK()
		require.Contains(t, page, "in default")
		require.NotContains(t, page, "Sign out")
		require.Contains(t, consoletest.Text(site.Get("sign-in").OK()), "needs no token")
	})
}

func TestConsole_SignsInAndOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		asked := site.Get("deep/a?x=1")
		require.Equal(t, "../sign-in?next=deep%2Fa%3Fx%3D1", asked.Header().Get("Location"))
		require.Contains(t, consoletest.Text(site.Follow(asked).OK()), "Sign in")

		require.Contains(t, site.Post("sign-in", "token", "wrong").Is(http.StatusUnauthorized), "refused")
		site.Get("").Is(http.StatusSeeOther)

		signedIn := site.Post("sign-in", "token", " "+consoletest.RootToken+"\n", "next", "deep/a?x=1")
		require.Contains(t, site.Follow(signedIn).OK(), "Sign out")

		site.Post("sign-out").Is(http.StatusSeeOther)
		site.Get("").Is(http.StatusSeeOther)
	})
}

func TestConsole_ReadsNoMoreOfAFormToSignInThanItsFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		var many strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&many, "&%02x", i)
		}
		letters := strings.Repeat("%41", 2048) // the longest token, and each of its characters is escaped
		for form, status := range map[string]int{
			"token=" + consoletest.RootToken:                                 http.StatusSeeOther,
			"more=1&next=deep%2Fa&token=%20" + consoletest.RootToken + "%0A": http.StatusSeeOther,
			"token=" + letters + "&next=" + letters[:3*1024]:                 http.StatusUnauthorized,
			"token=" + letters + "%41":                                       http.StatusUnprocessableEntity,
			"token":                                                          http.StatusUnprocessableEntity,
			"token=" + consoletest.RootToken + many.String():                 http.StatusBadRequest,
			"token=" + consoletest.RootToken + "&x=" + letters + letters:     http.StatusBadRequest,
			"token=%4": http.StatusBadRequest,
		} {
			require.Equal(t, status, site.Serve(signIn(t, strings.NewReader(form))).Code, "%.50s", form)
		}
		require.Equal(t, "./", site.Post("sign-in", "token", consoletest.RootToken, "next",
			strings.Repeat("x", 1025)).Header().Get("Location"))
	})
}

// signIn returns a request that sends a form to sign in.
func signIn(t *testing.T, form io.Reader) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/console/sign-in", form)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// Wrong tokens wait, and the server does not bound how many do.
func TestConsole_KeepsNothingOfAFormToSignInWhileItsTokenIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const senders = 64
		release := make(chan struct{})
		site := consoletest.New(t, consoletest.Options{Tokens: true, WrapAPI: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				<-release
				w.WriteHeader(http.StatusUnauthorized)
			})
		}})
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		waiting := func(field string) int64 {
			before := heap()
			var all sync.WaitGroup
			for range senders {
				form := io.MultiReader(strings.NewReader("token=wrong&x="), strings.NewReader(field))
				all.Go(func() { site.Serve(signIn(t, form)) })
			}
			synctest.Wait()
			held := heap() - before
			close(release)
			all.Wait()
			release = make(chan struct{})
			return held / senders
		}
		short := waiting("")
		require.Less(t, waiting(strings.Repeat("x", 8<<10))-short, int64(2<<10))
	})
}

func TestConsole_SignsInWithinTheTimeOfOpenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := consoletest.New(t, consoletest.Options{Tokens: true, WrapAPI: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}})
		began := time.Now()
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		site.ServeTo(w, signIn(t, &slowForm{form: strings.NewReader("token=wrong")}))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, began.Add(limits.OpenWriteTimeout), w.write)
		require.Less(t, time.Since(began), limits.OpenWriteTimeout, "there is time for the answer")
	})
}

// deadlines is a response of a connection with deadlines.
type deadlines struct {
	*httptest.ResponseRecorder

	write time.Time
}

func (d *deadlines) SetReadDeadline(time.Time) error { return nil }

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.write = at
	return nil
}

// slowForm is a form that takes almost all the time that it has.
type slowForm struct {
	form io.Reader
	slow sync.Once
}

func (f *slowForm) Read(b []byte) (int, error) {
	f.slow.Do(func() { time.Sleep(limits.OpenReadTimeout - time.Millisecond) })
	return f.form.Read(b)
}

func TestConsole_EndsASessionAlsoForACopyOfItsCookie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, proto := range []string{"http", "https"} {
			site := newSite(t, true)
			form := url.Values{"token": {consoletest.RootToken}}
			first, _, _ := strings.Cut(site.Do(http.MethodPost, "sign-in", form, "X-Forwarded-Proto",
				proto).Header().Get("Set-Cookie"), ";")
			second, _, _ := strings.Cut(site.Do(http.MethodPost, "sign-in", form, "X-Forwarded-Proto",
				proto).Header().Get("Set-Cookie"), ";")
			site.SignOut() // the site has no cookies of its own any more
			get := func(method, path, cookie string) int {
				return site.Do(method, path, nil, "X-Forwarded-Proto", proto, "Cookie", cookie).Code
			}
			require.Equal(t, http.StatusOK, get(http.MethodGet, "", first))
			require.Equal(t, http.StatusSeeOther, get(http.MethodPost, "sign-out", first))
			require.Equal(t, http.StatusSeeOther, get(http.MethodGet, "", first), "the copy")
			require.Equal(t, http.StatusUnauthorized, get(http.MethodPost, "deep/a", first))
			require.Equal(t, http.StatusOK, get(http.MethodGet, "", second), "the same reader in another browser")
		}
	})
}

func TestConsole_KeepsSessionsInCookiesThatOnlyItSees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		form := url.Values{"token": {consoletest.RootToken}}
		for _, header := range [][]string{{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Proto", "HTTPS, http"}} {
			cookie := site.Do(http.MethodPost, "sign-in", form, header...).Header().Get("Set-Cookie")
			require.NotContains(t, cookie, consoletest.RootToken)
			for _, part := range []string{
				"__Host-", "Path=/", "HttpOnly", "Secure", "SameSite=Strict", "Max-Age=43200",
			} {
				require.Contains(t, cookie, part)
			}
		}
		cookie := site.Do(http.MethodPost, "sign-in", form, "X-Forwarded-Proto", "http").Header().Get("Set-Cookie")
		require.NotContains(t, cookie, "Secure", "a browser would drop it over plain HTTP")
		require.Contains(t, cookie, "SameSite=Strict")
	})
}

func TestConsole_AcceptsOverHTTPSOnlyCookiesThatOtherHostsCannotSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		site.SignIn(consoletest.RootToken)
		https := []string{"X-Forwarded-Proto", "https"}
		site.Do(http.MethodGet, "", nil, https...).Is(http.StatusSeeOther)
		site.Do(http.MethodPost, "sign-in", url.Values{"token": {consoletest.RootToken}},
			https...).Is(http.StatusSeeOther)
		site.Do(http.MethodGet, "", nil, https...).OK()

		site.Do(http.MethodPost, "sign-out", nil, https...).Is(http.StatusSeeOther)
		site.Do(http.MethodGet, "", nil, https...).Is(http.StatusSeeOther)
		site.Get("").Is(http.StatusSeeOther) // it ends the session without encryption, too
	})
}

func TestConsole_ReadsFormsOnlyOfReadersWhoMaySendThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		large := strings.Repeat("x", 300<<10)
		site.Post("deep/a", "note", large).Is(http.StatusUnauthorized)
		site.SignIn(consoletest.RootToken)
		site.Post("deep/a", "note", large).Is(http.StatusRequestEntityTooLarge)
	})
}

func TestConsole_HasRoomForTheLargestBodyOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := samplePages()
		release := make(chan struct{})
		pages.Routes = append(
			pages.Routes, web.PostJob("large", access.ReadStats, func(v *web.Visit) (web.Answer, error) {
				if v.Form("wait") != "" {
					<-release
				}
				return &web.Redirect{To: v.Path()}, nil
			}),
		)
		site := consoletest.New(t, consoletest.Options{Pages: []web.Pages{pages}})
		largest := strings.Repeat(`"`, 256<<10) // each takes 3 bytes of the form
		site.Post("large", "body", largest).Is(http.StatusSeeOther)
		site.Post("large", "body", largest+largest).Is(http.StatusRequestEntityTooLarge)

		send := func(form url.Values) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/console/large",
				strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.ContentLength = -1 // sent in chunks
			return site.Serve(r).Code
		}
		var sending sync.WaitGroup
		for range capacity.LargeForms.Share() {
			sending.Go(
				func() { assert.Equal(t, http.StatusSeeOther, send(url.Values{"body": {largest}, "wait": {"yes"}})) },
			)
		}
		synctest.Wait()
		require.Equal(t, http.StatusServiceUnavailable, send(url.Values{"body": {largest}}), "the share is in memory")
		close(release)
		sending.Wait()
		require.Equal(t, http.StatusSeeOther, send(url.Values{"body": {largest}}))
	})
}

func TestConsole_RefusesParametersInTheURLOfAForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		site.Post("deep/a", "note", "x").Is(http.StatusSeeOther)
		page := site.Post("deep/a?topik=shop&note=y", "note", "x").Is(http.StatusUnprocessableEntity)
		require.Contains(t, consoletest.Text(page),
			"Nothing was changed: the URL that a form is sent to has no parameters.")
		require.Contains(t, page, "<code>?topik</code>")
		require.Contains(t, page, "<code>?note</code>")
		page = site.Post("deep/a?"+strings.Repeat("x", 1000)+
			"=1&%3Cscript%3E=1", "note", "x").Is(http.StatusUnprocessableEntity)
		require.NotContains(t, page, strings.Repeat("x", 65))
		require.NotContains(t, page, "<script>")
		site.Post("deep/a?topic;lane", "note", "x").Is(http.StatusUnprocessableEntity)
		site.Get("deep/a?utm=1").OK()
	})
}

func TestConsole_RefusesTextThatIsNotUTF8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		page := site.Post("deep/a", "note", "caf\xe9", "caf\xe9", "x", "more",
			"café").Is(http.StatusUnprocessableEntity)
		require.Contains(t, consoletest.Text(page), "Some text of the request is not UTF-8, so nothing was changed.")
		require.Contains(t, page, "<code>note</code>")
		require.Contains(t, page, "<code>caf\ufffd</code>")
		require.NotContains(t, page, "<code>more</code>")
		require.Contains(t, site.Get("deep/a?q=caf%E9").Is(http.StatusUnprocessableEntity), "<code>?q</code>")
		site.Get("deep/a?q=caf%C3%A9").OK()
		site.Get("deep/caf%E9").Is(http.StatusNotFound)
	})
}

func TestConsole_KeepsReadersOnUncleanPathsWithinIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for _, path := range []string{"/deep/a%2Fb", "deep//a", "deep/../deep/a", "static"} {
			site.Get(path).Is(http.StatusNotFound)
		}
		require.Contains(t, site.Get("deep/a%2Fb").OK(), "Sample")
	})
}

func TestConsole_SessionsEndWithTheirTokenAndAfter12Hours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		created, err := site.API.CreateToken(t.Context(), client.TokenRequest{Name: "mia", Role: "read"})
		require.NoError(t, err)
		site.SignIn(created.Token)
		require.Contains(t, site.Get("").OK(), "mia")
		require.NoError(t, site.API.RevokeToken(t.Context(), created.ID))
		site.Advance(6 * time.Second)
		site.Get("").Is(http.StatusSeeOther)

		site.SignIn(consoletest.RootToken)
		site.Advance(12*time.Hour - time.Minute)
		site.Get("").OK()
		site.Advance(time.Minute)
		site.Get("").Is(http.StatusSeeOther)
	})
}

func TestConsole_LeadsOnlyToItsOwnPagesAfterSigningIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		for _, next := range []string{
			"https://evil.example/", "//evil.example/", "/elsewhere", "../../x",
			`\\evil.example`, "javascript:alert(1)", "a/../../../x",
		} {
			to := site.Post("sign-in", "token", consoletest.RootToken, "next", next).Header().Get("Location")
			require.Equal(t, "./", to, next)
		}
		require.Equal(t, "./@shop/jobs?state=dead", site.Post("sign-in", "token", consoletest.RootToken, "next",
			"@shop/jobs?state=dead").Header().Get("Location"))
	})
}

func TestConsole_OpensLinksOfOtherSitesWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		page := site.Do(http.MethodGet, "deep/a", nil, "Sec-Fetch-Site", "cross-site",
			"Sec-Fetch-Mode", "navigate").OK()
		require.Contains(t, page, `content="0"`)
		page = site.Do(http.MethodGet, "deep/a", nil, "Sec-Fetch-Site", "").OK()
		require.Contains(t, page, `content="0; url=../sign-in?next=deep%2Fa"`,
			"over plain HTTP browsers do not say where a link was")
		page = site.Do(http.MethodGet, "", nil, "Sec-Fetch-Site", "").OK()
		require.Contains(t, page, `content="0; url=./sign-in?next="`)
		site.SignIn(consoletest.RootToken)
		require.Equal(t, "./", site.Get("sign-in?next=").Header().Get("Location"), "the browser sends the session now")
		require.Equal(t, "./deep/a", site.Get("sign-in?next=deep%2Fa").Header().Get("Location"))
		site.Get("sign-in").OK()
		refused := site.Do(http.MethodPost, "deep/a", nil, "Sec-Fetch-Site", "cross-site").Is(http.StatusForbidden)
		require.Equal(t, "Cross-origin requests are refused: a proxy must forward the header Host.\n", refused)
	})
}

func TestConsole_RefusesWhatTheRoleDoesNotAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		site.SignIn(site.Token("mia", "read"))
		site.Get("deep/a").OK()
		require.Contains(t, site.Post("deep/a", "note", "x").Is(http.StatusForbidden), "operate or admin")
		require.Contains(t, site.Get("root-only").Is(http.StatusForbidden), "requires a root token")
		site.SignIn(site.Token("otto", "publish"))
		require.Contains(t, site.Get("").Is(http.StatusForbidden), `href="./jobs"`,
			"it leads to a page that the token may see")
		require.Equal(t, "./jobs", site.Post("sign-in", "token", site.Token("pia", "publish")).Header().Get("Location"))
	})
}

func TestConsole_ShowsNoticesOnceAndEscaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		site.SignIn(consoletest.RootToken)
		answer := site.Post("deep/a", "note", "<script>")
		require.NotContains(t, answer.Header().Get("Set-Cookie"), "script")
		site.Do(http.MethodHead, "deep/a", nil).Is(http.StatusOK)
		page := site.Follow(answer).OK()
		require.Contains(t, page, "Paused &lt;b&gt;&lt;script&gt;&lt;/b&gt;.")
		require.NotContains(t, site.Get("deep/a").OK(), "Paused")

		site.Post("deep/b", "note", "for b").Is(http.StatusSeeOther)
		require.NotContains(t, site.Get("deep/a").OK(), "for b", "the notice is for another page")
		require.Contains(t, site.Get("deep/b").OK(), "for b")
		long := site.Post("deep/a", "note", strings.Repeat("<", 5000))
		require.Less(t, len(long.Header().Get("Set-Cookie")), 4000)
		require.Contains(t, site.Follow(long).OK(), "Paused &lt;b&gt;&lt;&lt;")
	})
}

func TestConsole_ShowsProblemsOfTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		require.Contains(t, consoletest.Text(site.Get("missing").Is(http.StatusNotFound)), "Not found")
		require.Contains(t, consoletest.Text(site.Get("no/such/page").Is(http.StatusNotFound)), "no such page")
	})
}

func TestConsole_SaysHowAFailedRequestIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := samplePages()
		busy := func(*web.Visit) (web.Answer, error) {
			return nil, &client.Problem{
				Status: http.StatusServiceUnavailable, Code: "timeout",
				Detail: "The store did not answer.",
			}
		}
		pages.Routes = append(pages.Routes, web.Get("busy", access.ReadStats, busy),
			web.Post("busy/form", access.ReadStats, busy))
		site := consoletest.New(t, consoletest.Options{Pages: []web.Pages{pages}})
		require.Contains(t, site.Get("busy").Is(http.StatusServiceUnavailable), `href="./busy">Try again`)
		page := site.Post("busy/form", "note", "x").Is(http.StatusServiceUnavailable)
		require.Contains(t, consoletest.Text(page), "load this page again and confirm it")
		require.NotContains(t, page, "Try again", "a link would lose the form")
	})
}

func TestConsole_WritesRelativeLinksAtEveryDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		site.SignIn(consoletest.RootToken)
		for path, want := range map[string]string{
			"": `href="./topics"`, "deep/a": `href="../topics"`, "deep/a%2Fb": `href="../topics"`,
		} {
			require.Contains(t, site.Get(path).OK(), want, path)
		}
		page := site.Get("@shop/deep/a")
		page.Is(http.StatusNotFound) // there is no such namespace
		_, err := site.API.PutNamespace(t.Context(), "shop", client.NamespaceRequest{})
		require.NoError(t, err)
		site.Advance(6 * time.Second)
		text := site.Get("@shop/deep/a").OK()
		require.Contains(t, text, "in shop")
		require.Contains(t, text, `href="../topics"`)
		require.Contains(t, text, `href="../../settings/namespaces"`)
		site.Get("@/deep/a").Is(http.StatusNotFound)
	})
}

func TestConsole_SetsHeadersAgainstScriptsAndFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		for _, path := range []string{"", "sign-in", "nothing", "static/x"} {
			h := site.Get(path).Header()
			policy := h.Get("Content-Security-Policy")
			require.Contains(t, policy, "default-src 'none'", path)
			require.Contains(t, policy, "frame-ancestors 'none'", path)
			require.NotContains(t, policy, "unsafe", path)
			require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
			require.Contains(t, h.Get("X-Robots-Tag"), "noindex", path)
		}
	})
}

// stream opens the stream of a page's live blocks and returns a function that reads the next event.
func stream(t *testing.T, site *consoletest.Site, path string) (next func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	res := site.Stream(ctx, path)
	require.Equal(t, http.StatusOK, res.StatusCode)
	lines := bufio.NewScanner(res.Body)
	t.Cleanup(func() {
		cancel()
		_ = res.Body.Close()
	})
	return func() string {
		var event strings.Builder
		for lines.Scan() {
			if line := lines.Text(); line != "" && !strings.HasPrefix(line, ":") {
				event.WriteString(line + "\n")
			} else if event.Len() > 0 {
				break
			}
		}
		return event.String()
	}
}

func TestLive_SendsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		next := stream(t, site, "?live=1")
		require.Contains(t, next(), `<div id="live-total"><b>0</b></div>`)
		site.Register(client.Job{ID: "a", URL: "https://fine.example/"})
		began := time.Now()
		require.Equal(t, "data: <hx-partial hx-target=\"#live-total\" hx-swap=\"outerMorph\"><div "+
			"id=\"live-total\"><b>1</b></div></hx-partial>\n", next())
		require.LessOrEqual(t, time.Since(began), 3*time.Second)
	})
}

func TestLive_RendersOnceForAllWhoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rendered atomic.Int64
		pages := samplePages()
		pages.Routes[0] = web.Get("", access.ReadStats, func(v *web.Visit) (web.Answer, error) {
			if v.Live {
				rendered.Add(1)
			}
			return showSample(v)
		})
		site := consoletest.New(t, consoletest.Options{Pages: []web.Pages{pages}})
		ctx, cancel := context.WithCancel(t.Context())
		for range 10 {
			res := site.Stream(ctx, "?live=1")
			defer func() { _ = res.Body.Close() }()
		}
		time.Sleep(19 * time.Second)
		synctest.Wait()
		require.InDelta(t, 10, rendered.Load(), 1, "every 2 s")
		cancel()
		synctest.Wait()
		before := rendered.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, before, rendered.Load(), "nobody watches")
	})
}

func TestLive_IsRefusedWithAStatusWhereNothingIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := samplePages()
		pages.Routes = append(pages.Routes, web.Get("part", access.ReadStats, func(*web.Visit) (web.Answer, error) {
			return &web.Part{View: "sample", Template: "live-total"}, nil
		}))
		site := consoletest.New(t, consoletest.Options{Pages: []web.Pages{pages}})
		for _, path := range []string{"part?live=1", "missing?live=1"} {
			res := site.Stream(t.Context(), path)
			_ = res.Body.Close()
			require.Equal(t, http.StatusNotFound, res.StatusCode, path)
		}
	})
}

func TestLive_SurvivesAPageThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := samplePages()
		var failing atomic.Bool
		failing.Store(true)
		pages.Routes[0] = web.Get("", access.ReadStats, func(v *web.Visit) (web.Answer, error) {
			if failing.Load() {
				panic("a bug")
			}
			return showSample(v)
		})
		site := consoletest.New(t,
			consoletest.Options{Pages: []web.Pages{pages}, Logger: slog.New(slog.DiscardHandler)})
		next := stream(t, site, "?live=1")
		require.Contains(t, next(), "Live updates fail now")
		failing.Store(false)
		require.Contains(t, next(), "<b>0</b>")
	})
}

// watch opens streams until the test ends, and returns the status of the last one.
func watch(t *testing.T, site *consoletest.Site, streams int, path func(n int) string) (status int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	for n := range streams {
		res := site.Stream(ctx, path(n))
		t.Cleanup(func() { _ = res.Body.Close() })
		if n < streams-1 {
			require.Equal(t, http.StatusOK, res.StatusCode)
		}
		status = res.StatusCode
	}
	return status
}

func TestLive_BoundsTheStreamsOfAToken(t *testing.T) {
	for name, path := range map[string]func(n int) string{
		"of one page":        func(int) string { return "?live=1" },
		"of different pages": func(n int) string { return fmt.Sprintf("?live=1&n=%d", n) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := newSite(t, true)
				site.SignIn(site.Token("mia", "read"))
				require.Equal(t, http.StatusServiceUnavailable, watch(t, site, 33, path))
				site.SignIn(consoletest.RootToken)
				require.Equal(t, http.StatusOK, watch(t, site, 1, path), "others have theirs")
			})
		})
	}
}

func TestLive_BoundsTheStreamsOfANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		path := func(int) string { return "?live=1" }
		for n := range capacity.WatchedPages.Share() / 32 {
			site.SignIn(site.Token(fmt.Sprint("mia", n), "read"))
			require.Equal(t, http.StatusOK, watch(t, site, 32, path))
		}
		site.SignIn(consoletest.RootToken)
		require.Equal(t, http.StatusServiceUnavailable, watch(t, site, 1, path))
	})
}

func TestLive_CountsOnlyStreamsThatLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for range 200 {
			next := site.Stream(t.Context(), "?live=1")
			require.Equal(t, http.StatusOK, next.StatusCode)
			_ = next.Body.Close()
			synctest.Wait()
		}
	})
}

func TestLive_EndsWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		next := stream(t, site, "?live=1")
		require.NotEmpty(t, next())
		began := time.Now()
		site.Shutdown()
		require.Empty(t, next(), "the stream has ended")
		require.Equal(t, began, time.Now())
	})
}

func TestLive_EndsAfterTenMinutesSoThatTheSessionIsCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		res := site.Stream(t.Context(), "?live=1")
		began := time.Now()
		_, err := io.Copy(io.Discard, res.Body)
		require.NoError(t, err)
		require.Equal(t, 10*time.Minute, time.Since(began))
	})
}

func TestLive_EndsWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		site.SignIn(consoletest.RootToken)
		next := stream(t, site, "?live=1")
		require.NotEmpty(t, next())
		site.Post("sign-out").Is(http.StatusSeeOther)
		require.Empty(t, next(), "the stream has ended")
	})
}

func TestLive_EndsWithTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		created, err := site.API.CreateToken(t.Context(), client.TokenRequest{Name: "mia", Role: "read"})
		require.NoError(t, err)
		site.SignIn(created.Token)
		next := stream(t, site, "?live=1")
		require.NotEmpty(t, next())
		require.NoError(t, site.API.RevokeToken(t.Context(), created.ID))
		require.Empty(t, next(), "the stream has ended")
		again := site.Stream(t.Context(), "?live=1")
		_ = again.Body.Close()
		require.Equal(t, http.StatusUnauthorized, again.StatusCode)
	})
}

func TestConsole_IsWhereBrowsersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
		r.Header.Set("Accept", "text/html,*/*")
		require.Equal(t, "console/", site.Serve(r).Header().Get("Location"))
		r.Header.Set("Accept", "*/*")
		require.Contains(t, site.Serve(r).Body.String(), "openapi")
		r = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/console", nil)
		require.Equal(t, "console/", site.Serve(r).Header().Get("Location"))
		r = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/console/", nil)
		r.Header.Set("Ringback-Attempt", "1")
		require.Equal(t, http.StatusForbidden, site.Serve(r).Code)
	})
}

func TestConsole_ServesItsAssets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		page := site.Get("sign-in").OK()
		links := regexp.MustCompile(`(?:href|src)="\./(static/[^"]+)"`).FindAllStringSubmatch(page, -1)
		require.Len(t, links, 6)
		for _, link := range links {
			res := site.Get(link[1])
			res.OK()
			require.Contains(t, res.Header().Get("Cache-Control"), "immutable", link[1])
		}
	})
}
