package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// checkCounts compares the counts of the test's topic and lane with the jobs that Get and List return.
func (s *suite) checkCounts(ids []string) {
	s.Helper()
	shown := make(map[job.State]int64)
	for _, id := range ids {
		shown[s.get(id).State]++
	}
	for _, state := range []job.State{job.Scheduled, job.Ready, job.Running} {
		require.Len(s, s.list(s.filter(state)), int(shown[state]), "%s jobs are listed", state)
	}
	total, lane := s.stats(), s.laneStats(s.queue)
	require.Equal(s, []int64{shown[job.Scheduled], shown[job.Ready], shown[job.Running]},
		[]int64{total.Scheduled, total.Ready, total.Running}, "scheduled, ready and running in the topic's counts")
	require.Equal(s, []int64{shown[job.Scheduled], shown[job.Ready], shown[job.Running]},
		[]int64{lane.Scheduled, lane.Ready, lane.Running}, "scheduled, ready and running in the lane's counts")
}

// throttles are the ways to throttle a queue.
var throttles = []struct {
	name  string
	apply func(s *suite)
}{
	{"no throttle", func(*suite) {}},
	{"paused topic", func(s *suite) { s.put(policy.Topic{Paused: true}) }},
	{"paused lane", func(s *suite) { s.putLane(s.queue, policy.Lane{Paused: true}) }},
	{"cooldown", func(s *suite) { s.changeLane(cooldown(long)) }},
	{"open breaker", func(s *suite) { s.changeLane(openBreaker(long)) }},
	{"rate", func(s *suite) {
		s.put(policy.Topic{LaneRate: policy.Rate{Starts: 1, Per: long}})
		s.endJob("started", delivered)
	}},
	{"lane_concurrency", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 1})
		s.insertNew(s.entry("full"))
		s.claimAll("full")
	}},
}

var countCases = []testCase{
	{"counts match Get and List under every throttle", func(s *suite) {
		for i, throttle := range throttles {
			s.Log(throttle.name)
			s.queue.Topic = fmt.Sprintf("orders-%d", i)
			s.queue = s.queueOf(s.queue.Namespace, s.queue.Topic, 0)
			name := func(id string) string { return fmt.Sprintf("%s-%d", id, i) }
			ids := []string{name("before"), name("comes-due"), name("later"), name("after"), name("goes")}
			s.insertNew(s.entry(ids[0]), s.entry(ids[1], delayed(long)), s.entry(ids[2], delayed(long)))
			s.checkCounts(ids[:3])
			for _, h := range s.claim(claimOf(s.queue)).Jobs { // a throttle is set by a job that is the only one to claim
				s.settleOne(h, retry(0))
			}
			_, err := s.shard().Cancel(s.Context(), store.NewToken(), s.ref(ids[0]), store.Cancellation{})
			require.NoError(s, err)
			throttle.apply(s)
			_, err = s.replace(ids[1], store.Replacement{Due: &job.TimeOrDelay{In: s.shortTime()}})
			require.NoError(s, err)
			if s.stats().Running > 0 {
				ids = append(ids, "full")
			}
			s.insertNew(s.entry(ids[3]), s.entry(ids[4]))
			s.advance(s.shortTime() + 2*time.Millisecond)
			s.checkCounts(ids)
			s.drainWakeups()
			s.checkCounts(ids)
			_, err = s.shard().Cancel(s.Context(), store.NewToken(), s.ref(ids[4]), store.Cancellation{})
			require.NoError(s, err)
			_, err = s.replace(ids[3], store.Replacement{Due: &job.TimeOrDelay{In: long}})
			require.NoError(s, err)
			s.checkCounts(ids)
			_, err = s.replace(ids[3], store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
			require.NoError(s, err)
			s.checkCounts(ids)
			require.NoError(s, Check(s.Context(), s.Store))
		}
	}},
	{"due jobs beyond the ready list count as ready and still notify", func(s *suite) {
		s.put(policy.Topic{Paused: true})
		var entries []store.NewJob
		for i := range 1200 {
			entries = append(entries, s.entry(fmt.Sprint(i), delayed(s.shortTime())))
		}
		for from := 0; from < len(entries); from += store.MaxBatch {
			s.insertNew(entries[from:min(from+store.MaxBatch, len(entries))]...)
		}
		s.eventually("all are due", func() bool { return s.stats().Ready == 1200 })
		require.Zero(s, s.stats().Scheduled)
		require.EqualValues(s, 1200, s.laneStats(s.queue).Ready)
		s.put(policy.Topic{})
		s.eventually("a wake-up", func() bool {
			s.carry(store.CarryOptions{})
			return slices.Contains(s.wait(shortWait), s.queue)
		})
		require.EqualValues(s, 1200, s.stats().Ready)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 32)
		require.EqualValues(s, 1200-32, s.stats().Ready)
	}},
	{"a job that came due notifies at once though it was counted before", func(s *suite) {
		s.endJob("before", delivered) // its queue was notified
		s.drainWakeups()
		const soon = store.RenotifyAfter / 5
		s.insertNew(s.entry("after", delayed(soon)))
		s.advance(soon + 2*time.Millisecond)
		require.EqualValues(s, 1, s.stats().Ready)
		s.carry(store.CarryOptions{})
		require.Contains(s, s.wait(timeLimit), s.queue)
	}},
}
