package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// endWith settles an attempt whose lease must not be lost, and changes its lane.
func (s *suite) endWith(h store.ClaimedJob, v policy.Verdict, change store.LaneChange) {
	s.Helper()
	item := settlement(h, v)
	item.LaneChange = change
	require.NoError(s, s.settle(item)[0])
}

// changeLane changes the test's lane with the settlement of a new job. The lane must have no other claimable job.
func (s *suite) changeLane(change store.LaneChange) {
	s.Helper()
	e := s.entry("change-" + string(store.NewToken()))
	s.insertNew(e)
	s.endWith(s.claimAll(e.ID)[0], delivered, change)
}

func cooldown(d time.Duration) store.LaneChange { return store.LaneChange{Cooldown: d} }

func openBreaker(cooldown time.Duration) store.LaneChange {
	return store.LaneChange{Cooldown: cooldown, Breaker: store.OpenBreaker}
}

var closed = store.LaneChange{Breaker: store.CloseBreaker}

// claimed returns when a due job was claimed, by the store's clock.
func claimed(h store.ClaimedJob) time.Time { return h.DueAt.Add(h.Late) }

// requireBlocked requires that a claim of the test's queue returns no job and Blocked.
func (s *suite) requireBlocked(what string) store.QueueStatus {
	s.Helper()
	got := s.claim(claimOf(s.queue))
	require.Empty(s, got.Jobs, what)
	require.True(s, got.Queues[0].Blocked, what)
	require.False(s, got.Queues[0].More, what)
	return got.Queues[0]
}

// laneStats returns the stats of a lane with unfinished jobs.
func (s *suite) laneStats(q job.Queue) store.LaneStats {
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

// requireNotNotified fails when a round notifies a queue.
func (s *suite) requireNotNotified(what string) {
	s.Helper()
	s.carry(store.CarryOptions{})
	require.Empty(s, s.wait(time.Millisecond), what)
}

// makeReady inserts jobs, lets a carrier move them to ready, and receives the wake-up.
func (s *suite) makeReady(ids ...string) {
	s.Helper()
	for _, id := range ids {
		s.insertNew(s.entry(id, delayed(s.shortTime())))
	}
	s.advance(s.shortTime() + 2*time.Millisecond)
	s.carry(store.CarryOptions{})
	s.drainWakeups()
}

// requireIdle fails when the carrier's next round is due before least.
func (s *suite) requireIdle(least time.Duration) {
	s.Helper()
	s.carry(store.CarryOptions{})
	next := s.carry(store.CarryOptions{}).Next
	require.True(s, next < 0 || next >= least, "Next is %v", next)
}

// requireNotifiedAt advances the clock to the end of the throttle of the test's queue, and requires that the queue is
// notified then and not before. With a clock of the engine's it waits for the wake-up.
func (s *suite) requireNotifiedAt(at time.Time, what string) {
	s.Helper()
	s.drainWakeups()
	if s.Advance == nil {
		s.waitNotified(s.queue)
		return
	}
	d := at.Sub(s.now())
	require.Equal(s, d, s.carry(store.CarryOptions{}).Next, "%s: Next", what)
	s.Advance(d - time.Millisecond)
	s.requireNotNotified(what + ": notified early")
	s.requireBlocked(what + ": ends early")
	s.Advance(time.Millisecond)
	s.carry(store.CarryOptions{})
	require.Equal(s, []job.Queue{s.queue}, s.wait(time.Millisecond), what+": notified late")
}

// putLane writes a lane's settings.
func (s *suite) putLane(q job.Queue, settings policy.Lane) store.Lane {
	s.Helper()
	lane, err := store.PutLane(s.Context(), s.shard(), store.NewToken(), store.Lane{Queue: q, Settings: settings})
	require.NoError(s, err)
	return lane
}

// getLane reads a lane's settings.
func (s *suite) getLane(q job.Queue) store.Lane {
	s.Helper()
	lanes, err := store.GetLanes(s.Context(), s.shard(), []job.Queue{q})
	require.NoError(s, err)
	require.Len(s, lanes, 1)
	return lanes[0]
}
