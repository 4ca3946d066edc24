package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/table"
)

var (
	deliveredVerdict = policy.Verdict{Kind: policy.Delivered}
	againVerdict     = policy.Verdict{Kind: policy.Again}
)

// settlementWithChange returns a settlement with a change of the lane.
func settlementWithChange(h store.ClaimedJob, change store.LaneChange) store.Settlement {
	item := settlementOf(h, againVerdict)
	item.LaneChange = change
	return item
}

// openCopyWithClock opens what a crash would leave of a database, with a new monotonic clock and the same wall clock.
func openCopyWithClock(t *testing.T, o Options, c *twoClocks) (*Store, *twoClocks) {
	t.Helper()
	copied := o
	copied.Path = filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(o.Path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(copied.Path+suffix, content, 0o600))
	}
	return openWithClockAt(t, copied, c.ms.Load())
}

// openWithClockAt is openWithClock at another time.
func openWithClockAt(t *testing.T, o Options, ms int64) (*Store, *twoClocks) {
	t.Helper()
	c := &twoClocks{}
	c.ms.Store(ms)
	s, err := Open(t.Context(), at(c.read, o))
	require.NoError(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			verify(t, s)
		}
		require.NoError(t, s.Close())
	})
	return s, c
}

// carryNotifies makes a carrier round, and reports whether a queue is notified then.
func carryNotifies(t *testing.T, s *Store) bool {
	t.Helper()
	carry(t, s)
	return len(takeWakeups(t, s)) > 0
}

func laneStats(t *testing.T, s *Store) store.LaneStats {
	t.Helper()
	lanes, err := s.LaneStats(t.Context(), lane.Namespace, lane.Topic, "", 10)
	require.NoError(t, err)
	require.Len(t, lanes, 1)
	return lanes[0]
}

func TestThrottle_NotifiesWhenACooldownEndsAndCostsNothingBefore(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJobs("job", 3, 0)...)
	h := claimJobs(t, s, 1)[0]
	takeWakeups(t, s)
	settle(t, s, settlementWithChange(h, store.LaneChange{Cooldown: 700 * time.Millisecond}))
	require.False(t, carryNotifies(t, s))
	require.Empty(t, claimJobs(t, s, 3))
	require.Equal(t, 700*time.Millisecond, carry(t, s).Next, "no round comes before")
	insert(t, s, newJob("more", 0))
	c.pass(699 * time.Millisecond)
	require.False(t, carryNotifies(t, s))
	require.Equal(t, time.Millisecond, carry(t, s).Next)
	require.Equal(t, clock.Time(c.ms.Load()+1), laneStats(t, s).CooldownUntil)
	c.pass(time.Millisecond)
	require.True(t, carryNotifies(t, s), "within a second of its last wake-up")
	require.Zero(t, laneStats(t, s).CooldownUntil)
	require.Len(t, claimJobs(t, s, 10), 4)
}

func TestThrottle_NotifiesOnceForAnEndedCooldown(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJobs("job", 3, 0)...)
	jobs := claimJobs(t, s, 2)
	takeWakeups(t, s)
	settle(t, s, settlementWithChange(jobs[0], store.LaneChange{Cooldown: 100 * time.Millisecond}))
	c.pass(150 * time.Millisecond) // no round has come yet
	settle(t, s, settlementOf(jobs[1], policy.Verdict{Kind: policy.Again, Wait: time.Hour}))
	require.True(t, carryNotifies(t, s))
}

func TestThrottle_ShortensNoCooldownAndAllowsOneProbe(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJobs("job", 4, 0)...)
	jobs := claimJobs(t, s, 2)
	settle(t, s,
		settlementWithChange(jobs[0], store.LaneChange{Cooldown: 30 * time.Second, Breaker: store.OpenBreaker}))
	settle(t, s, settlementWithChange(jobs[1], store.LaneChange{Cooldown: time.Second}))
	c.pass(29 * time.Second)
	require.Empty(t, claimJobs(t, s, 4))
	require.True(t, laneStats(t, s).BreakerOpen)
	c.pass(time.Second)
	claimed, err := s.Claim(t.Context(), store.NewToken(), claimRequest(4))
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	require.True(t, claimed.Jobs[0].Probe)
	require.Equal(t, store.QueueStatus{Queue: lane, Blocked: true, BreakerOpen: true}, claimed.Queues[0])
	require.Empty(t, claimJobs(t, s, 4), "while the probe is out")
	takeWakeups(t, s)
	settle(t, s, settlementWithChange(claimed.Jobs[0], store.LaneChange{Breaker: store.CloseBreaker}))
	require.NotEmpty(t, takeWakeups(t, s), "the rest may go on")
	jobs = claimJobs(t, s, 4)
	require.Len(t, jobs, 4)
	require.False(t, jobs[0].Probe)
	require.False(t, laneStats(t, s).BreakerOpen)
}

func TestThrottle_ForgetsAnOpenBreakerUnlessItsProbeIsRunning(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJobs("job", 5, 0)...)
	trip := func() {
		settle(t, s, settlementWithChange(claimJobs(t, s, 1)[0],
			store.LaneChange{Cooldown: time.Minute, Breaker: store.OpenBreaker}))
		c.pass(time.Minute)
	}
	trip()
	c.pass(store.BreakerRetention)
	probe := claimJobs(t, s, 5)
	require.Len(t, probe, 1, "just in time")
	c.pass(time.Hour)
	require.True(t, laneStats(t, s).BreakerOpen)
	settle(t, s, settlementWithChange(probe[0], store.LaneChange{Breaker: store.CloseBreaker}))

	trip()
	c.pass(store.BreakerRetention + time.Millisecond)
	require.False(t, laneStats(t, s).BreakerOpen)
	require.Len(t, claimJobs(t, s, 3), 3)
	require.Len(t, claimJobs(t, s, 3), 2, "and it stays forgotten now that jobs are out")
}

func TestClaimExpired_OpensNoBreakerPastItsRetention(t *testing.T) {
	s, c := openWithClock(t, options(t))
	expiring := newJob("expires", 0)
	expiring.ExpiresIn = store.BreakerRetention
	insert(t, s, append(newJobs("job", 3, 0), expiring)...)
	settle(t, s, settlementWithChange(claimJobs(t, s, 1)[0],
		store.LaneChange{Cooldown: time.Minute, Breaker: store.OpenBreaker}))
	c.pass(time.Minute + store.BreakerRetention + time.Millisecond)
	claimed, err := s.ClaimExpired(t.Context(), store.NewToken(),
		store.ClaimExpiredRequest{Max: 1, MaxBytes: 1 << 20, Lease: time.Minute})
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	require.False(t, laneStats(t, s).BreakerOpen)
	require.Len(t, claimJobs(t, s, 3), 3)
}

func TestThrottle_SurvivesTheProcess(t *testing.T) {
	o := options(t)
	s, c := openWithClock(t, o)
	insert(t, s, newJobs("job", 4, 0)...)
	settle(t, s, settlementWithChange(claimJobs(t, s, 1)[0],
		store.LaneChange{Cooldown: time.Minute, Breaker: store.OpenBreaker}))
	c.pass(20 * time.Second)
	second, c2 := openCopyWithClock(t, o, c)
	require.Equal(t, clock.Time(c.ms.Load()+40_000), laneStats(t, second).CooldownUntil)
	c2.pass(40*time.Second - time.Millisecond)
	require.False(t, carryNotifies(t, second))
	c2.pass(time.Millisecond)
	require.True(t, carryNotifies(t, second))
	require.Len(t, claimJobs(t, second, 4), 1, "a probe")

	// Also where nothing waits, and no job is left.
	o.Limits.KeepDelivered.Max = new(int64(0))
	o.Path = filepath.Join(t.TempDir(), "jobs.db")
	s, c = openWithClockAt(t, o, c.ms.Load())
	insert(t, s, newJob("only", 0))
	last := settlementOf(claimJobs(t, s, 1)[0], deliveredVerdict)
	last.LaneChange = store.LaneChange{Cooldown: time.Minute, Breaker: store.OpenBreaker}
	settle(t, s, last)
	for range 3 {
		_, err := s.Sweep(t.Context(), store.NewToken(), 100)
		require.NoError(t, err)
	}
	third, c3 := openCopyWithClock(t, o, c)
	stats, err := third.TopicStats(t.Context(),
		store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
	require.NoError(t, err)
	require.EqualValues(t, 1, stats[0].OpenBreakers)
	insert(t, third, newJob("next", 0))
	require.Empty(t, claimJobs(t, third, 1))
	c3.pass(time.Minute)
	next := claimJobs(t, third, 1)
	require.True(t, next[0].Probe)
	settle(t, third, settlementOf(next[0], deliveredVerdict))
	c3.pass(2 * store.BreakerRetention)
	for range 3 {
		_, err := third.Sweep(t.Context(), store.NewToken(), 100)
		require.NoError(t, err)
	}
	inWriter(t, third, func() { require.Empty(t, third.mem.Queues, "none is loaded") })
}

func TestThrottle_IsUndoneWithAFailedCommit(t *testing.T) {
	s, c := openWithClock(t, options(t))
	putRate(t, s, policy.Rate{Starts: 2, Per: time.Second})
	insert(t, s, newJobs("job", 6, 0)...)
	takeWakeups(t, s)
	for _, id := range []string{table.UpdateThrottle.Text(), commitSQL} {
		failOnce(s, id)
		_, err := s.Claim(t.Context(), store.NewToken(), claimRequest(1))
		require.ErrorIs(t, err, store.ErrUnavailable)
		verify(t, s)
	}
	jobs := claimJobs(t, s, 9)
	require.Len(t, jobs, 2, "the failed claims count nothing")
	change := settlementWithChange(jobs[0], store.LaneChange{Cooldown: time.Minute, Breaker: store.OpenBreaker})
	for _, id := range []string{table.UpdateThrottle.Text(), commitSQL} {
		failOnce(s, id)
		_, _, err := s.Settle(t.Context(), store.NewToken(), []store.Settlement{change}, nil)
		require.ErrorIs(t, err, store.ErrUnavailable)
		verify(t, s)
		require.False(t, laneStats(t, s).BreakerOpen)
		require.Zero(t, laneStats(t, s).CooldownUntil)
	}
	c.pass(time.Second)
	require.True(t, carryNotifies(t, s))
	require.Len(t, claimJobs(t, s, 9), 2, "no hold, no breaker")
	settle(t, s, change)
	require.True(t, laneStats(t, s).BreakerOpen)
	verify(t, s)
}

func TestSettle_ChangesNoLaneAfterItsLeaseHasExpired(t *testing.T) {
	s, _ := openWithClock(t, options(t))
	insert(t, s, newJobs("job", 2, 0)...)
	h := claimJobs(t, s, 1)[0]
	item := settlementWithChange(h, store.LaneChange{Cooldown: time.Minute, Breaker: store.OpenBreaker})
	item.Lease = store.NewToken()
	errs, _, err := s.Settle(t.Context(), store.NewToken(), []store.Settlement{item}, nil)
	require.NoError(t, err)
	require.ErrorIs(t, errs[0], store.ErrLeaseLost)
	require.Len(t, claimJobs(t, s, 2), 1)
}

func TestSettle_DropsTheOutboxOfACancelledJob(t *testing.T) {
	s, _ := openWithClock(t, options(t))
	insert(t, s, newJobs("job", 3, 0)...)
	for i, verdict := range []policy.Verdict{
		{Kind: policy.Dead, Reason: policy.ReasonGaveUp}, againVerdict, deliveredVerdict,
	} {
		h := claimJobs(t, s, 1)[0]
		_, err := s.Cancel(t.Context(), store.NewToken(), h.Ref(), store.Cancellation{})
		require.NoError(t, err)
		item := settlementOf(h, verdict)
		item.Outbox = newJobs("child", i+1, 0)[i:]
		settle(t, s, item)
	}
	carried := carry(t, s)
	require.Len(t, carried.Outbox, 1)
	require.Equal(t, "child-0002", carried.Outbox[0].ID)
}

func TestOpen_DropsUnreadableThrottles(t *testing.T) {
	o := options(t)
	s, _ := openWithClock(t, o)
	insert(t, s, newJobs("job", 2, 0)...)
	settle(t, s, settlementWithChange(claimJobs(t, s, 1)[0], store.LaneChange{Cooldown: time.Minute}))
	_, err := s.Permit(t.Context(), store.NewToken(),
		[]store.PermitRequest{permitRequest(1, policy.Rate{Starts: 1, Per: time.Hour})})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	shell(t, o.Path, "UPDATE queues SET throttle = 'no JSON'; UPDATE topics SET grants = 'no JSON'")
	s, err = Open(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, claimJobs(t, s, 2), 2)
	require.NoError(t, s.Close())
}

// permitRequest returns a request for starts of the topic.
func permitRequest(n int, rate policy.Rate) store.PermitRequest {
	return store.PermitRequest{Namespace: job.DefaultNamespace, Topic: lane.Topic, Rate: rate, Starts: n}
}
