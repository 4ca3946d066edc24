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

// clocked is a store whose clocks the test moves.
func clocked(t *testing.T, o Options) (*Store, *twoClocks) {
	t.Helper()
	return clockedAt(t, o, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
}

// heard is what the bell has to say now.
func heard(t *testing.T, s *Store) []job.Queue {
	t.Helper()
	rung, err := s.Wait(t.Context(), store.WaitOptions{Group: store.GroupPush, Timeout: time.Nanosecond})
	require.NoError(t, err)
	return rung
}

// inLane is an entry of another lane.
func inLane(name, id string, delay time.Duration) store.NewJob {
	e := entry(id, delay)
	e.Lane = name
	return e
}

func TestAgenda_MovesForTheNextJobOfAFreedLane(t *testing.T) {
	o := options(t)
	o.Limits.Concurrency = 1
	s, _ := clocked(t, o)
	insert(t, s, entry("a", 0), entry("b", 300*time.Millisecond))
	h := claimUp(t, s, 1)[0]
	heard(t, s)
	_, err := s.WaitAgenda(t.Context(), time.Nanosecond)
	require.NoError(t, err)
	settle(t, s, settled(h, policy.Verdict{Kind: policy.Delivered}))
	moved, err := s.WaitAgenda(t.Context(), time.Nanosecond)
	require.NoError(t, err)
	require.True(t, moved)
	require.Equal(t, 300*time.Millisecond, carry(t, s).Next)
}

func TestCarry_ReturnsNoWaitWhenItsBoundLeftExpiredLeases(t *testing.T) {
	s, c := clocked(t, options(t))
	insert(t, s, entry("a", 0), entry("b", 0))
	require.Len(t, claimUp(t, s, 2), 2)
	c.pass(time.Minute)
	carried, err := s.Carry(t.Context(), store.NewToken(), store.CarryOptions{Jobs: 1})
	require.NoError(t, err)
	require.Equal(t, 1, carried.ExpiredLeases)
	require.Zero(t, carried.Next)
	held, err := s.Carry(t.Context(), store.NewToken(), store.CarryOptions{KeepLeases: true})
	require.NoError(t, err)
	require.Zero(t, held.ExpiredLeases)
	require.Positive(t, held.Next, "what the round holds back is no reason to come again at once")
}

func TestCarry_SharesARoundBetweenDueJobsAndRepeatedWakeups(t *testing.T) {
	s, c := clocked(t, options(t))
	for _, name := range []string{"r1", "r2", "r3", "r4"} {
		insert(t, s, inLane(name, name, 0))
	}
	for _, name := range []string{"d1", "d2", "d3", "d4", "d5", "d6"} {
		insert(t, s, inLane(name, name, time.Second))
	}
	require.Len(t, heard(t, s), 4)
	c.pass(2 * time.Second)
	for _, round := range []struct{ queues, moved, rung int }{
		{4, 2, 4}, // half for each
		{4, 2, 4},
		{2, 2, 2}, // the whole for those that came due, since nothing else wants it
	} {
		carried, err := s.Carry(t.Context(), store.NewToken(), store.CarryOptions{Queues: round.queues})
		require.NoError(t, err)
		require.Equal(t, round.moved, carried.Moved)
		require.Len(t, heard(t, s), round.rung)
		require.Equal(t, round.queues == 4, carried.Next == 0)
	}
}

func TestCarry_NotifiesAfterAFailedRound(t *testing.T) {
	s, c := clocked(t, options(t))
	insert(t, s, entry("a", 0))
	claimUp(t, s, 1)
	heard(t, s)
	insert(t, s, entry("b", 100*time.Millisecond)) // so soon after a ring that no other would be due
	heard(t, s)
	c.pass(100 * time.Millisecond)
	failOnce(s, commitSQL)
	// Something to write, or there is no commit to fail.
	round := store.CarryOptions{Relayed: []job.Ref{ref("nobody")}}
	_, err := s.Carry(t.Context(), store.NewToken(), round)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Empty(t, heard(t, s))
	carried, err := s.Carry(t.Context(), store.NewToken(), round)
	require.NoError(t, err)
	require.Equal(t, 1, carried.Moved)
	require.Len(t, heard(t, s), 1)

	c.pass(store.RenotifyAfter)
	failOnce(s, commitSQL)
	_, err = s.Carry(t.Context(), store.NewToken(), round)
	require.ErrorIs(t, err, store.ErrUnavailable)
	carry(t, s)
	require.Len(t, heard(t, s), 1, "a repeated ring too")
}

func TestEdit_NotifiesForAJobThatIsFirstAlready(t *testing.T) {
	s, _ := clocked(t, options(t))
	insert(t, s, entry("a", time.Hour), entry("b", 2*time.Hour))
	heard(t, s)
	_, err := s.Replace(t.Context(), store.NewToken(), ref("a"), store.Replacement{Kind: job.KindRun, Due: &job.TimeOrDelay{}})
	require.NoError(t, err)
	require.Equal(t, []job.Queue{lane}, heard(t, s))
}

func TestCarry_ReturnsTheOutboxPastAnUnreadableEntry(t *testing.T) {
	o := options(t)
	log := logging(&o)
	s, _ := clocked(t, o)
	insert(t, s, numbered("parent", 2, 0)...)
	for i, h := range claimUp(t, s, 2) {
		delivered := settled(h, policy.Verdict{Kind: policy.Delivered})
		delivered.Outbox = []store.NewJob{numbered("child", 2, 0)[i]}
		settle(t, s, delivered)
	}
	shell(t, o.Path, "UPDATE outbox SET entry = x'05' WHERE id = 'child-0000'")
	for range 2 {
		carried := carry(t, s)
		require.Len(t, carried.Outbox, 1)
		require.Equal(t, "child-0001", carried.Outbox[0].ID)
		require.NotZero(t, carried.Next, "what cannot be read is no reason to come again at once")
	}
	require.Equal(t, 1, strings.Count(log.String(), "outbox entry unreadable"), log)
}

func TestCarry_SkipsAnUnreadableOutboxEntryOnce(t *testing.T) {
	o := options(t)
	s, _ := clocked(t, o)
	insert(t, s, numbered("parent", 1, 0)...)
	delivered := settled(claimUp(t, s, 1)[0], policy.Verdict{Kind: policy.Delivered})
	delivered.Outbox = numbered("child", store.MaxBatch+5, 0)
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
