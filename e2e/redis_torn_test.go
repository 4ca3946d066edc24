package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

// A loss of power truncates Redis's append-only file in the middle of a script. After the restart Redis 7.0 may apply
// half of the script: jobs may be in no queue, and counts may be wrong, until a repair.
func TestRedis_IsRepairedWithinAMinuteOfATruncatedFile(t *testing.T) {
	t.Parallel()
	const perLife = 200
	crashes := testkit.Of(2, 4)
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	server, r := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "everysec"), newReceiver(t)
	p := start(t, server.URL())
	l := newLoad(t, p, 8, busyJobs(r))
	for crash := range crashes {
		l.reaches(t, (crash+1)*perLife)
		server.Kill()
		server.TearAOF(1 + random.Int64N(2000))
		server.Restart()
		l.grows(t)
		r.grows(t)
		server.Kill() // what was appended to the torn file is read again
		server.Restart()
		carriesOn(t, p, l, r)
	}
	l.end()
	accepted := len(l.accepted)
	// An accepted job is delivered, unless its registration was in the truncated part: then it is unknown.
	var sum counts
	gone, left := 0, l.accepted
	eventually(t, func() bool {
		gone, left = 0, slices.DeleteFunc(left, func(id string) bool { return len(r.of(id)) > 0 })
		for _, id := range left {
			status, _, err := send(p.url, http.MethodGet, "/v1/jobs/"+id, nil)
			if err != nil || status != http.StatusNotFound {
				return false
			}
			gone++
		}
		var now struct{ Totals counts }
		status, answer, err := send(p.url, http.MethodGet, "/v1/stats", nil)
		if err != nil || status != http.StatusOK || json.Unmarshal(answer, &now) != nil {
			return false
		}
		sum = now.Totals
		return sum.pending() == 0 && sum.agree()
	}, "all jobs must end, and the counts agree")
	require.LessOrEqual(t, gone, crashes*2000/50, "no more are gone than were torn off")
	_, metrics, err := send(p.url, http.MethodGet, "/metrics", nil)
	require.NoError(t, err)
	repairs := regexp.MustCompile(`(?m)^ringback_store_repairs_total.*[^ ]+ [1-9].*$`).FindAllString(string(metrics),
		-1)
	t.Logf("%d accepted, %d of them torn off; %s; repaired: %q", accepted, gone, sum, repairs)
}
