package transfer_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/transfer"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// distant is a store whose carrier locks take some time to take and to extend.
type distant struct {
	store.Store
	delay time.Duration
}

func (s *distant) Shards() []store.Shard {
	return storetest.WrapShards(s.Store,
		func(_ int, next store.Shard) store.Shard { return distantShard{next, s.delay} })
}

type distantShard struct {
	store.Shard
	delay time.Duration
}

func (s distantShard) Lead(ctx context.Context) (store.Leadership, error) {
	time.Sleep(s.delay)
	l, err := s.Shard.Lead(ctx)
	return distantLock{l, s.delay}, err
}

// List makes an export slow.
func (s distantShard) List(ctx context.Context, f store.Filter) (store.Page, error) {
	time.Sleep(s.delay)
	return s.Shard.List(ctx, f)
}

type distantLock struct {
	store.Leadership
	delay time.Duration
}

func (l distantLock) Extend(ctx context.Context) error {
	time.Sleep(l.delay)
	return l.Leadership.Extend(ctx)
}

func TestLock_OfManyShardsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := transfer.Export(t.Context(), io.Discard, options(&distant{model(256), 20 * time.Millisecond}))
		require.NoError(t, err)
		require.Greater(t, time.Since(began), 3*store.LeadershipTTL)
	})
}

// withoutProgress is a store in which jobs have lost their progress, but not their history.
type withoutProgress struct{ store.Store }

func (s withoutProgress) Shards() []store.Shard {
	return storetest.WrapShards(s.Store,
		func(_ int, next store.Shard) store.Shard { return withoutProgressShard{next} })
}

type withoutProgressShard struct{ store.Shard }

func (s withoutProgressShard) GetRecords(ctx context.Context, refs []job.Ref) ([]store.Record, error) {
	records, err := s.Shard.GetRecords(ctx, refs)
	for i := range records {
		records[i].Attempts, records[i].FailedAttempts, records[i].Version = 0, 0, 1
	}
	return records, err
}

func TestExport_OfJobsThatHaveLostTheirProgress(t *testing.T) {
	s := model(1)
	insert(t, s, newJob("a", queues[0]), newJob("b", queues[0]))
	for _, c := range claim(t, s, queues[0], 2) {
		settle(t, s, c, policy.Verdict{Kind: policy.Again, Wait: time.Minute})
	}
	_, err := storetest.Edit(t.Context(), s.Shards()[0], store.NewToken(), job.Ref{Namespace: "default", ID: "b"},
		func(s *job.Spec) { s.URL = "https://o.example/" })
	require.NoError(t, err)
	file, _ := export(t, options(withoutProgress{s}))
	require.Positive(t, bytes.Count(file, []byte(`"history"`)))
	to := options(model(1))
	require.EqualValues(t, 2, importFile(t, file, to).Created)
	c := read(t, to, "default")
	a, b := c.jobs[job.Ref{Namespace: "default", ID: "a"}], c.jobs[job.Ref{Namespace: "default", ID: "b"}]
	require.Equal(t, 1, a.Attempts)
	require.EqualValues(t, 2, b.Version)
}
