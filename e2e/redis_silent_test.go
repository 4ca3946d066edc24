package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// A half-open connection must be detected within 15 s, plus time for a busy machine.
func TestRedis_SilentConnectionsAreReplaced(t *testing.T) {
	onShards(t, func(t *testing.T, shards string) {
		const notice = 25 * time.Second
		server, r := redistest.Start(t), newReceiver(t)
		proxy := redistest.StartProxy(t, server.Addr())
		p := start(t, "redis://"+proxy.Addr(), shards)
		l := newLoad(t, p, 8, busyJobs(r))
		l.reaches(t, 500)
		waiting := register(t, p, obj{"topic": "later", "url": r.URL + "/ok", "delay": "1s"})
		before := r.size()
		proxy.Stall()
		stalled := time.Now()
		l.grows(t)
		takes := time.Since(stalled)
		r.until(t, notice, "deliveries go on", func() bool { return r.all > before+100 })
		delivers := time.Since(stalled)
		// Due jobs had to be carried, and wake-ups received.
		late := r.arrives(t, waiting.ID, 1)[0]
		require.Eventually(t, p.ready, notice, 5*time.Millisecond)
		require.Less(t, max(takes, delivers, late.began.Sub(stalled)), notice)
		l.reaches(t, l.size()+200)
		sum := l.settles(t, p)
		require.Less(t, l.longest, notice)
		// An attempt may take 10 s here, its lease lasts 15: what could not be settled meanwhile was settled in time.
		require.Empty(t, r.repeated(t, l.accepted))
		t.Logf("%s; takes again after %s, delivers after %s, a job due meanwhile came %s late; %d refused, the longest wait %s",
			sum, takes, delivers, late.began.Sub(late.due), l.refused, l.longest)
	})
}
