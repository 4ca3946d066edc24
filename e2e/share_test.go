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
	// Two wait for claimable queues, of jobs and of Ringback's own work, and one for the agenda. Between two waits none
	// blocks.
	eventually(t, func() bool { return info(t, c, "clients", "blocked_clients") == 3 },
		"three blocking connections, whatever the number of topics")
	// The first check of the store ends with this key.
	eventually(t, func() bool { return len(c.Keys(t.Context(), "{rb:*}:checked").Val()) == 1 })
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
	// The first carries; the second, in turn with it, registers a job due before the first's next round.
	both := []*process{start(t, server.URL()), start(t, server.URL())}
	register(t, both[1], obj{"url": r.URL + "/ok", "delay": "1h"})
	const jobs = 20 // of each
	var late [2][]time.Duration
	for i := range 2 * jobs {
		id := fmt.Sprintf("job-%d", i)
		register(t, both[i%2], obj{"id": id, "url": r.URL + "/ok", "delay": fmt.Sprintf("%dms", 20+i)})
		first := r.arrives(t, id, 1)[0]
		require.False(t, first.began.Before(first.due), "a job came early")
		late[i%2] = append(late[i%2], first.began.Sub(first.due))
	}
	slices.Sort(late[0])
	slices.Sort(late[1])
	// Looking once a second would be late by half a second in the middle.
	require.Less(t, late[1][jobs/2], late[0][jobs/2]+400*time.Millisecond, "%v", late)
}
