package ends

import (
	"context"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// watchedStore is a store whose shards report to a Watcher.
type watchedStore struct {
	store.Store

	shards []store.Shard
}

// Shards implements store.Store.
func (s *watchedStore) Shards() []store.Shard { return s.shards }

// watchedShard reports which jobs may have ended by its calls.
type watchedShard struct {
	store.Shard

	watcher *Watcher
}

// Settle implements store.Queue. Any verdict may end a job, because it may be marked as cancelled.
func (s watchedShard) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	errs, claimed, err := s.Shard.Settle(ctx, token, items, next)
	if s.watcher.waiting.Load() > 0 {
		for i, refused := range errs {
			if refused == nil {
				s.watcher.notify(items[i].Ref, &items[i])
			}
		}
	}
	return errs, claimed, err
}

// Cancel implements store.Jobs.
func (s watchedShard) Cancel(
	ctx context.Context, token store.Token, ref job.Ref, cancellation store.Cancellation,
) (job.Job, error) {
	cancelled, err := s.Shard.Cancel(ctx, token, ref, cancellation)
	if err == nil && s.watcher.waiting.Load() > 0 {
		s.watcher.notify(ref, nil)
	}
	return cancelled, err
}
