package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// Half-open connections are detected, and nothing that they swallowed is lost or repeated. Tests of the engine bound
// the time.
func TestRedis_SilentConnectionsAreReplaced(t *testing.T) {
	onShards(t, func(t *testing.T, shards string) {
		server, r := redistest.Start(t), newReceiver(t)
		proxy := redistest.StartProxy(t, server.Addr())
		p := start(t, "redis://"+proxy.Addr(), shards)
		l := newLoad(t, p, 8, func(n int) obj {
			j := busyJobs(r)(n)
			j["timeout"] = "5m" // leases last as long: what could not be settled meanwhile is settled in time
			return j
		})
		l.reaches(t, 300)
		waiting := register(t, p, obj{"topic": "later", "url": r.URL + "/ok", "delay": "1s"})
		before := r.size()
		proxy.Stall()
		stalled := time.Now()
		l.grows(t)
		takes := time.Since(stalled)
		r.until(t, "deliveries go on", func() bool { return r.all > before+100 })
		delivers := time.Since(stalled)
		// Due jobs had to be carried, and wake-ups received.
		late := r.arrives(t, waiting.ID, 1)[0]
		eventually(t, p.ready)
		l.reaches(t, l.size()+100)
		sum := l.settles(t, p)
		require.Empty(t, r.repeated(t, l.accepted))
		t.Logf("%s; takes again after %s, delivers after %s, a job due meanwhile came %s late; %d refused, the "+
			"longest wait %s",
			sum, takes, delivers, late.began.Sub(late.due), l.refused, l.longest)
	})
}
