package pool_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// insertLarge registers a due job with a body of so many bytes.
func insertLarge(t *testing.T, s store.Store, id, topic, lane string, bytes int) {
	t.Helper()
	var e store.NewJob
	e.Timeout = 2 * time.Minute
	e.ID, e.Queue, e.URL, e.Method = id, queueOf(topic, lane), "https://x.example/", "POST"
	e.Body = zeros[:bytes]
	_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{e})
	require.NoError(t, err)
}

var zeros = make([]byte, 16<<20)

// requireAttemptWithin requires an attempt of a job within a time.
func (s *isolationTest) requireAttemptWithin(t *testing.T, id string, long time.Duration) {
	t.Helper()
	time.Sleep(long)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.False(t, s.began[id].IsZero(), "%s waits", id)
}

func TestIsolation_LargestBodiesForReceiversThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startIsolation(t, 256, isBadTopic)
		for i := range 5 {
			insertLarge(t, s, fmt.Sprintf("bad-%d", i), "bad", fmt.Sprintf("lane-%d", i), 16<<20)
		}
		time.Sleep(10 * time.Millisecond)
		require.GreaterOrEqual(t, s.hangingCount(), 1)
		s.requireIsolated(t)
		for i := range 3 {
			insertLarge(t, s, fmt.Sprintf("large-%d", i), "orders", "a", 16<<20)
			s.requireAttemptWithin(t, fmt.Sprintf("large-%d", i), 100*time.Millisecond)
		}
	})
}

// Topics that send the largest bodies one after the other use the bytes for large bodies, but not those for smaller
// ones.
func TestIsolation_LargestBodiesOfManyTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startIsolation(t, 256, isBadTopic)
		for i := range 10 {
			insertLarge(t, s, fmt.Sprintf("bad-%d", i), fmt.Sprintf("bad-%d", i), "a", 16<<20)
			time.Sleep(100 * time.Millisecond)
		}
		require.LessOrEqual(t, s.hangingCount(), 5, "64 MiB, and one more body")
		s.requireIsolated(t)
		for i, size := range []int{16 << 10, 256 << 10, 1 << 20} {
			id := fmt.Sprintf("mid-%d", i)
			insertLarge(t, s, id, "orders", "a", size)
			s.requireAttemptWithin(t, id, 100*time.Millisecond)
		}
		time.Sleep(10 * time.Minute) // the timeouts
		require.Len(t, s.requests("bad"), 10, "each has its turn")
	})
}

func TestIsolation_ManyBodiesForReceiversThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startIsolation(t, 256, isBadTopic)
		for i := range 257 {
			insertLarge(t, s, fmt.Sprintf("bad-%d", i), fmt.Sprintf("bad-%d", i%2),
				fmt.Sprintf("lane-%d", i/2), 256<<10)
		}
		time.Sleep(10 * time.Millisecond)
		s.requireIsolated(t)
		for i, size := range []int{16 << 10, 256 << 10, 4 << 20, 16 << 20} {
			id := fmt.Sprintf("large-%d", i)
			insertLarge(t, s, id, "orders", "a", size)
			s.requireAttemptWithin(t, id, 100*time.Millisecond)
		}
	})
}

// Lanes that answer do not wait for lanes of their topic whose receivers do not read.
func TestIsolation_ManyBodiesForReceiversOfTheSameTopicThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startIsolation(t, 256, func(r job.Request) bool { return strings.HasPrefix(r.Ref.ID, "bad") })
		for i := range 4 {
			insertLarge(t, s, fmt.Sprintf("first-%d", i), "orders", fmt.Sprintf("good-%d", i), 1)
		}
		time.Sleep(time.Second)
		for i := range 400 {
			insertLarge(t, s, fmt.Sprintf("bad-%d", i), "orders", fmt.Sprintf("lane-%d", i/2), 256<<10)
		}
		time.Sleep(10 * time.Millisecond)
		for i, size := range []int{1, 256 << 10, 1 << 20, 4 << 20} {
			id := fmt.Sprintf("good-%d", i)
			insertLarge(t, s, id, "orders", id, size)
			s.requireAttemptWithin(t, id, 100*time.Millisecond)
		}
		require.GreaterOrEqual(t, s.hangingCount(), 64)
	})
}

// Receivers that have read the body, and hang, hold no bytes: all of their jobs are under way at once.
func TestBytes_LeaveTheBudgetWhenSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startIsolation(t, 256, isBadTopic)
		s.reads = true
		for i := range 300 {
			insertLarge(t, s, fmt.Sprintf("bad-%d", i), fmt.Sprintf("bad-%d", i%2),
				fmt.Sprintf("lane-%d", i/2), 256<<10)
		}
		for i := range 8 {
			insertLarge(t, s, fmt.Sprintf("bad-large-%d", i), "bad-3", fmt.Sprint(i), 16<<20)
		}
		time.Sleep(time.Second)
		require.Equal(t, 308, s.hangingCount())
	})
}

// A job is never too large for a process.
func TestBytes_LargerThanTheBudgetGoOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		for i := range 10 {
			insertLarge(t, s, fmt.Sprintf("large-%d", i), fmt.Sprintf("topic-%d", i%3), fmt.Sprint(i%5), 2<<20)
			insertLarge(t, s, fmt.Sprintf("small-%d", i), "topic-0", fmt.Sprint(i%5), 2<<10)
		}
		carry(t, s)
		run(t, s, g, func(o *pool.Options) { o.MaxBytes = 1 << 20 })
		time.Sleep(10 * time.Second)
		require.Equal(t, 20, g.count(""))
		require.LessOrEqual(t, g.peak(""), 11)
	})
}

// singleQueueShard refuses claims from more than one queue.
type singleQueueShard struct{ store.Shard }

func newSingleQueueStore(s store.Store) store.Store {
	return wrap(s, func(next store.Shard) store.Shard { return singleQueueShard{next} })
}

func (o singleQueueShard) Claim(
	ctx context.Context, token store.Token, request store.ClaimRequest,
) (store.ClaimResult, error) {
	if len(request.Queues) > 1 {
		return store.ClaimResult{}, errors.New("a job's progress cannot be read")
	}
	return o.Shard.Claim(ctx, token, request)
}

func TestBytes_AreBoundedWhenRetriedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGauge(time.Hour)
		s := newSingleQueueStore(model())
		for i := range 40 {
			insertLarge(t, s, fmt.Sprint(i), fmt.Sprintf("topic-%d", i), "a", 1<<20)
		}
		run(t, s, g, func(o *pool.Options) { o.MaxBytes = 8 << 20 })
		time.Sleep(time.Second)
		require.LessOrEqual(t, g.peak(""), 9, "8 MiB, and one more body")
		require.GreaterOrEqual(t, g.peak(""), 4)
	})
}

// A sent body is not kept while its receiver responds, unless a callback includes it.
func TestBytes_AreFreedWhenSent(t *testing.T) {
	for name, included := range map[string][]string{"let go": nil, "kept": {policy.IncludeBody}} {
		t.Run(name, func(t *testing.T) {
			s := newCopyingStore()
			insertLarge(t, s, "one", "orders", "a", 1<<20)
			var gone atomic.Bool
			over := make(chan struct{})
			hangs := make(chan struct{})
			topicPolicy := policy.Topic{OnDelivered: &policy.Callback{URL: "https://y.example/", Include: included}}
			run(t, s, delivererFunc(func(_ context.Context, r job.Request) policy.Result {
				runtime.AddCleanup(&r.Body[0], func(int) { gone.Store(true) }, 0)
				if r.Sent != nil {
					r.Sent()
				}
				close(hangs)
				<-over
				return policy.Result{Status: 200}
			}), withPolicy(topicPolicy))
			defer close(over)
			<-hangs
			if included == nil {
				require.Eventually(t, func() bool { runtime.GC(); return gone.Load() }, 5*time.Minute, time.Millisecond)
				return
			}
			runtime.GC()
			require.False(t, gone.Load())
		})
	}
}
