package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/badreceiver"
)

// Bad receivers affect only their own lanes: their jobs end with the right errors, a good receiver is served without
// delay, and afterwards the process has released all resources.
func TestIsolation_BadReceiversDelayOnlyTheirLanes(t *testing.T) {
	t.Parallel()
	const jobsEach = 4
	p, r := start(t, newSQLite(t), "--ca-file="+badreceiver.CAFile(t)), newReceiver(t)
	call[obj](t, p, http.MethodPut, "/v1/topics/bad", obj{
		"timeout": "1s", "ladder": []string{"100ms"}, "retries": 1, "breaker": obj{"failures": 0},
	}, http.StatusOK)
	warm := func() { // what a process that is used anyway holds
		for n := range 200 {
			register(t, p, obj{"topic": "bad", "lane": fmt.Sprintf("warm-%d", n%20), "url": r.URL + "/ok"})
		}
		ended(t, p)
	}
	warm()
	before := resident(t, p)

	bad := make(map[string]string)
	for _, kind := range badreceiver.All {
		to := badreceiver.Start(t, kind)
		for range jobsEach {
			bad[register(t, p,
				obj{"topic": "bad", "lane": string(kind), "url": to.URL, "body": obj{"n": 1}}).ID] = string(kind)
		}
	}
	worst := time.Duration(0)
	for range 100 {
		a := r.arrives(t, register(t, p, obj{"topic": "bad", "lane": "good", "url": r.URL + "/ok"}).ID, 1)[0]
		worst = max(worst, a.began.Sub(a.due))
	}
	t.Logf("a good receiver was served at most %s late among %d bad ones", worst, len(badreceiver.All))

	eventually(t, func() bool { return count(t, p).pending() == 0 })
	for id, kind := range bad {
		v := get(t, p, id)
		require.Contains(t, []string{"dead", "delivered"}, v.State, kind)
		for _, a := range v.Attempts {
			require.False(t, a.Status == 0 && a.ErrorClass == "",
				"%s: an attempt has neither an answer nor a reason", kind)
			require.NotEqual(t, "other", a.ErrorClass, kind)
		}
	}
	require.Equal(t, "0", metric(t, p, "ringback_in_flight"))
	warm()
	require.Less(t, resident(t, p)-before, int64(96<<20), "what bad receivers sent is not kept")
}

// resident returns the resident memory of a process, in bytes; 0: unknown.
func resident(t testing.TB, p *process) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// metric returns the value of a series in /metrics; empty: no such series.
func metric(t testing.TB, p *process, series string) string {
	t.Helper()
	status, answer, err := send(p.url, http.MethodGet, "/metrics", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	for line := range strings.Lines(string(answer)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
