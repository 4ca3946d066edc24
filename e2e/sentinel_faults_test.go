package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

func TestSentinel_ReplacesThePrimaryTwiceUnderLoad(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1)
	r := newReceiver(t)
	wait := "--redis-wait=replicas=1,timeout=300ms"
	a, b := start(t, s.URL(), wait), start(t, s.URL(), wait)
	l := newLedger(t, r, 8, a, b)
	l.grows(t, 300)
	first := s.Master()
	faults := []disturbance{loses(t, s, l, r)}

	undisturbed(t, l, "the old primary comes back as a replica", func() {
		first.Restart()
		s.AwaitOK()
	})
	undisturbed(t, l, "a sentinel is lost", s.Sentinels()[0].Kill)
	faults = append(faults, loses(t, s, l, r)) // the two that are left agree

	sum, lost, again := l.settles(t, r)
	require.Zero(t, covered(lost), "a replica had it: %v", lost)
	require.GreaterOrEqual(t, sum.Registered, int64(covered(l.accepted)), sum.String())
	require.Greater(t, covered(l.accepted), len(l.accepted)/4)
	for _, one := range again {
		near := slices.ContainsFunc(faults, func(fault disturbance) bool { return l.mayRepeat(one, fault, nil) })
		require.True(t, near, "job %s came again, though it was answered long before any fault; "+
			"the master was replaced %d times", one.id, s.Switches())
	}
	t.Logf("%s; %d accepted, %d of them with a replica; lost %d, all without one; %d came again; %d refused, the "+
		"longest wait %s",
		sum, len(l.accepted), covered(l.accepted), len(lost), len(again), l.refused, l.longest.Round(time.Millisecond))
}

// loses kills the primary and waits until its replica has taken over and jobs are registered and delivered again.
func loses(t *testing.T, s *redistest.Sentinel, l *ledger, r *receiver) disturbance {
	t.Helper()
	lanes := make(map[string]bool)
	for n := range ledgerLanes {
		lanes[fmt.Sprintf("lane-%d", n)] = true
	}
	old := s.Master()
	return r.disturb("", old.Kill, func() {
		gone := time.Now() // what was on its way before is taken by the old one
		s.AwaitMaster(old)
		promoted := time.Since(gone)
		takes, delivers := l.carriesOn(t, r, lanes, gone)
		for _, p := range l.all {
			eventually(t, p.ready)
		}
		t.Logf("the primary is lost: its replica is promoted after %s, ringback takes after %s and delivers after %s",
			promoted.Round(time.Millisecond), takes, delivers)
	})
}

// undisturbed runs an operation that no client may notice.
func undisturbed(t *testing.T, l *ledger, what string, do func()) {
	t.Helper()
	l.mu.Lock()
	refused := l.refused
	l.mu.Unlock()
	began := time.Now()
	do()
	l.grows(t, 100)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Equal(t, refused, l.refused, "%s, and a job was refused", what)
	t.Logf("%s: nothing was refused in %s", what, time.Since(began).Round(time.Millisecond))
}
