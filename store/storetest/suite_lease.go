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
	s.eventually("an expired lease", func() bool {
		n -= s.carry(store.CarryOptions{}).ExpiredLeases
		require.GreaterOrEqual(s, n, 0, "more leases expired than were granted")
		return n == 0
	})
}

var leaseCases = []testCase{
	{"an expired lease makes the job due and adds a lost attempt", func(s *suite) {
		s.insertNew(s.entry("a"))
		lost := s.expireOne()
		got := s.get("a")
		require.Equal(s, job.Ready, got.State)
		require.Equal(s, 1, got.Attempts)
		require.Equal(s, 1, got.ConsecutiveLost)
		require.Zero(s, got.FailedAttempts)
		require.EqualValues(s, 1, got.Version)
		require.Len(s, got.History, 1)
		require.Equal(s, job.KindLost, got.History[0].Kind)
		require.Equal(s, 1, got.History[0].N)
		require.NotEmpty(s, lost.Lease.Owner())
		require.Equal(s, string(lost.Lease.Owner()), got.History[0].Process)
		s.waitNotified(s.queue)
		require.Equal(s, 1, s.claimAll("a")[0].Attempts)
	}},
	{"does not expire early", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b", timeout(s.shortTime())))
		s.claim(claimOf(s.queue))
		if s.Advance != nil { // else it may be over already
			require.Zero(s, s.carry(store.CarryOptions{}).ExpiredLeases)
		}
		s.advance(s.shortTime())
		s.expireLeases(1)
		require.Equal(s, job.Running, s.get("a").State)
		s.claimAll("b")
	}},
	{"the first two consecutive lost attempts are free, later ones are not", func(s *suite) {
		s.insertNew(s.entry("a"))
		for lost, tries := range []int{0, 0, 1, 2} {
			s.expireOne()
			got := s.get("a")
			require.Equal(s, lost+1, got.ConsecutiveLost)
			require.Equal(s, lost+1, got.Attempts)
			require.Equal(s, tries, got.FailedAttempts)
		}
		held := s.claimAll("a")[0]
		require.Equal(s, 4, held.ConsecutiveLost)
		s.settleOne(held, retry(0))
		got := s.get("a")
		require.Zero(s, got.ConsecutiveLost, "an attempt that ended breaks the row")
		require.Equal(s, 3, got.FailedAttempts)
		require.Equal(s, 5, got.Attempts)
		s.expireOne()
		got = s.get("a")
		require.Equal(s, 1, got.ConsecutiveLost)
		require.Equal(s, 3, got.FailedAttempts)
	}},
	{"a settlement after expiry is refused and changes nothing", func(s *suite) {
		s.insertNew(s.entry("a"))
		lost := s.expireOne()
		before := s.get("a")
		require.ErrorIs(s, s.settle(settlement(lost, delivered))[0], store.ErrLeaseLost)
		require.Equal(s, before, s.get("a"))
		h := s.claimAll("a")[0]
		require.ErrorIs(s, s.settle(settlement(lost, delivered))[0], store.ErrLeaseLost)
		s.settleOne(h, delivered)
	}},
	{"a repeated claim omits jobs whose lease expired", func(s *suite) {
		s.insertNew(s.entry("a"))
		lost := s.expireOne()
		repeat, err := s.shard().Claim(s.Context(), lost.Lease, claimFor(s.shortTime(), s.queue))
		require.NoError(s, err)
		require.Empty(s, repeat.Jobs)
	}},
	{"an extended lease expires later", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claim(claimFor(s.shortTime(), s.queue)).Jobs[0]
		require.NoError(s, s.settle(extension(h, long))[0])
		s.advance(2 * s.shortTime())
		require.Zero(s, s.carry(store.CarryOptions{}).ExpiredLeases)
		got := s.get("a")
		require.Equal(s, job.Running, got.State)
		require.Zero(s, got.Attempts)
		require.Empty(s, got.History)
		s.settleOne(h, delivered)
	}},
	{"an extension that is not renewed ends", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claim(claimFor(s.shortTime(), s.queue)).Jobs[0]
		require.NoError(s, s.settle(extension(h, 2*s.shortTime()))[0])
		s.advance(2 * s.shortTime())
		s.expireLeases(1)
		require.ErrorIs(s, s.settle(extension(h, long))[0], store.ErrLeaseLost)
		require.Equal(s, []job.AttemptKind{job.KindLost}, kinds(s.get("a")))
	}},
	{"an extension shortens no lease", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claim(claimFor(long, s.queue)).Jobs[0]
		require.NoError(s, s.settle(extension(h, time.Millisecond))[0])
		s.advance(s.shortTime())
		require.Zero(s, s.carry(store.CarryOptions{}).ExpiredLeases)
		s.settleOne(h, delivered)
	}},
	{"an extension says that a cancellation was requested", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claim(claimFor(s.shortTime(), s.queue)).Jobs[0]
		_, err := s.shard().Cancel(s.Context(), store.NewToken(), h.Ref(), store.Cancellation{})
		require.NoError(s, err)
		for _, by := range []time.Duration{long, time.Millisecond} {
			require.ErrorIs(s, s.settle(extension(h, by))[0], store.ErrCancelRequested)
		}
		s.advance(s.shortTime())
		require.Zero(s, s.carry(store.CarryOptions{}).ExpiredLeases, "it was extended")
		s.settleOne(h, retry(0))
		require.Equal(s, job.Cancelled, s.get("a").State)
	}},
	{"extensions and settlements of one call apply in order", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"), s.entry("c"))
		jobs := s.claimAll("a", "b", "c")
		foreign := jobs[2]
		foreign.Lease = store.NewToken()
		errs := s.settle(extension(jobs[0], long), settlement(jobs[0], delivered), settlement(jobs[1], delivered),
			extension(jobs[1], long), extension(foreign, long))
		require.NoError(s, errs[0])
		require.NoError(s, errs[1])
		require.NoError(s, errs[2])
		require.ErrorIs(s, errs[3], store.ErrLeaseLost)
		require.ErrorIs(s, errs[4], store.ErrLeaseLost)
		s.settleOne(jobs[2], delivered)
	}},
	{"KeepLeases defers expiry, so that settlements come first", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claim(claimFor(s.shortTime(), s.queue)).Jobs[0]
		s.advance(2 * s.shortTime())
		require.Zero(s, s.carry(store.CarryOptions{KeepLeases: true}).ExpiredLeases)
		s.settleOne(h, delivered)
		require.Zero(s, s.carry(store.CarryOptions{}).ExpiredLeases)
		require.Equal(s, job.Delivered, s.get("a").State)
	}},
	{"ExpireLeasesBefore protects leases from a clock that jumped ahead", func(s *suite) {
		s.insertNew(s.entry("a"))
		expected := s.now()
		s.claim(claimFor(2*s.shortTime(), s.queue))
		s.advance(3 * s.shortTime())
		require.Zero(s, s.carry(store.CarryOptions{ExpireLeasesBefore: expected}).ExpiredLeases)
		require.Equal(s, job.Running, s.get("a").State)
		s.eventually("an expired lease", func() bool {
			return s.carry(store.CarryOptions{ExpireLeasesBefore: s.now().Add(s.shortTime())}).ExpiredLeases == 1
		})
	}},
	{"expiry cancels a job that is marked for it", func(s *suite) {
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
		require.Equal(s, []job.AttemptKind{job.KindLost}, kinds(got))
		require.Equal(s, []job.EventKind{job.EventCancelled}, eventKinds(got))
		s.claimAll()
	}},
	{"expiry frees the lane's slot and notifies", func(s *suite) {
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
	{"a settlement with a shared token is answered again after a restart", func(s *suite) {
		if s.Reopen == nil {
			return // the engine cannot be reopened
		}
		s.put(policy.Topic{KeepDelivered: keep(0)})
		ids := []string{"gone", "edited", "cancelled", "claimed", "revived", "lost"}
		for _, id := range ids {
			s.insertNew(s.entry(id))
		}
		var items []store.Settlement
		for i, h := range s.claimAll(ids...) {
			verdicts := []policy.Verdict{delivered, retry(long), retry(long), retry(0), dead, delivered}
			items = append(items, settlement(h, verdicts[i]))
		}
		items[5].Lease = store.NewToken()
		token := store.SharedToken([]byte(store.NewToken()))
		check := func() {
			errs, _, err := s.shard().Settle(s.Context(), token, items, nil)
			require.NoError(s, err)
			require.Equal(s, []error{nil, nil, nil, nil, nil, store.ErrLeaseLost}, errs)
		}
		check()
		_, err := s.edit("edited", func(spec *job.Spec) { spec.Body = []byte("other") })
		require.NoError(s, err)
		_, err = s.cancel("cancelled")
		require.NoError(s, err)
		_, err = s.revive("revived", long)
		require.NoError(s, err)
		s.claimAll("claimed")
		for range 2 {
			s.Store = s.Reopen()
			check()
			s.sweep()
			require.True(s, s.isGone("gone") && s.isGone("cancelled"))
			for _, id := range []string{"edited", "claimed", "revived"} {
				got := s.get(id)
				require.Equal(s, job.KindAttempt, got.History[0].Kind, id)
				for _, a := range got.History[1:] {
					require.Equal(s, job.KindLost, a.Kind, id)
				}
			}
		}
	}},
	{"leases of a paused topic expire", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.claim(claimFor(s.shortTime(), s.queue))
		s.put(policy.Topic{Paused: true})
		s.advance(s.shortTime())
		s.expireLeases(1)
		require.Equal(s, job.Ready, s.get("a").State)
		s.claimAll()
	}},
}
