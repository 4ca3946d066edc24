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

func (l liar) TopicStats(ctx context.Context, shard int, f store.StatsFilter) ([]store.TopicStats, error) {
	rows, err := l.Store.TopicStats(ctx, shard, f)
	for i := range rows {
		rows[i].Delivered = 0
	}
	return rows, err
}

func TestCheckFindsABreach(t *testing.T) {
	m := storetest.NewModel(storetest.ModelOptions{})
	_, err := m.Insert(t.Context(), 0, store.NewToken(), []store.NewJob{entry("a", 0), entry("b", 0)})
	require.NoError(t, err)
	claimed, err := m.Claim(t.Context(), 0, store.NewToken(), all)
	require.NoError(t, err)
	h := claimed.Jobs[0]
	_, _, err = m.Settle(t.Context(), 0, store.NewToken(), []store.Settlement{
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

func (f forgetful) LaneStats(ctx context.Context, shard int, namespace, topic, after string, limit int) ([]store.LaneStats, error) {
	if f.lanes {
		return nil, nil
	}
	return f.Store.LaneStats(ctx, shard, namespace, topic, after, limit)
}

func (f forgetful) List(ctx context.Context, shard int, filter store.Filter) (store.Page, error) {
	page, err := f.Store.List(ctx, shard, filter)
	for i := range page.Jobs {
		if f.reason {
			page.Jobs[i].Reason = ""
		}
	}
	return page, err
}

func (f forgetful) GetLanes(ctx context.Context, shard int, queues []job.Queue) ([]store.Lane, error) {
	if f.settings {
		return make([]store.Lane, len(queues)), nil
	}
	return f.Store.GetLanes(ctx, shard, queues)
}

func TestCheckFindsWhatIsWrongWithLanesAndReasons(t *testing.T) {
	m := storetest.NewModel(storetest.ModelOptions{})
	_, err := m.Insert(t.Context(), 0, store.NewToken(), []store.NewJob{entry("a", 0), entry("b", time.Hour)})
	require.NoError(t, err)
	_, err = m.PutLane(t.Context(), 0, store.NewToken(), store.Lane{Queue: queue, Settings: policy.Lane{LaneConcurrency: 1}})
	require.NoError(t, err)
	_, err = m.Cancel(t.Context(), 0, store.NewToken(), job.Ref{Namespace: "default", ID: "a"})
	require.NoError(t, err)
	require.NoError(t, storetest.Check(t.Context(), forgetful{Store: m}))
	require.ErrorContains(t, storetest.Check(t.Context(), forgetful{Store: m, lanes: true}), "the lanes count 0 waiting")
	require.ErrorContains(t, storetest.Check(t.Context(), forgetful{Store: m, reason: true}), "a is cancelled because of")
	require.ErrorContains(t, storetest.Check(t.Context(), forgetful{Store: m, settings: true}), "are listed, and read as")
}
