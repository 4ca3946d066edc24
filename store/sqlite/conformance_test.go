package sqlite

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/storetest"
)

// testClock is a monotonic clock and a wall clock in nanoseconds, which a test moves together or apart.
type testClock struct{ wall, mono atomic.Int64 }

// at returns options with a clock.
func at(read clock.Reader, o Options) Options {
	o.Clock = read
	return o
}

func (c *testClock) read() clock.Instant {
	wall := c.wall.Load()
	return clock.Instant{
		Millis: wall / int64(time.Millisecond), Mono: c.mono.Load(),
		Sub: wall % int64(time.Millisecond),
	}
}

func (c *testClock) pass(d time.Duration) {
	c.wall.Add(int64(d))
	c.mono.Add(int64(d))
}

// verifyingStore is a store that is verified before it closes.
type verifyingStore struct {
	*Store
	t *testing.T
}

func (v verifyingStore) Close() error {
	if !v.t.Failed() {
		verify(v.t, v.Store)
	}
	if strings.Contains(v.t.Name(), "/Random") && !v.t.Failed() { // random calls leave the most various data
		faults, _ := auditFile(v.t, v.db.Path(), false)
		require.Empty(v.t, slices.DeleteFunc(faults, func(f store.Fault) bool {
			return f.Kind == store.FaultRelay || f.Kind == store.RepairLease // the audit has the real clock
		}))
	}
	return v.Store.Close()
}

// newEngine opens a store on a new file.
func newEngine(t *testing.T) storetest.Engine {
	o := options(t)
	c := &testClock{}
	c.wall.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	var s store.Store
	reopen := func() store.Store {
		opened, err := Open(t.Context(), at(c.read, o))
		require.NoError(t, err)
		s = verifyingStore{opened, t}
		return s
	}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return storetest.Engine{
		Store: reopen(), Defaults: Defaults(policy.Builtin()),
		Now:     func() time.Time { return time.Unix(0, c.wall.Load()).UTC() },
		Advance: c.pass, Step: func(d time.Duration) { c.wall.Add(int64(d)) },
		Reopen: func() store.Store {
			require.NoError(t, s.Close())
			return reopen()
		},
	}
}

func TestConformance(t *testing.T) { storetest.Run(t, newEngine) }
