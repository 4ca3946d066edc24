package e2e

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

func TestCluster_SlotMoveAndCrashLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, "--appendonly", "yes", "--appendfsync", "always")
	r := newReceiver(t)
	a, b := start(t, c.URL()), start(t, c.URL())
	l := newLedger(t, r, 8, a, b)
	l.grows(t, 300)
	movesSlot(t, c, l, r)
	l.grows(t, 100)
	for range testkit.Of(1, 2) {
		killsAll(t, c, l, r)
		l.grows(t, 100)
	}
	eventually(t, func() bool { return a.ready() && b.ready() })
	sum, again := l.keepsAll(t, r)
	require.Empty(t, again, "no server forgot what it had answered")
	t.Logf("%s; %d accepted, %d refused, the longest wait %s", sum, len(l.accepted), l.refused,
		l.longest.Round(time.Millisecond))
}

// movesSlot moves the slot with most lanes to another server, key by key, while jobs are delivered.
func movesSlot(t *testing.T, c *redistest.Cluster, l *ledger, r *receiver) {
	t.Helper()
	servers, keys := placement(t, c)
	byKey := make(map[string]map[string]bool)
	key := ""
	for lane, k := range keys {
		if byKey[k] == nil {
			byKey[k] = make(map[string]bool)
		}
		if byKey[k][lane] = true; len(byKey[k]) > len(byKey[key]) {
			key = k
		}
	}
	lanes := byKey[key]
	from := servers[slices.Collect(maps.Keys(lanes))[0]]
	to := c.Masters()[0]
	if to == from {
		to = c.Masters()[1]
	}
	fault := time.Now()
	move := c.BeginMove(c.Slot(key), to)
	moved := 0
	for n := move.Carry(1); n > 0; n = move.Carry(1) {
		moved += n
		r.grows(t) // something is delivered between any two keys
	}
	move.Finish()
	finished := time.Now()
	takes, delivers := l.carriesOn(t, r, lanes, finished)
	others := l.meanwhile(r, lanes, fault, finished)
	t.Logf("a slot of %d keys moved in %s; its %d lanes take after %s and deliver after %s; %s",
		moved, finished.Sub(fault).Round(time.Millisecond), len(lanes), takes, delivers, others)
	require.Positive(t, moved)
	require.Positive(t, others.delayed, "the other shards go on")
}

// killsAll kills all servers at once and restarts them.
func killsAll(t *testing.T, c *redistest.Cluster, l *ledger, r *receiver) {
	t.Helper()
	for _, server := range c.Nodes() {
		server.Kill()
	}
	for _, p := range l.all {
		var why string
		eventually(t, func() bool { why = p.unready(); return why != "" },
			"a process without its store is not ready")
		require.Contains(t, why, "redis")
	}
	for _, server := range c.Nodes() {
		server.Restart()
	}
	c.AwaitOK()
	back := time.Now()
	lanes := make(map[string]bool)
	servers, _ := placement(t, c)
	for lane := range servers {
		lanes[lane] = true
	}
	takes, delivers := l.carriesOn(t, r, lanes, back)
	t.Logf("after a cluster's return it takes after %s and delivers after %s", takes, delivers)
}
