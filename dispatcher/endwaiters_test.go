package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

var (
	delivered = policy.Verdict{Kind: policy.Delivered}
	again     = policy.Verdict{Kind: policy.Again, Wait: time.Minute}
)

// process is a process with endWaiters that runs.
type process struct {
	*endWaiters
	*router.Router
	store *countingStore
	stop  func()
}

// newProcess starts a process on a store.
func newProcess(t *testing.T, s store.Store) *process {
	t.Helper()
	return newProcessOn(t, s, false)
}

func newProcessOn(t *testing.T, s store.Store, alone bool) *process {
	t.Helper()
	counting := &countingStore{Store: s}
	for _, shard := range s.Shards() {
		counting.shards = append(counting.shards, countingShard{shard, counting})
	}
	w := newEndWaiters(counting, alone, slog.New(slog.DiscardHandler))
	p := &process{endWaiters: w, Router: router.New(counting), store: counting}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	p.stop = func() { cancel(); <-done }
	t.Cleanup(p.stop)
	return p
}

// countingStore counts the calls of Known, and lets them fail.
type countingStore struct {
	store.Store
	shards []store.Shard
	calls  atomic.Int64
	failed atomic.Bool
}

func (s *countingStore) Shards() []store.Shard { return s.shards }

type countingShard struct {
	store.Shard
	of *countingStore
}

func (s countingShard) Known(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	s.of.calls.Add(1)
	if s.of.failed.Load() {
		return nil, &store.UnavailableError{Reason: "it is down"}
	}
	return s.Shard.Known(ctx, refs)
}

func ref(id string) job.Ref { return job.Ref{Namespace: job.DefaultNamespace, ID: id} }

func queue(id string) job.Queue {
	return job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "lane-" + id}
}

// insert registers a job, alone in its lane.
func (p *process) insert(t *testing.T, id string) {
	t.Helper()
	require.NoError(t, p.Insert(t.Context(), []store.NewJob{newJob(id)})[0].Err)
}

func newJob(id string) store.NewJob {
	return store.NewJob{New: job.New{Spec: job.Spec{ID: id, Queue: queue(id), URL: "https://a.example/"}}}
}

// claim claims a job.
func (p *process) claim(t *testing.T, id string) store.ClaimedJob {
	t.Helper()
	claimed, err := p.Shards()[p.ShardOf(queue(id))].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: queue(id), Max: 1, Timeout: time.Minute}}, Max: 1, MaxBytes: 1 << 20,
	})
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	return claimed.Jobs[0]
}

// settle settles a claimed job.
func (p *process) settle(t *testing.T, j store.ClaimedJob, verdict policy.Verdict) {
	t.Helper()
	exchange := store.Exchange{
		Queue:   p.Shards()[p.ShardOf(j.Queue)],
		Settled: func(s *store.Settlement) { p.MayHaveEnded(s.Ref, s) },
	}
	exchange.Settle(t.Context(), store.NewToken(), []store.Settlement{{
		Ref: j.Ref(), Queue: j.Queue, Lease: j.Lease, Verdict: verdict,
		Attempt: job.Attempt{N: 1, Kind: job.KindAttempt},
	}}, func(_ int, err error) { require.NoError(t, err) })
}

// Cancel cancels a job.
func (p *process) Cancel(ctx context.Context, ref job.Ref, c store.Cancellation) (job.Job, error) {
	cancelled, err := p.Router.Cancel(ctx, ref, c)
	if err == nil {
		p.MayHaveEnded(ref, nil)
	}
	return cancelled, err
}

// waited is the result of a Wait.
type waited struct {
	job  job.Job
	err  error
	took time.Duration
}

// wait calls Wait in a goroutine.
func (p *process) wait(ctx context.Context, id string, limit time.Duration) <-chan waited {
	result := make(chan waited, 1)
	began := time.Now()
	go func() {
		var last job.Job
		last.ID, last.Namespace = id, job.DefaultNamespace
		found, err := p.Wait(ctx, last, limit,
			func(ctx context.Context) (job.Job, error) { return p.Get(ctx, ref(id)) })
		result <- waited{found, err, time.Since(began)}
	}()
	synctest.Wait()
	return result
}

func newModel(shards int) store.Store {
	return storetest.NewModel(storetest.ModelOptions{Shards: shards})
}

func TestEndWaiters_ReturnsAtOnceWhenThisProcessEndsTheJob(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *process) job.State{
		"delivered": func(t *testing.T, p *process) job.State {
			t.Helper()
			p.settle(t, p.claim(t, "a"), delivered)
			return job.Delivered
		},
		"dead": func(t *testing.T, p *process) job.State {
			t.Helper()
			p.settle(t, p.claim(t, "a"), policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted})
			return job.Dead
		},
		"cancelled": func(t *testing.T, p *process) job.State {
			t.Helper()
			_, err := p.Cancel(t.Context(), ref("a"), store.Cancellation{})
			require.NoError(t, err)
			return job.Cancelled
		},
		"cancelled while it runs": func(t *testing.T, p *process) job.State {
			t.Helper()
			claimed := p.claim(t, "a")
			_, err := p.Cancel(t.Context(), ref("a"), store.Cancellation{})
			require.NoError(t, err)
			p.settle(t, claimed, again)
			return job.Cancelled
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProcess(t, newModel(4))
				p.insert(t, "a")
				first, second := p.wait(t.Context(), "a", time.Minute), p.wait(t.Context(), "a", time.Minute)
				time.Sleep(time.Second + 10*time.Millisecond)
				state := end(t, p)
				for _, result := range []waited{<-first, <-second} {
					require.NoError(t, result.err)
					require.Equal(t, state, result.job.State)
					require.Equal(t, time.Second+10*time.Millisecond, result.took)
				}
				require.Zero(t, p.Waiting())
			})
		})
	}
}

func TestEndWaiters_ReturnsSoonWhenAnotherProcessEndsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := newModel(4)
		p, other := newProcess(t, model), newProcess(t, model)
		for i := range 20 { // in different parts of the pause between two calls
			id := fmt.Sprint(i)
			p.insert(t, id)
			result := p.wait(t.Context(), id, time.Minute)
			lasts := time.Second + time.Duration(i)*13*time.Millisecond
			time.Sleep(lasts)
			other.settle(t, other.claim(t, id), delivered)
			got := <-result
			require.NoError(t, got.err)
			require.Equal(t, job.Delivered, got.job.State)
			require.LessOrEqual(t, got.took-lasts, pollEvery)
		}
		require.Zero(t, other.store.calls.Load(), "it has nobody who waits")
	})
}

// Topics that keep nothing, and purges, remove a job before those who wait for it can read how it ended.
func TestEndWaiters_ReturnsRemovedJobsAsTheyEnded(t *testing.T) {
	dead := policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}
	type found struct {
		state    job.State
		reason   policy.Reason
		attempts int
	}
	for name, c := range map[string]struct {
		end         func(t *testing.T, by *process)
		here, there found
		forgotten   found // by another process, of an id that the store does not remember
	}{
		"delivered": {
			func(t *testing.T, by *process) { t.Helper(); by.settle(t, by.claim(t, "a"), delivered) },
			found{job.Delivered, "", 1},
			found{job.Delivered, "", 0},
			found{},
		},
		"dead": {
			func(t *testing.T, by *process) { t.Helper(); by.settle(t, by.claim(t, "a"), dead) },
			found{job.Dead, policy.ReasonGaveUp, 1},
			found{job.Dead, "", 0},
			found{},
		},
		"cancelled while it runs": {func(t *testing.T, by *process) {
			t.Helper()
			claimed := by.claim(t, "a")
			_, err := by.Cancel(t.Context(), ref("a"), store.Cancellation{})
			require.NoError(t, err)
			time.Sleep(time.Second + pollEvery/2) // not at the time of a call
			by.settle(t, claimed, dead)
		}, found{job.Cancelled, job.ReasonCancelled, 1}, found{job.Cancelled, "", 0}, found{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, remembered := range []bool{true, false} {
				for _, here := range []bool{true, false} {
					synctest.Test(t, func(t *testing.T) {
						model := newModel(2)
						p, other := newProcess(t, model), newProcess(t, model)
						n := newJob("a")
						if remembered {
							n.Fingerprint = []byte("f")
						}
						require.NoError(t, p.Insert(t.Context(), []store.NewJob{n})[0].Err)
						result := p.wait(t.Context(), "a", time.Minute)
						by, want := other, c.there
						switch {
						case here:
							by, want = p, c.here
						case !remembered:
							want = c.forgotten
						}
						c.end(t, by)
						require.NoError(t, by.Purge(t.Context(), []store.Removal{{Ref: ref("a")}})[0])
						got := <-result
						if want.state == "" {
							require.ErrorIs(t, got.err, store.ErrNotFound)
							return
						}
						require.NoError(t, got.err)
						require.Equal(t, want, found{got.job.State, got.job.Reason, len(got.job.History)},
							"here: %v, remembered: %v", here, remembered)
						require.Equal(t, "lane-a", got.job.Lane)
					})
				}
			}
		})
	}
}

func TestEndWaiters_ReturnsTheJobAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, newModel(1))
		p.insert(t, "a")
		p.settle(t, p.claim(t, "a"), again)
		result := p.wait(t.Context(), "a", 30*time.Second)
		time.Sleep(time.Second)
		gone := errors.New("the client is gone")
		ctx, leave := context.WithCancelCause(t.Context())
		left := p.wait(ctx, "a", time.Minute)
		leave(gone)
		require.ErrorIs(t, (<-left).err, gone)
		require.Equal(t, 1, p.Waiting())

		got := <-result
		require.NoError(t, got.err)
		require.Equal(t, job.Scheduled, got.job.State)
		require.Equal(t, 1, got.job.Attempts)
		require.Equal(t, 30*time.Second, got.took)
		require.ErrorIs(t, (<-p.wait(t.Context(), "none", time.Minute)).err, store.ErrNotFound)
		require.Zero(t, (<-p.wait(t.Context(), "a", 0)).took)

		stopped, stays := p.wait(t.Context(), "a", time.Minute), p.claimWhenDue(t, "a")
		p.stop()
		got = <-stopped
		require.NoError(t, got.err)
		require.Equal(t, job.Running, got.job.State)
		require.Less(t, got.took, time.Minute)
		require.Equal(t, lastWait, (<-p.wait(t.Context(), "a", time.Minute)).took, "the process stops")
		require.Equal(t, lastWait/2, (<-p.wait(t.Context(), "a", lastWait/2)).took)
		last := p.wait(t.Context(), "a", time.Minute)
		time.Sleep(lastWait / 2)
		p.settle(t, stays, delivered)
		require.Equal(t, lastWait/2, (<-last).took, "results are recorded while the process stops")
		require.Equal(t, job.Delivered, (<-p.wait(t.Context(), "a", time.Minute)).job.State)
		require.Zero(t, p.Waiting())
	})
}

// claimWhenDue claims a job that waits for its retry.
func (p *process) claimWhenDue(t *testing.T, id string) store.ClaimedJob {
	t.Helper()
	_, err := p.Replace(t.Context(), ref(id), store.Replacement{Kind: job.EventRun, Due: new(job.TimeOrDelay)})
	require.NoError(t, err)
	return p.claim(t, id)
}

func TestEndWaiters_AThousandCallersCostFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, shards, seconds = 1000, 2, 10
		model := newModel(shards)
		p, other := newProcess(t, model), newProcess(t, model)
		var results [jobs]<-chan waited
		for i := range results {
			p.insert(t, fmt.Sprint(i))
			results[i] = p.wait(t.Context(), fmt.Sprint(i), time.Minute)
		}
		before := p.store.calls.Load()
		time.Sleep(seconds * time.Second)
		calls := p.store.calls.Load() - before
		require.Positive(t, calls)
		require.LessOrEqual(t, calls, int64(seconds*shards*time.Second/pollEvery*2),
			"two calls for more than %d jobs", store.MaxBatch)
		var ended sync.WaitGroup
		for i := range results {
			ended.Go(func() { other.settle(t, other.claim(t, fmt.Sprint(i)), delivered) })
		}
		ended.Wait()
		for i := range results {
			got := <-results[i]
			require.NoError(t, got.err)
			require.Equal(t, job.Delivered, got.job.State)
		}
		time.Sleep(time.Second)
		before = p.store.calls.Load()
		time.Sleep(time.Hour)
		require.Equal(t, before, p.store.calls.Load(), "nobody waits")
	})
}

func TestEndWaiters_CostsFewerCallsWhenNoOtherProcessUsesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcessOn(t, newModel(1), true)
		p.insert(t, "a")
		result := p.wait(t.Context(), "a", time.Minute)
		time.Sleep(30*time.Second + time.Millisecond)
		require.EqualValues(t, 15, p.store.calls.Load())
		p.settle(t, p.claim(t, "a"), delivered)
		require.Equal(t, 30*time.Second+time.Millisecond, (<-result).took)
	})
}

func TestEndWaiters_AFailingShardDelaysOnlyItsEndsByOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := newModel(1)
		p, other := newProcess(t, model), newProcess(t, model)
		p.insert(t, "own")
		p.insert(t, "others")
		p.store.failed.Store(true)
		own, others := p.wait(t.Context(), "own", time.Minute), p.wait(t.Context(), "others", time.Minute)
		other.settle(t, other.claim(t, "others"), delivered)
		time.Sleep(20 * time.Second)
		p.settle(t, p.claim(t, "own"), delivered)
		require.Equal(t, 20*time.Second, (<-own).took)
		require.Less(t, p.store.calls.Load(), int64(25), "it backs off")
		p.store.failed.Store(false)
		got := <-others
		require.Equal(t, job.Delivered, got.job.State)
		require.Less(t, got.took, 23*time.Second)
	})
}
