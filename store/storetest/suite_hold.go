package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

var holdCases = []sentence{
	{"a hold keeps its lane back, costs nothing meanwhile, and is no other lane's matter", func(s *suite) {
		s.turn(held(2 * long))
		until := s.now().Add(2 * long)
		s.quiet()
		s.add(s.entry("a"))
		s.silent("a job that came while its lane was held back")
		require.False(s, s.nothing("while the lane is held back").BreakerOpen)
		s.idle(long)
		require.Equal(s, job.Ready, s.get("a").State, "a job that is due is ready whatever its lane does")
		row := s.row(s.queue)
		s.sameTime(until, row.CooldownUntil, "HeldUntil")
		require.False(s, row.BreakerOpen)
		s.add(s.entry("b", in(s.lane(1))))
		s.hears(s.lane(1))
		require.Len(s, s.claim(want(s.lane(1))).Jobs, 1)
		require.True(s, s.row(s.lane(1)).CooldownUntil.IsZero())
	}},
	{"a hold ends exactly, and its lane rings then without delay", func(s *suite) {
		s.turn(held(s.brief()))
		s.add(s.entry("a"), s.entry("b"))
		until := s.row(s.queue).CooldownUntil
		s.ringsAt(until, "a hold")
		for _, h := range s.hold("a", "b") {
			require.False(s, claimed(h).Before(until), "claimed at %v, held until %v", claimed(h), until)
			require.False(s, h.Probe)
		}
		s.add(s.entry("c"))
		require.True(s, s.row(s.queue).CooldownUntil.IsZero(), "a hold that is over is none")
	}},
	{"what was ready and rung before a short hold rings again at its end", func(s *suite) {
		s.makeReady("a", "b")
		request := want(s.queue)
		request.Max = 1
		h := s.claim(request).Jobs[0]
		s.endWith(h, delivered, held(store.RenotifyAfter/2))
		s.ringsAt(s.row(s.queue).CooldownUntil, "a short hold")
		require.Len(s, s.claim(want(s.queue)).Jobs, 1)
	}},
	{"the next job's own moment counts when it is later than the hold's end", func(s *suite) {
		s.turn(held(10 * time.Minute))
		s.add(s.entry("a", delayed(2*long)))
		s.carry(store.CarryOptions{})
		require.InDelta(s, 2*long, s.carry(store.CarryOptions{}).Next, float64(5*time.Second))
	}},
	{"a hold is never shortened, only lengthened", func(s *suite) {
		s.add(s.entry("a"), s.entry("b"), s.entry("c"), s.entry("d"))
		jobs := s.hold("a", "b", "c", "d")
		s.endWith(jobs[0], delivered, held(long))
		first := s.row(s.queue).CooldownUntil
		s.endWith(jobs[1], delivered, held(s.brief()))
		s.endWith(jobs[2], again(long), store.LaneChange{})
		require.Equal(s, first, s.row(s.queue).CooldownUntil)
		s.endWith(jobs[3], again(long), held(2*long))
		s.sameTime(s.now().Add(2*long), s.row(s.queue).CooldownUntil, "HeldUntil")
	}},
	{"a settlement that is refused holds nothing back, and a repeated one no longer", func(s *suite) {
		s.add(s.entry("a"), s.entry("b"))
		jobs := s.hold("a", "b")
		lost := settlement(jobs[0], delivered)
		lost.Lease, lost.Lane = store.NewToken(), opened(long)
		require.ErrorIs(s, s.settle(lost)[0], store.ErrLeaseLost)
		row := s.row(s.queue)
		require.True(s, row.CooldownUntil.IsZero())
		require.False(s, row.BreakerOpen)
		token, item := store.NewToken(), settlement(jobs[0], delivered)
		item.Lane = held(long)
		var until time.Time
		for i := range 2 {
			_, _, err := s.shard().Settle(s.Context(), token, []store.Settlement{item}, nil)
			require.NoError(s, err)
			if i == 0 {
				until = s.row(s.queue).CooldownUntil
				s.pass(5 * time.Millisecond)
			}
			require.Equal(s, until, s.row(s.queue).CooldownUntil)
		}
	}},
	{"a claim in the trip of the settlement that holds its lane back finds nothing", func(s *suite) {
		s.add(s.entry("a"), s.entry("b"))
		request := want(s.queue)
		request.Max = 1
		item := settlement(s.claim(request).Jobs[0], again(0))
		item.Lane = held(long)
		_, got, err := s.shard().Settle(s.Context(), store.NewToken(), []store.Settlement{item}, &request)
		require.NoError(s, err)
		require.Empty(s, got.Jobs)
		require.True(s, got.Queues[0].Blocked)
	}},
	{"whatever way the job goes its lane is held back", func(s *suite) {
		for i, v := range []struct {
			name string
			end  func(h store.ClaimedJob)
		}{
			{"again", func(h store.ClaimedJob) { s.endWith(h, again(long), held(long)) }},
			{"released", func(h store.ClaimedJob) { s.endWith(h, released, held(long)) }},
			{"dead", func(h store.ClaimedJob) { s.endWith(h, dead, held(long)) }},
			{"cancelled", func(h store.ClaimedJob) {
				_, err := s.cancel(h.ID)
				require.NoError(s, err)
				s.endWith(h, again(0), held(long))
			}},
		} {
			s.queue = s.lane(i)
			s.add(s.entry(v.name))
			v.end(s.hold(v.name)[0])
			s.add(s.entry("after " + v.name))
			s.nothing(v.name)
		}
	}},
	{"jobs of a lane that is held back are edited, run, cancelled and revived as ever, and do not ring", func(s *suite) {
		s.finish("dead", dead)
		s.add(s.entry("ready"))
		s.hears(s.queue)
		s.add(s.entry("turn"))
		for _, h := range s.hold("ready", "turn") {
			if h.ID == "turn" {
				s.endWith(h, delivered, held(2*long))
			} else {
				s.end(h, released)
			}
		}
		s.add(s.entry("later", delayed(long)), s.entry("gone"))
		s.quiet()
		got, err := s.edit("ready", store.Edit{Delay: new(3 * long), URL: new("http://new.example/")})
		require.NoError(s, err)
		require.Equal(s, job.Scheduled, got.State)
		got, err = s.edit("later", store.Edit{Kind: job.KindRun, Delay: new(time.Duration(0))})
		require.NoError(s, err)
		require.Equal(s, job.Ready, got.State)
		got, err = s.cancel("gone")
		require.NoError(s, err)
		require.Equal(s, job.Cancelled, got.State)
		got, err = s.revive("dead", 0)
		require.NoError(s, err)
		require.Equal(s, job.Ready, got.State)
		s.silent("a lane that is held back")
		s.nothing("after the changes")
		if s.Advance != nil {
			s.Advance(2*long + time.Millisecond)
			s.hears(s.queue)
			s.hold("later", "dead")
		}
	}},
	{"a lapse in a lane that is held back gives the job back, without a ring", func(s *suite) {
		s.add(s.entry("a", timeout(s.brief())), s.entry("b"))
		jobs := s.hold("a", "b")
		s.endWith(jobs[1], delivered, held(long))
		s.quiet()
		s.pass(s.brief())
		s.lapses(1)
		got := s.get("a")
		require.Equal(s, job.Ready, got.State)
		require.Equal(s, 1, got.ConsecutiveLost)
		s.silent("a lapsed job of a lane that is held back")
		s.nothing("after the lapse")
	}},
	{"a hold outlives the process", func(s *suite) {
		if s.Reopen == nil {
			return // an engine without a second life has nothing to show here
		}
		s.turn(opened(long))
		s.add(s.entry("a"))
		before := s.row(s.queue)
		s.Store = s.Reopen()
		require.Equal(s, before, s.steady(before))
		require.True(s, s.nothing("in the second life").BreakerOpen)
	}},
}

// steady is the lane's row, with what is due counted as before: an engine may count it as ready or as scheduled.
func (s *suite) steady(before store.LaneStats) store.LaneStats {
	s.Helper()
	row := s.row(s.queue)
	require.Equal(s, before.Scheduled+before.Ready, row.Scheduled+row.Ready)
	row.Scheduled, row.Ready = before.Scheduled, before.Ready
	return row
}
