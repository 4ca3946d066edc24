package console

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/console/assets"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
)

// Prefix begins the paths of the console.
const Prefix = "/console/"

// Options configure a console.
type Options struct {
	// API serves the HTTP API. It is called in this process, with the token of the reader.
	API http.Handler
	// RootTokens are the API's; the key of sessions is derived from them. Empty: the API needs no token.
	RootTokens []logs.Secret
	// WatchRootTokens registers a function that replaces RootTokens with others. Nil: they stay.
	WatchRootTokens func(replace func([]logs.Secret))
	// KeyRounds is how often the key is hashed, against guesses of a root token. Zero: session.Rounds. Tests take
	// fewer.
	KeyRounds int
	// OnShutdown registers a function for the server's shutdown, like context.AfterFunc. Live updates end then. Nil:
	// they end with their requests only.
	OnShutdown func(func()) (stop func() bool)
	// Pages are the pages besides signing in and out.
	Pages []web.Pages
	// MaxBody is the largest body of a job in bytes, which forms have room for. Zero: 256 KiB.
	MaxBody int64
	// Version is the program's.
	Version string
	// Logger receives errors that readers did not cause. Nil: slog.Default.
	Logger *slog.Logger
}

// console is the state of the handler.
type console struct {
	api        http.Handler
	needsToken bool
	seals      *Sealer
	log        *slog.Logger
	failed     logs.Limited // of pages
	version    string
	views      map[string]*web.Template
	routes     []web.Route
	assets     http.Handler
	live       *liveHub
	maxBody    int64
	large      *capacity.Semaphore // of large forms in memory
	now        func() time.Time
}

// New returns the handler of the paths that begin with Prefix. The API's guard is in front of it, which refuses
// cross-origin requests. It panics if a template cannot be parsed.
func New(o Options) http.Handler {
	c := &console{
		api: o.API, needsToken: len(o.RootTokens) > 0, seals: NewSealer(o.RootTokens, o.KeyRounds),
		log: cmp.Or(o.Logger, slog.Default()), version: o.Version,
		assets: assets.Handler(), maxBody: cmp.Or(o.MaxBody, 256<<10),
		large: capacity.LargeForms.Semaphore(0), now: time.Now,
	}
	c.failed.Logger = c.log
	if o.WatchRootTokens != nil {
		o.WatchRootTokens(c.seals.Replace)
	}
	views, err := web.Templates(append([]web.Pages{ownPages()}, o.Pages...)...)
	if err != nil {
		panic("console: " + err.Error())
	}
	c.views = views
	onShutdown := o.OnShutdown
	if onShutdown == nil {
		onShutdown = func(func()) func() bool { return func() bool { return true } }
	}
	c.live = newLiveHub(c.log, onShutdown)
	for _, pages := range o.Pages {
		c.routes = append(c.routes, pages.Routes...)
	}
	return c.handler()
}

// handler returns the routes.
func (c *console) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sign-in", open(c.signInForm))
	mux.HandleFunc("POST /sign-in", open(c.signIn))
	mux.HandleFunc("POST /sign-out", c.signOut)
	mux.HandleFunc("GET /static/{sum}/{name}", open(c.assets.ServeHTTP))
	for _, r := range c.routes {
		pattern := "/" + r.Path
		if r.Path == "" {
			pattern = "/{$}"
		}
		mux.Handle(r.Method+" "+pattern, c.serve(r))
	}
	mux.HandleFunc("/", c.notFound)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		rest := strings.TrimPrefix(r.URL.EscapedPath(), strings.TrimSuffix(Prefix, "/"))
		if rest == "" { // links are relative, so the slash matters
			redirect(w, strings.TrimPrefix(Prefix, "/"))
			return
		}
		p, err := parsePlace(rest)
		if name, ok := strings.CutPrefix(rest, "/@"); ok && job.IsNamespace(name) { // as above
			redirect(w, rest[1:]+"/")
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		inner := r.Clone(context.WithValue(r.Context(), placeKey{}, p))
		inner.URL.Path, inner.URL.RawPath = p.path, p.escaped
		mux.ServeHTTP(w, inner)
	})
}

// open serves readers who need not be known: see limits.Open. All others are known before anything waits for their
// browser.
func open(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		limits.Open(w, r)
		serve(w, r)
	}
}

// setHeaders sets the headers of all answers.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; "+
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex, nofollow")
}

// redirect sends the browser to a relative link: proxies may have removed a prefix of the path, so the server does not
// know the whole.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
