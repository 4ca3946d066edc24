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

// ordered makes the test's topic ordered, and inserts jobs one after the other.
func (s *suite) ordered(ids ...string) {
	s.Helper()
	s.put(policy.Topic{Ordered: true})
	for _, id := range ids {
		s.insertNew(s.entry(id))
	}
}

// requireTurn claims from an ordered queue, which must return one job.
func (s *suite) requireTurn(id string) store.ClaimedJob {
	s.Helper()
	got := s.claim(claimOf(s.queue))
	require.Equal(s, []string{id}, idsOf(got.Jobs))
	require.True(s, got.Queues[0].Blocked)
	require.False(s, got.Queues[0].More)
	require.Equal(s, s.ref(id), s.queueState().Next)
	return got.Jobs[0]
}

// requireWait claims from an ordered queue, which must return no job since one has to end before any other.
func (s *suite) requireWait(next string) {
	s.Helper()
	got := s.claim(claimOf(s.queue))
	require.Empty(s, idsOf(got.Jobs))
	require.False(s, got.Queues[0].More)
	require.Equal(s, s.ref(next), s.queueState().Next)
}

// deliverInTurn delivers the jobs of an ordered queue, which must come in this order, up to the last that is claimable.
func (s *suite) deliverInTurn(ids ...string) {
	s.Helper()
	for _, id := range ids {
		s.settleOne(s.requireTurn(id), delivered)
	}
	require.Empty(s, s.claim(claimOf(s.queue)).Jobs)
}

// requireNextAtOnce requires that a change, while a job blocks the test's queue, notifies the queue, or wakes the
// carrier that does so.
func (s *suite) requireNextAtOnce(id string, change func() error) {
	s.Helper()
	s.carry(store.CarryOptions{})
	s.drainWakeups()
	require.NoError(s, change())
	if s.waitAgenda(shortWait) {
		s.carry(store.CarryOptions{})
	}
	require.Equal(s, []job.Queue{s.queue}, s.wait(shortWait), "%s has the turn", id)
}

var orderedCases = []testCase{
	{"one job at a time, in the order of registration", func(s *suite) {
		s.ordered("z", "y")
		s.insertNew(s.entry("x"), s.entry("w"), s.entry("v")) // in one millisecond
		h := s.requireTurn("z")
		s.requireWait("z")
		s.settleOne(h, delivered)
		s.deliverInTurn("y", "x", "w", "v")
		require.Zero(s, s.queueState().Next)
	}},
	{"each lane of a topic for itself, and a lane without its topic", func(s *suite) {
		a, b, c := s.laneQueue(0), s.laneQueue(1), s.laneQueue(2)
		s.putLane(a, policy.Lane{Ordered: true, LaneConcurrency: 5})
		s.putLane(b, policy.Lane{Ordered: true})
		for i := range 3 {
			s.insertNew(s.entry(fmt.Sprint("a", i), in(a)), s.entry(fmt.Sprint("b", i), in(b)),
				s.entry(fmt.Sprint("c", i), in(c)))
		}
		require.Equal(s, []string{"a0", "b0", "c0", "c1", "c2"}, idsOf(s.claim(claimOf(a, b, c)).Jobs))
		require.Zero(s, s.stateOf(c).Next)
	}},
	{"a failed job blocks those behind it until it ends", withMovedClock(func(s *suite) {
		s.ordered("a", "b", "c")
		s.drainWakeups()
		s.settleOne(s.requireTurn("a"), retry(s.shortTime()))
		due := s.get("a").DueAt
		s.requireWait("a")
		s.requireIdle(s.shortTime() / 2)
		s.requireNotNotified("b is due, but a is not")
		s.waitNotified(s.queue)
		require.False(s, s.now().Before(due))
		s.settleOne(s.requireTurn("a"), dead)
		s.waitNotified(s.queue)
		s.deliverInTurn("b", "c")
	})},
	{"a delayed job has its turn when it is due, before one that is retried later", withMovedClock(func(s *suite) {
		s.put(policy.Topic{Ordered: true})
		s.insertNew(s.entry("early", delayed(s.shortTime())), s.entry("now"),
			s.entry("late", delayed(s.shortTime())), s.entry("next"))
		s.settleOne(s.requireTurn("now"), retry(long))
		s.requireWait("now")
		s.drainWakeups()
		s.waitNotified(s.queue)
		s.settleOne(s.requireTurn("early"), retry(long))
		s.requireWait("early")
		for _, id := range []string{"early", "now"} {
			_, err := s.cancel(id)
			require.NoError(s, err)
		}
		s.deliverInTurn("late", "next")
	})},
	{"is notified when a job with the turn is due, and not for those behind it", func(s *suite) {
		if s.Advance == nil {
			return
		}
		const soon = store.RenotifyAfter / 8
		s.ordered("a", "b")
		s.drainWakeups()
		s.Advance(store.RenotifyAfter + time.Millisecond)
		s.insertNew(s.entry("c", delayed(soon)))
		s.carry(store.CarryOptions{})
		require.Contains(s, s.wait(shortWait), s.queue)
		s.settleOne(s.requireTurn("a"), retry(2*soon))
		s.advance(soon + 2*time.Millisecond)
		s.requireNotNotified("b and c are due, but a is not")
		require.EqualValues(s, 2, s.stats().Ready)
		s.advance(soon + 2*time.Millisecond)
		s.carry(store.CarryOptions{})
		require.Contains(s, s.wait(shortWait), s.queue, "without the wait for a repeated wake-up")
		s.deliverInTurn("a", "b", "c")
	}},
	{"a released, lost or interrupted job keeps its turn", func(s *suite) {
		s.ordered("a", "b")
		s.settleOne(s.requireTurn("a"), released)
		s.settleOne(s.requireTurn("a"), policy.Verdict{Kind: policy.Released, Wait: long})
		s.requireWait("a")
		_, err := s.replace("a", store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
		require.NoError(s, err)
		s.expireOne()
		s.requireTurn("a")
		if s.Reopen != nil {
			s.Store = s.Reopen()
			if s.get("a").State == job.Ready {
				s.requireTurn("a")
			}
		}
		s.requireWait("a")
	}},
	{"a pause, a cooldown and a breaker keep the order", func(s *suite) {
		s.ordered("a", "b", "c")
		s.put(policy.Topic{Ordered: true, Paused: true})
		s.insertNew(s.entry("d"))
		s.requireWait("a")
		s.put(policy.Topic{Ordered: true})
		h := s.requireTurn("a")
		s.endWith(h, retry(0), store.LaneChange{Breaker: store.OpenBreaker})
		h = s.requireTurn("a")
		require.True(s, h.Probe)
		s.endWith(h, delivered, closed)
		s.deliverInTurn("b", "c", "d")
	}},
	{"a rate holds, and the job with the turn takes its start", func(s *suite) {
		s.put(policy.Topic{Ordered: true, LaneRate: policy.Rate{Starts: 2, Per: long}})
		s.insertNew(s.entry("a"), s.entry("b"), s.entry("c"))
		h := s.requireTurn("a")
		require.True(s, h.Rated)
		s.settleOne(h, retry(0))
		s.settleOne(s.requireTurn("a"), delivered)
		s.requireWait("b")
		require.False(s, s.queueState().NextStart.IsZero())
	}},
	{"an edit of the due time of a job without an attempt gives up its turn", func(s *suite) {
		s.ordered("a", "b", "c")
		moved, err := s.replace("a", store.Replacement{Due: &job.TimeOrDelay{In: long}})
		require.NoError(s, err)
		require.Equal(s, moved.DueAt, moved.FirstDueAt)
		s.settleOne(s.requireTurn("b"), retry(0))
		_, err = s.edit("b", func(spec *job.Spec) { spec.Labels = map[string]string{"k": "v"} })
		require.NoError(s, err)
		_, err = s.replace("a", store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
		require.NoError(s, err)
		s.deliverInTurn("a", "b", "c")
	}},
	{"an edit of the due time of a job that has failed keeps its turn", func(s *suite) {
		s.ordered("a", "b")
		s.settleOne(s.requireTurn("a"), retry(0))
		_, err := s.replace("a", store.Replacement{Due: &job.TimeOrDelay{In: long}})
		require.NoError(s, err)
		s.requireWait("a")
		_, err = s.replace("a", store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
		require.NoError(s, err)
		s.deliverInTurn("a", "b")
	}},
	{"a cancelled job lets the next one pass", func(s *suite) {
		s.ordered("a", "b", "c")
		s.settleOne(s.requireTurn("a"), retry(long))
		s.drainWakeups()
		_, err := s.cancel("a")
		require.NoError(s, err)
		s.waitNotified(s.queue)
		h := s.requireTurn("b")
		_, err = s.cancel("b")
		require.NoError(s, err)
		s.requireWait("b")
		s.settleOne(h, retry(long))
		require.Equal(s, job.Cancelled, s.get("b").State)
		s.deliverInTurn("c")
	}},
	{"the next job is claimed at once when a waiting one is cancelled or gives up its turn", func(s *suite) {
		s.ordered("a", "b", "c")
		s.settleOne(s.requireTurn("a"), retry(2*long))
		s.requireNextAtOnce("b", func() error {
			_, err := s.cancel("a")
			return err
		})
		s.settleOne(s.requireTurn("b"), policy.Verdict{Kind: policy.Released, Wait: 2 * long})
		s.requireNextAtOnce("c", func() error {
			_, err := s.replace("b", store.Replacement{Due: &job.TimeOrDelay{In: 3 * long}})
			return err
		})
		s.deliverInTurn("c")
	}},
	{"a revived job has the turn of its registration", func(s *suite) {
		s.ordered("a", "b", "c", "d")
		s.settleOne(s.requireTurn("a"), dead)
		s.settleOne(s.requireTurn("b"), dead)
		h := s.requireTurn("c")
		for _, id := range []string{"b", "a"} {
			_, err := s.revive(id, 0)
			require.NoError(s, err)
		}
		s.requireWait("c")
		s.settleOne(h, delivered)
		s.settleOne(s.requireTurn("a"), retry(long))
		s.requireWait("a")
		_, err := s.replace("a", store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
		require.NoError(s, err)
		s.deliverInTurn("a", "b", "d")
		_, err = s.revive("a", long)
		require.NoError(s, err)
		require.Zero(s, s.queueState().Next, "its first due time is to come")
	}},
	{"jobs that wait behind another expire", func(s *suite) {
		s.ordered("a")
		s.insertNew(s.entry("b", expires(s.shortTime())), s.entry("c"))
		s.settleOne(s.requireTurn("a"), retry(long))
		s.advance(s.shortTime() + 2*time.Millisecond)
		held := s.claimExpired(store.NewToken(), allExpired)
		require.Equal(s, []string{"b"}, idsOf(held))
		s.settleOne(held[0], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExpired})
		s.requireWait("a")
		_, err := s.cancel("a")
		require.NoError(s, err)
		s.deliverInTurn("c")
	}},
	{"nobody gets jobs ahead", func(s *suite) {
		s.ordered("a", "b")
		request := claimOf(s.queue)
		request.Queues[0].Ahead = 5
		require.Len(s, s.claim(request).Jobs, 1)
		require.Empty(s, s.claim(request).Jobs)
	}},
	{"a topic becomes ordered and is no longer, with many waiting jobs", func(s *suite) {
		count := s.number(300, 1500) // more than any part in which they are put in order
		s.put(policy.Topic{LaneConcurrency: 3})
		var ids []string
		for i := range count {
			ids = append(ids, fmt.Sprintf("%04d", i))
		}
		for part := range slices.Chunk(ids, store.MaxBatch) {
			var entries []store.NewJob
			for _, id := range part {
				entries = append(entries, s.entry(id))
			}
			s.insertNew(entries...)
			s.advance(2 * time.Millisecond)
		}
		s.carry(store.CarryOptions{})
		held := s.claim(claimOf(s.queue)).Jobs
		require.Len(s, held, 3)
		s.ordered()
		s.insertNew(s.entry("after"))
		for i, h := range held {
			require.Empty(s, s.claim(claimOf(s.queue)).Jobs, "%d are in flight", 3-i)
			s.settleOne(h, retry(0))
		}
		s.eventually("all jobs in order", func() bool {
			s.carry(store.CarryOptions{})
			held = s.claim(claimOf(s.queue)).Jobs
			return len(held) > 0
		})
		require.Equal(s, []string{"0000"}, idsOf(held))
		s.settleOne(held[0], delivered)
		for _, id := range ids[1:10] {
			s.settleOne(s.requireTurn(id), delivered)
		}
		s.settleOne(s.requireTurn("0010"), retry(long))
		s.put(policy.Topic{LaneConcurrency: 3})
		held = s.claim(claimOf(s.queue)).Jobs
		require.Len(s, held, 3, "no job blocks others any more")
		s.insertNew(s.entry("between"))
		s.ordered()
		for _, h := range held {
			s.settleOne(h, delivered)
		}
		s.eventually("all jobs in order again", func() bool {
			s.carry(store.CarryOptions{})
			return s.queueState().Next == s.ref("0010")
		})
		s.requireWait("0010")
		_, err := s.cancel("0010")
		require.NoError(s, err)
		row := s.stats()
		require.Equal(s, count+2, int(row.Registered))
		require.Equal(s, count+2-10-3-1, int(row.Ready+row.Scheduled))
	}},
	{"many jobs come due together", func(s *suite) {
		s.put(policy.Topic{Ordered: true, Paused: true})
		part := s.number(110, 300)
		last := 2 * part
		for i := last; i > 0; i -= part {
			var entries []store.NewJob
			for j := i; j > i-part; j-- {
				entries = append(entries, s.entry(fmt.Sprintf("%03d", j), delayed(s.shortTime())))
			}
			s.insertNew(entries...)
		}
		s.advance(s.shortTime() + 2*time.Millisecond)
		s.put(policy.Topic{Ordered: true})
		s.insertNew(s.entry("a"))
		var held []store.ClaimedJob
		s.eventually("a turn", func() bool {
			s.carry(store.CarryOptions{})
			held = s.claim(claimOf(s.queue)).Jobs
			return len(held) > 0
		})
		require.Equal(s, []string{fmt.Sprint(last)}, idsOf(held))
		s.settleOne(held[0], delivered)
		for i := last - 1; i > last-10; i-- {
			s.settleOne(s.requireTurn(fmt.Sprint(i)), delivered)
		}
	}},
}

// stateOf reads the state of a queue.
func (s *suite) stateOf(q job.Queue) store.QueueState {
	s.Helper()
	state, err := s.shard().QueueState(s.Context(), q)
	require.NoError(s, err)
	return state
}
