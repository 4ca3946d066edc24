package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

var settleCases = []testCase{
	{"Delivered ends the job", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claimAll("a")[0]
		item := settlement(h, delivered)
		item.Attempt.Duration = 12 * time.Millisecond
		item.Attempt.Header = map[string][]string{"X-Id": {"1", "2"}}
		item.Attempt.Body = []byte("ok\x00\xff")
		require.NoError(s, s.settle(item)[0])
		got := s.get("a")
		require.Equal(s, job.Delivered, got.State)
		require.Empty(s, got.Reason)
		require.Equal(s, 1, got.Attempts)
		require.Zero(s, got.FailedAttempts, "a success costs no retry")
		require.EqualValues(s, 1, got.Version, "an attempt is no edit")
		s.sameTime(s.now(), got.FinishedAt, "FinishedAt")
		require.Equal(s, h.DueAt, got.DueAt)
		require.Equal(s, []job.Attempt{item.Attempt}, got.History)
		s.claimAll()
	}},
	{"Again schedules the job after the wait", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claimAll("a")[0]
		s.advance(2 * time.Millisecond)
		s.settleOne(h, retry(long))
		got := s.get("a")
		require.Equal(s, job.Scheduled, got.State)
		s.sameTime(s.now().Add(long), got.DueAt, "DueAt")
		require.Equal(s, h.FirstDueAt, got.FirstDueAt)
		require.Equal(s, 1, got.Attempts)
		require.Equal(s, 1, got.FailedAttempts)
		require.True(s, got.FinishedAt.IsZero())
		s.claimAll()
	}},
	{"Again after a short wait returns the job with its counters", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.settleOne(s.claimAll("a")[0], retry(s.shortTime()))
		s.claimAll()
		s.advance(s.shortTime() + time.Millisecond)
		h := s.claimAll("a")[0]
		require.Equal(s, 1, h.Attempts)
		require.Equal(s, 1, h.FailedAttempts)
		s.settleOne(h, retry(0))
		h = s.claimAll("a")[0]
		require.Equal(s, 2, h.Attempts)
		s.settleOne(h, delivered)
		require.Equal(s, []job.AttemptKind{job.KindAttempt, job.KindAttempt, job.KindAttempt}, kinds(s.get("a")))
	}},
	{"a settlement that names another queue is refused", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claimAll("a")[0]
		for _, q := range []job.Queue{
			s.laneQueue(1), s.queueOf(h.Namespace, "others", 0), s.queueOf("other", h.Topic, 0),
		} {
			item := settlement(h, delivered)
			item.Queue = q
			require.ErrorIs(s, s.settle(item)[0], store.ErrLeaseLost)
		}
		s.settleOne(h, delivered)
	}},
	{"Dead ends the job with its reason", func(s *suite) {
		s.endJob("a", policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted})
		got := s.get("a")
		require.Equal(s, job.Dead, got.State)
		require.Equal(s, policy.ReasonExhausted, got.Reason)
		require.Equal(s, policy.ReasonExhausted, got.History[0].Reason)
		s.sameTime(s.now(), got.FinishedAt, "FinishedAt")
		s.claimAll()
	}},
	{"Dead without an attempt adds no history and no count", func(s *suite) {
		s.insertNew(s.entry("a"))
		item := settlement(s.claimAll("a")[0], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExpired})
		item.Attempt = job.Attempt{}
		require.NoError(s, s.settle(item)[0])
		got := s.get("a")
		require.Equal(s, job.Dead, got.State)
		require.Equal(s, policy.ReasonExpired, got.Reason)
		require.Zero(s, got.Attempts)
		require.Zero(s, got.FailedAttempts)
		require.Empty(s, got.History)
	}},
	{"Released returns the job without counting an attempt", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.settleOne(s.claimAll("a")[0], released)
		h := s.claimAll("a")[0]
		require.Zero(s, h.Attempts)
		require.Zero(s, h.FailedAttempts)
		s.settleOne(h, policy.Verdict{Kind: policy.Released, Wait: long})
		got := s.get("a")
		require.Equal(s, job.Scheduled, got.State)
		s.sameTime(s.now().Add(long), got.DueAt, "DueAt")
		require.Equal(s, []job.AttemptKind{job.KindReleased, job.KindReleased}, kinds(got))
	}},
	{"Released without a wait notifies", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.drainWakeups()
		s.settleOne(s.claimAll("a")[0], released)
		s.waitNotified(s.queue)
		s.claimAll("a")
	}},
	{"refuses a stale lease and changes nothing", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("waits", delayed(long)))
		h := s.claimAll("a")[0]
		before := s.get("a")
		wrong := settlement(h, dead)
		wrong.Lease = store.NewToken()
		unknown := wrong
		unknown.Ref.ID = "unknown"
		waits := wrong
		waits.Ref.ID = "waits"
		for _, err := range s.settle(wrong, unknown, waits) {
			require.ErrorIs(s, err, store.ErrLeaseLost)
		}
		require.Equal(s, before, s.get("a"))
		require.Equal(s, job.Scheduled, s.get("waits").State)
		s.settleOne(h, delivered)
		require.ErrorIs(s, s.settle(settlement(h, dead))[0], store.ErrLeaseLost)
		require.Equal(s, job.Delivered, s.get("a").State)
	}},
	{"refuses the lease of an earlier attempt", func(s *suite) {
		s.insertNew(s.entry("a"))
		first := s.claimAll("a")[0]
		s.settleOne(first, retry(0))
		second := s.claimAll("a")[0]
		require.ErrorIs(s, s.settle(settlement(first, dead))[0], store.ErrLeaseLost)
		s.settleOne(second, delivered)
	}},
	{"returns one result per settlement", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"), s.entry("c"))
		held := s.claimAll("a", "b", "c")
		lost := settlement(held[1], delivered)
		lost.Lease = store.NewToken()
		errs := s.settle(settlement(held[0], delivered), lost, settlement(held[2], dead))
		require.NoError(s, errs[0])
		require.ErrorIs(s, errs[1], store.ErrLeaseLost)
		require.NoError(s, errs[2])
		require.Equal(s, job.Delivered, s.get("a").State)
		require.Equal(s, job.Running, s.get("b").State)
		require.Equal(s, job.Dead, s.get("c").State)
	}},
	{"settles a job once that a call names twice", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claimAll("a")[0]
		errs := s.settle(settlement(h, delivered), settlement(h, dead))
		require.NoError(s, errs[0])
		require.ErrorIs(s, errs[1], store.ErrLeaseLost)
		require.Equal(s, job.Delivered, s.get("a").State)
	}},
	{"a repeated token returns the first result", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"))
		held := s.claimAll("a", "b")
		lost := settlement(held[1], delivered)
		lost.Lease = store.NewToken()
		first := settlement(held[0], retry(0))
		first.Outbox = []store.NewJob{s.entry("child")}
		token := store.NewToken()
		for range 3 {
			errs, _, err := s.shard().Settle(s.Context(), token, []store.Settlement{first, lost}, nil)
			require.NoError(s, err)
			require.NoError(s, errs[0])
			require.ErrorIs(s, errs[1], store.ErrLeaseLost)
		}
		got := s.get("a")
		require.Equal(s, 1, got.Attempts)
		require.Len(s, got.History, 1)
		require.Len(s, s.carry(store.CarryOptions{}).Outbox, 1)
	}},
	{"keeps jobs in the outbox until they are relayed", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"))
		held := s.claimAll("a", "b")
		child := s.entry("child", delayed(long), expires(2*long))
		child.Spec = fullSpec("child", s.laneQueue(1))
		child.Fingerprint = codec.Fingerprint(&child.New)
		item := settlement(held[0], delivered)
		item.Outbox = []store.NewJob{child, s.entry("other")}
		refused := settlement(held[1], delivered)
		refused.Lease = store.NewToken()
		refused.Outbox = []store.NewJob{s.entry("never")}
		errs := s.settle(item, refused)
		require.NoError(s, errs[0])
		require.ErrorIs(s, errs[1], store.ErrLeaseLost)

		for range 2 { // until named in Home they are given again
			out := s.carry(store.CarryOptions{}).Outbox
			require.Len(s, out, 2)
			require.Equal(s, child.Spec, out[0].Spec)
			require.Equal(s, child.Fingerprint, out[0].Fingerprint)
			require.Equal(s, child.ExpiresIn, out[0].ExpiresIn)
			require.Equal(s, "other", out[1].ID)
		}
		out := s.carry(store.CarryOptions{}).Outbox
		s.insertNew(out...)
		s.carry(store.CarryOptions{Relayed: []job.Ref{child.Ref()}})
		out = s.carry(store.CarryOptions{}).Outbox
		require.Len(s, out, 1)
		require.Equal(s, "other", out[0].ID)
		require.Equal(s, store.Existing, s.insert(out...)[0].Outcome, "the second insertion finds the first")
		require.Empty(s, s.carry(store.CarryOptions{Relayed: []job.Ref{out[0].Ref()}}).Outbox)
		require.Equal(s, child.Spec, s.get("child").Spec)
		require.True(s, s.isGone("never"))
	}},
	{"next claims in the same round trip, after the settlements", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 1})
		s.insertNew(s.entry("a"))
		s.advance(2 * time.Millisecond)
		s.insertNew(s.entry("b"))
		h := s.claimAll("a")[0]
		token := store.NewToken()
		var lease store.Token
		for range 2 { // the repeat answers the same
			next := claimOf(s.queue)
			errs, got, err := s.shard().Settle(s.Context(), token, []store.Settlement{settlement(h, delivered)}, &next)
			require.NoError(s, err)
			require.NoError(s, errs[0])
			require.Equal(s, []string{"b"}, idsOf(got.Jobs))
			require.Len(s, got.Queues, 1)
			lease = got.Jobs[0].Lease
		}
		require.NotEqual(s, h.Lease, lease)
		b := s.get("b")
		s.settleOne(store.ClaimedJob{Job: b, Lease: lease}, delivered)
	}},
	{"next claims under its own token", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"), s.entry("c"))
		next := claimOf(s.queue)
		next.Max = 1
		h := s.claim(next).Jobs[0]
		token := store.NewToken()
		for range 2 { // a repeat of the settlement that makes another claim
			next.Token = store.NewToken()
			for range 2 { // a repeat of the call
				errs, got, err := s.shard().Settle(s.Context(), token,
					[]store.Settlement{settlement(h, delivered)}, &next)
				require.NoError(s, err)
				require.NoError(s, errs[0])
				require.Len(s, got.Jobs, 1)
				require.NotEqual(s, h.ID, got.Jobs[0].ID)
				require.Equal(s, next.Token, got.Jobs[0].Lease)
			}
		}
		require.Empty(s, s.claim(claimOf(s.queue)).Jobs, "each claim got another job")
	}},
	{"next without settlements is a claim", func(s *suite) {
		s.insertNew(s.entry("a"))
		next := claimOf(s.queue)
		errs, got, err := s.shard().Settle(s.Context(), store.NewToken(), nil, &next)
		require.NoError(s, err)
		require.Empty(s, errs)
		require.Equal(s, []string{"a"}, idsOf(got.Jobs))
	}},
	{"a freed slot of a full lane notifies", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 1})
		s.insertNew(s.entry("a"), s.entry("b"))
		h := s.claim(claimOf(s.queue)).Jobs[0]
		s.carry(store.CarryOptions{})
		s.drainWakeups()
		s.settleOne(h, delivered)
		require.Equal(s, []job.Queue{s.queue}, s.wait(timeLimit))
	}},
	{"history keeps the newest attempts", func(s *suite) {
		s.insertNew(s.entry("a"))
		for i := range job.MaxAttempts + 5 {
			h := s.claimAll("a")[0]
			require.Equal(s, i, h.Attempts)
			s.settleOne(h, retry(0))
		}
		got := s.get("a")
		require.Len(s, got.History, job.MaxAttempts)
		for i, a := range got.History {
			require.Equal(s, i+6, a.N)
		}
		require.Equal(s, job.MaxAttempts+5, got.Attempts)
	}},
	{"attempts, releases and events displace only their own kind", func(s *suite) {
		if s.number(0, 1) == 0 {
			return // it makes some hundred calls
		}
		// The first entry of a job is stored apart from the others in some engines.
		s.insertNew(s.entry("attempt"), s.entry("release"), s.entry("event", delayed(long)))
		ids := []string{"attempt", "release", "event"}
		edit := func(id string, n int) {
			_, err := s.replace(id, store.Replacement{
				Due:    &job.TimeOrDelay{},
				Fields: []string{fmt.Sprint("field-", n)}, Actor: "shop-api",
			})
			require.NoError(s, err)
		}
		first := s.claimAll("attempt", "release")
		s.settleOne(first[0], retry(0))
		s.settleOne(first[1], released)
		edit("event", 1)
		for round := 1; round <= job.MaxAttempts+5; round++ {
			for i, verdict := range []policy.Verdict{retry(0), released} {
				var items []store.Settlement
				for _, h := range s.claimAll(ids...) {
					if round > 1 || h.ID != ids[i] {
						items = append(items, settlement(h, verdict))
					} else {
						s.releaseUnrecorded(h)
					}
				}
				require.NoError(s, errors.Join(s.settle(items...)...))
			}
			for _, id := range ids {
				if round > 1 || id != "event" {
					edit(id, round)
				}
			}
		}
		const last = job.MaxAttempts + 5
		for _, id := range ids {
			got := s.get(id)
			var attempts, releases []int
			for _, a := range got.History {
				if a.Kind == job.KindReleased {
					releases = append(releases, a.N)
				} else {
					attempts = append(attempts, a.N)
				}
			}
			require.Equal(s, numbers(last-job.MaxAttempts+1, last), attempts, id)
			require.Equal(s, numbers(last-job.MaxAttempts+2, last+1), releases, id)
			require.Len(s, got.Events, job.MaxEvents, id)
			for i, e := range got.Events {
				s.sameTime(s.now(), e.At, "At")
				n := last - job.MaxEvents + 1 + i
				require.Equal(s, job.Event{At: e.At, Kind: job.EventEdited, Fields: []string{fmt.Sprint("field-",
					n)}, Actor: "shop-api"}, e, id)
			}
		}
	}},
	{"accepts MaxBatch jobs", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 1000})
		var entries []store.NewJob
		n := s.number(50, store.MaxBatch)
		for i := range n {
			entries = append(entries, s.entry(fmt.Sprint(i)))
		}
		s.insertNew(entries...)
		held := s.claim(claimOf(s.queue)).Jobs
		require.Len(s, held, n)
		var items []store.Settlement
		for _, h := range held {
			items = append(items, settlement(h, delivered))
		}
		for _, err := range s.settle(items...) {
			require.NoError(s, err)
		}
		require.EqualValues(s, n, s.stats().Delivered)
	}},
}
