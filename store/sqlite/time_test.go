package sqlite

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
)

// twoClocks are a wall and a monotonic clock that move apart.
type twoClocks struct{ ms, mono atomic.Int64 }

func (c *twoClocks) read() clock.Instant {
	return clock.Instant{Millis: c.ms.Load(), Mono: c.mono.Load()}
}

// pass moves both, as time does.
func (c *twoClocks) pass(d time.Duration) {
	c.ms.Add(d.Milliseconds())
	c.mono.Add(int64(d))
}

// jump moves the wall clock alone, as a person or a time server does.
func (c *twoClocks) jump(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func TestLeases_ExpireOnTimeWhenTheWallClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"ahead": 24 * time.Hour, "back": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := &twoClocks{}
			c.ms.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
			s, err := Open(t.Context(), at(c.read, options(t)))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			insert(t, s, newJob("a", 0))
			h := claimJobs(t, s, 1)[0]
			require.Equal(t, 15*time.Second, h.LeaseFor)

			c.pass(10 * time.Second)
			c.jump(jump)
			require.Zero(t, carry(t, s).ExpiredLeases)
			require.Equal(t, job.Running, get(t, s, "a").State)
			c.pass(4 * time.Second)
			require.Zero(t, carry(t, s).ExpiredLeases)
			c.pass(time.Second)
			require.Equal(t, 1, carry(t, s).ExpiredLeases)
			found := get(t, s, "a")
			require.Equal(t, job.Ready, found.State, "due at once by the clock as it now is")
			require.Len(t, claimJobs(t, s, 1), 1)
		})
	}
}

func TestLeases_ExpireWhenTheWallClockWasSetBack(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJob("a", 0))
	require.Len(t, claimJobs(t, s, 1), 1)
	c.jump(-24 * time.Hour)
	c.pass(14 * time.Second)
	// The caller expects the clock to show what it shows.
	expired := func() int {
		carried, err := s.Carry(t.Context(), store.NewToken(),
			store.CarryOptions{ExpireLeasesBefore: clock.Time(c.ms.Load())})
		require.NoError(t, err)
		return carried.ExpiredLeases
	}
	require.Zero(t, expired())
	c.pass(time.Second)
	require.Equal(t, 1, expired())
}

func TestWakeups_AreRepeatedWhenTheWallClockJumps(t *testing.T) {
	c := &twoClocks{}
	c.ms.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
	s, err := Open(t.Context(), at(c.read, options(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	insert(t, s, newJob("a", 0), newJob("b", 0))
	watch := store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Nanosecond}
	notified, err := s.Wait(t.Context(), watch)
	require.NoError(t, err)
	require.Len(t, notified, 1)
	c.jump(time.Minute)
	c.pass(store.RenotifyAfter)
	carry(t, s)
	notified, err = s.Wait(t.Context(), watch)
	require.NoError(t, err)
	require.Len(t, notified, 1)
}

func TestStore_RunsInFakeTime(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(),
			Options{Path: filepath.Join(folder, "jobs.db"), Limits: Defaults(policy.Builtin()).Limits()})
		require.NoError(t, err)
		start := time.Now()
		insert(t, s, newJob("a", 25*time.Hour))

		ctx, cancel := context.WithCancel(t.Context())
		carried := make(chan struct{})
		go func() { // a carrier
			defer close(carried)
			for ctx.Err() == nil {
				c, err := s.Carry(ctx, store.NewToken(), store.CarryOptions{})
				if err != nil {
					return
				}
				wait := c.Next
				if wait < 0 || wait > time.Minute {
					wait = time.Minute
				}
				select {
				case <-time.After(wait):
				case <-ctx.Done():
				}
			}
		}()
		var notified []job.Queue
		for len(notified) == 0 {
			notified, err = s.Wait(t.Context(),
				store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Hour})
			require.NoError(t, err)
		}
		require.Equal(t, 25*time.Hour, time.Since(start), "neither early nor late")
		jobs := claimJobs(t, s, 1)
		require.Len(t, jobs, 1)
		time.Sleep(time.Hour) // fake: the lease expires meanwhile
		synctest.Wait()
		require.Equal(t, 1, get(t, s, "a").ConsecutiveLost)
		cancel()
		<-carried
		require.NoError(t, s.Close())
	})
}

func TestStore_DoesNothingWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), options(t))
		require.NoError(t, err)
		insert(t, s, newJob("a", time.Hour))
		var before, after uint64
		inWriter(t, s, func() { before = s.env.Serial })
		time.Sleep(time.Hour) // fake
		synctest.Wait()
		inWriter(t, s, func() { after = s.env.Serial })
		require.Equal(t, before+1, after, "but for the test's own")
		require.NoError(t, s.Close())
	})
}
