package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

func TestLanes_ThousandsWithOneJobEachAreServed(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		lanes := testkit.Of(2_000, 10_000)
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
		r.until(t, "a request of every lane", func() bool { return len(r.byID) == lanes })
		eventually(t, func() bool { return count(t, p).Delivered == int64(lanes) },
			"what arrived must be settled")
		for _, result := range answer.Results {
			require.Len(t, r.of(result.ID), 1, "nothing is sent twice")
		}
	})
}
