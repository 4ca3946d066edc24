package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// leases are leased jobs, as in an answer.
type leases struct {
	Items []struct {
		ID    string `json:"id"`
		Lease string `json:"lease"`
	} `json:"items"`
	Done, Retry, Dead, Extend []struct {
		ID     string `json:"id"`
		Result string `json:"result"`
	}
}

// consumer pulls jobs, extends each lease once, and then reports the job as done, until it is stopped. It repeats requests
// without an answer.
type consumer struct {
	url     *atomic.Pointer[string] // of the API, which moves when ringback starts again
	stopped *atomic.Bool

	mu   sync.Mutex
	oks  map[string]int // reports of done that were ok, by job
	lost int            // results
	bad  []string       // answers other than 200 and 503
}

// work runs until the consumer is stopped and has reported all of its jobs.
func (c *consumer) work() {
	var taken leases
	for first := true; ; first = false {
		if len(taken.Items) == 0 && c.stopped.Load() && !first {
			return
		}
		extend, done := []obj{}, []obj{}
		for _, j := range taken.Items {
			extend = append(extend, obj{"lease": j.Lease, "for": "2s"})
			done = append(done, obj{"lease": j.Lease})
		}
		if len(extend) > 0 {
			c.ask(obj{"extend": extend})
		}
		taken = c.ask(obj{"done": done, "next": obj{"topic": "pulled", "max": 4, "wait": "200ms", "lease": "1s"}})
	}
}

// ask repeats a request until it is answered.
func (c *consumer) ask(body obj) leases {
	for {
		status, answer, err := send(*c.url.Load(), http.MethodPost, "/v1/leases", body)
		var got leases
		switch {
		case err == nil && status == http.StatusOK && json.Unmarshal(answer, &got) == nil:
			c.note(got)
			return got
		case err == nil && status != http.StatusServiceUnavailable:
			c.mu.Lock()
			c.bad = append(c.bad, fmt.Sprintf("%d %s", status, answer))
			c.mu.Unlock()
			return leases{}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (c *consumer) note(got leases) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range got.Done {
		if r.Result == "ok" {
			c.oks[r.ID]++
		} else {
			c.lost++
		}
	}
}

// The process is killed while clients wait, lease, extend and settle. Each job is delivered once, and one that was leased and
// forgotten before comes back, while its first lease is lost.
func TestPull_KilledInEachStep(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		const jobs, kills = 120, 5
		p := start(t, store)
		call[obj](t, p, http.MethodPut, "/v1/topics/pulled", obj{"deliver": "pull", "lane_concurrency": 100}, http.StatusOK)
		register(t, p, obj{"id": "forgotten", "topic": "pulled"})
		forgotten := call[leases](t, p, http.MethodPost, "/v1/topics/pulled/lease", obj{"wait": "10s", "lease": "1s"}, http.StatusOK).Items[0]

		var url atomic.Pointer[string]
		url.Store(&p.url)
		c := &consumer{url: &url, stopped: new(atomic.Bool), oks: make(map[string]int)}
		var working sync.WaitGroup
		for range 4 {
			working.Go(c.work)
		}
		var all []string
		for life := range kills + 1 {
			for n := range jobs / (kills + 1) {
				all = append(all, register(t, p, obj{"topic": "pulled", "lane": fmt.Sprint("lane-", n%3), "body": obj{"n": n}}).ID)
			}
			if life < kills {
				time.Sleep(time.Duration(life*7) * time.Millisecond) // another step of the clients each time
				p.kill()
				p = start(t, store)
				url.Store(&p.url)
			}
		}
		sum := ended(t, p)
		c.stopped.Store(true)
		working.Wait()
		require.Empty(t, c.bad)
		require.EqualValues(t, jobs+1, sum.Delivered, sum.String())
		require.NotEmpty(t, c.oks)
		for id, n := range c.oks {
			require.Equal(t, 1, n, "job %s was done twice", id)
		}
		for _, id := range all {
			found, others := get(t, p, id), []string{} // attempts that did not deliver
			for _, a := range found.Attempts {
				if a.Verdict != "delivered" {
					others = append(others, a.Kind)
				}
			}
			require.Len(t, found.Attempts, len(others)+1, "job %s was delivered once", id)
			require.Subset(t, []string{"lost", "released"}, others)
		}
		late := call[leases](t, p, http.MethodPost, "/v1/leases", obj{
			"done": []obj{{"lease": forgotten.Lease}}, "dead": []obj{{"lease": forgotten.Lease, "reason": "late"}},
			"extend": []obj{{"lease": forgotten.Lease, "for": "1h"}},
		}, http.StatusOK)
		require.Equal(t, []string{"lost", "lost", "lost"}, []string{late.Done[0].Result, late.Dead[0].Result, late.Extend[0].Result})
		require.Equal(t, "delivered", get(t, p, "forgotten").State)
		t.Logf("%d of %d jobs reported with an answer, %d results lost", len(c.oks), jobs, c.lost)
	})
}

func TestPull_ThousandClientsWaitOnOneConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := start(t, server.URL())
	call[obj](t, p, http.MethodPut, "/v1/topics/pulled", obj{"deliver": "pull", "lane_concurrency": 2000}, http.StatusOK)
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	require.Eventually(t, func() bool { return info(t, c, "clients", "blocked_clients") == 3 }, time.Minute, 10*time.Millisecond)
	const clients = 1000
	require.Equal(t, "1334", metric(t, p, "ringback_max_waiting_requests"), "raise the hard limit of open files to 11,000 or more (ulimit -Hn)")
	var waiting sync.WaitGroup
	var leased, failed atomic.Int64
	for range clients {
		waiting.Go(func() {
			status, answer, err := send(p.url, http.MethodPost, "/v1/topics/pulled/lease", obj{"wait": "60s", "lease": "60s"})
			var got leases
			if err != nil || status != http.StatusOK || json.Unmarshal(answer, &got) != nil || len(got.Items) != 1 {
				failed.Add(1)
				return
			}
			leased.Add(1)
		})
	}
	require.Eventually(t, func() bool { return metric(t, p, "ringback_lease_clients") == "1000" }, 20*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return info(t, c, "clients", "blocked_clients") == 4 }, 10*time.Second, time.Millisecond,
		"between two waits none blocks")
	items := make([]obj, clients)
	for n := range items {
		items[n] = obj{"topic": "pulled", "lane": fmt.Sprint("lane-", n%20)}
	}
	call[obj](t, p, http.MethodPost, "/v1/batch", obj{"jobs": items}, http.StatusOK)
	waiting.Wait()
	require.Zero(t, failed.Load())
	require.EqualValues(t, clients, leased.Load())
}
