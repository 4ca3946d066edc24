package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

var claimCases = []testCase{
	{"returns jobs in due order", func(s *suite) {
		var ids []string
		for i := range 6 {
			ids = append(ids, fmt.Sprintf("%c-job", 'z'-i))
			s.insertNew(s.entry(ids[i]))
			s.advance(2 * time.Millisecond)
		}
		request := claimOf(s.queue)
		request.Max = 4
		require.Equal(s, ids[:4], idsOf(s.claim(request).Jobs))
		require.Equal(s, ids[4:], idsOf(s.claim(request).Jobs))
	}},
	{"jobs that come due follow ready jobs", func(s *suite) {
		s.insertNew(s.entry("late", delayed(s.shortTime())), s.entry("now"))
		s.advance(s.shortTime() + time.Millisecond)
		require.Equal(s, []string{"now", "late"}, idsOf(s.claim(claimOf(s.queue)).Jobs))
	}},
	{"returns running jobs with body and without history", func(s *suite) {
		e := s.entry("full")
		e.Spec = fullSpec("full", s.queue)
		s.insertNew(e)
		h := s.claimAll("full")[0]
		require.Equal(s, e.Spec, h.Spec)
		require.Equal(s, job.Running, h.State)
		require.Empty(s, h.History)
		require.Zero(s, h.Attempts)
		require.Equal(s, job.Running, s.get("full").State)
		s.claimAll() // no second claim gets it
	}},
	{"never returns a job before it is due", func(s *suite) {
		s.insertNew(s.entry("a", delayed(s.shortTime())))
		due := s.get("a").DueAt
		s.eventually("a claim", func() bool {
			held := s.claim(claimOf(s.queue)).Jobs
			if len(held) > 0 {
				require.False(s, s.now().Before(due), "claimed before it was due")
			}
			return len(held) > 0
		})
	}},
	{"respects the limits of queue and request, and sets More", func(s *suite) {
		a, b := s.laneQueue(0), s.laneQueue(1)
		for i := range 5 {
			s.insertNew(s.entry(fmt.Sprintf("a%d", i), in(a)), s.entry(fmt.Sprintf("b%d", i), in(b)))
		}
		request := claimOf(a, b)
		request.Max, request.Queues[0].Max = 4, 3
		got := s.claim(request)
		require.Len(s, got.Jobs, 4)
		for i, q := range []job.Queue{a, a, a, b} {
			require.Equal(s, q, got.Jobs[i].Queue, "queues are served in order")
		}
		require.Equal(s, []store.QueueStatus{{Queue: a, More: true}, {Queue: b, More: true}}, got.Queues)
		got = s.claim(claimOf(a, b))
		require.Len(s, got.Jobs, 6)
		require.Equal(s, []store.QueueStatus{{Queue: a}, {Queue: b}}, got.Queues)
	}},
	{"respects MaxBytes, but returns at least one job", func(s *suite) {
		for i := range 4 {
			s.insertNew(s.entry(fmt.Sprint(i), body(strings.Repeat("x", 1000))))
			s.advance(2 * time.Millisecond)
		}
		request := claimOf(s.queue)
		request.MaxBytes = 2500
		got := s.claim(request)
		require.Equal(s, []string{"0", "1"}, idsOf(got.Jobs))
		require.True(s, got.Queues[0].More)
		request.MaxBytes = 10
		require.Equal(s, []string{"2"}, idsOf(s.claim(request).Jobs))
		require.Equal(s, []string{"3"}, idsOf(s.claim(request).Jobs))
	}},
	{"fills lane_concurrency and never exceeds it", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 3})
		a, b := s.laneQueue(0), s.laneQueue(1)
		for i := range 5 {
			s.insertNew(s.entry(fmt.Sprintf("a%d", i), in(a)), s.entry(fmt.Sprintf("b%d", i), in(b)))
		}
		got := s.claim(claimOf(a))
		require.Len(s, got.Jobs, 3)
		require.True(s, got.Queues[0].Blocked)
		require.False(s, got.Queues[0].More)
		require.Empty(s, s.claim(claimOf(a)).Jobs)
		require.Len(s, s.claim(claimOf(b)).Jobs, 3, "each lane has its limit")
		s.settleOne(got.Jobs[0], delivered)
		require.Len(s, s.claim(claimOf(a)).Jobs, 1)
		require.Empty(s, s.claim(claimOf(a)).Jobs)
	}},
	{"waits for running jobs after lane_concurrency was lowered", func(s *suite) {
		for i := range 4 {
			s.insertNew(s.entry(fmt.Sprint(i)))
		}
		request := claimOf(s.queue)
		request.Max = 3
		held := s.claim(request).Jobs
		require.Len(s, held, 3)
		s.put(policy.Topic{LaneConcurrency: 1})
		s.settleOne(held[0], delivered)
		require.Empty(s, s.claim(claimOf(s.queue)).Jobs)
		s.settleOne(held[1], delivered)
		require.Empty(s, s.claim(claimOf(s.queue)).Jobs)
		s.settleOne(held[2], delivered)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 1)
	}},
	{"skips paused topics", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.put(policy.Topic{Paused: true})
		got := s.claim(claimOf(s.queue))
		require.Empty(s, got.Jobs)
		require.True(s, got.Queues[0].Blocked)
		require.False(s, got.Queues[0].More)
		s.put(policy.Topic{})
		s.claimAll("a")
	}},
	{"leases last the job's timeout, else the request's, plus the margin", func(s *suite) {
		s.insertNew(s.entry("own", timeout(20*time.Minute)), s.entry("not"))
		request := claimFor(40*time.Minute, s.queue)
		request.Margin = time.Minute
		for _, h := range s.claim(request).Jobs {
			lasts := map[string]time.Duration{"own": 21 * time.Minute, "not": 41 * time.Minute}[h.ID]
			require.InDelta(s, lasts, h.LeaseFor, float64(time.Second), h.ID)
			require.LessOrEqual(s, h.LeaseFor, lasts, h.ID)
		}
	}},
	{"two claims have different leases", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"))
		request := claimOf(s.queue)
		request.Max = 1
		first, second := s.claim(request).Jobs[0], s.claim(request).Jobs[0]
		require.NotEmpty(s, first.Lease)
		require.NotEqual(s, first.Lease, second.Lease)
	}},
	{"a repeated token returns the jobs it still holds", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"))
		token := store.NewToken()
		first, err := s.shard().Claim(s.Context(), token, claimOf(s.queue))
		require.NoError(s, err)
		require.Len(s, first.Jobs, 2)
		s.insertNew(s.entry("c"))
		repeat, err := s.shard().Claim(s.Context(), token, claimOf(s.queue))
		require.NoError(s, err)
		require.ElementsMatch(s, idsOf(first.Jobs), idsOf(repeat.Jobs))
		require.Equal(s, first.Jobs[0].Lease, repeat.Jobs[0].Lease)
		require.Len(s, repeat.Queues, 1)
		s.settleOne(first.Jobs[0], delivered)
		repeat, err = s.shard().Claim(s.Context(), token, claimOf(s.queue))
		require.NoError(s, err)
		require.Equal(s, idsOf(first.Jobs[1:]), idsOf(repeat.Jobs))
		s.claimAll("c")
	}},
	{"a repeated token of an empty claim returns nothing", func(s *suite) {
		token := store.NewToken()
		s.insertNew(s.entry("later", delayed(long)))
		for range 2 {
			got, err := s.shard().Claim(s.Context(), token, claimOf(s.queue))
			require.NoError(s, err)
			require.Empty(s, got.Jobs)
			s.insert(s.entry("a"))
		}
		s.claimAll("a")
	}},
	{"returns the age of a job, from which its expiry follows", func(s *suite) {
		s.insertNew(s.entry("dies", expires(s.shortTime())), s.entry("lives", expires(long)), s.entry("ever"))
		s.advance(2 * s.shortTime())
		for _, h := range s.claimAll("dies", "lives", "ever") {
			require.Equal(s, h.ID == "dies", expired(&h), h.ID)
			require.GreaterOrEqual(s, h.Age, 2*s.shortTime(), h.ID)
			require.Less(s, h.Age, 2*s.shortTime()+timeLimit, h.ID)
		}
	}},
	{"returns how late a job is, without Rated and Probe", func(s *suite) {
		s.insertNew(s.entry("late"), s.entry("later", delayed(s.shortTime())))
		s.advance(2 * s.shortTime())
		got := s.claim(claimOf(s.queue))
		require.Len(s, got.Jobs, 2)
		for _, h := range got.Jobs {
			late := map[string]time.Duration{"late": 2 * s.shortTime(), "later": s.shortTime()}[h.ID]
			if s.Advance != nil {
				require.Equal(s, late, h.Late, h.ID)
			}
			require.Less(s, h.Late, late+timeLimit, h.ID)
			s.sameTime(s.now(), claimed(h), "time of the claim")
			require.False(s, h.Rated)
			require.False(s, h.Probe)
		}
		require.False(s, got.Queues[0].BreakerOpen)
	}},
	{"refills the ready list from due", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 1000})
		var entries []store.NewJob
		for i := range 100 {
			entries = append(entries, s.entry(fmt.Sprint(i), delayed(s.shortTime())))
		}
		s.insertNew(entries...)
		s.advance(s.shortTime() + time.Millisecond)
		s.carry(store.CarryOptions{Ready: 5})
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 100)
	}},
	{"an unknown queue is empty", func(s *suite) {
		got := s.claim(claimOf(s.laneQueue(3)))
		require.Empty(s, got.Jobs)
		require.Equal(s, []store.QueueStatus{{Queue: s.laneQueue(3)}}, got.Queues)
	}},
	{"returns the revision of the policies", func(s *suite) {
		_, revision, err := ListTopics(s.Context(), s.Store)
		require.NoError(s, err)
		require.Equal(s, revision, s.claim(claimOf(s.queue)).Revision)
		s.put(policy.Topic{Workers: 7})
		changed := s.claim(claimOf(s.queue)).Revision
		require.NotEqual(s, revision, changed)
		_, revision, err = ListTopics(s.Context(), s.Store)
		require.NoError(s, err)
		require.Equal(s, revision, changed)
	}},
	{"accepts MaxBatch queues", func(s *suite) {
		var queues []job.Queue
		var entries []store.NewJob
		for i := 0; len(queues) < store.MaxBatch; i++ {
			q := job.Queue{Namespace: s.queue.Namespace, Topic: s.queue.Topic, Lane: fmt.Sprintf("many-%d", i)}
			if s.router.ShardOf(q) == s.shardNumber {
				queues = append(queues, q)
				if len(queues)%16 == 0 {
					entries = append(entries, s.entry(q.Lane, in(q)))
				}
			}
		}
		s.insertNew(entries...)
		got := s.claim(claimOf(queues...))
		require.Len(s, got.Jobs, len(entries))
		for i, h := range got.Jobs {
			require.Equal(s, entries[i].Queue, h.Queue)
		}
	}},
}

// expired reports whether a job's expiry had passed when it was claimed.
func expired(h *store.ClaimedJob) bool { return !h.ExpiresAt.IsZero() && h.Now().After(h.ExpiresAt) }
