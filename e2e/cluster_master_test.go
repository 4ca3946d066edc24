package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// A server is lost, its replica takes over, and the old one comes back as a replica: first a server with shards only,
// then the one with the policies of all topics.
func TestCluster_ReplicasTakeOverUnderLoad(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1, "--cluster-require-full-coverage", "no")
	r := newReceiver(t)
	wait := "--redis-wait=replicas=1,timeout=300ms"
	a, b := start(t, c.URL(), wait), start(t, c.URL(), wait)
	l := newLedger(t, r, 8, a, b)
	l.grows(t, 300)
	policies := c.Slot("rb:topics")
	var faults []disturbance
	var victims []map[string]bool // their lanes
	for _, both := range []bool{false, true} {
		servers, _ := placement(t, c)
		var victim *redistest.Server
		for _, master := range c.Masters() {
			if (master == c.Master(policies)) == both {
				victim = master
			}
		}
		lanes := on(victim, servers)
		require.NotEmpty(t, lanes)
		victims = append(victims, lanes)
		var gone, back time.Time // earlier requests than gone may be accepted by the lost server
		var promoted, takes, delivers time.Duration
		faults = append(faults, r.disturb("", victim.Kill, func() {
			gone = time.Now()
			c.AwaitOK()
			promoted = time.Since(gone)
			takes, delivers = l.carriesOn(t, r, lanes, gone)
			back = time.Now()
			eventually(t, func() bool { return a.ready() && b.ready() })
		}))
		victim.Restart()
		c.AwaitOK()
		// With a replica again, answers say so.
		eventually(t, func() bool {
			for _, job := range l.snapshot() {
				if lanes[job.lane] && job.asked.After(back) && job.replicas == 1 {
					return true
				}
			}
			return false
		})
		others := l.meanwhile(r, lanes, gone, gone.Add(min(takes, promoted)))
		t.Logf("a server is lost (with the policies: %t): a replica is promoted after %s; its %d lanes take after %s "+
			"and deliver after %s; %s",
			both, promoted.Round(time.Millisecond), len(lanes), takes, delivers, others)
		require.Positive(t, others.delayed, "the other servers' shards go on")
		require.Positive(t, others.carried, "the other servers' shards are carried")
		l.grows(t, 100)
	}
	sum, lost, again := l.settles(t, r)
	require.Zero(t, covered(lost), "a replica had it: %v", lost)
	require.GreaterOrEqual(t, sum.Registered, int64(covered(l.accepted)), sum.String())
	require.Greater(t, covered(l.accepted), len(l.accepted)/2, "most are acknowledged by a replica")
	for _, one := range again {
		near := false
		for i, fault := range faults {
			near = near || l.mayRepeat(one, fault, victims[i])
		}
		require.True(t, near, "job %s came again, though it was answered long before any fault: %+v; faults from %s "+
			"and %s, the longest wait %s", one.id, one, faults[0].from, faults[1].from, l.longest)
	}
	t.Logf("%s; %d accepted, %d of them with a replica; lost %d, all without one; %d came again; %d refused, the "+
		"longest wait %s",
		sum, len(l.accepted), covered(l.accepted), len(lost), len(again), l.refused, l.longest.Round(time.Millisecond))
}
