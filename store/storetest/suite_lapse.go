package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// lose claims the one job that is claimable under a short lease and lets it lapse.
func (s *suite) lose() store.ClaimedJob {
	s.Helper()
	held := s.claim(wantFor(s.brief(), s.queue)).Jobs
	require.Len(s, held, 1)
	s.pass(s.brief())
	s.lapses(1)
	return held[0]
}

// lapses carries until so many leases have lapsed.
func (s *suite) lapses(n int) {
	s.Helper()
	s.eventually("a lapse", func() bool {
		n -= s.carry(store.CarryOptions{}).ExpiredLeases
		require.GreaterOrEqual(s, n, 0, "more lapsed than were held")
		return n == 0
	})
}

var lapseCases = []sentence{
	{"a lapsed job is due again at once, its attempt recorded as lost", func(s *suite) {
		s.add(s.entry("a"))
		s.lose()
		got := s.get("a")
		require.Equal(s, job.Ready, got.State)
		require.Equal(s, 1, got.Attempts)
		require.Equal(s, 1, got.ConsecutiveLost)
		require.Zero(s, got.FailedAttempts)
		require.EqualValues(s, 1, got.Version)
		require.Len(s, got.History, 1)
		require.Equal(s, job.KindLost, got.History[0].Kind)
		require.Equal(s, 1, got.History[0].N)
		s.hears(s.queue)
		require.Equal(s, 1, s.hold("a")[0].Attempts)
	}},
	{"a lease is not lost before its time", func(s *suite) {
		s.add(s.entry("a"), s.entry("b", timeout(s.brief())))
		s.claim(want(s.queue))
		require.Zero(s, s.carry(store.CarryOptions{}).ExpiredLeases)
		s.pass(s.brief())
		s.lapses(1)
		require.Equal(s, job.Running, s.get("a").State)
		s.hold("b")
	}},
	{"the first two lost in a row are free and later ones are not", func(s *suite) {
		s.add(s.entry("a"))
		for lost, tries := range []int{0, 0, 1, 2} {
			s.lose()
			got := s.get("a")
			require.Equal(s, lost+1, got.ConsecutiveLost)
			require.Equal(s, lost+1, got.Attempts)
			require.Equal(s, tries, got.FailedAttempts)
		}
		s.end(s.hold("a")[0], again(0))
		got := s.get("a")
		require.Zero(s, got.ConsecutiveLost, "an attempt that ended breaks the row")
		require.Equal(s, 3, got.FailedAttempts)
		require.Equal(s, 5, got.Attempts)
		s.lose()
		got = s.get("a")
		require.Equal(s, 1, got.ConsecutiveLost)
		require.Equal(s, 3, got.FailedAttempts)
	}},
	{"a settlement after the lapse is refused and changes nothing", func(s *suite) {
		s.add(s.entry("a"))
		lost := s.lose()
		before := s.get("a")
		require.ErrorIs(s, s.settle(settlement(lost, delivered))[0], store.ErrLeaseLost)
		require.Equal(s, before, s.get("a"))
		h := s.hold("a")[0]
		require.ErrorIs(s, s.settle(settlement(lost, delivered))[0], store.ErrLeaseLost)
		s.end(h, delivered)
	}},
	{"a repeated claim does not answer what has lapsed", func(s *suite) {
		s.add(s.entry("a"))
		lost := s.lose()
		repeat, err := s.shard().Claim(s.Context(), lost.Lease, wantFor(s.brief(), s.queue))
		require.NoError(s, err)
		require.Empty(s, repeat.Jobs)
	}},
	{"lapses wait while they are held back, and settlements come first", func(s *suite) {
		s.add(s.entry("a"))
		h := s.claim(wantFor(s.brief(), s.queue)).Jobs[0]
		s.pass(2 * s.brief())
		require.Zero(s, s.carry(store.CarryOptions{KeepLeases: true}).ExpiredLeases)
		s.end(h, delivered)
		require.Zero(s, s.carry(store.CarryOptions{}).ExpiredLeases)
		require.Equal(s, job.Delivered, s.get("a").State)
	}},
	{"a clock that jumped ahead takes no job from a worker", func(s *suite) {
		s.add(s.entry("a"))
		expected := s.now()
		s.claim(wantFor(2*s.brief(), s.queue))
		s.pass(3 * s.brief())
		require.Zero(s, s.carry(store.CarryOptions{ExpireLeasesBefore: expected}).ExpiredLeases)
		require.Equal(s, job.Running, s.get("a").State)
		s.eventually("a lapse", func() bool {
			return s.carry(store.CarryOptions{ExpireLeasesBefore: s.now().Add(s.brief())}).ExpiredLeases == 1
		})
	}},
	{"a lapse honours a cancel mark", func(s *suite) {
		s.add(s.entry("a"))
		s.claim(wantFor(s.brief(), s.queue))
		got, err := s.cancel("a")
		require.NoError(s, err)
		require.Equal(s, job.Running, got.State)
		s.pass(s.brief())
		s.lapses(1)
		got = s.get("a")
		require.Equal(s, job.Cancelled, got.State)
		require.Equal(s, job.ReasonCancelled, got.Reason)
		require.Equal(s, []job.AttemptKind{job.KindCancelled, job.KindLost}, kinds(got))
		s.hold()
	}},
	{"a lapse frees the slot of its lane and rings", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 1})
		s.add(s.entry("a"))
		s.pass(2 * time.Millisecond)
		s.add(s.entry("b"))
		require.Len(s, s.claim(wantFor(s.brief(), s.queue)).Jobs, 1)
		s.quiet()
		s.pass(s.brief())
		s.lapses(1)
		s.hears(s.queue)
		require.Len(s, s.claim(want(s.queue)).Jobs, 1)
	}},
	{"a paused topic's leases lapse all the same", func(s *suite) {
		s.add(s.entry("a"))
		s.claim(wantFor(s.brief(), s.queue))
		s.put(policy.Topic{Paused: true})
		s.pass(s.brief())
		s.lapses(1)
		require.Equal(s, job.Ready, s.get("a").State)
		s.hold()
	}},
}
