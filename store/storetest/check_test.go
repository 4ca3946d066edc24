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

// noDelivered is a store that does not count delivered jobs.
type noDelivered struct{ store.Store }

func (l noDelivered) Shards() []store.Shard {
	return storetest.WrapShards(l.Store, func(_ int, next store.Shard) store.Shard { return noDeliveredShard{next, l} })
}

type noDeliveredShard struct {
	store.Shard
	noDelivered
}

func (l noDeliveredShard) TopicStats(ctx context.Context, f store.StatsFilter) ([]store.TopicStats, error) {
	rows, err := l.Shard.TopicStats(ctx, f)
	for i := range rows {
		rows[i].Delivered = 0
	}
	return rows, err
}

func TestCheck_FindsMissingCount(t *testing.T) {
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
	require.ErrorContains(t, storetest.Check(t.Context(), noDelivered{m}), "registered 2, but the states add up to 1")
}

// blankStore is a store that leaves out lanes, reasons of jobs, or settings of lanes.
type blankStore struct {
	store.Store
	lanes, reason, settings bool
}

func (f blankStore) Shards() []store.Shard {
	return storetest.WrapShards(f.Store, func(_ int, next store.Shard) store.Shard { return blankShard{next, f} })
}

type blankShard struct {
	store.Shard
	blankStore
}

func (f blankShard) LaneStats(
	ctx context.Context, namespace, topic, after string, limit int,
) ([]store.LaneStats, error) {
	if f.lanes {
		return nil, nil
	}
	return f.Shard.LaneStats(ctx, namespace, topic, after, limit)
}

func (f blankShard) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	page, err := f.Shard.List(ctx, filter)
	for i := range page.Jobs {
		if f.reason {
			page.Jobs[i].Reason = ""
		}
	}
	return page, err
}

func (f blankShard) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	if f.settings {
		return make([]store.Document, len(keys)), nil
	}
	return f.Shard.GetDocuments(ctx, keys)
}

func TestCheck_FindsWrongLanesReasonsAndSettings(t *testing.T) {
	m := storetest.NewModel(storetest.ModelOptions{})
	_, err := m.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a", 0), entry("b", time.Hour)})
	require.NoError(t, err)
	_, err = store.PutLane(t.Context(), m.Shards()[0], store.NewToken(),
		store.Lane{Queue: queue, Settings: policy.Lane{LaneConcurrency: 1}})
	require.NoError(t, err)
	_, err = m.Shards()[0].Cancel(t.Context(), store.NewToken(),
		job.Ref{Namespace: "default", ID: "a"}, store.Cancellation{})
	require.NoError(t, err)
	require.NoError(t, storetest.Check(t.Context(), blankStore{Store: m}))
	require.ErrorContains(t, storetest.Check(t.Context(), blankStore{Store: m, lanes: true}),
		"the lanes count 0 waiting")
	require.ErrorContains(t, storetest.Check(t.Context(), blankStore{Store: m, reason: true}),
		"a is cancelled because of")
	require.ErrorContains(t, storetest.Check(t.Context(), blankStore{Store: m, settings: true}),
		"are listed, and read as")
}
