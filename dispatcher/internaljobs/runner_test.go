package internaljobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/carrier"
	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

const topic = "_test"

func queue(lane string) job.Queue {
	return job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane}
}

func newJob(id, lane, body string) store.NewJob {
	return store.NewJob{New: job.New{Spec: job.Spec{
		ID: id, Queue: queue(lane),
		BodyKind: job.BodyText, Body: []byte(body),
	}}}
}

func insert(t *testing.T, s store.Store, jobs ...store.NewJob) {
	t.Helper()
	for _, result := range router.New(s).Insert(t.Context(), jobs) {
		require.NoError(t, result.Err)
		require.Equal(t, store.Created, result.Outcome)
	}
}

func get(t *testing.T, s store.Store, id string) job.Job {
	t.Helper()
	found, err := router.New(s).Get(t.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: id})
	require.NoError(t, err)
	return found
}

// start runs a carrier and a runner on a store until stop is called, which waits for both.
func start(t *testing.T, s store.Store, handle internaljobs.Handler, logged *testkit.Log) (stop func()) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(logged, nil))
	ctx, cancel := context.WithCancel(t.Context())
	r := internaljobs.New(internaljobs.Options{
		Store: s, Handlers: map[string]internaljobs.Handler{topic: handle}, Logger: log,
	})
	var all sync.WaitGroup
	all.Go(func() { carrier.New(router.New(s), log).Run(ctx) })
	all.Go(func() { r.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// counter counts the job's body up to a limit.
type counter struct {
	limit int
	wait  time.Duration

	mu    sync.Mutex
	steps map[string][]int // the bodies that steps began with, by job
}

func newCounter(limit int, wait time.Duration) *counter {
	return &counter{limit: limit, wait: wait, steps: make(map[string][]int)}
}

func (c *counter) step(_ context.Context, j *store.ClaimedJob) (internaljobs.Step, error) {
	n, err := strconv.Atoi(string(j.Body))
	if err != nil {
		return internaljobs.Step{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps[j.ID] = append(c.steps[j.ID], n)
	step := internaljobs.Step{Body: []byte(strconv.Itoa(n + 1)), Wait: c.wait, Done: n+1 == c.limit}
	if step.Done && j.Lane != "children" {
		step.Outbox = []store.NewJob{newJob("child-of-"+j.ID, "children", strconv.Itoa(c.limit-1))}
	}
	return step, nil
}

// of returns the bodies that the steps of a job began with.
func (c *counter) of(id string) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.steps[id])
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func TestRunner_MakesStepsUntilTheJobIsDone(t *testing.T) {
	for _, shards := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			s := storetest.NewModel(storetest.ModelOptions{Shards: shards})
			c := newCounter(5, time.Hour)
			start(t, s, c.step, new(testkit.Log))
			began := time.Now()
			for i := range 7 {
				insert(t, s, newJob(fmt.Sprint("job-", i), fmt.Sprint("lane-", i%3), "0"))
			}
			time.Sleep(4*time.Hour + time.Minute)
			for i := range 7 {
				id := fmt.Sprint("job-", i)
				require.Equal(t, upTo(5), c.of(id))
				j := get(t, s, id)
				require.Equal(t, job.Delivered, j.State)
				require.Equal(t, "5", string(j.Body))
				require.Empty(t, j.History)
				require.WithinDuration(t, began.Add(4*time.Hour), j.FinishedAt, time.Second)
				require.Equal(t, job.Delivered, get(t, s, "child-of-"+id).State, "a job of the outbox runs, too")
			}
		})
	}
}

func TestRunner_RetriesFailedStepsWithPausesAndNeverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		logged := new(testkit.Log)
		var attempts atomic.Int64
		start(t, s, func(context.Context, *store.ClaimedJob) (internaljobs.Step, error) {
			switch n := attempts.Add(1); {
			case n == 1000:
				return internaljobs.Step{Done: true}, nil
			case n%2 == 0:
				panic("a bug")
			}
			return internaljobs.Step{}, errors.New("not now")
		}, logged)
		insert(t, s, newJob("a", "a", "kept"))
		time.Sleep(500 * time.Second)
		require.Greater(t, attempts.Load(), int64(200))
		require.Less(t, attempts.Load(), int64(600), "there are pauses")
		time.Sleep(time.Hour)
		require.EqualValues(t, 1000, attempts.Load())
		require.Equal(t, job.Delivered, get(t, s, "a").State)
		require.Equal(t, "kept", string(get(t, s, "a").Body))
		require.Contains(t, logged.String(), "panic: a bug")
		require.Contains(t, logged.String(), "not now")
	})
}

func TestRunner_RepeatsAtMostTheLastStepWhenACallFails(t *testing.T) {
	for _, method := range []string{"Wait", "Claim", "Settle", "Carry"} {
		for _, fault := range []storetest.Fault{storetest.Before, storetest.LostReply} {
			for n := 1; n <= 4; n++ {
				t.Run(fmt.Sprint(method, fault, n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := storetest.Faulty(storetest.NewModel(storetest.ModelOptions{}),
							storetest.Nth(method, n, fault))
						c := newCounter(5, time.Second)
						start(t, s, c.step, new(testkit.Log))
						insert(t, s, newJob("a", "a", "0"), newJob("b", "a", "0"))
						time.Sleep(time.Minute)
						for _, id := range []string{"a", "b"} {
							require.Equal(t, upTo(5), c.of(id), "the store answers a repeat with the first result")
							require.Equal(t, job.Delivered, get(t, s, id).State)
						}
					})
				})
			}
		}
	}
}

// A step that outlasts its lease is repeated, and what it returns is not stored.
func TestRunner_StoresNothingOfAStepWhoseLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		logged := new(testkit.Log)
		var steps atomic.Int64
		start(t, s, func(ctx context.Context, j *store.ClaimedJob) (internaljobs.Step, error) {
			if steps.Add(1) == 1 {
				<-ctx.Done()
				time.Sleep(time.Minute) // it ignores the end of its context
				return internaljobs.Step{Body: []byte("late"), Done: true}, nil
			}
			return internaljobs.Step{Body: append(j.Body, " again"...), Done: true}, nil
		}, logged)
		insert(t, s, newJob("a", "a", "first"))
		time.Sleep(5 * time.Minute)
		require.EqualValues(t, 2, steps.Load())
		require.Equal(t, "first again", string(get(t, s, "a").Body))
	})
}

func TestRunner_LetsStepsEndWhenItStopsAndReleasesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		stop := start(t, s, func(context.Context, *store.ClaimedJob) (internaljobs.Step, error) {
			time.Sleep(5 * time.Second)
			return internaljobs.Step{Body: []byte("done"), Done: true}, nil
		}, new(testkit.Log))
		for i := range 3 {
			insert(t, s, newJob(fmt.Sprint("job-", i), "a", "")) // one after the other, since they share a queue
		}
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		require.Equal(t, 4*time.Second, time.Since(began))
		require.Equal(t, job.Delivered, get(t, s, "job-0").State)
		for _, id := range []string{"job-1", "job-2"} {
			require.Equal(t, job.Ready, get(t, s, id).State)
		}
		queues, err := s.Shards()[0].Wait(t.Context(),
			store.WaitOptions{Groups: []string{store.GroupInternal}, Timeout: time.Millisecond})
		require.NoError(t, err)
		require.Equal(t, []job.Queue{queue("a")}, queues, "another process is notified")
	})
}

func TestRunner_CancelsStepsAfterHalfOfTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		r := internaljobs.New(internaljobs.Options{
			Store: s, Grace: 4 * time.Second, Logger: slog.New(slog.DiscardHandler),
			Handlers: map[string]internaljobs.Handler{
				topic: func(ctx context.Context, _ *store.ClaimedJob) (internaljobs.Step, error) {
					<-ctx.Done()
					return internaljobs.Step{}, ctx.Err()
				},
			},
		})
		var all sync.WaitGroup
		all.Go(func() { r.Run(ctx) })
		insert(t, s, newJob("a", "a", ""))
		time.Sleep(time.Second)
		cancel()
		began := time.Now()
		all.Wait()
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, job.Ready, get(t, s, "a").State, "it is released")
	})
}

func TestRunner_SharesJobsWithOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{Shards: 2})
		c := newCounter(20, 100*time.Millisecond)
		start(t, s, c.step, new(testkit.Log))
		start(t, s, c.step, new(testkit.Log))
		for i := range 30 {
			insert(t, s, newJob(fmt.Sprint("job-", i), fmt.Sprint("lane-", i%5), "0"))
		}
		time.Sleep(time.Minute)
		for i := range 30 {
			require.Equal(t, upTo(20), c.of(fmt.Sprint("job-", i)))
		}
	})
}

// There are as many long jobs as workers.
func TestRunner_QueuesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		for i := range 4 {
			insert(t, s, newJob(fmt.Sprint("long-", i), fmt.Sprint("long-", i), "0"))
		}
		stop := start(t, s, func(_ context.Context, j *store.ClaimedJob) (internaljobs.Step, error) {
			time.Sleep(time.Second)
			return internaljobs.Step{Body: j.Body, Done: j.ID == "short"}, nil
		}, new(testkit.Log))
		time.Sleep(10 * time.Second)
		insert(t, s, newJob("short", "short", "0"))
		time.Sleep(10 * time.Second)
		require.Equal(t, job.Delivered, get(t, s, "short").State)
		require.NotEqual(t, job.Delivered, get(t, s, "long-0").State)
		stop()
	})
}

func TestRunner_RefusesABodyThatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		insert(t, s, newJob("large", "a", "0"))
		logged := new(testkit.Log)
		stop := start(t, s, func(context.Context, *store.ClaimedJob) (internaljobs.Step, error) {
			return internaljobs.Step{Body: make([]byte, job.MaxBody+1)}, nil
		}, logged)
		time.Sleep(10 * time.Second)
		stop()
		require.Equal(t, "0", string(get(t, s, "large").Body))
		require.Contains(t, logged.String(), "more than")
	})
}

// slowReply delays the replies to claims, or returns the error of their context.
type slowReply struct{ store.Store }

func (s slowReply) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return slowReplyShard{next} })
}

type slowReplyShard struct{ store.Shard }

func (s slowReplyShard) Claim(
	ctx context.Context, token store.Token, request store.ClaimRequest,
) (store.ClaimResult, error) {
	claimed, err := s.Shard.Claim(ctx, token, request)
	select {
	case <-time.After(time.Second):
		return claimed, err
	case <-ctx.Done():
		return store.ClaimResult{}, ctx.Err()
	}
}

func TestRunner_ReleasesWhatAClaimInFlightHasClaimedWhenItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		c := newCounter(1, 0)
		stop := start(t, slowReply{s}, c.step, new(testkit.Log))
		insert(t, s, newJob("a", "a", "0"))
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, job.Running, get(t, s, "a").State)
		stop()
		require.Equal(t, job.Ready, get(t, s, "a").State)
		require.Empty(t, get(t, s, "a").History)
		require.Empty(t, c.of("a"))
	})
}

// Jobs that failed here and were cancelled do not count for ever.
func TestRunner_PausesForJobsThatFailAfterManyOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		var mu sync.Mutex
		steps := make(map[string]int)
		start(t, s, func(_ context.Context, j *store.ClaimedJob) (internaljobs.Step, error) {
			mu.Lock()
			defer mu.Unlock()
			steps[j.ID]++
			return internaljobs.Step{}, errors.New("not now")
		}, new(testkit.Log))
		jobs := make([]store.NewJob, 1020)
		for i := range jobs {
			jobs[i] = newJob(fmt.Sprint("gone-", i), fmt.Sprint("lane-", i%20), "")
		}
		insert(t, s, jobs...)
		time.Sleep(time.Second)
		for i := range jobs {
			_, err := router.New(s).Cancel(t.Context(), jobs[i].Ref(), store.Cancellation{})
			require.NoError(t, err)
		}
		time.Sleep(time.Minute)
		insert(t, s, newJob("stays", "a", ""))
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		require.Greater(t, steps["stays"], 10)
		require.Less(t, steps["stays"], 100, "the pauses grow")
	})
}
