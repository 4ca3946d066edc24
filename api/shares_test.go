package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/console"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// sharedService is a service whose calls hang until release is closed, but for lists that take a time.
type sharedService struct {
	*fake
	release chan struct{}
	hangs   func(namespace string) bool // calls for it hang; nil: for all
	takes   time.Duration               // of a read of a count that does not hang
	reading atomic.Int64                // calls of List and Groups
	stores  map[string]string           // by namespace
}

func newSharedService() *sharedService {
	s := &sharedService{fake: fullService(), release: make(chan struct{})}
	for _, name := range []string{"greedy", "modest", "other"} {
		s.namespaces[name] = job.Namespace{Name: name}
	}
	s.waitForEnd = func(context.Context) error { return s.hang("") }
	s.waitForLeases = func() { _ = s.hang("") }
	return s
}

func (s *sharedService) FindStore(context.Context, string) (Store, error) { return s, nil }

func (s *sharedService) HolderOf(_ context.Context, namespace string) capacity.Holder {
	return capacity.Holder{Namespace: namespace, Store: s.stores[namespace]}
}

func (s *sharedService) hang(namespace string) error {
	if s.hangs == nil || s.hangs(namespace) {
		<-s.release
		return store.ErrUnavailable
	}
	return nil
}

// List finds nothing in the time that it has, if it does not hang.
func (s *sharedService) List(_ context.Context, filter store.Filter) (store.Page, error) {
	s.reading.Add(1)
	err := s.hang(filter.Namespace)
	if err == nil && s.takes > 0 {
		time.Sleep(filter.Within) // a bubble's time
	}
	return store.Page{More: s.takes > 0, Scanned: 1}, err
}

func (s *sharedService) Register(ctx context.Context, jobs []job.New) []store.RoutedResult {
	if err := s.hang(jobs[0].Namespace); err != nil {
		return []store.RoutedResult{{Err: err}}
	}
	return s.fake.Register(ctx, jobs)
}

// ReleaseLeases is called by many requests at once, as they end.
func (s *sharedService) ReleaseLeases(context.Context, string, []store.LeasedJob) {}

// Groups counts in turns until by.Within is over.
func (s *sharedService) Groups(ctx context.Context, _ store.Filter, by store.GroupBy) (store.Groups, error) {
	for until := time.Now().Add(by.Within); time.Now().Before(until); {
		release, err := by.AcquireTurn(ctx)
		if err != nil {
			return store.Groups{}, err
		}
		time.Sleep(s.takes)
		release()
	}
	return store.Groups{}, nil
}

// shares makes requests that last.
type shares struct {
	*sharedService
	server *http.Server
	ctx    context.Context
}

func newShares(ctx context.Context, s *sharedService, bound int) *shares {
	pages := web.Pages{
		Name: "sample",
		Files: fstest.MapFS{
			"templates/sample.html": {Data: []byte(`{{define "content"}}{{live "total" .}}{{end}}` +
				`{{define "live-total"}}1{{end}}`)},
		},
		Routes: []web.Route{
			web.Get("", access.ReadStats, func(*web.Visit) (web.Answer, error) {
				return &web.Page{View: "sample", Title: "Sample", Section: "now"}, nil
			}),
			web.PostJob("large", access.ReadStats, func(*web.Visit) (web.Answer, error) { return nil, nil }),
		},
	}
	handler := New(Options{
		Service: s, Logger: quiet,
		Console: func(routes http.Handler, onShutdown func(func()) func() bool) http.Handler {
			return console.New(console.Options{
				API: routes, KeyRounds: 1, Logger: quiet, OnShutdown: onShutdown, Pages: []web.Pages{pages},
			})
		},
	})
	server := Server(handler, quiet)
	limits.BoundConnections(server, bound, quiet)
	return &shares{sharedService: s, server: server, ctx: ctx}
}

// start makes a request of a namespace over a new connection, and closes ended after the answer.
func (s *shares) start(namespace, target string, body io.Reader, header ...string) (
	w *httptest.ResponseRecorder, ended chan struct{},
) {
	method, path, _ := strings.Cut(target, " ")
	conn, _ := net.Pipe()
	r := httptest.NewRequestWithContext(s.server.ConnContext(s.ctx, conn), method, path, body)
	r.Header.Set("Ringback-Namespace", namespace)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w, ended = httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(ended)
		s.server.Handler.ServeHTTP(w, r)
		s.server.ConnState(conn, http.StateClosed)
	}()
	synctest.Wait()
	return w, ended
}

// lasts reports whether a request was admitted, and is not answered yet.
func lasts(_ *httptest.ResponseRecorder, ended chan struct{}) bool {
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// slow is a body that begins with n spaces and does not end before the test's context does.
func (s *shares) slow(n int) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(s.ctx, func() { _ = w.Close() })
	go func() { _, _ = io.WriteString(w, strings.Repeat(" ", n)) }()
	return r
}

// requests occupy a unit of a limit on behalf of a namespace, and report whether they were admitted. Limits without one
// are those of work that no request waits for.
var requests = map[*capacity.Limit]struct {
	unit int
	ask  func(s *shares, namespace string) bool
}{
	capacity.Requests: {1, func(s *shares, namespace string) bool {
		return lasts(s.start(namespace, "POST /v1/jobs", s.slow(0)))
	}},
	capacity.Waits: {1, func(s *shares, namespace string) bool {
		return lasts(s.start(namespace, "GET /v1/jobs/dead?wait=60s", http.NoBody))
	}},
	capacity.LeaseWaits: {1, func(s *shares, namespace string) bool {
		return lasts(s.start(namespace, "POST /v1/topics/a/lease", strings.NewReader(`{"wait": "60s"}`)))
	}},
	capacity.Streams: {1, func(s *shares, namespace string) bool {
		return lasts(s.start(namespace, "POST /v1/batch", s.slow(0), "Content-Type", "application/x-ndjson"))
	}},
	capacity.Bodies: {64 << 10, func(s *shares, namespace string) bool {
		return lasts(s.start(namespace, "POST /v1/jobs", s.slow(60<<10)))
	}},
	capacity.LargeBodies: {1 << 20, func(s *shares, namespace string) bool {
		return lasts(s.start(namespace, "POST /v1/jobs", s.slow(1000<<10)))
	}},
	capacity.Lists: {1, func(s *shares, namespace string) bool {
		before := s.reading.Load()
		s.start(namespace, "GET /v1/jobs?limit=1", http.NoBody)
		return s.reading.Load() > before
	}},
	capacity.LiveListeners: {1, func(s *shares, namespace string) bool {
		return lasts(s.start(namespace, "GET /v1/stream", http.NoBody))
	}},
	capacity.LargeForms: {1, func(s *shares, namespace string) bool {
		return lasts(s.start("", "POST /console/@"+namespace+"/large", s.slow(0), "Content-Type",
			"application/x-www-form-urlencoded"))
	}},
}

// shareTable makes requests to a new service in a bubble.
func shareTable(t *testing.T, test func(t *testing.T, s *shares)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newShares(ctx, newSharedService(), capacity.Requests.Whole)
		defer func() {
			cancel()
			close(s.release)
			_ = s.server.Close()
			synctest.Wait()
		}()
		test(t, s)
	})
}

func TestTable_LeavesRoomBesideANamespaceWithItsShare(t *testing.T) {
	for n, limit := range capacity.Table {
		if limit.Weight == 0 || limit.ByTopic {
			continue
		}
		t.Run(fmt.Sprint(n, " ", limit.Name), func(t *testing.T) {
			shareTable(t, func(t *testing.T, s *shares) {
				of, isAsked := requests[limit]
				if !isAsked {
					all := limit.Semaphore(0)
					of.unit = 1
					of.ask = func(_ *shares, namespace string) bool {
						return all.TryAcquire(capacity.Holder{Namespace: namespace}, 1) == nil
					}
				}
				greedy := 0
				for of.ask(s, "greedy") {
					greedy++
				}
				require.InDelta(t, limit.Share()/of.unit, greedy, min(1, float64(of.unit-1)))
				require.True(t, of.ask(s, "modest"))
				require.False(t, of.ask(s, "greedy"))
			})
		})
	}
}

func TestTable_LeavesRoomInAPartBesideANamespaceWithItsShareOfTheWhole(t *testing.T) {
	for part, whole := range map[*capacity.Limit]*capacity.Limit{
		capacity.LeaseWaits: capacity.Waits, capacity.LargeBodies: capacity.Bodies,
	} {
		for _, of := range [][2]*capacity.Limit{{whole, part}, {part, whole}} {
			t.Run(of[0].Depends+" and "+of[1].Depends, func(t *testing.T) {
				shareTable(t, func(t *testing.T, s *shares) {
					for requests[of[0]].ask(s, "greedy") {
					}
					require.True(t, requests[of[1]].ask(s, "modest"))
				})
			})
		}
	}
}

func TestSearch_LeavesListsToOthersBetweenItsSteps(t *testing.T) {
	const step = 50 * time.Millisecond
	for _, search := range []struct{ target, body string }{
		{"GET /v1/jobs?label=a:b&within=10s", ""},
		{"GET /v1/dead?label=a:b&within=10s", ""},
		{"GET /v1/dead/groups?by=topic&within=10s", ""},
		{"POST /v1/work?within=10s", `{"action": "purge", "where": {"all": true}, "dry_run": true}`},
	} {
		t.Run(search.target, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShares(t.Context(), newSharedService(), 64)
				s.hangs, s.takes = func(string) bool { return false }, step
				var searches []chan struct{}
				for n := range 16 {
					w, ended := s.start([]string{"greedy", "other"}[n%2], search.target, strings.NewReader(search.body))
					require.True(t, lasts(w, ended), w.Body)
					searches = append(searches, ended)
				}
				for range 20 {
					began := time.Now()
					w, ended := s.start("modest", "GET /v1/jobs?limit=20&within=1ms", http.NoBody)
					<-ended
					require.Equal(t, http.StatusOK, w.Code, w.Body)
					require.LessOrEqual(t, time.Since(began), 3*step, "a turn of each other namespace, and its own")
				}
				for _, ended := range searches {
					<-ended
				}
			})
		})
	}
}

func TestSearch_HasItsTimeFromTheFirstTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharedService()
		s.hangs, s.takes = func(string) bool { return false }, 1
		o := Options{Service: s, Logger: quiet}
		a, end := newAPI(o)
		h := a.handler(o, end)
		fill := func() (release func()) { // by another namespace
			release, err := a.lists.Acquire(t.Context(), capacity.Holder{Namespace: "other"}, capacity.Lists.Whole*
				capacity.ListItems)
			require.NoError(t, err)
			return release
		}
		search := func() (w *httptest.ResponseRecorder, ended chan struct{}) {
			w, ended = httptest.NewRecorder(), make(chan struct{})
			go func() {
				defer close(ended)
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/jobs?within=1s", http.NoBody))
			}()
			return w, ended
		}

		began, release := time.Now(), fill()
		w, ended := search()
		time.Sleep(5 * time.Second) // a bubble's time
		release()
		<-ended
		require.Contains(t, w.Body.String(), fmt.Sprintf(`"scanned":%d`, time.Second/searchStep))
		require.Equal(t, 6*time.Second, time.Since(began))

		began = time.Now()
		w, ended = search()
		synctest.Wait()
		release = fill() // after its first step
		<-ended
		require.Contains(t, w.Body.String(), `"scanned":1}`)
		require.Equal(t, time.Second, time.Since(began))
		release()
	})
}

func TestStores_OneThatHangsHoldsNothingOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound, newJob = 64, `{"url": "http://a.example"}`
		service := newSharedService()
		service.stores = map[string]string{"greedy": "eu", "other": "eu", "modest": "main"}
		service.hangs = func(namespace string) bool { return namespace != "modest" }
		s := newShares(t.Context(), service, bound)
		defer close(s.release)
		var hanging []chan struct{}
		refused := 0
		for i := range 4 * bound {
			for _, target := range []string{"GET /v1/jobs?limit=500", "POST /v1/jobs"} {
				w, ended := s.start([]string{"greedy", "other"}[i%2], target, strings.NewReader(newJob))
				if lasts(w, ended) {
					hanging = append(hanging, ended)
					continue
				}
				require.Equal(t, http.StatusServiceUnavailable, w.Code)
				require.Equal(t, "1", w.Header().Get("Retry-After"))
				refused++
			}
		}
		require.Positive(t, refused)
		w, _ := s.start("greedy", "GET /v1/jobs", http.NoBody)
		require.Contains(t, w.Body.String(), "leaves the rest")
		began := time.Now()
		for _, target := range []string{
			"GET /v1/jobs?limit=500", "GET /v1/topics?limit=500", "GET /v1/work", "POST /v1/jobs",
			"GET /v1/topics/order.close",
		} {
			w, ended := s.start("modest", target, strings.NewReader(newJob))
			<-ended
			require.Less(t, w.Code, 300, "%s: %s", target, w.Body)
		}
		require.Equal(t, began, time.Now(), "nobody waited")
		require.NotEmpty(t, hanging)
	})
}
