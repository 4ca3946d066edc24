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

func maxAge(d time.Duration) option { return func(e *store.NewJob) { e.MaxAge = d } }

var allExpired = store.ClaimExpiredRequest{Max: store.MaxBatch, MaxBytes: 1 << 20, Lease: long}

// claimExpired claims jobs beyond their time to live.
func (s *suite) claimExpired(token store.Token, request store.ClaimExpiredRequest) []store.ClaimedJob {
	s.Helper()
	held, err := s.shard().ClaimExpired(s.Context(), token, request)
	require.NoError(s, err)
	for _, h := range held {
		require.Equal(s, job.Running, h.State)
		require.Equal(s, token, h.Lease)
		require.False(s, h.Rated || h.Probe)
		require.Positive(s, h.LeaseFor)
		require.LessOrEqual(s, h.LeaseFor, request.Lease+time.Millisecond)
	}
	return held
}

var expiredCases = []testCase{
	{"returns expired jobs under every throttle", func(s *suite) {
		for i, throttle := range throttles {
			s.Log(throttle.name)
			s.queue = s.queueOf(s.queue.Namespace, fmt.Sprintf("orders-%d", i), 0)
			throttle.apply(s)
			name := func(id string) string { return fmt.Sprintf("%s-%d", id, i) }
			s.insertNew(s.entry(name("expires"), expires(s.shortTime())), s.entry(name("ages"), maxAge(s.shortTime())),
				s.entry(name("waits"), expires(long), maxAge(long)), s.entry(name("ever")))
			before := s.stats()
			s.advance(s.shortTime() + 2*time.Millisecond)
			s.drainWakeups()
			held := s.claimExpired(store.NewToken(), allExpired)
			ids := idsOf(held)
			slices.Sort(ids)
			require.Equal(s, []string{name("ages"), name("expires")}, ids)
			require.Equal(s, before.Running+2, s.stats().Running)
			for _, h := range held {
				require.Equal(s, h.ID == name("expires"), expired(&h))
				require.Greater(s, h.Age, s.shortTime())
				item := settlement(h, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExpired})
				item.Attempt = job.Attempt{}
				item.Outbox = []store.NewJob{s.entry("rb:" + h.ID)}
				require.NoError(s, s.settle(item)[0])
				got := s.get(h.ID)
				require.Equal(s, job.Dead, got.State)
				require.Zero(s, got.Attempts)
				require.Empty(s, got.History)
			}
			require.Contains(s, s.outboxIDs(s.shardNumber), "rb:"+name("expires"))
			require.Empty(s, s.claimExpired(store.NewToken(), allExpired))
			after := s.stats()
			require.Equal(s, before.Running, after.Running)
			require.EqualValues(s, 2, after.Scheduled+after.Ready)
			require.NoError(s, Check(s.Context(), s.Store))
		}
	}},
	{"a repeated token returns the jobs it still holds, another token does not", func(s *suite) {
		s.put(policy.Topic{Paused: true})
		s.insertNew(s.entry("a", expires(s.shortTime())), s.entry("b", expires(s.shortTime()), body("b")))
		s.advance(s.shortTime() + 2*time.Millisecond)
		token := store.NewToken()
		first := s.claimExpired(token, allExpired)
		require.Len(s, first, 2)
		require.Empty(s, s.claimExpired(store.NewToken(), allExpired))
		again := s.claimExpired(token, allExpired)
		require.ElementsMatch(s, idsOf(first), idsOf(again))
		s.settleOne(first[0], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExpired})
		again = s.claimExpired(token, allExpired)
		require.Equal(s, []string{first[1].ID}, idsOf(again))
		require.Equal(s, first[1].Job, again[0].Job)
	}},
	{"a job whose lease expired is returned again", func(s *suite) {
		s.put(policy.Topic{Paused: true})
		s.insertNew(s.entry("a", expires(s.shortTime())))
		s.advance(s.shortTime() + 2*time.Millisecond)
		request := allExpired
		request.Lease = s.shortTime()
		require.Len(s, s.claimExpired(store.NewToken(), request), 1)
		s.advance(s.shortTime() + 2*time.Millisecond)
		s.expireLeases(1)
		held := s.claimExpired(store.NewToken(), allExpired)
		require.Equal(s, []string{"a"}, idsOf(held))
		require.Equal(s, 1, held[0].ConsecutiveLost)
	}},
	{"skips running, ended and postponed jobs", func(s *suite) {
		s.endJob("ended", dead, expires(s.shortTime()))
		s.insertNew(s.entry("held", expires(s.shortTime())))
		s.claimAll("held")
		s.insertNew(s.entry("cancelled", expires(s.shortTime())), s.entry("edited", expires(s.shortTime())),
			s.entry("aged", maxAge(s.shortTime())), s.entry("moved", delayed(long/2), maxAge(s.shortTime())))
		_, err := s.shard().Cancel(s.Context(), store.NewToken(), s.ref("cancelled"), store.Cancellation{})
		require.NoError(s, err)
		edit := store.Replacement{Expiry: &job.TimeOrDelay{}}
		_, err = s.replace("edited", edit)
		require.NoError(s, err)
		later := 2 * s.shortTime()
		if s.Advance == nil {
			later = long // else it may be over at the next call
		}
		edit = store.Replacement{Due: &job.TimeOrDelay{In: later}}
		for _, id := range []string{"aged", "moved"} {
			_, err = s.replace(id, edit)
			require.NoError(s, err)
		}
		s.advance(s.shortTime() + 2*time.Millisecond)
		require.Empty(s, s.claimExpired(store.NewToken(), allExpired))
		if s.Advance == nil {
			return
		}
		s.advance(later + 2*time.Millisecond)
		ids := idsOf(s.claimExpired(store.NewToken(), allExpired))
		slices.Sort(ids)
		require.Equal(s, []string{"aged", "moved"}, ids)
	}},
	{"a job released after MaxAge is returned again for its expiry only", withMovedClock(func(s *suite) {
		s.put(policy.Topic{Paused: true})
		s.insertNew(s.entry("a", maxAge(s.shortTime()), expires(4*s.shortTime())))
		s.advance(s.shortTime() + 2*time.Millisecond)
		held := s.claimExpired(store.NewToken(), allExpired)
		require.Len(s, held, 1)
		back := settlement(held[0], policy.Verdict{Kind: policy.Released})
		back.Attempt = job.Attempt{}
		require.NoError(s, s.settle(back)[0])
		require.Empty(s, s.claimExpired(store.NewToken(), allExpired))
		_, err := s.edit("a", func(spec *job.Spec) { spec.URL = "https://b.example/" })
		require.NoError(s, err)
		held = s.claimExpired(store.NewToken(), allExpired)
		require.Len(s, held, 1, "an edit begins anew")
		back.Lease = held[0].Lease
		require.NoError(s, s.settle(back)[0])
		require.Empty(s, s.claimExpired(store.NewToken(), allExpired))
		s.advance(4 * s.shortTime())
		require.Len(s, s.claimExpired(store.NewToken(), allExpired), 1)
	})},
	{"respects its limits, oldest first", func(s *suite) {
		s.put(policy.Topic{Paused: true})
		var entries []store.NewJob // at one time, however slow the machine is
		for i := range 5 {
			entries = append(entries,
				s.entry(fmt.Sprint(i), expires(time.Duration(5-i)*s.shortTime()/10), body("12345678")))
		}
		s.insertNew(entries...)
		s.advance(s.shortTime())
		held := s.claimExpired(store.NewToken(), store.ClaimExpiredRequest{Max: 2, MaxBytes: 100, Lease: long})
		require.Equal(s, []string{"4", "3"}, idsOf(held))
		held = s.claimExpired(store.NewToken(), store.ClaimExpiredRequest{Max: 10, MaxBytes: 16, Lease: long})
		require.Equal(s, []string{"2", "1"}, idsOf(held))
		held = s.claimExpired(store.NewToken(), store.ClaimExpiredRequest{Max: 10, MaxBytes: 1, Lease: long})
		require.Equal(s, []string{"0"}, idsOf(held), "one always fits")
	}},
	{"a revived job expires again", func(s *suite) {
		s.endJob("a", dead)
		s.endJob("b", dead, maxAge(s.shortTime()))
		s.put(policy.Topic{Paused: true})
		for _, err := range s.reviveAll(store.NewToken(), store.Revival{Ref: s.ref("a"), ExpiresIn: s.shortTime()},
			store.Revival{Ref: s.ref("b")}) {
			require.NoError(s, err.Err)
		}
		if s.Advance != nil { // else they may have expired already
			require.Empty(s, s.claimExpired(store.NewToken(), allExpired))
		}
		s.advance(s.shortTime() + 2*time.Millisecond)
		require.Len(s, s.claimExpired(store.NewToken(), allExpired), 2)
	}},
	{"finds an expiry that an edit or a revival set", func(s *suite) {
		s.endJob("revived", dead)
		s.insertNew(s.entry("edited"))
		s.put(policy.Topic{Paused: true})
		for id, set := range map[string]func() error{
			"edited": func() error {
				_, err := s.replace("edited", store.Replacement{Expiry: &job.TimeOrDelay{In: s.shortTime()}})
				return err // for a test
			},
			"revived": func() error {
				return s.reviveAll(store.NewToken(),
					store.Revival{Ref: s.ref("revived"), ExpiresIn: s.shortTime()})[0].Err
			},
		} {
			require.Empty(s, s.claimExpired(store.NewToken(), allExpired))
			require.NoError(s, set())
			s.advance(s.shortTime() + 2*time.Millisecond)
			held := s.claimExpired(store.NewToken(), allExpired)
			require.Equal(s, []string{id}, idsOf(held))
			s.settleOne(held[0], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExpired})
		}
	}},
	{"a replacement that moves the due time after the expiry is refused", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long/2), expires(long)))
		for name, moved := range map[string]store.Replacement{
			"later":   {Due: &job.TimeOrDelay{In: 2 * long}},
			"at":      {Due: &job.TimeOrDelay{At: s.now().Add(2 * long)}},
			"sooner":  {Expiry: &job.TimeOrDelay{In: long / 4}},
			"instant": {Expiry: &job.TimeOrDelay{At: s.now()}},
		} {
			_, err := s.replace("a", moved)
			require.ErrorIs(s, err, store.ErrExpired, name)
		}
		require.EqualValues(s, 1, s.get("a").Version)
		_, err := s.replace("a",
			store.Replacement{Due: &job.TimeOrDelay{In: 2 * long}, Expiry: &job.TimeOrDelay{In: 3 * long}})
		require.NoError(s, err)
	}},
}
