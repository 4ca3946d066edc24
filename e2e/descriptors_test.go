package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process with too few file descriptors for its due jobs still delivers: the shortage costs no job its only attempt,
// and opens no breaker.
func TestDescriptors_TooFewCostNoJobItsAttempt(t *testing.T) {
	t.Parallel()
	const jobs = 400
	r := newReceiver(t)
	p := launchProgram(t, "/bin/sh", nil, "-c", `ulimit -n 90; exec "$0" "$@"`, binary,
		"serve", "--addr=127.0.0.1:0", "--store="+newSQLite(t), "--allow-private", "--log=json")
	policy := obj{"retries": 0, "breaker": obj{"failures": 1}}
	call[obj](t, p, http.MethodPut, "/v1/topics/orders", policy, http.StatusOK)
	call[obj](t, p, http.MethodPost, "/v1/topics/orders/pause", nil, http.StatusOK)
	var batch []obj
	for n := range jobs {
		batch = append(batch,
			obj{"topic": "orders", "lane": fmt.Sprintf("host-%d", n%40), "url": r.URL + "/hold/200ms"})
	}
	answer := call[batchAnswer](t, p, http.MethodPost, "/v1/batch", obj{"jobs": batch}, http.StatusOK)
	require.Len(t, answer.Results, jobs)
	call[obj](t, p, http.MethodPost, "/v1/topics/orders/resume", nil, http.StatusOK)

	sum := ended(t, p)
	require.EqualValues(t, jobs, sum.Delivered, "%s", sum)
	released := metric(t, p,
		`ringback_attempts_total{namespace="default",outcome="local_resources",topic="orders",verdict="released"}`)
	require.NotEmpty(t, released, "the process ran out of descriptors")
	t.Logf("%s attempts were put off", released)
	require.Equal(t, "0", metric(t, p, `ringback_breakers_open{namespace="default",topic="orders"}`))
	for _, result := range answer.Results[:40] {
		require.Len(t, r.of(result.ID), 1)
	}
}
