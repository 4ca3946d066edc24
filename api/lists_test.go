package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// slowListService is a service with slow lists.
type slowListService struct {
	*fake
	takes   time.Duration
	reading atomic.Int64 // lists under way
}

func (s *slowListService) FindStore(context.Context, string) (Store, error) { return s, nil }

func (s *slowListService) read() {
	s.reading.Add(1)
	defer s.reading.Add(-1)
	time.Sleep(s.takes) // a bubble's time
}

func (s *slowListService) List(context.Context, store.Filter) (store.Page, error) {
	s.read()
	return store.Page{}, nil
}

func (s *slowListService) Groups(context.Context, store.Filter, store.GroupBy) (store.Groups, error) {
	s.read()
	return store.Groups{}, nil
}

func (s *slowListService) Topics(context.Context, string, string, int) ([]store.Topic, error) {
	s.read()
	return nil, nil
}

func (s *slowListService) ListLanes(context.Context, string, string, string, string, int) ([]store.Lane, error) {
	s.read()
	return []store.Lane{{}}, nil
}

func TestServeList_BoundsListsInFlight(t *testing.T) {
	for _, path := range []string{"/v1/jobs?topic=a&state=ready&", "/v1/dead?", "/v1/topics?", "/v1/topics/a/lanes?"} {
		synctest.Test(t, func(t *testing.T) {
			s := &slowListService{fake: newFake(), takes: capacity.ListWait - time.Second}
			var log testkit.Log
			h := New(Options{Service: s, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			const most, short = 1, 3 // lists of 500 and of 1 item that a namespace reads at a time
			codes := make(chan int, 100)
			ask := func(limit string) {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path+"limit="+limit, http.NoBody))
				codes <- w.Code
			}
			for range 2 * most {
				go ask("500")
			}
			synctest.Wait()
			require.EqualValues(t, most, s.reading.Load())
			go ask("500") // when those before it have ended, it has waited for too long
			synctest.Wait()
			for range most {
				require.Equal(t, http.StatusOK, <-codes)
			}
			synctest.Wait()
			require.EqualValues(t, most, s.reading.Load())
			require.Equal(t, http.StatusServiceUnavailable, <-codes)
			for range most {
				require.Equal(t, http.StatusOK, <-codes)
			}
			require.Contains(t, log.String(), "overloaded, answering 503")

			for range 2 * short { // all places were given back
				go ask("1")
			}
			synctest.Wait()
			require.EqualValues(t, short, s.reading.Load())
			for range 2 * short {
				require.Equal(t, http.StatusOK, <-codes)
			}
		})
	}
}

func TestServeList_ReleasesSlotsWhenTheStoreFails(t *testing.T) {
	f := newFake()
	f.err = store.ErrUnavailable
	h := handlerOf(f)
	for range 2 * capacity.Lists.Whole {
		require.Equal(t, http.StatusServiceUnavailable, call(t, h, http.MethodGet, "/v1/topics?limit=500", "").Code)
	}
	f.err = nil
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/v1/topics?limit=500", "").Code)
}

func TestServeList_BoundsUnreadAnswers(t *testing.T) {
	f := newFake()
	one := job.Job{
		Spec:     job.Spec{ID: "a", Header: map[string][]string{"X": {strings.Repeat("x", 30<<10)}}},
		Progress: job.Progress{State: job.Scheduled, Version: 1},
	}
	for range 500 {
		f.page.Jobs = append(f.page.Jobs, one)
	}
	h, budget := newBudgetedAPI(f)
	const path = "/v1/jobs?topic=a&state=scheduled&limit=500"
	w := call(t, h, http.MethodGet, path, "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Greater(t, int64(w.Body.Len()), budget.Large()/2)
	full := budget.Meter(nil, capacity.Holder{})
	require.NoError(t, full.Reserve(budget.Large()/2))
	w = call(t, h, http.MethodGet, path, "")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Equal(t, budget.Large()/2, budget.InUse())
	f.page.Jobs = f.page.Jobs[:1]
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, path, "").Code, "a small one goes on")
}

func TestCursor_ContinuesOnlyListsOfItsKind(t *testing.T) {
	f := newFake()
	f.topics["a"] = store.Topic{
		Name:   "a",
		Policy: policy.Topic{Secrets: []policy.Secret{{ID: "1"}, {ID: "2"}, {ID: "3"}}},
	}
	h := handlerOf(f)
	lists := map[string]request.CursorKind{
		"/v1/topics": request.Topics, "/v1/stats": request.Topics, "/v1/topics/a/lanes": request.Lanes,
		"/v1/topics/a/stats": request.Lanes, "/v1/topics/a/secrets": request.Secrets,
		"/v1/topics/a/keys": request.Secrets,
	}
	for path, kind := range lists {
		for _, sent := range []string{
			"a", "1", "%00", "dG9waWM", request.Topics.Encode("a/b"), kind.Encode(""),
			kind.Encode(strings.Repeat("a", 129)), kind.Encode("a") + "=",
			request.Topics.Encode("a"), request.Lanes.Encode("a"), request.Secrets.Encode("a"),
		} {
			if sent == kind.Encode("a") && kind != request.Secrets {
				require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, path+"?cursor="+sent, "").Code, path)
				continue
			}
			w := call(t, h, http.MethodGet, path+"?cursor="+sent, "")
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, "%s %s", path, sent)
			require.Equal(t, []string{"?cursor"}, problemIn(t, w).fields(), path)
		}
		w := call(t, h, http.MethodGet, path+"?limit=0&after=a", "")
		require.ElementsMatch(t, []string{"?limit", "?after"}, problemIn(t, w).fields(), path)
	}
}

func TestSecrets_ArePaged(t *testing.T) {
	f := newFake()
	key := func(i int) policy.Secret {
		secret := secretOf("whsk_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(i)}, 32)))
		return policy.Secret{ID: secret.ID(), Value: policy.Sealed(secret.Text())}
	}
	one, two, three := key(1), key(2), key(3)
	f.topics["a"] = store.Topic{Name: "a", Policy: policy.Topic{Secrets: []policy.Secret{one, two, three}}}
	h := handlerOf(f)
	for _, path := range []string{"/v1/topics/a/secrets", "/v1/topics/a/keys"} {
		all, next := listed(t, h, path+"?limit=2", "id")
		require.Equal(t, []string{one.ID, two.ID}, all)
		all, last := listed(t, h, path+"?limit=2&cursor="+next.(string), "id")
		require.Equal(t, []string{three.ID}, all)
		require.Nil(t, last)
	}
}
