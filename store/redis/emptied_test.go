package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

func TestSettle_IsLostAfterTheDatabaseWasEmptied(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insert(t, s, entry("a"), entry("b"))
		held := claimAll(t, s, 2).Jobs
		require.Len(t, held, 2)
		require.NoError(t, s.Client.FlushAll(t.Context()).Err())
		items := []store.Settlement{
			settlement(held[0], policy.Verdict{Kind: policy.Delivered}, 200),
			settlement(held[1], policy.Verdict{Kind: policy.Again, Wait: time.Second}, 500),
		}
		lost := []error{store.ErrLeaseLost, store.ErrLeaseLost}
		token, next := store.NewToken(), wants(2)
		errs, claimed, err := s.Shards()[0].Settle(t.Context(), token, items, &next)
		require.NoError(t, err)
		require.Equal(t, lost, errs)
		require.Empty(t, claimed.Jobs)

		elsewhere := entry("a")
		elsewhere.Lane = "elsewhere"
		insert(t, s, elsewhere)
		request := wants(1)
		request.Queues[0].Queue = elsewhere.Queue
		_, err = s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		errs, _, err = s.Shards()[0].Settle(t.Context(), store.NewToken(), items, nil)
		require.NoError(t, err)
		require.Equal(t, lost, errs, "the id is held in another queue")

		insert(t, s, entry("b"))
		errs, _, err = s.Shards()[0].Settle(t.Context(), token, items, &next)
		require.NoError(t, err)
		require.Equal(t, lost, errs, "as the first call was answered")
		errs, _, err = s.Shards()[0].Settle(t.Context(), store.NewToken(), items, nil)
		require.NoError(t, err)
		require.Equal(t, lost, errs)
	})
}

// Another process empties the database and numbers the queues in another order. Then this process has wrong numbers in
// its cache.
func TestRead_DetectsReassignedNumbers(t *testing.T) {
	url := redistest.Start(t).URL()
	s, other := open(t, Options{URL: url}), open(t, Options{URL: url})
	in := func(id, lane string) store.NewJob {
		e := entry(id)
		e.Lane, e.Delay = lane, time.Hour
		return e
	}
	flip := func(first, second string) {
		require.NoError(t, other.Client.FlushAll(t.Context()).Err())
		other.shards[0].ForgetQueues()
		insert(t, other, in("of-"+first, first))
		insert(t, other, in("of-"+second, second))
	}
	first, second := "one", "two"
	turn := func() {
		first, second = second, first
		flip(first, second)
	}
	insert(t, s, in("of-one", "one"))
	insert(t, s, in("of-two", "two"))

	turn()
	got, err := s.Shards()[0].Get(t.Context(), ref("of-one"))
	require.NoError(t, err)
	require.Equal(t, "one", got.Lane)

	turn()
	again, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{in("of-one", "one")})
	require.NoError(t, err)
	require.Equal(t, "one", again[0].Job.Lane)

	turn()
	page, err := s.Shards()[0].List(t.Context(),
		store.Filter{Namespace: lane.Namespace, Topic: lane.Topic, States: []job.State{job.Scheduled}, Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Jobs, 2)
	for _, j := range page.Jobs {
		require.Equal(t, "of-"+j.Lane, j.ID)
	}

	turn()
	page, err = s.Shards()[0].List(t.Context(), store.Filter{
		Namespace: lane.Namespace, Topic: lane.Topic,
		States: []job.State{job.Scheduled}, Lane: "one", Limit: 10,
	})
	require.NoError(t, err)
	require.Len(t, page.Jobs, 1)
	require.Equal(t, "of-one", page.Jobs[0].ID)

	turn()
	for _, e := range []string{"of-one", "of-two"} {
		_, err = other.Shards()[0].Replace(t.Context(), store.NewToken(), ref(e),
			store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
		require.NoError(t, err)
	}
	page, err = s.Shards()[0].List(t.Context(),
		store.Filter{Namespace: lane.Namespace, Topic: lane.Topic, States: []job.State{job.Ready}, Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Jobs, 2)
	for _, j := range page.Jobs {
		require.Equal(t, "of-"+j.Lane, j.ID)
	}
	stats, err := s.Shards()[0].TopicStats(t.Context(),
		store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
	require.NoError(t, err)
	require.EqualValues(t, 2, stats[0].Ready)
}

// A round whose budget is spent must still process the other queues of a resumed topic.
func TestResume_NotifiesEveryLaneOfManyJobs(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	put := func(paused bool) {
		_, err := store.PutTopic(t.Context(), s,
			store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: paused}})
		require.NoError(t, err)
	}
	const lanes, each = 100, 20
	put(true)
	left := map[string]bool{}
	var last time.Time
	for l := range lanes {
		entries := make([]store.NewJob, each)
		for i := range entries {
			entries[i] = entry(fmt.Sprintf("%d-%d", l, i))
			entries[i].Lane, entries[i].Delay = fmt.Sprint("lane-", l), 5*time.Millisecond
			left[entries[i].ID] = true
		}
		for _, in := range insert(t, s, entries...) {
			last = in.Job.DueAt
		}
	}
	carry := func() store.CarryResult {
		carried, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		return carried
	}
	require.Eventually(t, func() bool { return carry().Now.After(last) }, time.Minute, time.Millisecond)
	for rounds := 0; carry().Next == 0; rounds++ {
		require.Less(t, rounds, 100)
	}
	put(false)
	for rounds := 0; carry().Next == 0; rounds++ {
		require.Less(t, rounds, 100)
	}
	agenda, err := s.Client.ZCount(t.Context(), s.shards[0].Keys.Agenda, fmt.Sprint(layout.Never), "+inf").Result()
	require.NoError(t, err)
	require.Zero(t, agenda, "no lane without a next moment")
	for {
		notified, err := s.Shards()[0].Wait(t.Context(),
			store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Millisecond})
		require.NoError(t, err)
		if len(notified) == 0 {
			break
		}
		for _, q := range notified {
			claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
				Queues: []store.QueueClaim{{Queue: q, Max: each, Timeout: time.Minute}}, Max: each, MaxBytes: 1 << 20,
			})
			require.NoError(t, err)
			for _, h := range claimed.Jobs {
				delete(left, h.ID)
			}
		}
	}
	require.Empty(t, left)
}
