package storetest

import (
	"fmt"
	"slices"
	"strings"
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

// usage returns what the unfinished jobs of the test's namespace use, and requires that Totals has the same.
func (s *suite) usage() store.Usage {
	s.Helper()
	usage, err := s.shard().Usage(s.Context(), s.queue.Namespace)
	require.NoError(s, err)
	usage.KeptBytes = 0
	total, err := s.shard().Totals(s.Context(), s.queue.Namespace)
	require.NoError(s, err)
	require.Equal(s, store.Usage{Jobs: total.Scheduled + total.Ready + total.Running, Bytes: total.Bytes}, usage)
	return usage
}

// usesBytes requires that the unfinished jobs use as many bytes as those with the ids, whose bodies have a size in
// total.
func (s *suite) usesBytes(bodies int64, ids ...string) {
	s.Helper()
	most := int64(0)
	for _, id := range ids {
		stored := s.get(id)
		most += store.JobBytes(&stored.Spec)
	}
	usage := s.usage()
	require.EqualValues(s, len(ids), usage.Jobs)
	require.GreaterOrEqual(s, usage.Bytes, bodies)
	require.LessOrEqual(s, usage.Bytes, most)
}

var countCases = []testCase{
	{"Usage counts the bytes of unfinished jobs", func(s *suite) {
		require.Zero(s, s.usage())
		large := func(n int) option { return body(strings.Repeat("x", n)) }
		s.insertNew(s.entry("a", large(1000)), s.entry("b", large(30_000), delayed(long)))
		s.insertNew(s.entry("c", large(500), in(s.queueOf(s.queue.Namespace, "mails", 0))))
		s.insertNew(s.entry("other", in(s.queueOf("other", "mails", 0))))
		s.usesBytes(31_500, "a", "b", "c")
		_, err := s.edit("b", func(spec *job.Spec) { spec.Body = []byte("small") })
		require.NoError(s, err)
		s.usesBytes(1505, "a", "b", "c")
		_, err = s.edit("b",
			func(spec *job.Spec) { spec.Header = map[string][]string{"X-Large": {strings.Repeat("h", 2000)}} })
		require.NoError(s, err)
		s.usesBytes(3505, "a", "b", "c")

		h := s.claimAll("a")[0]
		s.usesBytes(3505, "a", "b", "c")
		require.NoError(s, s.settle(withBody(h, retry(0), strings.Repeat("y", 9000)))[0])
		s.usesBytes(11_505, "a", "b", "c")
		s.settleOne(s.claimAll("a")[0], dead)
		s.usesBytes(2505, "b", "c")
		_, err = s.reviveWith(store.NewToken(),
			store.Revival{Ref: s.ref("a"), URL: "https://b.example/" + strings.Repeat("p", 1000), Delay: long})
		require.NoError(s, err)
		s.usesBytes(12_505, "a", "b", "c")
		s.recheck()
		for _, id := range []string{"a", "b", "c"} {
			_, err := s.cancel(id)
			require.NoError(s, err)
		}
		require.Zero(s, s.usage())
	}},
	{"Usage counts the bytes of ended jobs that are kept", func(s *suite) {
		s.put(policy.Topic{KeepDead: keep(0)})
		keeps := func(bodies int64, ids ...string) {
			most := int64(0)
			for _, id := range ids {
				stored := s.get(id)
				most += store.JobBytes(&stored.Spec)
			}
			usage, err := s.shard().Usage(s.Context(), s.queue.Namespace)
			require.NoError(s, err)
			require.GreaterOrEqual(s, usage.KeptBytes, bodies)
			require.LessOrEqual(s, usage.KeptBytes, most)
		}
		large := func(n int) option { return body(strings.Repeat("x", n)) }
		s.endJob("delivered", delivered, large(1000))
		s.endJob("dead", dead, large(500))
		s.insertNew(s.entry("cancelled", large(30_000), delayed(long)), s.entry("waits", large(7000), delayed(long)))
		_, err := s.cancel("cancelled")
		require.NoError(s, err)
		mails := s.queueOf(s.queue.Namespace, "mails", 0)
		s.insertNew(s.entry("other", large(200), in(mails)))
		s.settleOne(s.claim(claimOf(mails)).Jobs[0], dead)
		s.sweep()
		keeps(31_200, "delivered", "cancelled", "other")
		_, err = s.revive("other", long)
		require.NoError(s, err)
		keeps(31_000, "delivered", "cancelled")
		s.recheck()
		s.put(policy.Topic{KeepDelivered: keep(0)})
		s.sweep()
		keeps(0)
	}},
	{"Usage is the same after calls that changed nothing", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b", delayed(long)))
		before := s.usage()
		token := store.NewToken()
		for range 2 {
			_, err := s.shard().Insert(s.Context(), token, []store.NewJob{s.entry("a"), s.entry("c")})
			require.NoError(s, err)
		}
		_, err := s.cancel("c")
		require.NoError(s, err)
		_, err = s.revive("b", 0)
		s.inState(err, job.Scheduled)
		h := s.claimAll("a")[0]
		s.settleOne(h, retry(long))
		require.ErrorIs(s, s.settle(settlement(h, delivered))[0], store.ErrLeaseLost)
		require.Equal(s, before, s.usage())
	}},
	{"counts match Get and List under every throttle", func(s *suite) {
		for i, throttle := range throttles {
			s.Log(throttle.name)
			s.queue.Topic = fmt.Sprintf("orders-%d", i)
			s.queue = s.queueOf(s.queue.Namespace, s.queue.Topic, 0)
			name := func(id string) string { return fmt.Sprintf("%s-%d", id, i) }
			ids := []string{name("before"), name("comes-due"), name("later"), name("after"), name("goes")}
			s.insertNew(s.entry(ids[0]), s.entry(ids[1], delayed(long)), s.entry(ids[2], delayed(long)))
			s.checkCounts(ids[:3])
			// a throttle is set by a job that is the only one to claim
			for _, h := range s.claim(claimOf(s.queue)).Jobs {
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
		n := s.number(600, 1200)
		for i := range n {
			entries = append(entries, s.entry(fmt.Sprint(i), delayed(s.shortTime())))
		}
		for from := 0; from < len(entries); from += store.MaxBatch {
			s.insertNew(entries[from:min(from+store.MaxBatch, len(entries))]...)
		}
		s.eventually("all are due", func() bool { return int(s.stats().Ready) == n })
		require.Zero(s, s.stats().Scheduled)
		require.EqualValues(s, n, s.laneStats(s.queue).Ready)
		s.put(policy.Topic{})
		s.eventually("a wake-up", func() bool {
			s.carry(store.CarryOptions{})
			return slices.Contains(s.wait(shortWait), s.queue)
		})
		require.EqualValues(s, n, s.stats().Ready)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 32)
		require.EqualValues(s, n-32, s.stats().Ready)
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
