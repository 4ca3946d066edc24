package storetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// liar is a store that forgets to count an end.
type liar struct{ store.Store }

func (l liar) Shards() []store.Shard {
	return storetest.WrapShards(l.Store, func(_ int, next store.Shard) store.Shard { return liarShard{next, l} })
}

type liarShard struct {
	store.Shard
	liar
}

func (l liarShard) TopicStats(ctx context.Context, f store.StatsFilter) ([]store.TopicStats, error) {
	rows, err := l.Shard.TopicStats(ctx, f)
	for i := range rows {
		rows[i].Delivered = 0
	}
	return rows, err
}

func TestCheckFindsABreach(t *testing.T) {
	m := storetest.NewModel(storetest.ModelOptions{})
	_, err := m.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a", 0), entry("b", 0)})
	require.NoError(t, err)
	claimed, err := m.Shards()[0].Claim(t.Context(), store.NewToken(), all)
	require.NoError(t, err)
	h := claimed.Jobs[0]
	_, _, err = m.Shards()[0].Settle(t.Context(), store.NewToken(), []store.Settlement{
		{Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease, Verdict: policy.Verdict{Kind: policy.Delivered}},
	}, nil)
	require.NoError(t, err)
	require.NoError(t, storetest.Check(t.Context(), m))
	require.ErrorContains(t, storetest.Check(t.Context(), liar{m}), "registered 2, but the places hold 1")
}

// forgetful is a store that says nothing of a lane's jobs, of a job's reason, and of a lane's settings.
type forgetful struct {
	store.Store
	lanes, reason, settings bool
}

func (f forgetful) Shards() []store.Shard {
	return storetest.WrapShards(f.Store, func(_ int, next store.Shard) store.Shard { return forgetfulShard{next, f} })
}

type forgetfulShard struct {
	store.Shard
	forgetful
}

func (f forgetfulShard) LaneStats(ctx context.Context, namespace, topic, after string, limit int) ([]store.LaneStats, error) {
	if f.lanes {
		return nil, nil
	}
	return f.Shard.LaneStats(ctx, namespace, topic, after, limit)
}

func (f forgetfulShard) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	page, err := f.Shard.List(ctx, filter)
	for i := range page.Jobs {
		if f.reason {
			page.Jobs[i].Reason = ""
		}
	}
	return page, err
}

func (f forgetfulShard) GetLanes(ctx context.Context, queues []job.Queue) ([]store.Lane, error) {
	if f.settings {
		return make([]store.Lane, len(queues)), nil
	}
	return f.Shard.GetLanes(ctx, queues)
}

func TestCheckFindsWhatIsWrongWithLanesAndReasons(t *testing.T) {
	m := storetest.NewModel(storetest.ModelOptions{})
	_, err := m.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a", 0), entry("b", time.Hour)})
	require.NoError(t, err)
	_, err = m.Shards()[0].PutLane(t.Context(), store.NewToken(), store.Lane{Queue: queue, Settings: policy.Lane{LaneConcurrency: 1}})
	require.NoError(t, err)
	_, err = m.Shards()[0].Cancel(t.Context(), store.NewToken(), job.Ref{Namespace: "default", ID: "a"})
	require.NoError(t, err)
	require.NoError(t, storetest.Check(t.Context(), forgetful{Store: m}))
	require.ErrorContains(t, storetest.Check(t.Context(), forgetful{Store: m, lanes: true}), "the lanes count 0 waiting")
	require.ErrorContains(t, storetest.Check(t.Context(), forgetful{Store: m, reason: true}), "a is cancelled because of")
	require.ErrorContains(t, storetest.Check(t.Context(), forgetful{Store: m, settings: true}), "are listed, and read as")
}
