package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRedis_OutageLongerThanLeasesRepeatsNothing(t *testing.T) {
	t.Parallel()
	const (
		jobs    = 40
		timeout = 8 * time.Second
		// A lease lasts as long as its attempt may, and a margin of 5 s.
		outage = timeout + 5*time.Second + 2*time.Second
	)
	server, r := durableRedis(t), newReceiver(t)
	first := start(t, server.URL(), "--shards=16") // carries
	second := start(t, server.URL())
	// Neither has workers for all, so that both have some: lanes that have not answered yet get seven eighths of them.
	call[obj](t, first, http.MethodPut, "/v1/topics/outage", obj{"workers": jobs * 3 / 4}, http.StatusOK)
	var ids []string
	for n := range jobs {
		id := fmt.Sprintf("job-%d", n)
		ids = append(ids, id)
		register(t, second,
			obj{"id": id, "topic": "outage", "lane": id, "url": r.URL + "/gate", "timeout": timeout.String()})
	}
	r.until(t, "all jobs are in flight", func() bool { return len(r.byID) == jobs })
	server.Kill()
	away := time.After(outage)
	for _, id := range ids {
		r.open(id)
	}
	r.until(t, "all jobs are answered", func() bool {
		for _, arrivals := range r.byID {
			if arrivals[0].answered.IsZero() {
				return false
			}
		}
		return true
	})
	<-away
	server.Restart()
	began := time.Now()
	eventually(t, func() bool { return first.ready() && second.ready() })
	sum := ended(t, first)
	t.Logf("all was settled %s after the restart", time.Since(began))
	require.Equal(t, sum, ended(t, second))
	for _, id := range ids {
		done := get(t, first, id)
		require.Equal(t, "delivered", done.State)
		require.Equal(t, []string{"attempt"}, done.kinds(), "no lease expired: the settlement came first")
		require.Len(t, r.of(id), 1, "job %s", id)
	}
}
