package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite"
)

// world is an API in front of a real store, with the namespaces shop and other.
type world struct {
	http.Handler
	t      *testing.T
	tokens map[string]string // of admins, by namespace
	ids    map[string]string // of these tokens
}

const worldRoot = "the root's token"

func newWorld(t *testing.T) *world {
	t.Helper()
	defaults := sqlite.Defaults(policy.Builtin())
	s, err := sqlite.Open(t.Context(),
		sqlite.Options{Path: filepath.Join(t.TempDir(), "db"), Limits: defaults.Limits(), Logger: quiet})
	require.NoError(t, err)
	d, err := dispatcher.New(dispatcher.Options{Store: s, RegisterOnly: true, Defaults: defaults, Logger: quiet})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, s.Close())
	})
	w := worldOf(t, oneStore{d})
	w.must(worldRoot, "PUT /v1/namespaces/shop {}")
	w.must(worldRoot, "PUT /v1/namespaces/other {}")
	w.makeAdmins()
	return w
}

// must makes a request, which must succeed.
func (w *world) must(token, request string) string {
	w.t.Helper()
	parts := strings.SplitN(request, " ", 3)
	answer := call(w.t, w, parts[0], parts[1], strings.Join(parts[2:], ""), "Authorization", "Bearer "+token)
	require.Less(w.t, answer.Code, 300, "%s: %s", request, answer.Body)
	return answer.Body.String()
}

// newWorldOfTwo returns a world whose namespace other is on a second store. behind is an API in front of the main store
// alone, in which the namespace other has other data.
func newWorldOfTwo(t *testing.T) (w, behind *world) {
	t.Helper()
	open := func() store.Store {
		s, err := sqlite.Open(t.Context(), sqlite.Options{
			Path: filepath.Join(t.TempDir(), "db"), Limits: sqlite.Defaults(policy.Builtin()).Limits(), Logger: quiet,
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	opts := dispatcher.Options{
		RegisterOnly: true, Defaults: sqlite.Defaults(policy.Builtin()),
		OtherStores: []string{"eu"}, Logger: quiet,
	}
	dispatch := func() *dispatcher.Dispatcher {
		opts.Store = open()
		d, err := dispatcher.New(opts)
		require.NoError(t, err)
		return d
	}
	first := dispatch()
	opts.Registry = first.Registry
	both := dispatcher.NewService(first, []dispatcher.OtherStore{{Name: "eu", Dispatcher: dispatch()}}, quiet)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- both.Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	w = worldOf(t, NewService(both))
	w.must(worldRoot, `PUT /v1/namespaces/shop {}`)
	w.must(worldRoot, `PUT /v1/namespaces/other {"store": "eu"}`)
	w.makeAdmins()
	behind = worldOf(t, oneStore{first})
	behind.tokens, behind.ids = w.tokens, w.ids
	return w, behind
}

// oneStore has all namespaces on one store, whatever their settings say.
type oneStore struct{ *dispatcher.Dispatcher }

func (s oneStore) FindStore(context.Context, string) (Store, error) { return s.Dispatcher, nil }

func (s oneStore) HolderOf(_ context.Context, namespace string) capacity.Holder {
	return capacity.Holder{Namespace: namespace}
}

// worldOf returns an API in front of a service.
func worldOf(t *testing.T, service Service) *world {
	t.Helper()
	return &world{
		Handler: New(Options{
			Service: service, Logger: quiet,
			Access: AccessOptions{Tokens: []logs.Secret{worldRoot}},
		}),
		t: t, tokens: make(map[string]string), ids: make(map[string]string),
	}
}

// makeAdmins creates a token for each namespace.
func (w *world) makeAdmins() {
	w.t.Helper()
	for _, namespace := range []string{"shop", "other"} {
		var created struct{ ID, Token string }
		answer := w.must(worldRoot, `POST /v1/tokens {"name": "admin", "role": "admin", "namespace": "`+namespace+`"}`)
		require.NoError(w.t, json.Unmarshal([]byte(answer), &created))
		w.tokens[namespace], w.ids[namespace] = created.Token, created.ID
	}
}

// fill gives a namespace what the samples name.
func (w *world) fill(namespace string) {
	for _, request := range []string{
		`PUT /v1/topics/order.close {"url": "https://shop.example/", "workers": 7, "paused": true}`,
		`PUT /v1/topics/order.close/lanes/a {"lane_concurrency": 3}`,
		`POST /v1/topics/order.close/secrets {"secret": "` + sharedSecret.Text() + `"}`,
		`POST /v1/topics/order.close/lanes/a/secrets {"secret": "` + keySecret.Text() + `"}`,
		`POST /v1/jobs {"id": "dead", "topic": "order.close", "lane": "a", "body": {"secret": "4711"}}`,
		`POST /v1/jobs {"id": "gone", "topic": "order.close", "lane": "a"}`,
		`DELETE /v1/jobs/gone`,
	} {
		w.must(w.tokens[namespace], request)
	}
}

// varying are the parts of answers that differ from one request to the next.
var varying = []*regexp.Regexp{
	regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), regexp.MustCompile(`"revision":\d+`),
	regexp.MustCompile(`"id":"[0-9a-v]{21}"`), regexp.MustCompile(`rb_\w{58}`), regexp.MustCompile(`"id":"\w{8}"`),
	regexp.MustCompile(`"(token|created_by)_id":"\w{8}"`),
	regexp.MustCompile(`whsec_[\w+/=]+`), regexp.MustCompile(`"id":"[0-9a-f]{16}"`), regexp.MustCompile(`revision \d+`),
}

// askAll makes the sample request of every method of every route as the namespace other, with names and ids of shop. It
// returns the answers.
func (w *world) askAll(tokenID string) (requests, answers []string) {
	var all []string
	for _, r := range new(api).routes() {
		for method := range r.methods {
			all = append(all, r.path+" "+method)
		}
	}
	slices.Sort(all)
	for _, line := range all {
		path, method, _ := strings.Cut(line, " ")
		asked := path
		if strings.Contains(path, "/tokens/") {
			asked = strings.Replace(path, "{id}", tokenID, 1)
		}
		status, answer := sample(w.t, w, method, asked, "order.close", "Authorization", "Bearer "+w.tokens["other"])
		for _, v := range varying {
			answer = v.ReplaceAllString(answer, "…")
		}
		requests = append(requests, method+" "+path)
		answers = append(answers, http.StatusText(status)+" "+answer)
	}
	return requests, answers
}

// seen are the answers about what fill has made.
func (w *world) seen(namespace string) (all []string) {
	for _, path := range []string{
		"/v1/jobs/dead", "/v1/jobs/gone", "/v1/topics/order.close", "/v1/topics/order.close/lanes/a",
		"/v1/topics/order.close/secrets", "/v1/topics/order.close/lanes/a/secrets", "/v1/stats",
		"/v1/topics/order.close/stats", "/v1/tokens/" + w.ids[namespace],
	} {
		answer := w.must(w.tokens[namespace], "GET "+path)
		all = append(all, regexp.MustCompile(`"last_used_at":[^,}]*`).ReplaceAllString(answer, ""))
	}
	return all
}

// A namespace gets the same answers whether another one has jobs, topics, lanes, secrets and tokens of the same names
// or not, and changes nothing of them.
func TestNamespaces_AreApart(t *testing.T) {
	full, empty := newWorld(t), newWorld(t)
	full.fill("shop")
	before := full.seen("shop")
	requests, got := full.askAll(full.ids["shop"])
	_, want := empty.askAll("zzzzzzzz")
	for i, request := range requests {
		require.Equal(t, want[i], got[i], request)
	}
	require.Greater(t, len(requests), 40)
	require.Equal(t, before, full.seen("shop"))
}

// No route reads or changes what the main store has of a namespace that is on another store.
func TestNamespaces_OnAnotherStoreAreApart(t *testing.T) {
	full, behind := newWorldOfTwo(t)
	empty, _ := newWorldOfTwo(t)
	behind.fill("other")
	before := behind.seen("other")
	requests, got := full.askAll(full.ids["shop"])
	_, want := empty.askAll("zzzzzzzz")
	for i, request := range requests {
		require.Equal(t, want[i], got[i], request)
	}
	require.Equal(t, before, behind.seen("other"))
}

func TestDeleteNamespace_PurgesOnRequest(t *testing.T) {
	f := fullService()
	f.inUse = &job.NamespaceInUseError{By: "3 unfinished jobs"}
	h := handlerOf(f)
	w := call(t, h, http.MethodDelete, "/v1/namespaces/shop", "")
	require.Equal(t, http.StatusConflict, w.Code)
	p := problemIn(t, w)
	require.Equal(t, "in_use", p.Code)
	require.Contains(t, p.Detail, "purge=true")
	require.Equal(t, http.StatusUnprocessableEntity,
		call(t, h, http.MethodDelete, "/v1/namespaces/shop?purge=yes", "").Code)
	require.Equal(t, http.StatusPreconditionFailed,
		call(t, h, http.MethodDelete, "/v1/namespaces/shop?purge=true", "", "If-Match", `"9"`).Code)

	var log testkit.Log
	h = New(Options{Service: f, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	f.purgeFailed = &job.NamespaceInUseError{By: "more topics than could be read in time", Purged: true}
	w = call(t, h, http.MethodDelete, "/v1/namespaces/shop?purge=true", "")
	require.Equal(t, http.StatusConflict, w.Code)
	require.Contains(t, problemIn(t, w).Detail, "repeat the request")
	require.Contains(t, log.String(), "action=namespace.purge remote=192.0.2.1:1234 name=shop cancelled=3 purged=4")
	f.purgeFailed = nil
	f.namespaces["shop"] = job.Namespace{Name: "shop"}
	require.Equal(t, http.StatusNoContent, call(t, h, http.MethodDelete, "/v1/namespaces/shop?purge=true", "").Code)
}
