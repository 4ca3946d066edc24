package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func TestModel(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Engine {
		c := &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
		m := storetest.NewModel(storetest.ModelOptions{Shards: 3, Now: c.now})
		return storetest.Engine{
			Store: m, Advance: c.advance, Step: m.Step, Now: m.Clock, Defaults: policy.Builtin(),
			Reopen: func() store.Store { return m },
		}
	})
}

func TestModel_WithRealClock(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Engine {
		return storetest.Engine{Store: storetest.NewModel(storetest.ModelOptions{}), Defaults: policy.Builtin()}
	})
}

var queue = job.Queue{Namespace: "default", Topic: "orders", Lane: "a"}

func entry(id string, delay time.Duration) store.NewJob {
	return store.NewJob{New: job.New{Spec: job.Spec{ID: id, Queue: queue}, Delay: delay}}
}

var all = store.ClaimRequest{
	Queues: []store.QueueClaim{{Queue: queue, Max: store.MaxBatch, Timeout: time.Minute}},
	Max:    store.MaxBatch, MaxBytes: 1 << 20,
}

// A job from insert to claim in fake time: Wait blocks on channels and timers only.
func TestModel_RunsInSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		m := storetest.NewModel(storetest.ModelOptions{})
		_, err := m.Shards()[0].Insert(ctx, store.NewToken(), []store.NewJob{entry("a", 25*time.Hour)})
		require.NoError(t, err)
		start := time.Now()
		for time.Since(start) < 25*time.Hour { // a carrier
			carried, err := m.Shards()[0].Carry(ctx, store.NewToken(), store.CarryOptions{})
			require.NoError(t, err)
			wakeup, err := m.Shards()[0].Wait(ctx,
				store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: max(carried.Next, time.Second)})
			require.NoError(t, err)
			require.Empty(t, wakeup)
		}
		_, err = m.Shards()[0].Carry(ctx, store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		wakeup, err := m.Shards()[0].Wait(ctx, store.WaitOptions{Groups: []string{store.GroupPush}})
		require.NoError(t, err)
		require.Equal(t, []job.Queue{queue}, wakeup)
		claimed, err := m.Shards()[0].Claim(ctx, store.NewToken(), all)
		require.NoError(t, err)
		require.Len(t, claimed.Jobs, 1)
		require.Equal(t, 25*time.Hour, time.Since(start), "neither early nor late")
		require.Zero(t, claimed.Jobs[0].Age)
	})
}

func TestModel_WaitServesLongestWaiterFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		var order []int
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				wakeup, err := m.Shards()[0].Wait(t.Context(), store.WaitOptions{Groups: []string{store.GroupPush}})
				require.NoError(t, err)
				require.Len(t, wakeup, 1)
				order = append(order, i)
			})
			synctest.Wait()
		}
		for i := range 3 {
			e := entry(fmt.Sprint(i), 0)
			e.Lane = fmt.Sprint(i)
			_, err := m.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{e})
			require.NoError(t, err)
			synctest.Wait()
		}
		wg.Wait()
		require.Equal(t, []int{0, 1, 2}, order)
	})
}

func TestModel_CloseEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		answer := make(chan error, 1)
		go func() {
			_, err := m.Shards()[0].Wait(context.Background(),
				store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Hour})
			answer <- err
		}()
		synctest.Wait()
		require.NoError(t, m.Close())
		require.ErrorIs(t, <-answer, store.ErrUnavailable)
	})
}

func TestModel_HandlesManyJobs(t *testing.T) {
	if testing.Short() {
		return
	}
	const n = 30_000
	m := storetest.NewModel(storetest.ModelOptions{})
	_, err := store.PutTopic(t.Context(), m,
		store.Topic{Namespace: "default", Name: "orders", Policy: policy.Topic{LaneConcurrency: 10_000}})
	require.NoError(t, err)
	for start := 0; start < n; start += 500 {
		var batch []store.NewJob
		for i := range 500 {
			batch = append(batch, entry(fmt.Sprint(start+i), 0))
		}
		_, err := m.Shards()[0].Insert(t.Context(), store.NewToken(), batch)
		require.NoError(t, err)
	}
	request := all
	var items []store.Settlement
	for done := 0; done < n; {
		errs, claimed, err := m.Shards()[0].Settle(t.Context(), store.NewToken(), items, &request)
		require.NoError(t, errors.Join(append(errs, err)...))
		done += len(items)
		items = items[:0]
		for _, h := range claimed.Jobs {
			items = append(items, store.Settlement{
				Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease,
				Verdict: policy.Verdict{Kind: policy.Delivered},
			})
		}
	}
}
