package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// arrival is a received request.
type arrival struct {
	id       string // webhook-id
	attempt  string // Ringback-Attempt
	agent    string // User-Agent
	header   http.Header
	due      time.Time
	body     string
	began    time.Time
	answered time.Time // zero until the answer was written
	status   int
}

// receiver is a server for jobs that records every request.
//
//	/ok          200
//	/fail/{k}    500 for the first k requests of an id, then 200
//	/status/{s}  the status s
//	/hold/{d}    200 after the duration d, at once when the caller goes away or the test ends
//	/gate        200 once open is called for the id
type receiver struct {
	*httptest.Server
	end chan struct{}

	mu    sync.Mutex
	all   int // requests
	ended int // of them were answered
	byID  map[string][]*arrival
	gates map[string]chan struct{}
	news  chan struct{} // closed and replaced at every change
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{
		byID: make(map[string][]*arrival), gates: make(map[string]chan struct{}),
		news: make(chan struct{}), end: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", r.answer(func(*http.Request, *arrival, int) int { return http.StatusOK }))
	mux.HandleFunc("/fail/{k}", r.answer(func(req *http.Request, _ *arrival, nth int) int {
		if k, _ := strconv.Atoi(req.PathValue("k")); nth <= k {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	}))
	mux.HandleFunc("/status/{s}", r.answer(func(req *http.Request, _ *arrival, _ int) int {
		s, _ := strconv.Atoi(req.PathValue("s"))
		return s
	}))
	mux.HandleFunc("/hold/{d}", r.answer(func(req *http.Request, _ *arrival, _ int) int {
		d, _ := time.ParseDuration(req.PathValue("d"))
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-req.Context().Done():
		case <-r.end:
		}
		return http.StatusOK
	}))
	mux.HandleFunc("/gate", r.answer(func(req *http.Request, a *arrival, _ int) int {
		select {
		case <-r.gate(a.id):
		case <-req.Context().Done():
		case <-r.end:
		}
		return http.StatusOK
	}))
	r.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		close(r.end)
		r.Close()
	})
	return r
}

// answer records a request before and after decide responds to it. nth counts the requests of an id from 1.
func (r *receiver) answer(decide func(req *http.Request, a *arrival, nth int) int) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		began := time.Now()
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // cut off: such a request never arrived
		}
		due, _ := strconv.ParseInt(req.Header.Get("Ringback-Due-At"), 10, 64)
		a := &arrival{
			id: req.Header.Get("webhook-id"), attempt: req.Header.Get("Ringback-Attempt"),
			agent: req.UserAgent(), header: req.Header,
			due: time.UnixMilli(due), body: string(body), began: began,
		}
		key := a.id
		// a callback is found by its job and generation
		if strings.HasPrefix(key, "rb:") && !strings.HasPrefix(key, "rb:s:") {
			key = key[:strings.LastIndex(key, ":")]
		}
		r.mu.Lock()
		r.byID[key] = append(r.byID[key], a)
		r.all++
		nth := len(r.byID[key])
		r.changed()
		r.mu.Unlock()

		status := decide(req, a, nth)
		r.mu.Lock()
		a.status = status // before the answer: who reads it may be ahead of us afterwards
		r.mu.Unlock()
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush() // an error means that the caller has gone
		r.mu.Lock()
		a.answered = time.Now()
		r.ended++
		r.changed()
		r.mu.Unlock()
	}
}

// changed wakes waiters. The caller holds r.mu.
func (r *receiver) changed() {
	close(r.news)
	r.news = make(chan struct{})
}

// gate returns the channel that open closes.
func (r *receiver) gate(id string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gates[id] == nil {
		r.gates[id] = make(chan struct{})
	}
	return r.gates[id]
}

// open ends the wait of an id's requests at /gate.
func (r *receiver) open(id string) { close(r.gate(id)) }

// of returns copies of an id's requests, in order.
func (r *receiver) of(id string) []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []arrival
	for _, a := range r.byID[id] {
		all = append(all, *a)
	}
	return all
}

// until waits until cond is true, checking at every change. It calls cond with r.mu locked.
func (r *receiver) until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	timeout := time.After(testkit.MustCome)
	for {
		r.mu.Lock()
		ok, news := cond(), r.news
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case <-timeout:
			require.Fail(t, "timed out", "waited %s for: %s", testkit.MustCome, what)
		}
	}
}

// arrives waits for an id's n-th request and returns all of them.
func (r *receiver) arrives(t testing.TB, id string, nth int) []arrival {
	t.Helper()
	r.until(t, "request "+strconv.Itoa(nth)+" of "+id, func() bool { return len(r.byID[id]) >= nth })
	return r.of(id)
}

// size returns the number of requests so far.
func (r *receiver) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// grows waits for another request.
func (r *receiver) grows(t testing.TB) {
	t.Helper()
	before := r.size()
	r.until(t, "another request", func() bool { return r.all > before })
}

// newest returns the ids of the n newest answers before a moment, to one process or to all if agent is empty. Their
// settlements may not have been written then, which no clock tells: a slow machine takes longer over each.
func (r *receiver) newest(n int, agent string, before time.Time) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*arrival
	for _, arrivals := range r.byID {
		for _, a := range arrivals {
			if !a.answered.IsZero() && a.answered.Before(before) && (agent == "" || a.agent == agent) {
				all = append(all, a)
			}
		}
	}
	slices.SortFunc(all, func(a, b *arrival) int { return b.answered.Compare(a.answered) })
	ids := make(map[string]bool)
	for _, a := range all[:min(n, len(all))] {
		ids[a.id] = true
	}
	return ids
}

// repeated returns the requests that were repeated after a 200. Each job must have had a 200.
func (r *receiver) repeated(t testing.TB, ids []string) []arrival {
	t.Helper()
	var again []arrival
	for _, id := range ids {
		var delivered []arrival
		for _, a := range r.of(id) {
			if a.status == http.StatusOK {
				delivered = append(delivered, a)
			}
		}
		require.NotEmpty(t, delivered, "job %s was answered 201 and never arrived", id)
		again = append(again, delivered[:len(delivered)-1]...)
	}
	return again
}
