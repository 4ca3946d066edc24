package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// unix parses a time in Unix seconds.
func unix(t testing.TB, text string) time.Time {
	t.Helper()
	seconds, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return time.Unix(seconds, 0)
}

// Three processes on one store together start no more attempts in any window than the rates of a topic and a lane
// allow. The starts are those of the history, by the machine's clock.
func TestRates_HoldOverThreeProcesses(t *testing.T) {
	onRedis(t, func(t *testing.T, store string) {
		const (
			starts, laneStarts = 12, 5
			per                = 600 * time.Millisecond
			jobs               = 120
		)
		r := newReceiver(t)
		all := fleet(t, 3, store, obj{
			"rate": fmt.Sprintf("%d/%s", starts, per), "lane_rate": fmt.Sprintf("%d/%s", laneStarts, per),
		})
		began := time.Now()
		lanes := make(map[string]string)
		for n := range jobs {
			lane := fmt.Sprintf("lane-%d", n%4)
			lanes[register(t, all[n%3], obj{"topic": "shared", "lane": lane, "url": r.URL + "/ok"}).ID] = lane
		}
		byLane := make(map[string][]time.Time)
		for id, lane := range lanes {
			r.arrives(t, id, 1)
			v := await(t, all[0], id, "delivered")
			require.Equal(t, 1, v.AttemptsMade, "waiting for a rate is no attempt")
			for _, a := range v.Attempts {
				if a.Kind == "attempt" {
					byLane[lane] = append(byLane[lane], a.StartedAt)
					byLane[""] = append(byLane[""], a.StartedAt)
				}
			}
		}
		t.Logf("%d jobs at %d in %s took %s", jobs, starts, per, time.Since(began))
		require.Len(t, byLane[""], jobs)
		for lane, times := range byLane {
			most := starts
			if lane != "" {
				most = laneStarts
			}
			slices.SortFunc(times, time.Time.Compare)
			for i := most; i < len(times); i++ {
				// The record cuts to milliseconds.
				require.Greater(t, times[i].Sub(times[i-most]), per-2*time.Millisecond,
					"lane %q: begin %d comes too early after begin %d", lane, i, i-most)
			}
		}
	})
}

// A lane at its rate does not delay others, and continues when its window allows.
func TestRates_WaitingCostsNoRetries(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		p, r := start(t, store), newReceiver(t)
		call[obj](t, p, http.MethodPut, "/v1/topics/calls", obj{"retries": 0}, http.StatusOK)
		call[obj](t, p, http.MethodPut, "/v1/topics/calls/lanes/slow", obj{"lane_rate": "1/500ms"}, http.StatusOK)
		var slow []string
		for range 4 {
			slow = append(slow, register(t, p, obj{"topic": "calls", "lane": "slow", "url": r.URL + "/ok"}).ID)
		}
		began := time.Now()
		for range 50 {
			r.arrives(t, register(t, p, obj{"topic": "calls", "lane": "free", "url": r.URL + "/ok"}).ID, 1)
		}
		t.Logf("50 jobs of a free lane took %s", time.Since(began))
		var begins []time.Time
		for _, id := range slow {
			r.arrives(t, id, 1)
			begins = append(begins, await(t, p, id, "delivered").Attempts[0].StartedAt)
		}
		slices.SortFunc(begins, time.Time.Compare)
		for i := range begins[1:] {
			gap := begins[i+1].Sub(begins[i])
			require.GreaterOrEqual(t, gap, 498*time.Millisecond)
		}
	})
}
