package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// delivers gives a lane a job and ends it.
func delivers(t *testing.T, s *Store, id, lane string) {
	t.Helper()
	e := entry(id)
	e.Lane = lane
	insert(t, s, e)
	request := wants(1)
	request.Wants[0].Queue = e.Queue
	claimed, err := s.Claim(t.Context(), 0, store.NewToken(), request)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	settle(t, s, settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Delivered}, 200))
}

// known are the names of the lanes that have a number.
func known(t *testing.T, s *Store) (lanes []string) {
	t.Helper()
	queues, err := s.client.HKeys(t.Context(), s.shards[0].queues).Result()
	require.NoError(t, err)
	for _, name := range queues {
		q, ok := parseQueue(name)
		require.True(t, ok)
		lanes = append(lanes, q.Lane)
	}
	return lanes
}

func sweepAll(t *testing.T, s *Store) {
	t.Helper()
	for more := true; more; {
		swept, err := s.Sweep(t.Context(), 0, store.NewToken(), 100)
		require.NoError(t, err)
		more = swept.More
	}
}

func TestForget_KeepsLanesWhoseJobsAreKept(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	keep := policy.Builtin().KeepDelivered.For // 24 h
	delivers(t, s, "a", "first")
	clock.pass(time.Hour)
	delivers(t, s, "b", "second")
	waits := entry("c")
	waits.Lane, waits.Delay = "waits", 1000*time.Hour
	insert(t, s, waits)
	sweepAll(t, s)
	require.ElementsMatch(t, []string{"first", "second", "waits"}, known(t, s))

	clock.pass(*keep - time.Hour + time.Second) // now job a goes
	sweepAll(t, s)
	_, err := s.Get(t.Context(), 0, ref("a"))
	require.ErrorIs(t, err, store.ErrNotFound)
	sweepAll(t, s)
	require.ElementsMatch(t, []string{"second", "waits"}, known(t, s), "the oldest that is kept ended an hour later")
	found, err := s.Get(t.Context(), 0, ref("b"))
	require.NoError(t, err)
	require.Equal(t, "second", found.Lane)

	clock.pass(time.Hour)
	sweepAll(t, s)
	sweepAll(t, s)
	require.Equal(t, []string{"waits"}, known(t, s))
	for _, key := range []string{s.shards[0].names, s.shards[0].rings, s.shards[0].agenda} {
		size := s.client.HLen(t.Context(), key).Val()
		if key == s.shards[0].agenda {
			size = s.client.ZCard(t.Context(), key).Val()
		}
		require.LessOrEqual(t, size, int64(1), key)
	}
	total, err := s.Totals(t.Context(), 0, lane.Namespace)
	require.NoError(t, err)
	require.EqualValues(t, 3, total.Registered)
	require.EqualValues(t, 2, total.Delivered)
}

// A lane that became idle while the clock was set back seems to have been idle for longer than its jobs are kept.
func TestForget_KeepsLanesOfJobsThatEndedAheadOfTheClock(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	keep := *policy.Builtin().KeepDelivered.For
	delivers(t, s, "ahead", "lane") // ends now
	clock.step(-6 * time.Hour)
	sweepAll(t, s)
	delivers(t, s, "behind", "lane") // idle since six hours ago
	clock.pass(keep + time.Minute)   // "behind" goes, "ahead" stays for six hours more
	sweepAll(t, s)
	sweepAll(t, s)
	_, err := s.Get(t.Context(), 0, ref("behind"))
	require.ErrorIs(t, err, store.ErrNotFound)
	found, err := s.Get(t.Context(), 0, ref("ahead"))
	require.NoError(t, err)
	require.Equal(t, "lane", found.Lane)
	require.Equal(t, []string{"lane"}, known(t, s))
	clock.pass(6 * time.Hour)
	sweepAll(t, s)
	sweepAll(t, s)
	require.Empty(t, known(t, s))
}

func TestForget_OtherProcessesGetAnotherNumber(t *testing.T) {
	clock := newClock(t)
	s, other := open(t, clock.options()), open(t, clock.options())
	delivers(t, s, "a", "lane")
	delivers(t, other, "b", "lane")
	before, err := s.client.HGet(t.Context(), s.shards[0].queues, (&job.Queue{Namespace: lane.Namespace, Topic: lane.Topic, Lane: "lane"}).String()).Result()
	require.NoError(t, err)
	clock.pass(*policy.Builtin().KeepDelivered.For + time.Hour)
	sweepAll(t, s)
	sweepAll(t, s)
	require.Empty(t, known(t, s))
	require.Zero(t, s.client.ZCard(t.Context(), s.shards[0].seen).Val(), "the topic is forgotten, too")

	delivers(t, other, "d", "new") // which must not get the number that s remembers
	delivers(t, s, "c", "lane")
	delivers(t, other, "e", "lane")
	numbers, err := s.client.HGetAll(t.Context(), s.shards[0].queues).Result()
	require.NoError(t, err)
	require.Len(t, numbers, 2)
	for name, n := range numbers {
		require.NotEqual(t, before, n, name)
	}
	for _, id := range []string{"c", "d", "e"} {
		found, err := s.Get(t.Context(), 0, ref(id))
		require.NoError(t, err)
		require.Equal(t, job.Delivered, found.State)
	}
}

func TestForget_GoesThroughTopicsWithManyLanes(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	const lanes = 2*forgetLanes + 10
	entries := make([]store.Entry, lanes)
	for i := range entries {
		entries[i] = entry(fmt.Sprintf("job-%04d", i))
		entries[i].Lane, entries[i].Delay = entries[i].ID, time.Hour
	}
	for from := 0; from < lanes; from += 500 {
		insert(t, s, entries[from:min(from+500, lanes)]...)
	}
	for _, e := range entries[1:] {
		_, err := s.Cancel(t.Context(), 0, store.NewToken(), e.Ref())
		require.NoError(t, err)
	}
	clock.pass(*policy.Builtin().KeepDelivered.For + time.Hour)
	for range 10 {
		sweepAll(t, s)
	}
	require.Equal(t, []string{entries[0].Lane}, known(t, s))
	require.Empty(t, s.shards[0].idleAfter)
}
