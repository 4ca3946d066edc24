package carrier_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// repairStore is a store whose Repair returns the given results in order and records the times of the calls.
type repairStore struct {
	store.Store
	answers []func() (store.RepairResult, error)

	mu    sync.Mutex
	calls []time.Time
}

func (c *repairStore) Shards() []store.Shard {
	return storetest.WrapShards(c.Store, func(_ int, next store.Shard) store.Shard { return repairShard{next, c} })
}

type repairShard struct {
	store.Shard
	*repairStore
}

func (c repairShard) Repair(context.Context) (store.RepairResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, time.Now())
	return c.answers[min(len(c.calls), len(c.answers))-1]()
}

func (c *repairStore) repairTimes() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

func repairIn(d time.Duration) func() (store.RepairResult, error) {
	return func() (store.RepairResult, error) { return store.RepairResult{Wait: d}, nil }
}

func TestRepair_IsCalledWhenDueAndRetriedAfterAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := func() (store.RepairResult, error) { return store.RepairResult{}, errors.New("broken") }
		s := &repairStore{
			Store:   model(1),
			answers: []func() (store.RepairResult, error){repairIn(3 * time.Second), fails, repairIn(-1)},
		}
		run(t, s)
		time.Sleep(time.Minute)
		synctest.Wait()
		calls := s.repairTimes()
		require.Len(t, calls, 3, "none after a negative wait")
		require.Equal(t, 3*time.Second, calls[1].Sub(calls[0]))
		require.Greater(t, calls[2].Sub(calls[1]), time.Duration(0))
		require.Less(t, calls[2].Sub(calls[1]), time.Second)
	})
}

func TestRepair_IsCalledByTheLeaderOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := model(1)
		first := &repairStore{Store: shared, answers: []func() (store.RepairResult, error){repairIn(time.Second)}}
		second := &repairStore{Store: shared, answers: []func() (store.RepairResult, error){repairIn(time.Second)}}
		stop := run(t, first)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		run(t, second)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.InDelta(t, 20, len(first.repairTimes()), 1)
		require.Empty(t, second.repairTimes())
		stop()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.InDelta(t, 20, len(first.repairTimes()), 1)
		require.InDelta(t, 9, len(second.repairTimes()), 2)
	})
}
