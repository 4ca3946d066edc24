package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

func TestIsolation_HangingReceiversDoNotDelayTheirTopic(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		const (
			hanging = 50
			seconds = 3
			timeout = "10m" // of attempts at hanging hosts
		)
		hosts := testkit.Of(300, 1000)
		p, r := start(t, store), newReceiver(t)
		job := func(host int, path string) obj {
			return obj{"topic": "isolation", "lane": fmt.Sprintf("host-%d", host), "url": r.URL + path}
		}
		register := func(jobs []obj) []string {
			answer := call[batchAnswer](t, p, http.MethodPost, "/v1/batch", obj{"jobs": jobs}, http.StatusOK)
			var ids []string
			for _, result := range answer.Results {
				require.Equal(t, http.StatusCreated, result.Status)
				ids = append(ids, result.ID)
			}
			return ids
		}
		// The hanging ones come first, and are more than the topic has workers.
		var stuck []obj
		for n := range hanging * 20 {
			j := job(n%hanging, "/hold/1h")
			j["timeout"] = timeout
			stuck = append(stuck, j)
		}
		register(stuck)
		r.until(t, "a request at every hanging host", func() bool { return len(r.byID) >= hanging })

		var ids []string
		for second := range seconds {
			var healthy []obj
			for host := hanging; host < hosts; host++ {
				j := job(host, "/ok")
				j["delay"] = fmt.Sprintf("%dms", 1000*second+host)
				healthy = append(healthy, j)
			}
			ids = append(ids, register(healthy)...)
		}
		var late []time.Duration
		for _, id := range ids {
			first := r.arrives(t, id, 1)[0]
			late = append(late, first.began.Sub(first.due))
		}
		slices.Sort(late)
		t.Logf("lateness of %d jobs among %d hanging hosts: p50 %s, p99 %s, at most %s",
			len(late), hanging, late[len(late)/2], late[len(late)*99/100], late[len(late)-1])
		r.until(t, "the end of every other request", func() bool { return r.ended >= len(ids) })
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Equal(t, len(ids), r.ended, "no attempt at a hanging host has ended: the others did not wait for one")
	})
}
