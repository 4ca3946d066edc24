package transfer_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/transfer"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// blinking is a store that is unavailable for every other call that reads jobs or documents by their names, or jobs in
// a list.
type blinking struct {
	store.Store

	calls atomic.Int64
}

func (s *blinking) blink() error {
	if s.calls.Add(1)%2 == 1 {
		return store.ErrUnavailable
	}
	return nil
}

func (s *blinking) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	if err := s.blink(); err != nil {
		return nil, err
	}
	return s.Store.GetDocuments(ctx, keys)
}

func (s *blinking) Shards() []store.Shard {
	return storetest.WrapShards(s.Store,
		func(_ int, next store.Shard) store.Shard { return &blinkingShard{Shard: next} })
}

type blinkingShard struct {
	store.Shard

	known, records, list blinking
}

func (s *blinkingShard) Known(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	if err := s.known.blink(); err != nil {
		return nil, err
	}
	return s.Shard.Known(ctx, refs)
}

func (s *blinkingShard) GetRecords(ctx context.Context, refs []job.Ref) ([]store.Record, error) {
	if err := s.records.blink(); err != nil {
		return nil, err
	}
	return s.Shard.GetRecords(ctx, refs)
}

func (s *blinkingShard) List(ctx context.Context, f store.Filter) (store.Page, error) {
	if err := s.list.blink(); err != nil {
		return store.Page{}, err
	}
	return s.Shard.List(ctx, f)
}

// What comes from a pipe cannot be repeated.
func TestTransfer_WaitsForStoresThatAreUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := model(1)
		put(t, from, store.KindTopic, "default", "orders", `{}`)
		insert(t, from, newJob("a", queues[0]), newJob("b", queues[2]))
		file, _ := export(t, options(&blinking{Store: from}))
		to := options(&blinking{Store: model(3)})
		for range 2 { // the second time it meets the jobs
			_, err := transfer.Check(t.Context(), bytes.NewReader(file), to)
			require.NoError(t, err)
			result, err := transfer.Import(t.Context(), bytes.NewReader(file), to)
			require.NoError(t, err)
			require.EqualValues(t, 2, result.Created+result.Existing)
			file, _ = export(t, options(&blinking{Store: from}))
		}
	})
}
