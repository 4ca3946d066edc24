package settingspages_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console"
	"github.com/ringback/ringback/console/consoletest"
	"github.com/ringback/ringback/console/settingspages"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/doctor"
)

const script = `"><script>alert(1)</script><img src=x onerror=alert(1)>`

func newSite(t *testing.T, tokens bool, o settingspages.Options) *consoletest.Site {
	t.Helper()
	return consoletest.New(t, consoletest.Options{Pages: []web.Pages{settingspages.New(o)}, Tokens: tokens})
}

// asRoot is newSite with tokens, signed in as root.
func asRoot(t *testing.T, o settingspages.Options) *consoletest.Site {
	t.Helper()
	site := newSite(t, true, o)
	site.SignIn(consoletest.RootToken)
	return site
}

func lead(t *testing.T, page string) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<p class="lead[^>]*>.*?</p>`).FindAllString(page, -1)
	require.Len(t, found, 1)
	return consoletest.Text(found[0])
}

func TestSettings_SaysWhoseTheTokenIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false, settingspages.Options{})
		require.Equal(t, "This server needs no token: whoever reaches it may do everything.",
			lead(t, site.Golden("settings-open", "settings")))
	})
	synctest.Test(t, func(t *testing.T) {
		site := asRoot(t, settingspages.Options{})
		require.Equal(t, "You are root: your token may do everything, in all namespaces.",
			lead(t, site.Get("settings").OK()))
		created, err := site.API.CreateToken(t.Context(), client.TokenRequest{
			Name: "mia", Role: "operate",
			Topics: []string{"order.*", "mail"}, ExpiresIn: 72 * time.Hour,
		})
		require.NoError(t, err)
		site.SignIn(created.Token)
		page := site.Golden("settings-operate", "settings")
		require.Equal(t,
			"You are mia: your token has the role operate, in the namespace default, and ends in 3d.", lead(t, page))
		require.Contains(t, consoletest.Text(page), "Topics order.*, mail")
		for _, below := range []string{
			"settings/tokens", "settings/namespaces", "settings/in-force", "settings/checks",
		} {
			require.NotContains(t, page, below)
			site.Get(below).Is(http.StatusForbidden)
		}
		site.SignIn(site.Token("otto", "publish"))
		require.Contains(t, lead(t, site.Get("settings").OK()), "does not end")
	})
}

func TestSettings_LeadsToThePagesThatTheTokenMaySee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true, settingspages.Options{})
		site.SignIn(site.Token("ada", "admin"))
		page := site.Get("settings").OK()
		require.Contains(t, page, `href="./settings/tokens"`)
		require.NotContains(t, page, `href="./settings/namespaces"`)
		site.Get("settings/tokens").OK()
		for _, path := range []string{
			"settings/namespaces", "settings/namespaces/default",
			"settings/namespaces/default/delete", "settings/in-force", "settings/checks",
		} {
			require.Contains(t, site.Get(path).Is(http.StatusForbidden), "requires a root token", path)
		}
		site.SignIn(consoletest.RootToken)
		titles := make(map[string]bool)
		for _, below := range []string{
			"", "/tokens", "/namespaces", "/namespaces/default", "/namespaces/default/delete", "/in-force", "/checks",
		} {
			page := site.Get("settings" + below).OK()
			titles[regexp.MustCompile(`<title>.*</title>`).FindString(page)] = true
			lead(t, page)
		}
		require.Len(t, titles, 7)
	})
}

func TestSettings_RefusesFormsOfOtherRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true, settingspages.Options{})
		created, err := site.API.CreateToken(t.Context(), client.TokenRequest{Name: "a", Role: "read"})
		require.NoError(t, err)
		for role, paths := range map[string][]string{
			"read": {
				"settings/tokens", "settings/tokens/" + created.ID + "/revoke", "settings/namespaces",
				"settings/namespaces/x", "settings/namespaces/x/delete", "settings/checks",
			},
			"admin": {
				"settings/namespaces", "settings/namespaces/x", "settings/namespaces/x/delete", "settings/checks",
			},
		} {
			site.SignIn(site.Token("z-"+role, role))
			for _, path := range paths {
				site.Post(path, "name", "b", "role", "admin", "namespace", "x", "confirm", "x").Is(http.StatusForbidden)
			}
		}
	})
}

func TestTokens_CreatesOneAndShowsItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := asRoot(t, settingspages.Options{})
		require.Contains(t, lead(t, site.Get("settings/tokens").OK()), "There are no tokens yet")
		answer := site.Post("settings/tokens", "name", "shop-api", "role", "publish", "topics", "order.*, mail",
			"bodies", "false", "expires_in", "5d", "namespace", "default")
		require.NotContains(t, answer.Header().Get("Set-Cookie"), "rb_")
		page := site.Follow(answer).OK()
		text := regexp.MustCompile(`<pre id="secret" tabindex="0">(rb_\w+)</pre>`).FindStringSubmatch(page)
		require.Len(t, text, 2)
		who, err := site.Client(text[1]).Whoami(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"order.*", "mail"}, who.Topics)
		require.False(t, who.Bodies)
		require.Equal(t, "publish", who.Role)
		page = site.Golden("tokens", "settings/tokens")
		require.NotContains(t, page, text[1])
		require.Equal(t, "1 token: 1 ends within a week.", lead(t, page))
		require.Contains(t, consoletest.Text(page), "order.*, mail root")
	})
}

func TestTokens_KeepsTheFormWhenItIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := asRoot(t, settingspages.Options{})
		page := site.Post("settings/tokens", "name", script, "role", "admin", "topics", "order.*", "expires_in", "90d",
			"namespace", "nowhere").Is(http.StatusUnprocessableEntity)
		require.Contains(t, page, `href="#f-name"`)
		require.Contains(t, page, `href="#f-topics"`)
		require.Contains(t, page, `value="admin" checked`)
		requireEscaped(t, page)
		page = site.Post("settings/tokens", "name", "a", "role", "read", "expires_in", "soon", "bodies",
			"maybe").Is(http.StatusUnprocessableEntity)
		require.Contains(t, page, `href="#f-expires_in"`)
		require.Contains(t, page, `href="#f-bodies"`)
		require.Contains(t, page, `<fieldset id="f-bodies" aria-describedby="e-bodies">`)
		require.Contains(t, page, `id="e-bodies">must be one of the choices`)
		page = site.Post("settings/tokens", "name", "a", "role", "read", "namespace",
			"nowhere").Is(http.StatusUnprocessableEntity)
		require.Contains(t, page, `href="#f-namespace"`)
		found, err := site.API.TokensPage(t.Context(), client.PageOptions{})
		require.NoError(t, err)
		require.Empty(t, found.Items)
	})
}

func TestTokens_RevokesOneAfterAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := asRoot(t, settingspages.Options{})
		other := site.Client(site.Token("mia", "operate"))
		who, err := other.Whoami(t.Context())
		require.NoError(t, err)
		page := site.Golden("token", "settings/tokens/"+who.TokenID)
		require.Contains(t, page, `data-confirm="Revoke the token mia?`)
		require.Contains(t, page, "within 5 seconds")
		require.NotContains(t, page, "your own")
		page = site.Follow(site.Post("settings/tokens/" + who.TokenID + "/revoke")).OK()
		require.Contains(t, page,
			"Token mia ("+who.TokenID+") is revoked. Its sessions and clients end within 5 seconds.")
		site.Advance(6 * time.Second)
		_, err = other.Whoami(t.Context())
		require.ErrorIs(t, err, client.ErrUnauthorized)
		site.Post("settings/tokens/" + who.TokenID + "/revoke").Is(http.StatusNotFound)
		site.Get("settings/tokens/" + who.TokenID).Is(http.StatusNotFound)
	})
}

func TestTokens_WarnsBeforeTheReadersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true, settingspages.Options{})
		text := site.Token("ada", "admin")
		who, err := site.Client(text).Whoami(t.Context())
		require.NoError(t, err)
		site.SignIn(text)
		require.Contains(t, site.Get("settings/tokens").OK(), "yours")
		page := site.Get("settings/tokens/" + who.TokenID).OK()
		require.Contains(t, page, "It is your own: you will be signed out.")
		require.Contains(t, lead(t, page), "This is the token that you use now.")
		require.NotContains(t, site.Get("settings/tokens").OK(), `name="namespace"`)
		site.Post("settings/tokens/" + who.TokenID + "/revoke").Is(http.StatusSeeOther)
		site.Advance(6 * time.Second)
		site.Get("settings/tokens").Is(http.StatusSeeOther)
	})
}

func TestNamespaces_CreatesChangesAndRemovesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := asRoot(t, settingspages.Options{})
		require.Contains(t, site.Follow(site.Post("settings/namespaces", "namespace", "shop", "quota.pending", "1,000",
			"quota.rate", "500/s")).OK(), "Namespace shop is created.")
		site.Advance(6 * time.Second)
		page := site.Golden("namespaces", "settings/namespaces")
		require.Equal(t, "2 namespaces; you are in default.", lead(t, page))
		require.Contains(t, page, `<td class="num">0 of 1,000</td>`)
		require.Contains(t, page, `href="../@shop/"`)
		within := site.Get("@shop/settings/namespaces").OK()
		require.Contains(t, within, `href="../../"`)
		require.Contains(t, within, `href="../../@shop/"`)
		require.Contains(t, lead(t, within), "you are in shop")

		page = site.Golden("namespace", "settings/namespaces/shop")
		require.Equal(t, "The jobs of shop are on the store main, and it may have 1,000 unfinished jobs and 500/s "+
			"registrations.", lead(t, page))
		require.Contains(t, page, "Used: 0. Empty: not bounded.")
		require.Contains(t, page, "Used: 0 B. Bodies, URLs, headers and labels")
		revision := regexp.MustCompile(`name="revision" value="(\d+)"`).FindStringSubmatch(page)[1]
		form := []string{"revision", revision, "quota.pending", "", "quota.bytes", "1GiB", "quota.rate", ""}
		require.Equal(t, "The jobs of shop are on the store main, and it may have 1GiB of unfinished jobs.",
			lead(t, site.Follow(site.Post("settings/namespaces/shop", form...)).OK()))

		page = site.Post("settings/namespaces/shop",
			append(form, "quota.bytes", "2GiB")...).Is(http.StatusPreconditionFailed)
		require.Contains(t, page, "Somebody has changed this namespace since")
		require.Contains(t, lead(t, page), "1GiB")
		require.NotContains(t, page, `name="revision" value="`+revision+`"`)

		require.Contains(t, site.Golden("namespace-delete", "settings/namespaces/shop/delete"),
			"Type the name shop to confirm")
		require.Contains(t, site.Post("settings/namespaces/shop/delete", "confirm",
			"shopp").Is(http.StatusUnprocessableEntity), "must be shop")
		require.Contains(t, site.Follow(site.Post("settings/namespaces/shop/delete", "confirm", "shop", "purge",
			"true")).OK(), "Namespace shop is removed.")
		_, err := site.API.GetNamespace(t.Context(), "shop")
		require.ErrorIs(t, err, client.ErrNotFound)
	})
}

func TestNamespaces_KeepsTheFormWhenItIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := asRoot(t, settingspages.Options{})
		page := site.Post("settings/namespaces", "namespace", script, "store", script, "quota.bytes", script,
			"quota.rate", script).Is(http.StatusUnprocessableEntity)
		requireEscaped(t, page)
		page = site.Post("settings/namespaces", "namespace", "", "quota.pending",
			script).Is(http.StatusUnprocessableEntity)
		requireEscaped(t, page)
		require.Contains(t, page, `href="#f-namespace"`)
		page = site.Post("settings/namespaces", "namespace", "shop", "quota.pending",
			script).Is(http.StatusUnprocessableEntity)
		requireEscaped(t, page)
		require.Contains(t, page, `href="#f-quota.pending"`)
		require.Contains(t, site.Post("settings/namespaces", "namespace", "shop", "quota.pending",
			"-1").Is(http.StatusUnprocessableEntity), `href="#f-quota.pending"`)
		require.Contains(t, site.Post("settings/namespaces", "namespace", "shop", "store",
			"eu").Is(http.StatusUnprocessableEntity), `href="#f-store"`)
		site.Post("settings/namespaces", "namespace", "shop").Is(http.StatusSeeOther)
		require.Contains(t,
			site.Post("settings/namespaces", "namespace", "shop").Is(http.StatusPreconditionFailed), "exists already")
		require.Contains(t, site.Post("settings/namespaces/shop", "quota.rate", "5").Is(http.StatusUnprocessableEntity),
			"which revision")
		requireEscaped(t, site.Post("settings/namespaces/shop", "revision", "1", "quota.rate",
			script).Is(http.StatusUnprocessableEntity))

		_, err := site.API.PutNamespace(t.Context(), "shop", client.NamespaceRequest{Quota: client.Quota{Pending: 5}})
		require.NoError(t, err)
		page = site.Post("settings/namespaces/shop", "revision", "1", "quota.rate",
			"lots").Is(http.StatusUnprocessableEntity)
		require.Contains(t, page, `name="revision" value="1"`,
			"a form that is mended does not overwrite what was stored meanwhile")
	})
}

func TestNamespaces_KeepsTheRevisionOfAFormThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := false
		site := consoletest.New(t, consoletest.Options{Pages: []web.Pages{
			settingspages.New(settingspages.Options{}),
		}, Tokens: true, WrapAPI: func(
			api http.Handler,
		) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPut || !refused {
					api.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, `{"status": 409, "code": "conflict", "detail": "try again"}`)
			})
		}})
		site.SignIn(consoletest.RootToken)
		for pending := range int64(2) {
			_, err := site.API.PutNamespace(t.Context(), "shop",
				client.NamespaceRequest{Quota: client.Quota{Pending: pending}})
			require.NoError(t, err)
		}
		refused = true
		page := site.Post("settings/namespaces/shop", "revision", "1", "quota.rate", "5/s").Is(http.StatusConflict)
		require.Contains(t, page, "try again")
		require.Contains(t, page, `name="revision" value="1"`, "what was stored meanwhile was not seen")
		refused = false
		site.Post("settings/namespaces/shop", "revision", "1", "quota.rate", "5/s").Is(http.StatusPreconditionFailed)
	})
}

func TestNamespaces_SaysWhyOneIsNotRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := asRoot(t, settingspages.Options{})
		_, err := site.API.PutNamespace(t.Context(), "shop", client.NamespaceRequest{})
		require.NoError(t, err)
		_, err = site.API.CreateToken(t.Context(), client.TokenRequest{Name: "a", Role: "read", Namespace: "shop"})
		require.NoError(t, err)
		page := site.Post("settings/namespaces/shop/delete", "confirm", "shop", "purge",
			"false").Is(http.StatusConflict)
		require.Contains(t, page, "token")
		require.NotContains(t, site.Get("settings/namespaces/default").OK(), "Remove")
	})
}

func TestInForce_ListsSettingsAndFiltersThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := asRoot(t, settingspages.Options{InForce: []settingspages.Setting{
			{Name: "addr", Value: "127.0.0.1:8080", From: "default"},
			{Name: "grace", Value: "1m", From: "$RINGBACK_GRACE"},
			{Name: "max_body", Value: script, From: "/etc/" + script + ":4"},
		}})
		page := site.Golden("in-force", "settings/in-force")
		require.Equal(t, "2 of 3 settings of this process are not defaults.", lead(t, page))
		requireEscaped(t, page)
		page = site.Get("settings/in-force?filter=ringback_GR").OK()
		require.Contains(t, page, "1m")
		require.NotContains(t, page, "127.0.0.1:8080")
		page = site.Get("settings/in-force?filter=" + "%22%3E%3Cscript%3Ealert(2)").OK()
		require.Contains(t, page, "No setting contains this text.")
		requireEscaped(t, page)
	})
	synctest.Test(t, func(t *testing.T) {
		require.Contains(t,
			lead(t, newSite(t, false, settingspages.Options{}).Get("settings/in-force").OK()), "are not known")
	})
}

func TestChecks_AreMadeWhenAskedAndKeptForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		found := []doctor.Finding{
			{
				Check: doctor.SettingsValid, Subject: "settings", Level: doctor.OK, Seen: "they are valid",
				Docs: "docs/doctor.md#settings-valid",
			},
			{
				Check: doctor.SQLiteSpace, Subject: "store main", Level: doctor.Fault, Seen: script,
				Remedy: "Free " + script, Docs: "docs/doctor.md#sqlite-space",
			},
			{
				Check: doctor.SettingsSecrets, Subject: "settings", Level: doctor.Warn, Seen: "plain text",
				Remedy: "Set a key.", Docs: "docs/doctor.md#settings-secrets",
			},
		}
		site := asRoot(t, settingspages.Options{Check: func(context.Context) []doctor.Finding {
			runs++
			return found
		}})
		require.Contains(t, lead(t, site.Get("settings/checks").OK()), "Nothing was checked yet")
		require.Zero(t, runs)
		page := site.Follow(site.Post("settings/checks")).OK()
		require.Equal(t, "1 fault, 1 warning: sqlite-space.", lead(t, page))
		site.Golden("checks", "settings/checks")
		requireEscaped(t, page)
		require.Less(t, strings.Index(page, "sqlite-space</span>"), strings.Index(page, "settings-valid</span>"))
		site.Post("settings/checks").Is(http.StatusSeeOther)
		require.Equal(t, 1, runs)
		site.Advance(time.Minute)
		found = found[:1]
		require.Equal(t, "Nothing is wrong: 1 check is ok.", lead(t, site.Follow(site.Post("settings/checks")).OK()))
		require.Equal(t, 2, runs)
	})
}

func TestChecks_RunOnceForAllWhoAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		site := newSite(t, false, settingspages.Options{Check: func(ctx context.Context) []doctor.Finding {
			runs++
			<-ctx.Done() // they are bounded
			return []doctor.Finding{{Check: doctor.SettingsDNS, Level: doctor.Unknown}}
		}})
		began := time.Now()
		for range 3 {
			r := post(t, "settings/checks")
			go site.Serve(r)
		}
		synctest.Wait()
		site.Post("settings/checks").Is(http.StatusSeeOther)
		synctest.Wait()
		require.Equal(t, 1, runs)
		require.Equal(t, 10*time.Second, time.Since(began))
	})
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false, settingspages.Options{})
		require.Contains(t, lead(t, site.Get("settings/checks").OK()), "cannot be checked here")
		site.Post("settings/checks").Is(http.StatusSeeOther)
	})
}

// post is the request of a form without fields.
func post(t *testing.T, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/console/"+path, http.NoBody)
	require.NoError(t, err)
	r.RemoteAddr = "192.0.2.1:1234"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

// requireEscaped fails the test if a page has a tag of script.
func requireEscaped(t *testing.T, page string) {
	t.Helper()
	require.NotContains(t, page, "<script>alert")
	require.NotContains(t, page, "<img")
}

func TestNamespaces_AreNotRemovedWhileAJobRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := asRoot(t, settingspages.Options{})
		site.Post("settings/namespaces", "namespace", "shop").Is(http.StatusSeeOther)
		site.Advance(6 * time.Second)
		text := regexp.MustCompile(`rb_\w+`).FindString(site.Follow(site.Post("settings/tokens", "name", "a", "role",
			"publish", "namespace", "shop")).OK())
		_, err := site.Client(text).Register(t.Context(), client.Job{ID: "long", URL: "https://slow.example/"})
		require.NoError(t, err)
		site.Advance(time.Second)
		found, err := site.API.TokensPage(t.Context(), client.PageOptions{})
		require.NoError(t, err)
		require.NoError(t, site.API.RevokeToken(t.Context(), found.Items[0].ID))
		remove := []string{"confirm", "shop", "purge", "true"}
		page := site.Post("settings/namespaces/shop/delete", remove...).Is(http.StatusConflict)
		require.Contains(t, page, "the namespace has 1 unfinished job")
		require.Contains(t, page, "<h2>It is not removed yet</h2>")
		require.Contains(t, page, `name="purge" value="true" checked`)
		site.Advance(time.Minute)
		require.Contains(t, site.Follow(site.Post("settings/namespaces/shop/delete", remove...)).OK(), "is removed")
	})
}

func TestNamespaces_SaysWhenARemovalTakesLongerThanAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, err := client.New(
			"http://localhost", client.Options{MaxRetries: -1, HTTP: &http.Client{Transport: &console.Transport{
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodDelete {
						<-r.Context().Done()
						http.Error(w, "", http.StatusServiceUnavailable)
						return
					}
					_, _ = io.WriteString(w, `{"namespace": "shop", "revision": 1, "store": "main", "quota": {}}`)
				}),
			}}},
		)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("confirm=shop&purge=true"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetPathValue("name", "shop")
		routes := settingspages.New(settingspages.Options{}).Routes
		i := slices.IndexFunc(routes, func(r web.Route) bool {
			return r.Method == http.MethodPost && r.Path == "settings/namespaces/{name}/delete"
		})
		answer, err := routes[i].Serve(&web.Visit{Request: r, API: api, Who: new(client.Principal)})
		require.NoError(t, err)
		page, ok := answer.(*web.Page)
		require.True(t, ok)
		require.Equal(t, http.StatusConflict, page.Status)
		require.Contains(t, fmt.Sprintf("%+v", page.Data), "send the form again until it succeeds")
	})
}
