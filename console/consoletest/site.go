// Package consoletest runs pages of the console in a test: the real API and dispatcher on a store in memory, with
// receivers that the test scripts, in the fake time of package testing/synctest.
//
//	synctest.Test(t, func(t *testing.T) {
//		site := consoletest.New(t, consoletest.Options{Pages: []web.Pages{jobpages.New(new(recent.Answers))}})
//		site.Register(client.Job{ID: "order-1", URL: "https://down.example/"}) // answered with 503
//		site.Advance(time.Second)
//		site.Golden("job", "jobs/order-1") // compares the page with testdata/job.html
//	})
package consoletest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/storetest"
)

// RootToken is the root token of sites with tokens.
const RootToken = "root-token-of-the-tests" //nolint:gosec // of tests

// Options configure a site.
type Options struct {
	Pages []web.Pages
	// Tokens: the API needs a token, RootToken or one that it creates.
	Tokens bool
	// Deliver answers the attempts; nil: Answer does.
	Deliver func(job.Request) policy.Result
	// WrapAPI returns the API that the console calls, such as one that fails; nil: the real one.
	WrapAPI func(http.Handler) http.Handler
	// Logger is that of the console; nil: its errors fail the test.
	Logger *slog.Logger
}

// Site is a running console.
type Site struct {
	// API is a client of the API as root.
	API *client.Client

	t       testing.TB
	handler http.Handler
	cookies map[string]string
	end     func()
}

// New starts a site, and stops it at the end of the test. It must be called within synctest.Test.
func New(t testing.TB, o Options) *Site {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	log := o.Logger
	if log == nil {
		log = slog.New(slog.NewTextHandler(failing{t}, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	if o.Deliver == nil {
		o.Deliver = Answer
	}
	store := storetest.NewModel(storetest.ModelOptions{CountRevisions: true})
	d, err := dispatcher.New(dispatcher.Options{
		Store: store, Deliverer: deliverer(o.Deliver), OneProcess: true, Owner: "console-test",
		Random: func() float64 { return 0.5 }, Logger: quiet,
	})
	require.NoError(t, err)
	service := dispatcher.NewService(d, nil, quiet)
	var tokens []logs.Secret
	if o.Tokens {
		tokens = []logs.Secret{RootToken}
	}
	s := &Site{t: t, cookies: make(map[string]string)}
	var end []func()
	s.handler = api.New(api.Options{
		Service: api.NewService(service), Process: service.Process(), Version: "1.0.0", Logger: quiet,
		Access: api.AccessOptions{Tokens: tokens},
		Console: func(routes http.Handler, onShutdown func(func()) func() bool) http.Handler {
			if o.WrapAPI != nil {
				routes = o.WrapAPI(routes)
			}
			return console.New(console.Options{
				API: routes, RootTokens: tokens, KeyRounds: 1, Pages: o.Pages, Version: "1.0.0", Logger: log,
				OnShutdown: func(f func()) func() bool {
					end = append(end, f)
					return onShutdown(f)
				},
			})
		},
	})
	s.end = sync.OnceFunc(func() {
		for _, f := range end {
			f()
		}
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := service.Run(ctx); err != nil {
			t.Error("consoletest: ", err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
		s.Shutdown()
		_ = store.Close()
	})
	token := ""
	if o.Tokens {
		token = RootToken
	}
	s.API = s.Client(token)
	synctest.Wait() // the service is ready
	return s
}

// failing fails the test with what is logged.
type failing struct{ t testing.TB }

func (f failing) Write(line []byte) (int, error) {
	f.t.Errorf("the console logged: %s", line)
	return len(line), nil
}

// deliverer answers attempts by a function.
type deliverer func(job.Request) policy.Result

// Deliver answers after what the result says it took.
func (d deliverer) Deliver(ctx context.Context, r job.Request) policy.Result {
	result := d(r)
	result.StartedAt = time.Now()
	select {
	case <-time.After(result.Duration):
	case <-ctx.Done():
		result = policy.Result{Class: policy.ClassShutdown, StartedAt: result.StartedAt}
	}
	return result
}

// Answer answers attempts by the host of their URL: down. with 503, refused. with no connection, busy. with 429 and
// Retry-After, status-CODE. with CODE, slow. after 30 s, and others with 200. Answers take 20 ms.
func Answer(r job.Request) policy.Result {
	u, err := url.Parse(r.URL)
	if err != nil {
		return policy.Result{Class: policy.ClassInvalid, Error: err.Error()}
	}
	first, _, _ := strings.Cut(u.Hostname(), ".")
	result := policy.Result{
		Status: http.StatusOK, Duration: 20 * time.Millisecond, RemoteAddr: "192.0.2.7:443",
		Body: []byte(`{"ok":true}`),
	}
	switch {
	case first == "down":
		result.Status, result.Body = http.StatusServiceUnavailable, []byte("<script>alert('down')</script>")
	case first == "refused":
		result.Status, result.Body, result.Class, result.Error = 0, nil, policy.ClassRefused,
			"dial tcp 192.0.2.7:443: connection refused"
	case first == "busy":
		result.Status, result.RetryAfter = http.StatusTooManyRequests, time.Minute
	case first == "slow":
		result.Duration = 30 * time.Second
	case strings.HasPrefix(first, "status-"):
		if result.Status, err = strconv.Atoi(strings.TrimPrefix(first, "status-")); err != nil {
			result.Status = http.StatusTeapot
		}
	}
	return result
}

// Client returns a client of the API with a token.
func (s *Site) Client(token string) *client.Client {
	s.t.Helper()
	c, err := client.New("http://localhost", client.Options{
		Token: token, MaxRetries: -1,
		HTTP: &http.Client{Transport: &console.Transport{Handler: s.handler, RemoteAddr: "192.0.2.1:1234"}},
	})
	require.NoError(s.t, err)
	return c
}

// Register registers jobs.
func (s *Site) Register(jobs ...client.Job) {
	s.t.Helper()
	for _, j := range jobs {
		_, err := s.API.Register(s.t.Context(), j)
		require.NoError(s.t, err)
	}
}

// Advance moves the clock, and lets happen what is due.
func (s *Site) Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
}

// Response is the answer to a request.
type Response struct {
	*httptest.ResponseRecorder

	Path string
	t    testing.TB
}

// OK fails the test unless the status is 200, and returns the body.
func (r *Response) OK() string {
	r.t.Helper()
	return r.Is(http.StatusOK)
}

// Is fails the test unless the status is this one, and returns the body.
func (r *Response) Is(status int) string {
	r.t.Helper()
	body := r.Body.String()
	if r.Code != status {
		require.Equal(r.t, status, r.Code, "%s: %s %s", r.Path, r.Header().Get("Location"), Text(body))
	}
	return body
}

// Do makes a request of a browser: a path below /console/, with its query. The test fails if a link leads to an element
// that the page lacks, such as that of an error to its input.
func (s *Site) Do(method, path string, form url.Values, header ...string) *Response {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, "http://localhost/console/"+path,
		strings.NewReader(form.Encode()))
	r.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for name, value := range s.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value}) //nolint:gosec // a request's cookie has no attributes
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(s.cookies, c.Name)
		} else {
			s.cookies[c.Name] = c.Value
		}
	}
	page := w.Body.String()
	for _, link := range strings.Split(page, `href="#`)[1:] { // to an element of the same page
		if id, _, _ := strings.Cut(link, `"`); id != "" && !strings.Contains(page, ` id="`+id+`"`) {
			require.Fail(s.t, "a link leads nowhere", "%s %s: #%s", method, path, id)
		}
	}
	return &Response{ResponseRecorder: w, Path: method + " " + path, t: s.t}
}

// Serve serves a request.
func (s *Site) Serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeTo(w, r)
	return w
}

// ServeTo serves a request.
func (s *Site) ServeTo(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Stream requests a stream of live blocks. The caller closes its body.
func (s *Site) Stream(ctx context.Context, path string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/console/"+path, nil)
	require.NoError(s.t, err)
	for name, value := range s.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value}) //nolint:gosec // a request's cookie has no attributes
	}
	res, err := (&console.Transport{Handler: s.handler, RemoteAddr: "192.0.2.1:1234"}).RoundTrip(r)
	require.NoError(s.t, err)
	return res
}

// Get requests a page.
func (s *Site) Get(path string) *Response {
	s.t.Helper()
	return s.Do(http.MethodGet, path, nil)
}

// Post sends a form of names and values.
func (s *Site) Post(path string, fields ...string) *Response {
	s.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return s.Do(http.MethodPost, path, form)
}

// Follow requests the page that a redirect leads to, from the path that was posted to.
func (s *Site) Follow(r *Response) *Response {
	s.t.Helper()
	r.Is(http.StatusSeeOther)
	_, path, _ := strings.Cut(r.Path, " ")
	base, err := url.Parse("http://localhost/console/" + path)
	require.NoError(s.t, err)
	to, err := base.Parse(r.Header().Get("Location"))
	require.NoError(s.t, err)
	require.Truef(s.t, strings.HasPrefix(to.Path, "/console/"), "the redirect to %s leaves the console", to)
	next := strings.TrimPrefix(to.EscapedPath(), "/console/")
	if to.RawQuery != "" {
		next += "?" + to.RawQuery
	}
	return s.Get(next)
}

// Shutdown tells the console that the server begins to stop. Later calls do nothing.
func (s *Site) Shutdown() { s.end() }

// SignIn signs in with a token.
func (s *Site) SignIn(token string) {
	s.t.Helper()
	s.Post("sign-in", "token", token).Is(http.StatusSeeOther)
}

// SignOut forgets the session.
func (s *Site) SignOut() { clear(s.cookies) }

// Token creates a token with a role, and returns its text.
func (s *Site) Token(name, role string, topics ...string) string {
	s.t.Helper()
	created, err := s.API.CreateToken(s.t.Context(), client.TokenRequest{Name: name, Role: role, Topics: topics})
	require.NoError(s.t, err, "create a token with the role %s", role)
	return created.Token
}
