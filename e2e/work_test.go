package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// bulkWork is the answer for bulk work.
type bulkWork struct {
	ID, State                      string
	Matched, Done, Failed, Skipped int
	Exact                          bool
}

// work starts bulk work and returns it after its end.
func work(t *testing.T, p *process, path string, order obj) bulkWork {
	t.Helper()
	w := call[bulkWork](t, p, http.MethodPost, path, order, http.StatusAccepted)
	eventually(t, func() bool {
		w = call[bulkWork](t, p, http.MethodGet, "/v1/work/"+w.ID, nil, http.StatusOK)
		return w.State == "done"
	})
	return w
}

// Bulk work goes on after each kill, whatever step it interrupts, and revives each job once. A job is sent once for
// each attempt, and an attempt that a kill has interrupted is repeated.
func TestWork_RevivesEachJobOnceAcrossKills(t *testing.T) {
	jobs, kills := testkit.Of(1000, 5000), testkit.Of(4, 10)
	test := func(t *testing.T, store string) {
		r := newReceiver(t)
		p := start(t, store)
		call[any](t, p, http.MethodPut, "/v1/topics/work", obj{
			"give_up_on": []string{"500"}, "ladder": []string{"10ms"}, "retries": 100, "timeout": "1s",
			"breaker": obj{"failures": 0}, // timeouts on a slow machine would open it for half a minute
		}, http.StatusOK)
		for from := 0; from < jobs; from += 1000 {
			batch := make([]obj, 1000)
			for i := range batch {
				batch[i] = obj{
					"id": fmt.Sprint("job-", from+i), "topic": "work", "lane": fmt.Sprint("lane-", i%25),
					"url": r.URL + "/fail/1",
				}
			}
			call[any](t, p, http.MethodPost, "/v1/batch", obj{"jobs": batch}, http.StatusOK)
		}
		reaches := func(what string, done func(c counts) bool) {
			t.Helper()
			eventually(t, func() bool { return done(count(t, p)) }, what)
		}
		dead := 0
		// delivered, if a slow machine took longer than the timeout for the 500
		reaches("all have ended", func(c counts) bool {
			dead = int(c.Dead)
			return c.Dead+c.Delivered == int64(jobs)
		})
		require.Positive(t, dead)

		w := call[bulkWork](t, p, http.MethodPost, "/v1/work",
			obj{"action": "revive", "where": obj{"topic": "work"}, "rate": "2000/s"}, http.StatusAccepted)
		for range kills {
			<-time.After(rand.N(300 * time.Millisecond)) // any moment will do
			p.kill()
			p = start(t, store)
		}
		reaches("all are delivered", func(c counts) bool { return c.Delivered == int64(jobs) })
		eventually(t, func() bool {
			w = call[bulkWork](t, p, http.MethodGet, "/v1/work/"+w.ID, nil, http.StatusOK)
			return w.State == "done"
		})
		require.Equal(t, bulkWork{ID: w.ID, State: "done", Matched: dead, Done: dead, Exact: true}, w)
		seen, revived, cursor := 0, 0, ""
		for {
			page := call[struct {
				Items []struct {
					ID           string
					Generation   int
					AttemptsMade int `json:"attempts_made"`
				}
				NextCursor string `json:"next_cursor"`
			}](t, p, http.MethodGet, "/v1/jobs?topic=work&limit=500&cursor="+cursor, nil, http.StatusOK)
			for _, j := range page.Items {
				require.LessOrEqual(t, j.Generation, 1, j.ID)
				revived += j.Generation
				sent := len(r.of(j.ID))
				require.GreaterOrEqual(t, sent, 2, j.ID)
				require.LessOrEqual(t, sent, j.AttemptsMade, "%s: more requests than attempts", j.ID)
			}
			seen += len(page.Items)
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		require.Equal(t, jobs, seen)
		require.Equal(t, dead, revived)
	}
	t.Parallel()
	for _, e := range engines[:2] { // sharding adds nothing but leases to wait for
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, e.store(t))
		})
	}
}
