package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/unit"
)

func TestTopicStats_CountsATopicWithManyIdleLanesExactly(t *testing.T) {
	c := &twoClocks{}
	c.ms.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
	s, err := Open(t.Context(), at(c.read, options(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) }) // too many lanes to count each
	const part = 500
	idle := []store.ClaimRequest{{}, {}, {}}
	for p := range idle {
		entries := make([]store.NewJob, part)
		request := store.ClaimRequest{Max: part, MaxBytes: 1 << 20, Margin: time.Minute}
		for i := range entries {
			name := fmt.Sprintf("idle-%d-%04d", p, i)
			entries[i] = newJobInLane(name, name, 0)
			request.Queues = append(request.Queues,
				store.QueueClaim{Queue: entries[i].Queue, Max: 1, Timeout: time.Minute})
		}
		insert(t, s, entries...)
		idle[p] = request
	}
	insert(t, s, newJobInLane("a", "a1", 2*time.Hour), newJobInLane("a", "a2", 0), newJobInLane("b", "b1", 3*time.Hour))

	looked := func() (n int) {
		require.NoError(t, s.db.Submit(t.Context(), &op{Verb: "test", Run: func(u *unit.Unit) error {
			for _, topic := range s.mem.Topics {
				queues, err := someQueues(u, topic)
				if err != nil {
					return err
				}
				n += len(queues)
			}
			return nil
		}}))
		return n
	}
	require.Equal(t, statsLanes, looked())
	for _, request := range idle {
		claimed, err := s.Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		require.Len(t, claimed.Jobs, part)
		ends := make([]store.Settlement, part)
		for i, h := range claimed.Jobs {
			ends[i] = settlementOf(h, policy.Verdict{Kind: policy.Delivered})
		}
		settle(t, s, ends...)
	}
	require.Equal(t, 2, looked())
	stats, err := s.TopicStats(t.Context(), store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
	require.NoError(t, err)
	require.Equal(t, c.ms.Load(), stats[0].OldestDue.UnixMilli())

	lanes, err := s.LaneStats(t.Context(), lane.Namespace, lane.Topic, "", 1)
	require.NoError(t, err)
	require.Equal(t, []store.LaneStats{{Lane: "a", Scheduled: 1, Ready: 1}}, lanes)
	lanes, err = s.LaneStats(t.Context(), lane.Namespace, lane.Topic, "a", 10)
	require.NoError(t, err)
	require.Equal(t, []store.LaneStats{{Lane: "b", Scheduled: 1}}, lanes)
}

func TestList_PagesJobsOfOneMillisecondInOrder(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJobs("a", 7, time.Hour)...)
	insert(t, s, newJobs("b", 5, 2*time.Hour)...)
	list := func(filter store.Filter) (ids []string) {
		filter.Namespace, filter.Topic, filter.Limit, filter.Oldest = lane.Namespace, lane.Topic, 3, true
		for {
			page, err := s.List(t.Context(), filter)
			require.NoError(t, err)
			for _, j := range page.Jobs {
				ids = append(ids, j.ID)
			}
			if filter.After = page.Reached; !page.More {
				return ids
			}
		}
	}
	var want []string
	for _, e := range append(newJobs("a", 7, 0), newJobs("b", 5, 0)...) {
		want = append(want, e.ID)
	}
	require.Equal(t, want, list(store.Filter{States: []job.State{job.Scheduled}}))
	require.Equal(t, want[:7],
		list(store.Filter{Due: store.TimeRange{Before: clock.Time(c.ms.Load() + (2 * time.Hour).Milliseconds())}}))
	require.Equal(t, want[7:],
		list(store.Filter{Due: store.TimeRange{After: clock.Time(c.ms.Load() + (2 * time.Hour).Milliseconds())}}))
	for i, id := range want {
		_, err := s.Cancel(t.Context(), store.NewToken(), ref(id), store.Cancellation{})
		require.NoError(t, err)
		if i == 6 {
			c.pass(time.Second)
		}
	}
	require.Equal(t, want, list(store.Filter{States: []job.State{job.Cancelled}}))
}
