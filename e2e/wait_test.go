package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWait_AnswersWithTheEndedJobFromAnyProcess(t *testing.T) {
	t.Parallel()
	r, store := newReceiver(t), newShardedRedis(t)
	worker, front := start(t, store), start(t, store, "--roles=api", "--grace=10m")
	for _, p := range []*process{worker, front} {
		began := time.Now()
		job := obj{"topic": "orders", "url": r.URL + "/fail/1", "ladder": []string{"500ms"}}
		done := call[view](t, p, http.MethodPost, "/v1/jobs?wait=60s", job, http.StatusCreated)
		require.Less(t, time.Since(began), time.Minute, "not when the wait is over")
		require.Equal(t, "delivered", done.State)
		require.Equal(t, 200, done.Attempts[1].Status)
	}

	waiting := register(t, worker, obj{"topic": "orders", "url": r.URL + "/gate", "timeout": "5m"}).ID
	r.arrives(t, waiting, 1)
	states := make(chan string, 2)
	for _, p := range []*process{worker, front} {
		go func() { states <- waited(p, waiting) }()
	}
	later := register(t, front, obj{"topic": "orders", "url": r.URL + "/ok", "delay": "1h"}).ID
	stopped := make(chan string, 1)
	go func() { stopped <- waited(front, later) }()
	for p, n := range map[*process]string{worker: "1", front: "2"} {
		eventually(t, func() bool { return metric(t, p, "ringback_waiting_requests") == n })
	}
	require.Empty(t, states)
	r.open(waiting)
	require.Equal(t, []string{"delivered", "delivered"}, []string{<-states, <-states})

	require.Empty(t, stopped)
	code, took := front.terminate()
	require.Zero(t, code)
	require.Less(t, took, 45*time.Second, "a request that waits must not delay the stop")
	require.Equal(t, "scheduled", <-stopped)
}

// waited waits for a job for longer than the test and returns its state, or what is wrong.
func waited(p *process, id string) string {
	status, answer, err := send(p.url, http.MethodGet, "/v1/jobs/"+id+"?wait=60s", nil)
	var v view
	if err == nil {
		err = json.Unmarshal(answer, &v)
	}
	if err != nil || status != http.StatusOK {
		return fmt.Sprint(status, err, string(answer))
	}
	return v.State
}
