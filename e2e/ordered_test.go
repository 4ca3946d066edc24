package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOrdered_KeepsTheOrderOverKills kills the process with an attempt in flight, and, at no chosen moment, after
// answers: before or after the settlement, or while a failed job waits for its retry.
func TestOrdered_KeepsTheOrderOverKills(t *testing.T) {
	t.Parallel()
	const jobs, lives = 60, 6
	r, store := newReceiver(t), newSQLite(t)
	p := start(t, store)
	call[obj](t, p, http.MethodPut, "/v1/topics/account",
		obj{"ordered": true, "ladder": []string{"30ms"}, "retries": 50}, http.StatusOK)
	var ids []string
	for n := range jobs {
		j := obj{
			"id": fmt.Sprintf("job-%02d", n), "topic": "account", "lane": "4711",
			"url": r.URL + []string{"/hold/5ms", "/fail/2", "/ok"}[n%3],
		}
		if n == 0 {
			j["url"] = r.URL + "/gate"
		}
		ids = append(ids, register(t, p, j).ID)
	}
	r.arrives(t, ids[0], 1)
	p.kill()
	p = start(t, store)
	r.arrives(t, ids[0], 2)
	r.open(ids[0])
	for life := 1; life < lives; life++ {
		r.arrives(t, ids[life*jobs/lives], 1)
		p.kill()
		p = start(t, store)
	}
	require.Zero(t, ended(t, p).Dead)

	var all []arrival
	for _, id := range ids {
		all = append(all, r.of(id)...)
	}
	slices.SortFunc(all, func(a, b arrival) int { return a.began.Compare(b.began) })
	answered := make(map[string]bool)
	for i, a := range all {
		if i > 0 && a.id != all[i-1].id {
			require.True(t, answered[all[i-1].id], "%s came before %s was delivered", a.id, all[i-1].id)
			require.Equal(t, 1, cmp.Compare(a.id, all[i-1].id), "%s came after %s", a.id, all[i-1].id)
		}
		answered[a.id] = answered[a.id] || a.status == http.StatusOK
	}
	require.Len(t, answered, jobs)
	t.Logf("%d jobs arrived %d times", jobs, len(all))
}
