package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLanes_TenThousandWithOneJobEachAreServed(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		const lanes = 10_000
		p, r := start(t, store), newReceiver(t)
		jobs := make([]obj, lanes)
		for i := range jobs {
			jobs[i] = obj{"topic": "lanes", "lane": fmt.Sprintf("customer-%d", i), "url": r.URL + "/ok"}
		}
		answer := call[batchAnswer](t, p, http.MethodPost, "/v1/batch", obj{"jobs": jobs}, http.StatusOK)
		require.Len(t, answer.Results, lanes)
		for _, result := range answer.Results {
			require.Equal(t, http.StatusCreated, result.Status)
		}
		r.until(t, time.Minute, "a request of every lane", func() bool { return len(r.byID) == lanes })
		require.Eventually(t, func() bool { return count(t, p).Delivered == lanes }, 20*time.Second, 20*time.Millisecond,
			"what arrived must be settled")
		for _, result := range answer.Results {
			require.Len(t, r.of(result.ID), 1, "nothing is sent twice")
		}
	})
}
