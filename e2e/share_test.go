package e2e

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// info returns a number of Redis's INFO.
func info(t testing.TB, c *redis.Client, section, field string) int64 {
	t.Helper()
	text, err := c.Info(t.Context(), section).Result()
	require.NoError(t, err)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			require.NoError(t, err)
			return n
		}
	}
	require.FailNow(t, "redis has no "+field)
	return 0
}

func TestIdle_TenThousandTopicsCostThreeConnections(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	p := start(t, server.URL())
	jobs := make([]obj, 10_000)
	for i := range jobs {
		jobs[i] = obj{"topic": fmt.Sprintf("topic-%d", i), "url": "https://shop.example/hook", "delay": "1h"}
	}
	answer := call[batchAnswer](t, p, http.MethodPost, "/v1/batch", obj{"jobs": jobs}, http.StatusOK)
	for _, result := range answer.Results {
		require.Equal(t, http.StatusCreated, result.Status)
	}
	// Two wait for claimable queues, of jobs and of Ringback's own work, and one for the agenda. Between two waits none blocks.
	require.Eventually(t, func() bool { return info(t, c, "clients", "blocked_clients") == 3 }, time.Minute, 10*time.Millisecond,
		"three blocking connections, whatever the number of topics")
	// The first check of the store ends with this key.
	require.Eventually(t, func() bool { return len(c.Keys(t.Context(), "{rb:*}:checked").Val()) == 1 }, 2*time.Minute, 10*time.Millisecond)
	const window = 3 * time.Second
	trips := int64(math.MaxInt64)
	for range 5 {
		before := info(t, c, "stats", "total_reads_processed")
		<-time.After(window)
		if trips = info(t, c, "stats", "total_reads_processed") - before; trips < int64(10*window.Seconds()) {
			break
		}
	}
	require.Less(t, trips, int64(10*window.Seconds()), "an idle process polls")
}

func TestWakeups_ReachOtherProcesses(t *testing.T) {
	t.Parallel()
	server, r := redistest.Start(t), newReceiver(t)
	// The first carries; the second registers a job due before the first's next round.
	start(t, server.URL())
	second := start(t, server.URL())
	register(t, second, obj{"url": r.URL + "/ok", "delay": "1h"})
	const jobs = 30
	for i := range jobs {
		register(t, second, obj{"id": fmt.Sprintf("job-%d", i), "url": r.URL + "/ok", "delay": fmt.Sprintf("%dms", 20+i)})
		<-time.After(50 * time.Millisecond)
	}
	var late []time.Duration
	for i := range jobs {
		id := fmt.Sprintf("job-%d", i)
		r.until(t, 20*time.Second, "every job", func() bool { return len(r.byID[id]) > 0 })
		first := r.of(id)[0]
		require.False(t, first.began.Before(first.due), "a job came early")
		late = append(late, first.began.Sub(first.due))
	}
	slices.Sort(late)
	// Looking once a second would be late by half a second in the middle.
	require.Less(t, late[jobs/2], 200*time.Millisecond, "%v", late)
}
