package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A schedule makes each tick once, whatever a kill interrupts.
func TestSchedule_MakesEachTickOnceAcrossKills(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	store := engines[0].store(t)
	p := start(t, store)
	const path = "/v1/schedules/each-second"
	call[any](t, p, http.MethodPut, path, obj{
		"every": "1s", "catch_up": obj{"runs": "all"}, "job": obj{"topic": "ticks", "url": r.URL + "/ok"},
	}, http.StatusOK)
	for range 3 {
		<-time.After(500*time.Millisecond + rand.N(700*time.Millisecond)) // any moment will do
		p.kill()
		p = start(t, store)
	}
	type tick struct {
		At       time.Time
		Outcome  string
		JobID    string `json:"job_id"`
		JobState string `json:"job_state"`
	}
	type schedule struct {
		Last   []tick
		Counts struct{ Run, Skipped, Missed, Failed int }
	}
	var s schedule
	eventually(t, func() bool {
		s = call[schedule](t, p, http.MethodGet, path, nil, http.StatusOK)
		return s.Counts.Run >= 4 && s.Last[3].JobState == "delivered"
	})
	require.Zero(t, s.Counts.Missed+s.Counts.Failed+s.Counts.Skipped)
	for i, tick := range s.Last[:4] {
		require.Equal(t, fmt.Sprintf("rb:s:each-second:%d", tick.At.Unix()), tick.JobID)
		require.Equal(t, s.Last[0].At.Add(time.Duration(i)*time.Second), tick.At, "no second is missing")
		sent := r.of(tick.JobID)
		require.NotEmpty(t, sent)
		require.Equal(t, []string{fmt.Sprint(tick.At.UnixMilli())}, sent[0].header["Ringback-Scheduled-At"])
	}
}
