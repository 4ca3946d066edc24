package sqlite

import (
	"database/sql/driver"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/table"
)

// steadyClock is a clock with parts of a millisecond.
type steadyClock struct{ now time.Time }

func TestClaim_IsNotEarlyByAPartOfAMillisecond(t *testing.T) {
	c := &steadyClock{now: time.Date(2026, 3, 1, 12, 0, 0, 900_000, time.UTC)}
	o := options(t)
	o.Clock = clock.New(func() time.Time { return c.now })
	s := openStore(t, o)
	insert(t, s, newJob("a", 10*time.Millisecond))
	due := c.now.Add(10 * time.Millisecond)

	c.now = due.Add(-time.Nanosecond)
	require.Empty(t, claimJobs(t, s, 1))
	wait := carry(t, s).Next
	require.Positive(t, wait)
	c.now = c.now.Add(wait)
	require.Less(t, c.now.Sub(due), time.Millisecond)
	carried, err := s.Carry(t.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, carried.Moved, "the carrier's wait is neither short nor long by a part of a millisecond")
	require.Len(t, claimJobs(t, s, 1), 1)
}

func TestClockStep_BackKeepsDelaysAndAheadAgainMakesNoneEarly(t *testing.T) {
	s, c := openWithClock(t, options(t))
	runAt := newJob("at", 0)
	runAt.RunAt = clock.Time(c.ms.Load()).Add(time.Hour)
	insert(t, s, newJobs("old", clock.SpanSize, time.Minute)...)
	insert(t, s, newJobs("older", 50, time.Minute)...)
	insert(t, s, runAt)
	require.Zero(t, carry(t, s).ClockStep)
	c.pass(10 * time.Second)
	c.jump(-10 * time.Minute)
	insert(t, s, newJob("new", 30*time.Second))
	require.Equal(t, -10*time.Minute, carry(t, s).ClockStep, "reported once")
	carried := carry(t, s)
	require.Zero(t, carried.ClockStep)
	require.Equal(t, 30*time.Second, carried.Next, "the new one is the next")
	require.Equal(t, runAt.RunAt, get(t, s, "at").DueAt, "what was asked for")
	require.Equal(t, clock.Time(c.ms.Load()).Add(50*time.Second), get(t, s, "old-0007").DueAt)

	c.pass(50*time.Second - time.Millisecond)
	require.Len(t, claimJobs(t, s, 10), 1, "the new one")
	c.pass(time.Millisecond)
	require.Len(t, claimJobs(t, s, 10), 10, "in time, although the clock shows less")
	insert(t, s, newJob("later", time.Minute))
	c.jump(10 * time.Minute)
	for walks := 1; walks > 0; {
		carry(t, s)
		inWriter(t, s, func() {
			if _, _, more := s.mem.Steps.Span(); !more {
				walks = 0
			}
		})
	}
	require.Equal(t, clock.Time(c.ms.Load()), get(t, s, "old-0101").DueAt, "moved back to where it was")
	require.Equal(t, runAt.RunAt, get(t, s, "at").DueAt)
}

func TestClockStep_SetBackByMistakeMakesNothingEarlyOnceItIsRight(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJob("a", time.Hour))
	due := get(t, s, "a").DueAt
	c.jump(-10 * time.Minute)
	carry(t, s)
	require.Equal(t, due.Add(-10*time.Minute), get(t, s, "a").DueAt)
	c.jump(5 * time.Minute)
	carry(t, s)
	require.Equal(t, due.Add(-5*time.Minute), get(t, s, "a").DueAt)
	c.jump(5 * time.Minute)
	require.Equal(t, 5*time.Minute, carry(t, s).ClockStep)
	require.Equal(t, due, get(t, s, "a").DueAt)
	c.jump(time.Minute)
	carry(t, s)
	require.Equal(t, due, get(t, s, "a").DueAt, "a clock that was set ahead is followed")
	c.jump(-time.Minute)
	carry(t, s)
	require.Equal(t, due, get(t, s, "a").DueAt)
}

func TestClockStep_BackMovesNoRetryAndNoEditedOrRevivedJob(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJob("retried", 0), newJob("revived", 0), newJob("edited", time.Minute), newJob("moved", time.Hour))
	jobs := claimJobs(t, s, 2)
	require.Len(t, jobs, 2)
	settle(t, s, settlementOf(jobs[0], policy.Verdict{Kind: policy.Again, Wait: time.Hour}),
		settlementOf(jobs[1], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}))
	revive(t, s, "revived", time.Hour)
	_, err := s.Replace(t.Context(), store.NewToken(), ref("edited"),
		store.Replacement{Kind: job.EventEdited, Due: &job.TimeOrDelay{In: time.Hour}})
	require.NoError(t, err)
	due := clock.Time(c.ms.Load()).Add(time.Hour)
	c.jump(-10 * time.Minute)
	carry(t, s)
	for _, id := range []string{"retried", "revived", "edited"} {
		require.Equal(t, due, get(t, s, id).DueAt, id)
	}
	require.Equal(t, due.Add(-10*time.Minute), get(t, s, "moved").DueAt)
}

func TestClockStep_MoreStepsThanAreKeptBeforeARound(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJob("forgotten", time.Hour))
	c.jump(10 * time.Minute)
	insert(t, s, newJob("kept", time.Hour))
	forgotten, kept := get(t, s, "forgotten").DueAt, get(t, s, "kept").DueAt
	for range clock.MaxSteps {
		c.jump(-time.Minute)
		require.NoError(t, s.Ping(t.Context()))
	}
	for range 2 * clock.MaxSteps {
		carry(t, s)
	}
	require.Equal(t, kept.Add(-clock.MaxSteps*time.Minute), get(t, s, "kept").DueAt)
	require.Equal(t, forgotten, get(t, s, "forgotten").DueAt)
}

func TestClockStep_LooksAtNoMoreThanABoundedRangeOfJobsARound(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJobs("first", 10, time.Hour)...)
	for i := range 4 {
		insert(t, s, newJobs(fmt.Sprint("ended-", i), clock.SpanSize, 0)...)
		for jobs := claimJobs(t, s, clock.SpanSize); len(jobs) > 0; jobs = claimJobs(t, s, clock.SpanSize) {
			for _, h := range jobs {
				settle(t, s, settlementOf(h, policy.Verdict{Kind: policy.Delivered}))
			}
		}
	}
	due := get(t, s, "first-0009").DueAt
	rounds := 0
	hookInto(t, s, table.Stepped, func(used int, args []driver.NamedValue) error {
		rounds = used
		last, _ := args[0].Value.(int64)
		first, _ := args[1].Value.(int64)
		require.LessOrEqual(t, last-first, int64(clock.SpanSize))
		return nil
	})
	c.jump(-time.Minute)
	for range 5 {
		carry(t, s)
	}
	require.Equal(t, due.Add(-time.Minute), get(t, s, "first-0009").DueAt)
	require.Equal(t, 1, rounds, "jobs that have ended are not looked for")
}
