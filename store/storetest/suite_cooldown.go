package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

var cooldownCases = []testCase{
	{"blocks its lane alone, without work for the carrier", func(s *suite) {
		s.changeLane(cooldown(2 * long))
		until := s.now().Add(2 * long)
		s.drainWakeups()
		s.insertNew(s.entry("a"))
		s.requireNotNotified("a job inserted during a cooldown")
		require.False(s, s.requireBlocked("during a cooldown").BreakerOpen)
		s.requireIdle(long)
		require.Equal(s, job.Ready, s.get("a").State, "a due job is ready under a cooldown")
		row := s.laneStats(s.queue)
		s.sameTime(until, row.CooldownUntil, "CooldownUntil")
		require.False(s, row.BreakerOpen)
		s.insertNew(s.entry("b", in(s.laneQueue(1))))
		s.waitNotified(s.laneQueue(1))
		require.Len(s, s.claim(claimOf(s.laneQueue(1))).Jobs, 1)
		require.True(s, s.laneStats(s.laneQueue(1)).CooldownUntil.IsZero())
	}},
	{"has the cause of the change that ends it last", func(s *suite) {
		changes := []struct {
			id     string
			change store.LaneChange
			want   store.CooldownCause
		}{
			{"a", store.LaneChange{Cooldown: long, Cause: store.CooldownUnreadable}, store.CooldownUnreadable},
			{"b", store.LaneChange{Cooldown: long / 2}, store.CooldownUnreadable},
			{"c", store.LaneChange{Breaker: store.OpenBreaker}, store.CooldownUnreadable},
			{
				"d",
				store.LaneChange{Cooldown: 2 * long, Cause: store.CooldownBreaker, Breaker: store.OpenBreaker},
				store.CooldownBreaker,
			},
			{"e", store.LaneChange{Cooldown: 3 * long}, store.CooldownAsked},
			{"f", store.LaneChange{Cooldown: 4 * long, Cause: store.CooldownBreaker}, store.CooldownBreaker},
			{"g", store.LaneChange{Breaker: store.CloseBreaker}, store.CooldownBreaker},
		}
		var ids []string
		for _, c := range changes {
			ids = append(ids, c.id)
			s.insertNew(s.entry(c.id))
		}
		held := s.claimAll(ids...)
		s.insertNew(s.entry("counted"))
		for i, c := range changes {
			s.endWith(held[i], delivered, c.change)
			require.Equal(s, c.want, s.laneStats(s.queue).CooldownCause, c.id)
			require.Equal(s, c.want, s.queueState().CooldownCause, c.id)
		}
	}},
	{"ends on time and notifies at once", func(s *suite) {
		s.changeLane(cooldown(s.shortTime()))
		s.insertNew(s.entry("a"), s.entry("b"))
		until := s.laneStats(s.queue).CooldownUntil
		s.requireNotifiedAt(until, "a cooldown")
		for _, h := range s.claimAll("a", "b") {
			require.False(s, claimed(h).Before(until), "claimed at %v, cooldown until %v", claimed(h), until)
			require.False(s, h.Probe)
		}
		s.insertNew(s.entry("c"))
		require.True(s, s.laneStats(s.queue).CooldownUntil.IsZero(), "an ended cooldown is not reported")
	}},
	{"a lane notified before a short cooldown is notified again at its end", func(s *suite) {
		s.makeReady("a", "b")
		request := claimOf(s.queue)
		request.Max = 1
		h := s.claim(request).Jobs[0]
		s.endWith(h, delivered, cooldown(store.RenotifyAfter/2))
		s.requireNotifiedAt(s.laneStats(s.queue).CooldownUntil, "a short cooldown")
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 1)
	}},
	{"Next is the due time of a job due after the cooldown", func(s *suite) {
		s.changeLane(cooldown(10 * time.Minute))
		s.insertNew(s.entry("a", delayed(2*long)))
		s.carry(store.CarryOptions{})
		require.InDelta(s, 2*long, s.carry(store.CarryOptions{}).Next, float64(s.tolerance()))
	}},
	{"is never shortened, only extended", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"), s.entry("c"), s.entry("d"))
		jobs := s.claimAll("a", "b", "c", "d")
		s.endWith(jobs[0], delivered, cooldown(long))
		first := s.laneStats(s.queue).CooldownUntil
		s.endWith(jobs[1], delivered, cooldown(s.shortTime()))
		s.endWith(jobs[2], retry(long), store.LaneChange{})
		require.Equal(s, first, s.laneStats(s.queue).CooldownUntil)
		s.endWith(jobs[3], retry(long), cooldown(2*long))
		s.sameTime(s.now().Add(2*long), s.laneStats(s.queue).CooldownUntil, "CooldownUntil")
	}},
	{"a refused settlement sets none, a repeated one does not extend it", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"))
		jobs := s.claimAll("a", "b")
		lost := settlement(jobs[0], delivered)
		lost.Lease, lost.LaneChange = store.NewToken(), openBreaker(long)
		require.ErrorIs(s, s.settle(lost)[0], store.ErrLeaseLost)
		row := s.laneStats(s.queue)
		require.True(s, row.CooldownUntil.IsZero())
		require.False(s, row.BreakerOpen)
		token, item := store.NewToken(), settlement(jobs[0], delivered)
		item.LaneChange = cooldown(long)
		var until time.Time
		for i := range 2 {
			_, _, err := s.shard().Settle(s.Context(), token, []store.Settlement{item}, nil)
			require.NoError(s, err)
			if i == 0 {
				until = s.laneStats(s.queue).CooldownUntil
				s.advance(5 * time.Millisecond)
			}
			require.Equal(s, until, s.laneStats(s.queue).CooldownUntil)
		}
	}},
	{"the claim of the settlement that sets it returns nothing", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"))
		request := claimOf(s.queue)
		request.Max = 1
		item := settlement(s.claim(request).Jobs[0], retry(0))
		item.LaneChange = cooldown(long)
		_, got, err := s.shard().Settle(s.Context(), store.NewToken(), []store.Settlement{item}, &request)
		require.NoError(s, err)
		require.Empty(s, got.Jobs)
		require.True(s, got.Queues[0].Blocked)
	}},
	{"every verdict can set it", func(s *suite) {
		for i, v := range []struct {
			name string
			end  func(h store.ClaimedJob)
		}{
			{"again", func(h store.ClaimedJob) { s.endWith(h, retry(long), cooldown(long)) }},
			{"released", func(h store.ClaimedJob) { s.endWith(h, released, cooldown(long)) }},
			{"dead", func(h store.ClaimedJob) { s.endWith(h, dead, cooldown(long)) }},
			{"cancelled", func(h store.ClaimedJob) {
				_, err := s.cancel(h.ID)
				require.NoError(s, err)
				s.endWith(h, retry(0), cooldown(long))
			}},
		} {
			s.queue = s.laneQueue(i)
			s.insertNew(s.entry(v.name))
			v.end(s.claimAll(v.name)[0])
			s.insertNew(s.entry("after " + v.name))
			s.requireBlocked(v.name)
		}
	}},
	{"edit, run, cancel and revive work and do not notify", func(s *suite) {
		s.endJob("dead", dead)
		s.insertNew(s.entry("ready"))
		s.waitNotified(s.queue)
		s.insertNew(s.entry("turn"))
		for _, h := range s.claimAll("ready", "turn") {
			if h.ID == "turn" {
				s.endWith(h, delivered, cooldown(2*long))
			} else {
				s.settleOne(h, released)
			}
		}
		s.insertNew(s.entry("later", delayed(long)), s.entry("gone"))
		s.drainWakeups()
		waiting := s.get("ready")
		waiting.URL = "http://new.example/"
		got, err := s.replace("ready",
			store.Replacement{IfVersion: 1, Spec: &waiting.Spec, Due: &job.TimeOrDelay{In: 3 * long}})
		require.NoError(s, err)
		require.Equal(s, job.Scheduled, got.State)
		got, err = s.replace("later", store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
		require.NoError(s, err)
		require.Equal(s, job.Ready, got.State)
		got, err = s.cancel("gone")
		require.NoError(s, err)
		require.Equal(s, job.Cancelled, got.State)
		got, err = s.revive("dead", 0)
		require.NoError(s, err)
		require.Equal(s, job.Ready, got.State)
		s.requireNotNotified("a lane that is held back")
		s.requireBlocked("after the changes")
		if s.Advance != nil {
			s.Advance(2*long + time.Millisecond)
			s.waitNotified(s.queue)
			s.claimAll("later", "dead")
		}
	}},
	{"an expired lease returns the job without a wake-up", func(s *suite) {
		s.insertNew(s.entry("a", timeout(s.shortTime())), s.entry("b"))
		jobs := s.claimAll("a", "b")
		s.endWith(jobs[1], delivered, cooldown(long))
		s.drainWakeups()
		s.advance(s.shortTime())
		s.expireLeases(1)
		got := s.get("a")
		require.Equal(s, job.Ready, got.State)
		require.Equal(s, 1, got.ConsecutiveLost)
		s.requireNotNotified("a job with an expired lease of a lane in cooldown")
		s.requireBlocked("after the lease has expired")
	}},
	{"survives a restart", func(s *suite) {
		if s.Reopen == nil {
			return // the engine cannot be reopened
		}
		s.changeLane(openBreaker(long))
		s.insertNew(s.entry("a"))
		before := s.laneStats(s.queue)
		s.Store = s.Reopen()
		require.Equal(s, before, s.withEqualDue(before))
		require.True(s, s.requireBlocked("in the second life").BreakerOpen)
	}},
}

// withEqualDue returns the lane's stats with due jobs counted as before: an engine may count them as ready or
// scheduled.
func (s *suite) withEqualDue(before store.LaneStats) store.LaneStats {
	s.Helper()
	row := s.laneStats(s.queue)
	require.Equal(s, before.Scheduled+before.Ready, row.Scheduled+row.Ready)
	row.Scheduled, row.Ready = before.Scheduled, before.Ready
	return row
}
