package app

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console"
	"github.com/ringback/ringback/internal/access"
)

// consoleRoot is the root token of the tests of the console.
const consoleRoot = "root-token-of-the-console"

// runConsole runs an App that needs a token.
func runConsole(t *testing.T) (r runningApp, root *client.Client) {
	t.Helper()
	o := testOptions(t)
	o.Token = consoleRoot
	r = run(t, o)
	root, err := client.New("http://"+r.Addr(), client.Options{Token: consoleRoot})
	require.NoError(t, err)
	t.Cleanup(root.Close)
	return r, root
}

// visit makes a request of a browser, and returns its status and its cookies.
func (r runningApp) visit(t *testing.T, method, path, cookie string, form url.Values) (int, []*http.Cookie) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.Addr()+"/console/"+path,
		strings.NewReader(form.Encode()))
	require.NoError(t, err)
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode, res.Cookies()
}

// signIn returns the cookie of a session.
func (r runningApp) signIn(t *testing.T, token string) string {
	t.Helper()
	deriveKeys(consoleRoot)
	status, cookies := r.visit(t, http.MethodPost, "sign-in", "", url.Values{"token": {token}})
	require.Equal(t, http.StatusSeeOther, status)
	require.Len(t, cookies, 1)
	return cookies[0].Name + "=" + cookies[0].Value
}

var wildcard = regexp.MustCompile(`\{[^}]*\}`)

// TestConsoleRoutes_ServeOnlyWhatTheTokenAllows requests every page and sends every form with tokens of every role.
func TestConsoleRoutes_ServeOnlyWhatTheTokenAllows(t *testing.T) {
	r, root := runConsole(t)
	sessions := map[string]string{"root": r.signIn(t, consoleRoot)}
	principals := map[string]*access.Principal{"root": access.NewRoot("root", "default")}
	for _, role := range access.Roles() {
		token, err := root.CreateToken(t.Context(), client.TokenRequest{Name: string(role), Role: string(role)})
		require.NoError(t, err)
		sessions[string(role)] = r.signIn(t, token.Token)
		principals[string(role)] = &access.Principal{Role: role}
	}
	routes := 0
	for _, pages := range r.consolePages() {
		for _, route := range pages.Routes {
			routes++
			path := wildcard.ReplaceAllString(route.Path, "x")
			what := route.Method + " " + route.Path
			status, _ := r.visit(t, route.Method, path, "", nil)
			if route.Method == http.MethodGet {
				require.Equal(t, http.StatusSeeOther, status, "%s leads to signing in", what)
			} else {
				require.Equal(t, http.StatusUnauthorized, status, "%s without a session", what)
			}
			for name, session := range sessions {
				status, _ := r.visit(t, route.Method, path, session, nil)
				if principals[name].Allows(route.Action) {
					require.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, status,
						"%s with the role %s", what, name)
					require.Less(t, status, http.StatusInternalServerError, "%s with the role %s", what, name)
				} else {
					require.Equal(t, http.StatusForbidden, status, "%s with the role %s", what, name)
				}
			}
		}
	}
	require.Greater(t, routes, 30)
}

// TestConsoleRoutes_AreRefusedByTheAPIToo sends the forms that change something with a token that may only read, to a
// console that checks no roles itself.
func TestConsoleRoutes_AreRefusedByTheAPIToo(t *testing.T) {
	r, root := runConsole(t)
	token, err := root.CreateToken(t.Context(), client.TokenRequest{Name: "mia", Role: string(access.Read)})
	require.NoError(t, err)
	session := r.signIn(t, token.Token)
	pages := r.consolePages()
	reader := access.Principal{Role: access.Read}
	var changing []string
	for i := range pages {
		for j, route := range pages[i].Routes {
			// Previews change nothing, nor does an empty form of a lane, and the API has no request for the checks of a
			// process.
			free := strings.HasSuffix(route.Path, "/preview") || strings.HasSuffix(route.Path, "/{lane}") ||
				route.Path == "settings/checks"
			if route.Method == http.MethodPost && !reader.Allows(route.Action) && !free {
				changing = append(changing, route.Path)
			}
			pages[i].Routes[j].Action = access.Open
		}
	}
	h := api.New(api.Options{
		Service: api.NewService(r.service), Access: api.AccessOptions{Tokens: r.options.RootTokens()},
		Logger: r.options.Logger, Console: func(routes http.Handler, onShutdown func(func()) func() bool) http.Handler {
			return console.New(console.Options{
				API: routes, RootTokens: r.options.RootTokens(), OnShutdown: onShutdown,
				Pages: pages, Logger: r.options.Logger,
			})
		},
	})
	refused := 0
	for _, path := range changing {
		w := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost,
			"http://127.0.0.1/console/"+wildcard.ReplaceAllString(path, "x"), nil)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Cookie", session)
		h.ServeHTTP(w, req)
		require.GreaterOrEqual(t, w.Code, http.StatusBadRequest, "POST %s:\n%s", path, w.Body)
		require.Less(t, w.Code, http.StatusInternalServerError, "POST %s:\n%s", path, w.Body)
		if w.Code == http.StatusForbidden {
			refused++
		}
	}
	require.Greater(t, refused, len(changing)/2, "most empty forms reach the API")
}

func TestConsole_IsOff(t *testing.T) {
	o := testOptions(t)
	o.NoConsole = true
	r := run(t, o)
	status, body := r.ask(t, http.MethodGet, "/console/", "")
	require.Equal(t, http.StatusNotFound, status, body)
}
