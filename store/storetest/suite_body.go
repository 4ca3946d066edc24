package storetest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// withBody returns a settlement that replaces the job's body and records no attempt.
func withBody(h store.ClaimedJob, v policy.Verdict, text string) store.Settlement {
	item := settlement(h, v)
	item.Attempt, item.Body = job.Attempt{}, []byte(text)
	return item
}

var settleBodyCases = []testCase{
	{"a settlement replaces the body and nothing else", func(s *suite) {
		s.insertNew(s.entry("a", body("first"), labelled("k", "v")), s.entry("b", body("other")))
		before := s.get("a")
		for _, text := range []string{
			"second", strings.Repeat("large ", 10_000), "", "small again",
			strings.Repeat("x", 2048), strings.Repeat("y", 2049),
		} {
			held := s.claim(claimOf(s.queue)).Jobs
			require.Len(s, held, 2)
			for _, h := range held {
				item := withBody(h, retry(0), text)
				if h.ID == "b" {
					item.Body = nil
				}
				require.NoError(s, s.settle(item)[0])
			}
			got := s.get("a")
			require.Equal(s, text, string(got.Body))
			require.Equal(s, "other", string(s.get("b").Body))
			got.Body, got.State, got.DueAt = before.Body, before.State, before.DueAt
			require.Equal(s, before, got)
		}
		for _, h := range s.claim(claimOf(s.queue)).Jobs {
			if h.ID == "a" {
				require.Equal(s, strings.Repeat("y", 2049), string(h.Body), "the next claim returns it")
			}
		}
	}},
	{"the body is replaced with the outbox and the end, in one step and once", func(s *suite) {
		s.insertNew(s.entry("a", body("first")))
		h := s.claimAll("a")[0]
		token := store.NewToken()
		item := withBody(h, delivered, "last")
		item.Outbox = []store.NewJob{s.entry("child", body("of a"))}
		for range 2 {
			errs, _, err := s.shard().Settle(s.Context(), token, []store.Settlement{item}, nil)
			require.NoError(s, err)
			require.NoError(s, errs[0])
		}
		require.Equal(s, "last", string(s.get("a").Body))
		require.Equal(s, job.Delivered, s.get("a").State)
		require.Equal(s, []string{"child"}, s.outboxIDs(s.shardNumber))
	}},
	{"a body whose length takes three bytes replaces another", func(s *suite) {
		s.insertNew(s.entry("a", body("first")))
		large := strings.Repeat("x", 1<<20+1)
		require.NoError(s, s.settle(withBody(s.claimAll("a")[0], retry(long), large))[0])
		require.True(s, s.get("a").Body != nil && string(s.get("a").Body) == large, "the body differs")
		s.usesBytes(1<<20+1, "a")
	}},
	{"a refused settlement leaves the body", func(s *suite) {
		s.insertNew(s.entry("a", body("first")))
		h := s.claimAll("a")[0]
		item := withBody(h, delivered, "second")
		item.Lease = store.NewToken()
		require.ErrorIs(s, s.settle(item)[0], store.ErrLeaseLost)
		require.Equal(s, "first", string(s.get("a").Body))
	}},
	{"the body of a job that is marked as cancelled is replaced", func(s *suite) {
		s.insertNew(s.entry("a", body("first")))
		h := s.claimAll("a")[0]
		_, err := s.cancel("a")
		require.NoError(s, err)
		require.NoError(s, s.settle(withBody(h, retry(long), "second"))[0])
		require.Equal(s, job.Cancelled, s.get("a").State)
		require.Equal(s, "second", string(s.get("a").Body))
	}},
	{"it stays if jobs that it names are dropped", func(s *suite) {
		s.insertNew(s.entry("a", body("first")), s.entry("b", body("first")))
		held := s.claimAll("a", "b")
		_, err := s.cancel("a")
		require.NoError(s, err)
		for _, h := range held {
			item := withBody(h, retry(long), "second")
			item.Outbox = []store.NewJob{s.entry("of-" + h.ID)}
			require.NoError(s, s.settle(item)[0])
		}
		require.Equal(s, "first", string(s.get("a").Body))
		require.Equal(s, "second", string(s.get("b").Body))
	}},
	{"retention by bytes counts the new body", func(s *suite) {
		s.put(policy.Topic{KeepDelivered: policy.Retention{MaxBytes: new(int64(30_000))}})
		grow := func(id, from, to string) {
			s.insertNew(s.entry(id, body(from)))
			require.NoError(s, s.settle(withBody(s.claimAll(id)[0], delivered, to))[0])
			s.advance(s.shortTime() / 10)
		}
		large := strings.Repeat("x", 20_000)
		grow("shrunk", large, "small")
		grow("grown", "small", large)
		s.sweep()
		require.False(s, s.isGone("shrunk"), "together they are smaller than 30 kB")
		require.False(s, s.isGone("grown"))
		grow("grown-more", "small", large)
		s.sweep()
		require.True(s, s.isGone("grown"))
		require.False(s, s.isGone("grown-more"))
		require.NoError(s, Check(s.Context(), s.Store))
	}},
}
