package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// expireOne claims the only claimable job under a short lease and lets it expire.
func (s *suite) expireOne() store.ClaimedJob {
	s.Helper()
	held := s.claim(claimFor(s.shortTime(), s.queue)).Jobs
	require.Len(s, held, 1)
	s.advance(s.shortTime())
	s.expireLeases(1)
	return held[0]
}

// expireLeases carries until n leases have expired.
func (s *suite) expireLeases(n int) {
	s.Helper()
	s.eventually("a lapse", func() bool {
		n -= s.carry(store.CarryOptions{}).ExpiredLeases
		require.GreaterOrEqual(s, n, 0, "more lapsed than were held")
		return n == 0
	})
}

var leaseCases = []testCase{
	{"a lapsed job is due again at once, its attempt recorded as lost", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.expireOne()
		got := s.get("a")
		require.Equal(s, job.Ready, got.State)
		require.Equal(s, 1, got.Attempts)
		require.Equal(s, 1, got.ConsecutiveLost)
		require.Zero(s, got.FailedAttempts)
		require.EqualValues(s, 1, got.Version)
		require.Len(s, got.History, 1)
		require.Equal(s, job.KindLost, got.History[0].Kind)
		require.Equal(s, 1, got.History[0].N)
		s.waitNotified(s.queue)
		require.Equal(s, 1, s.claimAll("a")[0].Attempts)
	}},
	{"a lease is not lost before its time", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b", timeout(s.shortTime())))
		s.claim(claimOf(s.queue))
		require.Zero(s, s.carry(store.CarryOptions{}).ExpiredLeases)
		s.advance(s.shortTime())
		s.expireLeases(1)
		require.Equal(s, job.Running, s.get("a").State)
		s.claimAll("b")
	}},
	{"the first two lost in a row are free and later ones are not", func(s *suite) {
		s.insertNew(s.entry("a"))
		for lost, tries := range []int{0, 0, 1, 2} {
			s.expireOne()
			got := s.get("a")
			require.Equal(s, lost+1, got.ConsecutiveLost)
			require.Equal(s, lost+1, got.Attempts)
			require.Equal(s, tries, got.FailedAttempts)
		}
		s.settleOne(s.claimAll("a")[0], retry(0))
		got := s.get("a")
		require.Zero(s, got.ConsecutiveLost, "an attempt that ended breaks the row")
		require.Equal(s, 3, got.FailedAttempts)
		require.Equal(s, 5, got.Attempts)
		s.expireOne()
		got = s.get("a")
		require.Equal(s, 1, got.ConsecutiveLost)
		require.Equal(s, 3, got.FailedAttempts)
	}},
	{"a settlement after the lapse is refused and changes nothing", func(s *suite) {
		s.insertNew(s.entry("a"))
		lost := s.expireOne()
		before := s.get("a")
		require.ErrorIs(s, s.settle(settlement(lost, delivered))[0], store.ErrLeaseLost)
		require.Equal(s, before, s.get("a"))
		h := s.claimAll("a")[0]
		require.ErrorIs(s, s.settle(settlement(lost, delivered))[0], store.ErrLeaseLost)
		s.settleOne(h, delivered)
	}},
	{"a repeated claim does not answer what has lapsed", func(s *suite) {
		s.insertNew(s.entry("a"))
		lost := s.expireOne()
		repeat, err := s.shard().Claim(s.Context(), lost.Lease, claimFor(s.shortTime(), s.queue))
		require.NoError(s, err)
		require.Empty(s, repeat.Jobs)
	}},
	{"lapses wait while they are held back, and settlements come first", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claim(claimFor(s.shortTime(), s.queue)).Jobs[0]
		s.advance(2 * s.shortTime())
		require.Zero(s, s.carry(store.CarryOptions{KeepLeases: true}).ExpiredLeases)
		s.settleOne(h, delivered)
		require.Zero(s, s.carry(store.CarryOptions{}).ExpiredLeases)
		require.Equal(s, job.Delivered, s.get("a").State)
	}},
	{"a clock that jumped ahead takes no job from a worker", func(s *suite) {
		s.insertNew(s.entry("a"))
		expected := s.now()
		s.claim(claimFor(2*s.shortTime(), s.queue))
		s.advance(3 * s.shortTime())
		require.Zero(s, s.carry(store.CarryOptions{ExpireLeasesBefore: expected}).ExpiredLeases)
		require.Equal(s, job.Running, s.get("a").State)
		s.eventually("a lapse", func() bool {
			return s.carry(store.CarryOptions{ExpireLeasesBefore: s.now().Add(s.shortTime())}).ExpiredLeases == 1
		})
	}},
	{"a lapse honours a cancel mark", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.claim(claimFor(s.shortTime(), s.queue))
		got, err := s.cancel("a")
		require.NoError(s, err)
		require.Equal(s, job.Running, got.State)
		s.advance(s.shortTime())
		s.expireLeases(1)
		got = s.get("a")
		require.Equal(s, job.Cancelled, got.State)
		require.Equal(s, job.ReasonCancelled, got.Reason)
		require.Equal(s, []job.AttemptKind{job.KindCancelled, job.KindLost}, kinds(got))
		s.claimAll()
	}},
	{"a lapse frees the slot of its lane and rings", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 1})
		s.insertNew(s.entry("a"))
		s.advance(2 * time.Millisecond)
		s.insertNew(s.entry("b"))
		require.Len(s, s.claim(claimFor(s.shortTime(), s.queue)).Jobs, 1)
		s.drainWakeups()
		s.advance(s.shortTime())
		s.expireLeases(1)
		s.waitNotified(s.queue)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 1)
	}},
	{"a paused topic's leases lapse all the same", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.claim(claimFor(s.shortTime(), s.queue))
		s.put(policy.Topic{Paused: true})
		s.advance(s.shortTime())
		s.expireLeases(1)
		require.Equal(s, job.Ready, s.get("a").State)
		s.claimAll()
	}},
}
