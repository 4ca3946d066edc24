package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	require.Eventually(t, func() bool {
		w = call[bulkWork](t, p, http.MethodGet, "/v1/work/"+w.ID, nil, http.StatusOK)
		return w.State == "done"
	}, 60*time.Second, 10*time.Millisecond)
	return w
}

// Bulk work goes on after each kill, whatever step it interrupts, and revives each job once.
func TestWork_RevivesEachJobOnceAcrossKills(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		const (
			jobs  = 1500
			kills = 3
		)
		r := newReceiver(t)
		p := start(t, store)
		for from := 0; from < jobs; from += 500 {
			batch := make([]obj, 500)
			for i := range batch {
				batch[i] = obj{"id": fmt.Sprint("job-", from+i), "topic": "work", "lane": fmt.Sprint("lane-", i%25), "url": r.URL + "/fail/1", "retries": 0}
			}
			call[any](t, p, http.MethodPost, "/v1/batch", obj{"jobs": batch}, http.StatusOK)
		}
		type total struct{ Totals counts }
		reaches := func(what string, done func(c counts) bool) {
			require.Eventually(t, func() bool {
				return done(call[total](t, p, http.MethodGet, "/v1/stats", nil, http.StatusOK).Totals)
			}, 60*time.Second, 50*time.Millisecond, what)
		}
		reaches("all are dead", func(c counts) bool { return c.Dead == jobs })

		w := call[bulkWork](t, p, http.MethodPost, "/v1/work",
			obj{"action": "revive", "where": obj{"topic": "work"}, "rate": "500/s"}, http.StatusAccepted)
		for range kills {
			<-time.After(rand.N(400 * time.Millisecond)) // any moment will do
			p.kill()
			p = start(t, store)
		}
		reaches("all are delivered", func(c counts) bool { return c.Delivered == jobs && c.agree() })
		require.Eventually(t, func() bool {
			w = call[bulkWork](t, p, http.MethodGet, "/v1/work/"+w.ID, nil, http.StatusOK)
			return w.State == "done"
		}, 60*time.Second, 50*time.Millisecond)
		require.Equal(t, bulkWork{ID: w.ID, State: "done", Matched: jobs, Done: jobs, Exact: true}, w)
		for i := range jobs {
			got := call[struct{ Generation int }](t, p, http.MethodGet, fmt.Sprint("/v1/jobs/job-", i), nil, http.StatusOK)
			require.Equal(t, 1, got.Generation, "job-%d", i)
		}
	})
}
