package sqlite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
)

// putRate sets the lane rate of the topic.
func putRate(t *testing.T, s *Store, rate policy.Rate) {
	t.Helper()
	_, err := store.PutTopic(t.Context(), s, store.Topic{
		Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{LaneRate: rate, LaneConcurrency: 1000},
	})
	require.NoError(t, err)
}

func TestRate_IsExactOverARestartAndACrash(t *testing.T) {
	for name, again := range map[string]func(*testing.T, *Store, Options, *twoClocks) (*Store, *twoClocks){
		"restart": func(t *testing.T, s *Store, o Options, c *twoClocks) (*Store, *twoClocks) {
			require.NoError(t, s.Close())
			return openWithClockAt(t, o, c.ms.Load())
		},
		"restart after the clock was set ahead": func(
			t *testing.T, s *Store, o Options, c *twoClocks,
		) (*Store, *twoClocks) {
			c.jump(time.Hour)
			carry(t, s)
			require.NoError(t, s.Close())
			return openWithClockAt(t, o, c.ms.Load())
		},
		"crash": func(t *testing.T, _ *Store, o Options, c *twoClocks) (*Store, *twoClocks) {
			return openCopyWithClock(t, o, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			s, c := openWithClock(t, o)
			putRate(t, s, policy.Rate{Starts: 5, Per: time.Second})
			insert(t, s, newJobs("job", 40, 0)...)
			require.Len(t, claimJobs(t, s, 2), 2)
			c.pass(100 * time.Millisecond)
			require.Len(t, claimJobs(t, s, 9), 3)
			c.pass(200 * time.Millisecond)

			s, c = again(t, s, o, c)
			takeWakeups(t, s)
			require.Empty(t, claimJobs(t, s, 9))
			require.Equal(t, 700*time.Millisecond, carry(t, s).Next)
			c.pass(700*time.Millisecond - time.Millisecond)
			require.False(t, carryNotifies(t, s))
			require.Empty(t, claimJobs(t, s, 9))
			c.pass(time.Millisecond)
			require.True(t, carryNotifies(t, s))
			require.Len(t, claimJobs(t, s, 9), 2)
			c.pass(100 * time.Millisecond)
			require.True(t, carryNotifies(t, s))
			jobs := claimJobs(t, s, 9)
			require.Len(t, jobs, 3)
			require.True(t, jobs[0].Rated)
		})
	}
}

func TestWallClock_JumpChangesNoCooldownAndNoRate(t *testing.T) {
	for name, jump := range map[string]time.Duration{"ahead": 24 * time.Hour, "back": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s, c := openWithClock(t, options(t))
			putRate(t, s, policy.Rate{Starts: 3, Per: time.Second})
			insert(t, s, newJobs("job", 3, 0)...)
			jobs := claimJobs(t, s, 2)
			c.pass(500 * time.Millisecond)
			c.jump(jump)
			insert(t, s, newJobs("new", 5, 0)...) // due by the clock as it is now
			require.Len(t, claimJobs(t, s, 9), 1)
			c.pass(499 * time.Millisecond)
			require.Empty(t, claimJobs(t, s, 9))
			require.Equal(t, time.Millisecond, carry(t, s).Next)
			c.pass(time.Millisecond)
			require.Len(t, claimJobs(t, s, 9), 2)

			settle(t, s, settlementWithChange(jobs[0], store.LaneChange{Cooldown: 10 * time.Second}))
			c.pass(4 * time.Second)
			c.jump(-jump)
			require.Equal(t, clock.Time(c.ms.Load()+6000), laneStats(t, s).CooldownUntil, "by the clock as it is now")
			insert(t, s, newJobs("newer", 5, 0)...)
			c.pass(6*time.Second - time.Millisecond)
			require.Empty(t, claimJobs(t, s, 9))
			require.Equal(t, time.Millisecond, carry(t, s).Next)
			c.pass(time.Millisecond)
			require.Len(t, claimJobs(t, s, 9), 3)
		})
	}
}

func TestWallClock_SetBackBetweenTwoProcessesShortensNoThrottle(t *testing.T) {
	o := options(t)
	s, c := openWithClock(t, o)
	putRate(t, s, policy.Rate{Starts: 2, Per: time.Minute})
	insert(t, s, newJobs("job", 10, 0)...)
	jobs := claimJobs(t, s, 2)
	require.Len(t, jobs, 2)
	settle(t, s, settlementWithChange(jobs[0], store.LaneChange{Cooldown: 30 * time.Second}))
	require.NoError(t, s.Close())
	s, c = openWithClockAt(t, o, c.ms.Load()-time.Hour.Milliseconds())
	insert(t, s, newJobs("new", 10, 0)...)
	require.Equal(t, clock.Time(c.ms.Load()+30_000), laneStats(t, s).CooldownUntil)
	c.pass(time.Minute - time.Millisecond)
	require.Empty(t, claimJobs(t, s, 9))
	c.pass(time.Millisecond)
	require.Len(t, claimJobs(t, s, 9), 2)
}
