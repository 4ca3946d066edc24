package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// fill inserts n jobs, spread over the lanes.
func (s *suite) fill(n, lanes int) (queues []job.Queue) {
	s.Helper()
	for i := range lanes {
		queues = append(queues, s.laneQueue(i))
	}
	var entries []store.NewJob
	for i := range n {
		entries = append(entries, s.entry(fmt.Sprintf("job-%d", i), in(queues[i%lanes])))
	}
	s.insertNew(entries...)
	return queues
}

var togetherCases = []testCase{
	{"claims return each job once and never exceed the limit", func(s *suite) {
		const lanes, limit = 3, 4
		n := s.number(90, 240)
		s.put(policy.Topic{LaneConcurrency: limit})
		queues := s.fill(n, lanes)
		var done atomic.Int64
		held := make(map[string]*atomic.Int64)
		for _, q := range queues {
			held[q.Lane] = new(atomic.Int64)
		}
		var taken sync.Map
		s.workers(8, func(ctx context.Context) error {
			request := claimOf(queues...)
			request.Max = 5
			got, err := s.shard().Claim(ctx, store.NewToken(), request)
			if err != nil {
				return err
			}
			for _, h := range got.Jobs {
				if _, twice := taken.LoadOrStore(h.ID, true); twice {
					return fmt.Errorf("%s was claimed twice", h.ID)
				}
				if now := held[h.Lane].Add(1); now > limit {
					return fmt.Errorf("%d jobs of lane %s at once", now, h.Lane)
				}
			}
			var items []store.Settlement
			for _, h := range got.Jobs {
				held[h.Lane].Add(-1)
				items = append(items, settlement(h, delivered))
			}
			errs, _, err := s.shard().Settle(ctx, store.NewToken(), items, nil)
			if err := errors.Join(append(errs, err)...); err != nil {
				return err
			}
			done.Add(int64(len(items)))
			return nil
		}, func() bool { return done.Load() == int64(n) })
		require.EqualValues(s, n, s.stats().Delivered)
		require.NoError(s, Check(s.Context(), s.Store))
	}},
	{"inserts of one id create it once", func(s *suite) {
		var created, existing atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range 5 {
					got, err := s.shard().Insert(s.Context(), store.NewToken(), []store.NewJob{s.entry(fmt.Sprint(i))})
					if err != nil {
						s.Error(err)
						return
					}
					switch got[0].Outcome {
					case store.Created:
						created.Add(1)
					case store.Existing:
						existing.Add(1)
					default:
						s.Error("a Conflict with the same job")
					}
				}
			})
		}
		wg.Wait()
		require.EqualValues(s, 5, created.Load())
		require.EqualValues(s, 35, existing.Load())
	}},
	{"a cancel and a claim leave a job in one place", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 100})
		s.fill(40, 1)
		var held []store.ClaimedJob
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 40 {
				if _, err := s.cancel(fmt.Sprintf("job-%d", i)); err != nil {
					s.Error(err)
				}
			}
		})
		wg.Go(func() {
			request := claimOf(s.queue)
			request.Max = 1
			for range 40 {
				got, err := s.shard().Claim(s.Context(), store.NewToken(), request)
				if err != nil {
					s.Error(err)
					return
				}
				held = append(held, got.Jobs...)
			}
		})
		wg.Wait()
		for _, h := range held {
			s.settleOne(h, retry(0))
		}
		require.EqualValues(s, 40, s.stats().Cancelled)
		require.NoError(s, Check(s.Context(), s.Store))
	}},
	{"calls repeated after lost requests and replies apply once", func(s *suite) {
		n := s.number(30, 60)
		s.put(policy.Topic{LaneConcurrency: 100})
		faulty := Faulty(s.Store, Share(7, 0.4))
		for i := range n {
			entry, token := []store.NewJob{s.entry(fmt.Sprintf("job-%d", i))}, store.NewToken()
			got := retryUnavailable(s, func() ([]store.InsertResult, error) {
				return faulty.Shards()[s.shardNumber].Insert(s.Context(), token, entry)
			})
			require.Equal(s, store.Created, got[0].Outcome)
		}
		for done := 0; done < n; {
			token, request := store.NewToken(), claimOf(s.queue)
			request.Max = 7
			got := retryUnavailable(s, func() (store.ClaimResult, error) {
				return faulty.Shards()[s.shardNumber].Claim(s.Context(), token, request)
			})
			for len(got.Jobs) > 0 {
				var items []store.Settlement
				for i, h := range got.Jobs {
					v := delivered
					if h.Attempts == 0 && i%2 == 0 {
						v = retry(0)
					} else {
						done++
					}
					items = append(items, settlement(h, v))
				}
				type both struct {
					errs []error
					next store.ClaimResult
				}
				next := store.NewToken()
				settled := retryUnavailable(s, func() (both, error) {
					errs, claimed, err := faulty.Shards()[s.shardNumber].Settle(s.Context(), next, items, &request)
					return both{errs, claimed}, err
				})
				require.NoError(s, errors.Join(settled.errs...))
				got = settled.next
			}
		}
		got := s.stats()
		require.EqualValues(s, n, got.Registered)
		require.EqualValues(s, n, got.Delivered)
		for i := range n {
			j := s.get(fmt.Sprintf("job-%d", i))
			require.Len(s, j.History, j.Attempts)
			require.LessOrEqual(s, j.Attempts, 2)
		}
	}},
}

// workers runs n goroutines that repeat step until done.
func (s *suite) workers(n int, step func(context.Context) error, done func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 3*timeLimit)
	defer cancel()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for !done() {
				if err := step(ctx); err != nil {
					s.Error(err)
					cancel()
					return
				}
			}
		})
	}
	wg.Wait()
	require.True(s, done(), "the workers did not finish in time")
}

// retryUnavailable repeats a call while it fails with ErrUnavailable.
func retryUnavailable[T any](s *suite, call func() (T, error)) T {
	s.Helper()
	for end := time.Now().Add(timeLimit); ; {
		value, err := call()
		if err == nil {
			return value
		}
		require.ErrorIs(s, err, store.ErrUnavailable)
		require.True(s, time.Now().Before(end), "the call kept failing")
	}
}
