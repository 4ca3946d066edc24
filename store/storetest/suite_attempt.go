package storetest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// insert inserts jobs and returns the results.
func (s *suite) insert(entries ...store.NewJob) []store.InsertResult {
	s.Helper()
	results, err := s.shard().Insert(s.Context(), store.NewToken(), entries)
	require.NoError(s, err)
	require.Len(s, results, len(entries))
	return results
}

// insertNew inserts jobs whose ids must be new.
func (s *suite) insertNew(entries ...store.NewJob) {
	s.Helper()
	for i, r := range s.insert(entries...) {
		require.Equal(s, store.Created, r.Outcome, "outcome of %s", entries[i].ID)
	}
}

// claimOf requests all jobs of the queues, under a lease that outlives the test.
func claimOf(queues ...job.Queue) store.ClaimRequest {
	r := store.ClaimRequest{Max: store.MaxBatch, MaxBytes: 1 << 30}
	for _, q := range queues {
		r.Queues = append(r.Queues, store.QueueClaim{Queue: q, Max: store.MaxBatch, Timeout: long})
	}
	return r
}

// claimFor is claimOf with a short lease, unless the job has its own timeout.
func claimFor(lease time.Duration, queues ...job.Queue) store.ClaimRequest {
	r := claimOf(queues...)
	for i := range r.Queues {
		r.Queues[i].Timeout = lease
	}
	return r
}

func (s *suite) claim(r store.ClaimRequest) store.ClaimResult {
	s.Helper()
	c, err := s.shard().Claim(s.Context(), store.NewToken(), r)
	require.NoError(s, err)
	require.Len(s, c.Queues, len(r.Queues), "one status per queue")
	return c
}

// claimAll claims all jobs of the test's queue, which must have these ids in any order.
func (s *suite) claimAll(ids ...string) []store.ClaimedJob {
	s.Helper()
	held := s.claim(claimOf(s.queue)).Jobs
	require.ElementsMatch(s, ids, idsOf(held))
	slices.SortFunc(held, func(a, b store.ClaimedJob) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return held
}

func idsOf(held []store.ClaimedJob) []string {
	ids := make([]string, len(held))
	for i, h := range held {
		ids[i] = h.ID
	}
	return ids
}

// settlement returns the settlement of an attempt.
func settlement(h store.ClaimedJob, v policy.Verdict) store.Settlement {
	a := job.Attempt{
		N: h.Attempts + 1, Kind: job.KindAttempt, StartedAt: h.DueAt,
		Verdict: v.Kind.String(), Reason: v.Reason,
	}
	switch v.Kind {
	case policy.Delivered:
		a.Status = 200
	case policy.Released:
		a.Kind = job.KindReleased
	default:
		a.Status = 500
	}
	return store.Settlement{
		Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease, Verdict: v, Attempt: a,
		Late: time.Duration(h.Attempts) * 15 * time.Millisecond,
	}
}

// extension returns the extension of an attempt's lease.
func extension(h store.ClaimedJob, by time.Duration) store.Settlement {
	return store.Settlement{Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease, Extend: by}
}

var (
	delivered = policy.Verdict{Kind: policy.Delivered}
	dead      = policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}
	released  = policy.Verdict{Kind: policy.Released}
)

func retry(wait time.Duration) policy.Verdict { return policy.Verdict{Kind: policy.Again, Wait: wait} }

// settle settles attempts and returns an error for each.
func (s *suite) settle(items ...store.Settlement) []error {
	s.Helper()
	errs, _, err := s.shard().Settle(s.Context(), store.NewToken(), items, nil)
	require.NoError(s, err)
	require.Len(s, errs, len(items))
	return errs
}

// settleOne settles an attempt whose lease must not be lost.
func (s *suite) settleOne(h store.ClaimedJob, v policy.Verdict) {
	s.Helper()
	require.NoError(s, s.settle(settlement(h, v))[0])
}

// endJob inserts a job and brings it to an end.
func (s *suite) endJob(id string, v policy.Verdict, options ...option) {
	s.Helper()
	s.insertNew(s.entry(id, options...))
	s.settleOne(s.claimAll(id)[0], v)
}
