package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// quotaStore delays insertions and counts, drops some of their calls and replies, and keeps the largest usage of a
// namespace.
type quotaStore struct {
	store.Store
	namespace string
	most      atomic.Int64
	counts    atomic.Int64
	failing   atomic.Bool // counts fail
	insertFor func() time.Duration
	countFor  func() time.Duration
	fault     func() storetest.Fault
}

func (s *quotaStore) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return quotaShard{next, s} })
}

type quotaShard struct {
	store.Shard
	*quotaStore
}

func (s quotaShard) Insert(ctx context.Context, token store.Token, jobs []store.NewJob) ([]store.InsertResult, error) {
	fault := s.fault()
	if fault == storetest.Before {
		return nil, &store.UnavailableError{Reason: "not sent"}
	}
	time.Sleep(s.insertFor())
	results, err := s.Shard.Insert(ctx, token, jobs)
	usage, _ := s.Shard.Usage(ctx, s.namespace)
	for most := s.most.Load(); usage.Jobs > most && !s.most.CompareAndSwap(most, usage.Jobs); most = s.most.Load() {
	}
	time.Sleep(s.insertFor())
	if fault == storetest.LostReply {
		return nil, &store.UnavailableError{Reason: "lost its reply"}
	}
	return results, err
}

func (s quotaShard) Usage(ctx context.Context, namespace string) (store.Usage, error) {
	s.counts.Add(1)
	time.Sleep(s.countFor())
	if s.failing.Load() {
		return store.Usage{}, &store.UnavailableError{Reason: "cannot count"}
	}
	usage, err := s.Shard.Usage(ctx, namespace)
	time.Sleep(s.countFor())
	return usage, err
}

func noTime() time.Duration { return 0 }

func noFault() storetest.Fault { return storetest.None }

func TestQuota_IsNeverExceededByOneProcess(t *testing.T) {
	const quota = 60
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 1))
			upTo := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			s := &quotaStore{
				Store: sharded(1 + int(seed%3)), namespace: "shop",
				insertFor: func() time.Duration { return time.Duration(upTo(500)) * time.Millisecond },
				countFor:  func() time.Duration { return time.Duration(upTo(300)) * time.Millisecond },
				fault: func() storetest.Fault {
					return [...]storetest.Fault{storetest.Before, storetest.LostReply, storetest.None}[min(upTo(12), 2)]
				},
			}
			d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
			_, err := d.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Pending: quota}}, 0)
			require.NoError(t, err)
			var clients sync.WaitGroup
			var refusals atomic.Int64
			for c := range 12 {
				clients.Go(func() {
					for round := range 30 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+upTo(6000))*time.Millisecond)
						prefix := fmt.Sprintf("%d-%d-", c, round)
						for _, r := range d.Register(ctx, jobsIn("shop", prefix, 1+upTo(9))) {
							if _, over := errors.AsType[*job.QuotaError](r.Err); over {
								refusals.Add(1)
							}
						}
						cancel()
						time.Sleep(time.Duration(upTo(1500)) * time.Millisecond)
						for i := range upTo(10) {
							_, _ = d.Cancel(t.Context(),
								job.Ref{Namespace: "shop", ID: fmt.Sprint(prefix, i)}, store.Cancellation{})
						}
					}
				})
			}
			clients.Wait()
			time.Sleep(time.Minute) // calls that their clients left go on
			require.LessOrEqual(t, s.most.Load(), int64(quota))
			require.Greater(t, s.most.Load(), int64(quota/2), "the quota is used")
			require.Positive(t, refusals.Load())
		})
	}
}

// startSlow starts a dispatcher with a quota of 10 jobs in the namespace shop.
func startSlow(t *testing.T, insertFor, countFor time.Duration) (*fixture, *quotaStore) {
	t.Helper()
	s := &quotaStore{
		Store: model(), namespace: "shop", fault: noFault,
		insertFor: func() time.Duration { return insertFor }, // twice
		countFor:  func() time.Duration { return countFor },
	}
	d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
	_, err := d.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Pending: 10}}, 0)
	require.NoError(t, err)
	return d, s
}

func TestQuota_KeepsWhatIsInFlightOverACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := startSlow(t, 4*time.Second, 0)
		var first sync.WaitGroup
		first.Go(func() { d.Register(t.Context(), jobsIn("shop", "a", 7)) })
		time.Sleep(2500 * time.Millisecond)
		n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "b", 7)))
		require.Equal(t, 4, n)
		require.EqualValues(t, 2, s.counts.Load())
		first.Wait()
		require.EqualValues(t, 10, s.most.Load())
	})
}

func TestQuota_KeepsWhatWasRegisteredDuringACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := startSlow(t, 200*time.Millisecond, 0)
		n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "a", 1)))
		require.Zero(t, n)
		time.Sleep(time.Second)
		s.countFor = func() time.Duration { s.countFor = func() time.Duration { return time.Second }; return 0 }
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "b", 6)))
		require.Zero(t, n, "while the count that has not seen them is in flight")
		time.Sleep(time.Second)
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "c", 6)))
		require.Equal(t, 3, n)
		require.EqualValues(t, 2, s.counts.Load())
		require.EqualValues(t, 10, s.most.Load())
	})
}

func TestQuota_CountsRegistrationsWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := startSlow(t, 5*time.Second, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, d.Register(ctx, jobsIn("shop", "a", 7))[0].Err, context.DeadlineExceeded)
		time.Sleep(2 * time.Second)
		n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "b", 7)))
		require.Equal(t, 4, n)
		require.EqualValues(t, 10, s.most.Load(), "the first were inserted after the second count")

		s.fault = func() storetest.Fault { return storetest.Before }
		for i := range 7 {
			_, err := d.Cancel(t.Context(), job.Ref{Namespace: "shop", ID: fmt.Sprint("a", i)}, store.Cancellation{})
			require.NoError(t, err)
		}
		time.Sleep(20 * time.Second)
		require.ErrorIs(t, d.Register(t.Context(), jobsIn("shop", "c", 7))[0].Err, store.ErrUnavailable)
		s.fault = noFault
		time.Sleep(20 * time.Second)
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "d", 7)))
		require.Zero(t, n, "what was not answered is forgotten when it can no longer take effect")
	})
}

func TestQuota_BoundsTheBytesOfUnfinishedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		other := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		_, err := d.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Bytes: 20 << 10}}, 0)
		require.NoError(t, err)
		withBodies := func(prefix string, sizes ...int) []job.New {
			jobs := jobsIn("shop", prefix, len(sizes))
			for i, size := range sizes {
				jobs[i].Body, jobs[i].BodyKind = bytes.Repeat([]byte{'x'}, size), job.BodyText
			}
			return jobs
		}
		n, over := refused(t, d.Register(t.Context(), withBodies("a", 6000, 6000, 6000, 6000)))
		require.Equal(t, 1, n)
		require.Equal(t, "bytes", over.Quota)
		require.Equal(t, "20KiB", over.Limit)
		n, _ = refused(t, other.Register(t.Context(), withBodies("b", 3000)))
		require.Equal(t, 1, n, "another process counts them, too")
		n, _ = refused(t, d.Register(t.Context(), withBodies("c", 1000)))
		require.Zero(t, n)
		headers := withBodies("d", 10)
		headers[0].Header = map[string][]string{"X-Large": {strings.Repeat("h", 3000)}}
		n, _ = refused(t, d.Register(t.Context(), headers))
		require.Equal(t, 1, n, "headers count")
		_, err = d.Cancel(t.Context(), job.Ref{Namespace: "shop", ID: "a0"}, store.Cancellation{})
		require.NoError(t, err)
		time.Sleep(1100 * time.Millisecond)
		n, _ = refused(t, d.Register(t.Context(), withBodies("e", 6000, 6000)))
		require.Equal(t, 1, n)
		stats, err := d.Totals(t.Context(), "shop")
		require.NoError(t, err)
		require.Greater(t, stats.Bytes, int64(19_000))
		require.LessOrEqual(t, stats.Bytes, int64(20<<10))
	})
}

func TestQuota_GivesBackRoomOfJobsThatWereNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &quotaStore{Store: model(), insertFor: noTime, countFor: noTime, fault: noFault}
		d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		_, err := d.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Pending: 3}}, 0)
		require.NoError(t, err)
		n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "a", 1)))
		require.Zero(t, n)
		for range 10 { // repeats, conflicts and invalid jobs within the second of the count
			n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "a", 1)))
			require.Zero(t, n)
			other := jobsIn("shop", "a", 1)
			other[0].URL = "https://b.example/"
			require.ErrorAs(t, d.Register(t.Context(), other)[0].Err, new(*job.TakenError))
			invalid := jobsIn("shop", "b", 1)
			invalid[0].URL = ""
			require.ErrorAs(t, d.Register(t.Context(), invalid)[0].Err, new(*job.InvalidError))
		}
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "c", 3)))
		require.Equal(t, 1, n, "there is room for two")
		require.EqualValues(t, 1, s.counts.Load())
	})
}

func TestQuota_AnswersRepeatsWhenItIsReached(t *testing.T) {
	for name, quota := range map[string]job.Quota{
		"pending": {Pending: 10}, "rate": {Rate: perMinute(10)}, "both": {Pending: 10, Rate: perMinute(10)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := start(t, dispatcher.Options{Store: sharded(2), RegisterOnly: true})
				_, err := d.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: quota}, 0)
				require.NoError(t, err)
				n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "a", 15)))
				require.Equal(t, 5, n)
				results := d.Register(t.Context(), jobsIn("shop", "a", 15))
				n, over := refused(t, results)
				require.Equal(t, 5, n)
				require.NotNil(t, over)
				for _, r := range results[:10] {
					require.NoError(t, r.Err)
					require.Equal(t, store.Existing, r.Outcome)
				}
				other := jobsIn("shop", "a", 1)
				other[0].URL = "https://b.example/"
				require.ErrorAs(t, d.Register(t.Context(), other)[0].Err, new(*job.TakenError))
			})
		})
	}
}

func TestQuota_RepeatsTakeNoRoomFromNewJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, dispatcher.Options{Store: model(), RegisterOnly: true})
		_, err := d.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Pending: 10}}, 0)
		require.NoError(t, err)
		n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "a", 15)))
		require.Equal(t, 5, n)
		for i := range 5 {
			_, err := d.Cancel(t.Context(), job.Ref{Namespace: "shop", ID: fmt.Sprint("a", i)}, store.Cancellation{})
			require.NoError(t, err)
		}
		time.Sleep(1100 * time.Millisecond)
		results := d.Register(t.Context(), jobsIn("shop", "a", 15))
		for i, r := range results {
			if i < 5 {
				require.ErrorAs(t, r.Err, new(*job.TakenError), "it is cancelled")
			} else {
				require.NoError(t, r.Err)
			}
		}
	})
}

func TestQuota_CountsInTheBackgroundAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &quotaStore{
			Store: model(), insertFor: noTime, fault: noFault,
			countFor: func() time.Duration { return 200 * time.Millisecond }, // twice
		}
		d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		_, err := d.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Pending: 1000}}, 0)
		require.NoError(t, err)
		register := func(prefix string) time.Duration {
			began := time.Now()
			n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", prefix, 1)))
			require.Zero(t, n)
			return time.Since(began)
		}
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() { require.Equal(t, 400*time.Millisecond, register(fmt.Sprint("a", i, "-"))) })
		}
		all.Wait()
		require.EqualValues(t, 1, s.counts.Load(), "all wait for the first count")
		time.Sleep(4 * time.Second) // ten times the duration of a count
		for i := range 10 {
			all.Go(func() { require.Zero(t, register(fmt.Sprint("b", i, "-")), "the count is in the background") })
		}
		all.Wait()
		time.Sleep(time.Second)
		require.EqualValues(t, 2, s.counts.Load())
		for i := range 9 {
			require.Zero(t, register(fmt.Sprint("c", i, "-")))
		}
		require.EqualValues(t, 2, s.counts.Load())

		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, d.Register(ctx, jobsIn("shop", "d", 1))[0].Err, context.DeadlineExceeded)
		require.Equal(t, 50*time.Millisecond, time.Since(began), "waiters obey their context")
		time.Sleep(time.Second)
	})
}

func TestQuota_PausesAfterACountThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &quotaStore{Store: model(), insertFor: noTime, countFor: noTime, fault: noFault}
		d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		_, err := d.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Pending: 5}}, 0)
		require.NoError(t, err)
		s.failing.Store(true)
		for i := range 20 {
			require.ErrorIs(t,
				d.Register(t.Context(), jobsIn("shop", fmt.Sprint(i, "-"), 1))[0].Err, store.ErrUnavailable)
		}
		require.EqualValues(t, 1, s.counts.Load())
		s.failing.Store(false)
		time.Sleep(1100 * time.Millisecond)
		n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "a", 6)))
		require.Equal(t, 1, n)
	})
}

func TestQuota_GoesOnWithTheLastCountForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := startSlow(t, 0, 0)
		n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "a", 1)))
		require.Zero(t, n)
		began := time.Now()
		s.failing.Store(true)
		s.countFor = func() time.Duration { return 2 * time.Second }
		for i := range 20 {
			time.Sleep(2900 * time.Millisecond)
			tried := time.Now()
			n, over := refused(t, d.Register(t.Context(), jobsIn("shop", fmt.Sprint(i, "-"), 1)))
			require.Equal(t, i >= 9, n == 1, "%d", i)
			require.True(t, n == 0 || over.Quota == "pending")
			require.Zero(t, time.Since(tried), "no wait for a count that fails")
		}
		require.EqualValues(t, 10, s.most.Load())
		time.Sleep(time.Until(began.Add(61 * time.Second)))
		require.ErrorIs(t, d.Register(t.Context(), jobsIn("shop", "z", 1))[0].Err,
			store.ErrUnavailable, "the count is too old")
		s.failing.Store(false)
		s.countFor = noTime
		_, err := d.Cancel(t.Context(), job.Ref{Namespace: "shop", ID: "a0"}, store.Cancellation{})
		require.NoError(t, err)
		time.Sleep(1100 * time.Millisecond)
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "z", 2)))
		require.Equal(t, 1, n)
	})
}

func TestQuota_DoesNotWaitForACountFarFromTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := startSlow(t, 0, 100*time.Millisecond)
		register := func(prefix string, jobs int) time.Duration {
			began := time.Now()
			n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", prefix, jobs)))
			require.Zero(t, n)
			return time.Since(began)
		}
		require.Equal(t, 200*time.Millisecond, register("a", 1), "nothing is known")
		time.Sleep(50 * time.Second)
		require.Zero(t, register("b", 1))
		time.Sleep(30 * time.Second)
		require.EqualValues(t, 2, s.counts.Load(), "it counts in the background")
		require.Equal(t, 200*time.Millisecond, register("c", 3), "half the quota is near")
		time.Sleep(61 * time.Second)
		for i := range 3 {
			_, err := d.Cancel(t.Context(), job.Ref{Namespace: "shop", ID: fmt.Sprint("c", i)}, store.Cancellation{})
			require.NoError(t, err)
		}
		require.Equal(t, 200*time.Millisecond, register("d", 1), "the count is too old")
	})
}

// registerRepeatedly returns a function that registers the same jobs of a namespace again.
func registerRepeatedly(tb testing.TB, d *fixture, namespace string) func() {
	jobs := jobsIn(namespace, "a", 1)
	jobs[0].Body, jobs[0].BodyKind = bytes.Repeat([]byte{'x'}, 1000), job.BodyText
	return func() {
		if err := d.Register(tb.Context(), jobs)[0].Err; err != nil {
			tb.Fatal(err)
		}
	}
}

func TestQuota_CostsLittle(t *testing.T) {
	s := &quotaStore{Store: model(), insertFor: noTime, countFor: noTime, fault: noFault}
	d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
	none := testing.AllocsPerRun(500, registerRepeatedly(t, d, "default"))
	_, err := d.PutNamespace(t.Context(),
		job.Namespace{Name: "shop", Quota: job.Quota{Pending: 100, Bytes: 1 << 20}}, 0)
	require.NoError(t, err)
	require.InDelta(t, none, testing.AllocsPerRun(500, registerRepeatedly(t, d, "default")), 1)
	require.Zero(t, s.counts.Load())
	require.LessOrEqual(t, testing.AllocsPerRun(500, registerRepeatedly(t, d, "shop")), none+5)
	require.LessOrEqual(t, s.counts.Load(), int64(5), "the jobs are counted once a second")
}

func BenchmarkQuota(b *testing.B) {
	for name, quota := range map[string]job.Quota{"none": {}, "pending": {Pending: 100}, "pending and " +
		"bytes": {Pending: 100, Bytes: 1 << 20}} {
		b.Run(name, func(b *testing.B) {
			d, err := dispatcher.New(dispatcher.Options{Store: model(), RegisterOnly: true, Logger: quiet})
			require.NoError(b, err)
			_, err = d.PutNamespace(b.Context(), job.Namespace{Name: "shop", Quota: quota}, 0)
			require.NoError(b, err)
			register := registerRepeatedly(b, &fixture{Dispatcher: d}, "shop")
			b.ReportAllocs()
			for b.Loop() {
				register()
			}
		})
	}
}
