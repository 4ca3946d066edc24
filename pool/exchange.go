package pool

import (
	"context"
	"errors"
	"time"

	"github.com/ringback/ringback/store"
)

// exchange settles ended attempts and claims jobs for free workers; false: nothing to do.
func (s *shardLoop) exchange(claimCtx, workCtx, flushCtx context.Context) bool {
	items, request, more := s.prepareExchange()
	s.askPermits(claimCtx)
	if len(items) == 0 && len(request.Queues) == 0 {
		return more
	}
	token := s.p.owner.NewToken()
	at, errs, claimed, err := s.retryUntilAnswered(flushCtx, token, items, request)
	switch {
	case err == nil:
		s.logRefused(items, errs)
		s.startClaimed(workCtx, flushCtx, request, claimed, at)
	case flushCtx.Err() != nil:
		s.abandon(items, request)
	default:
		s.p.log.Error("settle/claim rejected, retrying items one by one", "shard", s.shard, "err", err)
		s.retryOneByOne(workCtx, flushCtx, token, items, request)
	}
	return true
}

// callTimes are the times of a call: of its first try, which may have taken effect, and of the try that was answered.
type callTimes struct{ first, last time.Time }

// retryUntilAnswered settles and claims, and repeats the call under the same token while the store is unavailable: it
// may have taken effect, and the shard waits for its result. An error is a rejection by the store, or the end of ctx.
func (s *shardLoop) retryUntilAnswered(
	ctx context.Context, token store.Token, items []settlement, request store.ClaimRequest,
) (at callTimes, errs []error, claimed store.ClaimResult, err error) {
	at.first = time.Now()
	err = s.exchanges.Retry(ctx, "settle and claim", func(ctx context.Context) error {
		at.last = time.Now()
		errs, claimed, err = s.settleAndClaim(ctx, token, items, request)
		s.recordCallTime(time.Since(at.last))
		return err
	})
	return at, errs, claimed, err
}

// retryOneByOne repeats a rejected exchange in parts, so that a job or queue that cannot be read stops no other: first
// the settlements under the same token, then one claim per queue. A queue that cannot be claimed from waits for its
// next wake-up.
func (s *shardLoop) retryOneByOne(
	workCtx, flushCtx context.Context, token store.Token, items []settlement, request store.ClaimRequest,
) {
	items = s.settle(flushCtx, token, items)
	for ; len(request.Queues) > 0 && flushCtx.Err() == nil; request.Queues = request.Queues[1:] {
		one := request
		one.Queues, one.Max, one.MaxBytes = request.Queues[:1], request.Queues[0].Max, s.renewBytes()
		at, _, claimed, err := s.retryUntilAnswered(flushCtx, s.p.owner.NewToken(), nil, one)
		if err != nil {
			if flushCtx.Err() != nil {
				break
			}
			s.p.log.Error("claim rejected, queue skipped until its next wake-up", "queue",
				one.Queues[0].Queue.String(), "err", err)
			claimed = store.ClaimResult{} // releases the reservation
		}
		s.startClaimed(workCtx, flushCtx, one, claimed, at)
	}
	s.abandon(items, request)
}

// settle writes settlements, one by one after a rejection. A job that cannot be settled is due again when its lease
// expires. It returns the settlements that were not written when ctx ended.
func (s *shardLoop) settle(ctx context.Context, token store.Token, items []settlement) (left []settlement) {
	if len(items) == 0 {
		return nil
	}
	s.exchanges.Settle(ctx, token, settlementsOf(items), func(i int, err error) {
		if err != nil && ctx.Err() != nil && (store.IsUnavailable(err) || errors.Is(err, context.Canceled)) {
			left = append(left, items[i])
		} else {
			s.logRefused(items[i:i+1], []error{err})
		}
	})
	return left
}

func settlementsOf(items []settlement) []store.Settlement {
	all := make([]store.Settlement, len(items))
	for i := range items {
		all[i] = items[i].Settlement
	}
	return all
}

// recordCallTime records the duration of a call to the shard.
func (s *shardLoop) recordCallTime(took time.Duration) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.scheduler.RecordCall(took)
}

// settleAndClaim makes the call. Its context outlasts those of claims and attempts, so that results are recorded while
// the process stops.
func (s *shardLoop) settleAndClaim(
	ctx context.Context, token store.Token, items []settlement, request store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	next := &request
	if len(request.Queues) == 0 {
		next = nil
	}
	return s.exchanges.SettleAndClaim(ctx, token, settlementsOf(items), next)
}

// logRefused logs refused settlements.
func (s *shardLoop) logRefused(items []settlement, errs []error) {
	for i, err := range errs {
		if err == nil {
			continue
		}
		if items[i].LaneChange.Cooldown > 0 {
			s.p.mu.Lock()
			items[i].lane.EndCooldown()
			s.p.mu.Unlock()
		}
		s.p.log.Warn("settlement rejected, result not recorded", "job", items[i].Ref.ID, "topic", items[i].Queue.Topic,
			"lane", items[i].Queue.Lane, "err", err)
	}
}

// abandon gives up what is left of an exchange when the grace is over: its jobs come back when their leases expire.
func (s *shardLoop) abandon(items []settlement, request store.ClaimRequest) {
	if len(request.Queues) > 0 {
		s.p.log.Warn("claims abandoned, jobs that they took are due again when their leases expire", "shard", s.shard,
			"queues", len(request.Queues))
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.unsettled += len(items)
	s.scheduler.Abandon(request)
}
