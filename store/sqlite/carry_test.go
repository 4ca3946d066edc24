package sqlite

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// openWithClock opens a store whose clocks the test moves.
func openWithClock(t *testing.T, o Options) (*Store, *twoClocks) {
	t.Helper()
	return openWithClockAt(t, o, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
}

// takeWakeups returns the queues that were notified, and waits for none.
func takeWakeups(t *testing.T, s *Store) []job.Queue {
	t.Helper()
	queues, err := s.Wait(t.Context(), store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Nanosecond})
	require.NoError(t, err)
	return queues
}

// newJobInLane returns a new job of another lane.
func newJobInLane(name, id string, delay time.Duration) store.NewJob {
	e := newJob(id, delay)
	e.Lane = name
	return e
}

func TestAgenda_MovesForTheNextJobOfAFreedLane(t *testing.T) {
	o := options(t)
	o.Limits.Concurrency = 1
	s, _ := openWithClock(t, o)
	insert(t, s, newJob("a", 0), newJob("b", 300*time.Millisecond))
	h := claimJobs(t, s, 1)[0]
	takeWakeups(t, s)
	_, err := s.WaitAgenda(t.Context(), time.Nanosecond)
	require.NoError(t, err)
	settle(t, s, settlementOf(h, policy.Verdict{Kind: policy.Delivered}))
	moved, err := s.WaitAgenda(t.Context(), time.Nanosecond)
	require.NoError(t, err)
	require.True(t, moved)
	require.Equal(t, 300*time.Millisecond, carry(t, s).Next)
}

func TestCarry_ReturnsNoWaitWhenItsBoundLeftExpiredLeases(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJob("a", 0), newJob("b", 0))
	require.Len(t, claimJobs(t, s, 2), 2)
	c.pass(time.Minute)
	carried, err := s.Carry(t.Context(), store.NewToken(), store.CarryOptions{Jobs: 1})
	require.NoError(t, err)
	require.Equal(t, 1, carried.ExpiredLeases)
	require.Zero(t, carried.Next)
	kept, err := s.Carry(t.Context(), store.NewToken(), store.CarryOptions{KeepLeases: true})
	require.NoError(t, err)
	require.Zero(t, kept.ExpiredLeases)
	require.Positive(t, kept.Next, "leases that the round keeps are no reason for another at once")
}

func TestCarry_SharesARoundBetweenDueJobsAndRepeatedWakeups(t *testing.T) {
	s, c := openWithClock(t, options(t))
	for _, name := range []string{"r1", "r2", "r3", "r4"} {
		insert(t, s, newJobInLane(name, name, 0))
	}
	for _, name := range []string{"d1", "d2", "d3", "d4", "d5", "d6"} {
		insert(t, s, newJobInLane(name, name, time.Second))
	}
	require.Len(t, takeWakeups(t, s), 4)
	c.pass(2 * time.Second)
	for _, round := range []struct{ queues, moved, notified int }{
		{4, 2, 4}, // half for each
		{4, 2, 4},
		{2, 2, 2}, // the whole for those that came due, since nothing else wants it
	} {
		carried, err := s.Carry(t.Context(), store.NewToken(), store.CarryOptions{Queues: round.queues})
		require.NoError(t, err)
		require.Equal(t, round.moved, carried.Moved)
		require.Len(t, takeWakeups(t, s), round.notified)
		require.Equal(t, round.queues == 4, carried.Next == 0)
	}
}

func TestCarry_NotifiesAfterAFailedRound(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJob("a", 0))
	claimJobs(t, s, 1)
	takeWakeups(t, s)
	insert(t, s, newJob("b", 100*time.Millisecond)) // so soon after a wake-up that no repetition is due
	takeWakeups(t, s)
	c.pass(100 * time.Millisecond)
	failOnce(s, commitSQL)
	// Something to write, or there is no commit to fail.
	round := store.CarryOptions{Relayed: []job.Ref{ref("missing")}}
	_, err := s.Carry(t.Context(), store.NewToken(), round)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Empty(t, takeWakeups(t, s))
	carried, err := s.Carry(t.Context(), store.NewToken(), round)
	require.NoError(t, err)
	require.Equal(t, 1, carried.Moved)
	require.Len(t, takeWakeups(t, s), 1)

	c.pass(store.RenotifyAfter)
	failOnce(s, commitSQL)
	_, err = s.Carry(t.Context(), store.NewToken(), round)
	require.ErrorIs(t, err, store.ErrUnavailable)
	carry(t, s)
	require.Len(t, takeWakeups(t, s), 1, "a repeated wake-up too")
}

func TestEdit_NotifiesForAJobThatIsFirstAlready(t *testing.T) {
	s, _ := openWithClock(t, options(t))
	insert(t, s, newJob("a", time.Hour), newJob("b", 2*time.Hour))
	takeWakeups(t, s)
	_, err := s.Replace(t.Context(), store.NewToken(), ref("a"),
		store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
	require.NoError(t, err)
	require.Equal(t, []job.Queue{lane}, takeWakeups(t, s))
}

func TestCarry_ReturnsTheOutboxPastAnUnreadableEntry(t *testing.T) {
	o := options(t)
	log := captureLog(&o)
	s, _ := openWithClock(t, o)
	insert(t, s, newJobs("parent", 2, 0)...)
	for i, h := range claimJobs(t, s, 2) {
		delivered := settlementOf(h, policy.Verdict{Kind: policy.Delivered})
		delivered.Outbox = []store.NewJob{newJobs("child", 2, 0)[i]}
		settle(t, s, delivered)
	}
	shell(t, o.Path, "UPDATE outbox SET entry = x'05' WHERE id = 'child-0000'")
	for range 2 {
		carried := carry(t, s)
		require.Len(t, carried.Outbox, 1)
		require.Equal(t, "child-0001", carried.Outbox[0].ID)
		require.NotZero(t, carried.Next, "an unreadable entry is no reason for another round at once")
	}
	require.Equal(t, 1, strings.Count(log.String(), "outbox entry unreadable"), log)
}

func TestCarry_SkipsAnUnreadableOutboxEntryOnce(t *testing.T) {
	o := options(t)
	s, _ := openWithClock(t, o)
	insert(t, s, newJobs("parent", 1, 0)...)
	delivered := settlementOf(claimJobs(t, s, 1)[0], policy.Verdict{Kind: policy.Delivered})
	delivered.Outbox = newJobs("child", store.MaxBatch+5, 0)
	settle(t, s, delivered)
	shell(t, o.Path, "UPDATE outbox SET entry = x'05' WHERE id = 'child-0003'")
	carried, err := s.Carry(t.Context(), store.NewToken(), store.CarryOptions{SkipOutbox: 2})
	require.NoError(t, err)
	require.Len(t, carried.Outbox, store.MaxBatch)
	require.Equal(t, store.MaxBatch+1, carried.OutboxRead)
	require.Equal(t, "child-0002", carried.Outbox[0].ID)
	require.Equal(t, "child-0004", carried.Outbox[1].ID)
	require.Equal(t, "child-0514", carried.Outbox[store.MaxBatch-1].ID)
}
