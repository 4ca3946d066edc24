package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// endWith ends an attempt that must still be held, and changes its lane.
func (s *suite) endWith(h store.ClaimedJob, v policy.Verdict, change store.LaneChange) {
	s.Helper()
	item := settlement(h, v)
	item.Lane = change
	require.NoError(s, s.settle(item)[0])
}

// turn changes the test's lane by the end of a job of its own, which must be the only one there.
func (s *suite) turn(change store.LaneChange) {
	s.Helper()
	e := s.entry("turn-" + string(store.NewToken()))
	s.add(e)
	s.endWith(s.hold(e.ID)[0], delivered, change)
}

func held(d time.Duration) store.LaneChange { return store.LaneChange{Cooldown: d} }

func opened(hold time.Duration) store.LaneChange {
	return store.LaneChange{Cooldown: hold, Breaker: store.OpenBreaker}
}

var closed = store.LaneChange{Breaker: store.CloseBreaker}

// unstarted gives back the start of a claim with a slack.
func unstarted(slack time.Duration) store.LaneChange {
	return store.LaneChange{StartUnused: true, Slack: slack}
}

// claimed is the store's clock at the claim of a job that was due.
func claimed(h store.ClaimedJob) time.Time { return h.DueAt.Add(h.Late) }

// nothing is to be had of the test's queue, for a reason that ends.
func (s *suite) nothing(what string) store.QueueStatus {
	s.Helper()
	got := s.claim(want(s.queue))
	require.Empty(s, got.Jobs, what)
	require.True(s, got.Queues[0].Blocked, what)
	require.False(s, got.Queues[0].More, what)
	return got.Queues[0]
}

// row is how a lane with unfinished jobs stands.
func (s *suite) row(q job.Queue) store.LaneStats {
	s.Helper()
	rows, err := s.shard().LaneStats(s.Context(), q.Namespace, q.Topic, "", 500)
	require.NoError(s, err)
	for _, row := range rows {
		if row.Lane == q.Lane {
			return row
		}
	}
	require.FailNow(s, "no lane "+q.Lane)
	return store.LaneStats{}
}

// silent fails when a carrier's round rings, though something waits.
func (s *suite) silent(what string) {
	s.Helper()
	s.carry(store.CarryOptions{})
	require.Empty(s, s.await(time.Millisecond).Queues, what)
}

// makeReady adds jobs that a carrier has moved to ready, with a ring that has been heard.
func (s *suite) makeReady(ids ...string) {
	s.Helper()
	for _, id := range ids {
		s.add(s.entry(id, delayed(s.brief())))
	}
	s.pass(s.brief() + 2*time.Millisecond)
	s.carry(store.CarryOptions{})
	s.quiet()
}

// idle fails unless the carrier has nothing to look at for a while.
func (s *suite) idle(least time.Duration) {
	s.Helper()
	s.carry(store.CarryOptions{})
	next := s.carry(store.CarryOptions{}).Next
	require.True(s, next < 0 || next >= least, "next look after %v", next)
}

// ringsAt lets the clock come to the end of what keeps the test's queue back, and fails unless the queue rings then and
// not before. On a clock of the engine's own it waits for the ring.
func (s *suite) ringsAt(at time.Time, what string) {
	s.Helper()
	s.quiet()
	if s.Advance == nil {
		s.hears(s.queue)
		return
	}
	d := at.Sub(s.now())
	require.Equal(s, d, s.carry(store.CarryOptions{}).Next, "%s: the moment on the agenda", what)
	s.Advance(d - time.Millisecond)
	s.silent(what + " rings early")
	s.nothing(what + " ends early")
	s.Advance(time.Millisecond)
	s.carry(store.CarryOptions{})
	require.Equal(s, []job.Queue{s.queue}, s.await(time.Millisecond).Queues, what+" rings late")
}

// putLane writes a lane's settings.
func (s *suite) putLane(q job.Queue, settings policy.Lane) store.Lane {
	s.Helper()
	lane, err := s.shard().PutLane(s.Context(), store.NewToken(), store.Lane{Queue: q, Settings: settings})
	require.NoError(s, err)
	return lane
}

// settings reads one lane's.
func (s *suite) settings(q job.Queue) store.Lane {
	s.Helper()
	lanes, err := s.shard().GetLanes(s.Context(), []job.Queue{q})
	require.NoError(s, err)
	require.Len(s, lanes, 1)
	return lanes[0]
}
