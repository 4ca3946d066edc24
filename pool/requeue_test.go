package pool_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// notifyCounter counts the queues that a pool passes on to others.
type notifyCounter struct {
	store.Store

	queues atomic.Int64
}

func (n *notifyCounter) Shards() []store.Shard {
	return storetest.WrapShards(n.Store,
		func(_ int, next store.Shard) store.Shard { return notifyCounterShard{next, n} })
}

type notifyCounterShard struct {
	store.Shard
	*notifyCounter
}

func (s notifyCounterShard) Notify(ctx context.Context, queues []job.Queue) error {
	s.queues.Add(int64(len(queues)))
	return s.Shard.Notify(ctx, queues)
}

// Settlements come all the time, so that one exchange follows the other.
func TestRequeue_NotifiesOthersDespiteABusyTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &notifyCounter{Store: newUnlimitedModel()}
		slow := &settleCounter{Store: s, took: 20 * time.Millisecond}
		fill(t, s, 9000, "busy/x")
		fill(t, s, 2, lanesOf(1, 100)...)
		carry(t, s)
		over := make(chan struct{})
		defer close(over)
		run(t, slow, delivererFunc(func(_ context.Context, r job.Request) policy.Result {
			if r.Queue.Topic != "busy" {
				<-over
			}
			time.Sleep(5 * time.Millisecond)
			return policy.Result{Status: 200}
		}), withPolicy(policy.Topic{Workers: 64, LaneConcurrency: 1000}))
		time.Sleep(200 * time.Millisecond)
		s.queues.Store(0)
		time.Sleep(300 * time.Millisecond) // the longest interval, and an exchange
		require.NotZero(t, s.queues.Load(), "jobs wait that another process could attempt")
	})
}
