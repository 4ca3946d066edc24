package dispatcher_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// batchRecorder records the number of jobs that each call reads or changes.
type batchRecorder struct {
	store.Store
	listed, worked []int
}

func (p *batchRecorder) Shards() []store.Shard {
	return storetest.WrapShards(p.Store, func(_ int, next store.Shard) store.Shard { return batchRecorderShard{next, p} })
}

type batchRecorderShard struct {
	store.Shard
	*batchRecorder
}

func (s batchRecorderShard) List(ctx context.Context, f store.Filter) (store.Page, error) {
	s.listed = append(s.listed, f.Limit)
	return s.Shard.List(ctx, f)
}

func (s batchRecorderShard) Revive(ctx context.Context, token store.Token, items []store.Revival) ([]store.ReviveResult, error) {
	s.worked = append(s.worked, len(items))
	return s.Shard.Revive(ctx, token, items)
}

func (s batchRecorderShard) Purge(ctx context.Context, token store.Token, items []store.Removal) ([]error, error) {
	s.worked = append(s.worked, len(items))
	return s.Shard.Purge(ctx, token, items)
}

func TestBulk_BatchesByBytesAndNumber(t *testing.T) {
	large := make([]byte, 1<<20)
	for _, c := range []struct {
		letters        int
		body           []byte
		listed, worked []int
	}{
		{1300, []byte("small"), []int{16, 32, 64, 128, 256, 500, 500}, []int{16, 32, 64, 128, 256, 500, 304}},
		{1000, make([]byte, 40_000), []int{16, 32, 64, 104, 104, 104, 104, 104, 104, 104, 104, 104}, nil},
		{30, large, []int{16, 4, 4, 4, 4}, []int{4, 4, 4, 4, 4, 4, 4, 2}},
		{2, make([]byte, 5<<20), []int{16}, []int{1, 1}},
	} {
		ids := make([]string, c.letters)
		for i := range ids {
			ids[i] = fmt.Sprintf("orders-a-500-%04d", i)
		}
		begin := func(t *testing.T) (*fixture, *batchRecorder) {
			s := &batchRecorder{Store: model()}
			r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
			r.registerDead(t, c.letters, "orders/a", 500, func(_ int, n *job.New) { n.BodyKind, n.Body = job.BodyText, c.body })
			r.pauseTopics(t, "orders")
			s.listed = nil
			return r, s
		}
		check := func(t *testing.T, s *batchRecorder, worked store.BulkResult, err error) {
			t.Helper()
			require.NoError(t, err)
			require.EqualValues(t, c.letters, worked.Done)
			if c.worked != nil {
				require.Equal(t, c.worked, s.worked)
			}
			for _, n := range s.worked {
				require.LessOrEqual(t, (n-1)*len(c.body), 4<<20)
			}
		}
		for name, which := range map[string]store.Selection{"all": everyDeadLetter(), "ids": deadLetters(ids...)} {
			t.Run(fmt.Sprintf("%s %d B", name, len(c.body)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, s := begin(t)
					worked, err := r.ReviveDead(t.Context(), which, store.RevivePlan{})
					check(t, s, worked, err)
					if name == "all" {
						require.Equal(t, c.listed, s.listed)
					}
				})
				synctest.Test(t, func(t *testing.T) {
					r, s := begin(t)
					worked, err := r.PurgeDead(t.Context(), which)
					check(t, s, worked, err)
				})
			})
		}
	}
}

func TestBulk_ReadsInSmallBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &readCounter{Store: model()}
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 300, "orders/a", 500)
		ids := make([]string, 300)
		for i := range ids {
			ids[i] = fmt.Sprintf("orders-a-500-%04d", i)
		}
		worked, err := r.ReviveDead(t.Context(), deadLetters(ids...), store.RevivePlan{URL: "https://new.example/"})
		require.NoError(t, err)
		require.EqualValues(t, 300, worked.Done)
		require.LessOrEqual(t, s.most.Load(), int32(32))
	})
}
