package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuard_RejectsAnotherProcesssAPI(t *testing.T) {
	t.Parallel()
	store := newRedis(t)
	a, b := start(t, store), start(t, store)
	smuggled := obj{"id": "smuggled", "url": "http://127.0.0.1:1/"}

	// Whichever process attempts a job knows its own listener, but not the other's. So jobs go out until each API was
	// called from the other process.
	const most = 200
	refused := map[*process]bool{}
	registered := 0
	for n := 0; n < most && len(refused) < 2; n++ {
		for from, to := range map[*process]*process{a: b, b: a} {
			id := fmt.Sprintf("to-%d-%d", to.cmd.Process.Pid, n)
			register(t, from, obj{"id": id, "lane": id, "url": to.url + "/v1/jobs", "retries": 0, "body": smuggled})
			registered++
			done := await(t, from, id, "dead")
			require.Len(t, done.Attempts, 1)
			if done.Attempts[0].Status == http.StatusForbidden {
				refused[to] = true
			} else {
				require.Equal(t, "blocked", done.Reason, "a process does not call itself")
			}
		}
	}
	require.Len(t, refused, 2, "each API was called from the other process")
	call[obj](t, a, http.MethodGet, "/v1/jobs/smuggled", nil, http.StatusNotFound)
	require.EqualValues(t, registered, count(t, a).Registered)
}
