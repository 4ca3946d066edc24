package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// TestCluster_OutageLeavesTheProcessIdle: with pending work and no server.
func TestCluster_OutageLeavesTheProcessIdle(t *testing.T) {
	t.Parallel()
	disk := []string{"--appendonly", "yes", "--appendfsync", "always"}
	for _, form := range []struct {
		name  string
		start func(t *testing.T) (store string, servers []*redistest.Server, await func())
	}{
		{"a cluster", func(t *testing.T) (string, []*redistest.Server, func()) {
			c := redistest.StartCluster(t, 3, 0, disk...)
			return c.URL(), c.Nodes(), c.AwaitOK
		}},
		{"sentinels", func(t *testing.T) (string, []*redistest.Server, func()) {
			s := redistest.StartSentinel(t, 1, disk...)
			return s.URL(), append(append(s.Sentinels(), s.Replicas()...), s.Master()), s.AwaitOK
		}},
	} {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			const (
				topics = 300
				window = 3 * time.Second
				// As for a single server: the aim is 2 % of a core, asserted is what no busy machine makes of it.
				mostCPU   = window * 30 / 100
				mostLines = 250 * int(window/time.Second)
			)
			store, servers, await := form.start(t)
			r := newReceiver(t)
			p := start(t, store)
			keepBusy(t, p, r, topics)
			for _, server := range servers {
				server.Kill()
			}
			eventually(t, func() bool { return p.unready() != "" })
			r.until(t, "the slow attempts end", func() bool { return r.ended >= slowJobs })
			cpu, lines := p.cpu(t), p.log.written()
			<-time.After(window)
			cpu, lines = p.cpu(t)-cpu, p.log.written()-lines
			t.Logf("without %s: %.1f %% of a core, %d lines of log in %s", form.name,
				100*cpu.Seconds()/window.Seconds(), lines, window)
			require.Less(t, cpu, mostCPU, "a hot loop")
			require.Less(t, lines, mostLines, "a flood of lines")
			for _, server := range servers {
				server.Restart()
			}
			await()
			l := newLoad(t, p, 2, func(int) obj { return obj{"topic": "after", "url": r.URL + "/ok"} })
			takes, delivers := carriesOn(t, p, l, r)
			t.Logf("afterwards it takes after %s and delivers after %s", takes, delivers)
		})
	}
}
