package pool

import (
	"context"
	"errors"
	"time"

	"github.com/ringback/ringback/store"
)

// exchange settles what ended and claims for the room there is; false when there is nothing to do.
func (s *shardLoop) exchange(claiming, ctx, work context.Context) bool {
	items, request, more := s.prepareExchange()
	s.askPermits(claiming)
	if len(items) == 0 && len(request.Queues) == 0 {
		return more
	}
	token := s.p.owner.NewToken()
	at, errs, claimed, err := s.retryUntilAnswered(ctx, token, items, request)
	switch {
	case err == nil:
		s.logRefused(items, errs)
		s.startClaimed(ctx, work, request, claimed, at)
	case ctx.Err() != nil:
		s.abandon(items, request)
	default:
		s.p.log.Error("settle/claim rejected, retrying items one by one", "shard", s.shard, "err", err)
		s.retryOneByOne(ctx, work, token, items, request)
	}
	return true
}

// callTimes is when a call was made: the first time, which may be the one that took effect, and the time that was answered.
type callTimes struct{ first, last time.Time }

// retryUntilAnswered settles and claims again and again while the store is away, under the same token: the call may have taken effect, and
// nothing else of this shard goes on before it is known. An error is another fault of the store's, or ctx ended.
func (s *shardLoop) retryUntilAnswered(ctx context.Context, token store.Token, items []settlement, request store.ClaimRequest) (at callTimes, errs []error, claimed store.ClaimResult, err error) {
	at.first = time.Now()
	err = s.retryWhileUnavailable(ctx, "settle and claim", func(ctx context.Context) error {
		at.last = time.Now()
		errs, claimed, err = s.settleAndClaim(ctx, token, items, request)
		s.recordCallTime(time.Since(at.last))
		return err
	})
	return at, errs, claimed, err
}

// retryWhileUnavailable makes a call again and again while the store is away. An error is another fault of the store's, or ctx ended. what
// names the call in the log.
func (s *shardLoop) retryWhileUnavailable(ctx context.Context, what string, call func(context.Context) error) error {
	var pause store.Backoff
	for {
		err := withTimeout(ctx, call)
		if err == nil || ctx.Err() != nil || !isUnavailable(err) {
			return err
		}
		s.p.log.Log(ctx, pause.Level(), "store unavailable, retrying", "call", what, "shard", s.shard, "err", err)
		if !pause.Wait(ctx) {
			return err
		}
	}
}

// callTimeout bounds one call to the store.
const callTimeout = 10 * time.Second

// withTimeout makes one call with the longest time that one may take.
func withTimeout(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return call(ctx)
}

// isUnavailable reports whether an error says that the store is, rather than something about what is in it.
func isUnavailable(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// retryOneByOne makes a trip that failed for another reason than the store's absence once more, in parts, so that one job or queue
// that cannot be read stops no other: the settlements first, under the same token, then a claim a queue. A queue that cannot
// be claimed from is claimed from when the carrier rings for it anew.
func (s *shardLoop) retryOneByOne(ctx, work context.Context, token store.Token, items []settlement, request store.ClaimRequest) {
	if left := s.settle(ctx, token, items); ctx.Err() != nil {
		s.abandon(left, request)
		return
	}
	for _, w := range request.Queues {
		one := request
		one.Queues, one.Max, one.MaxBytes = []store.QueueClaim{w}, w.Max, s.renewBytes()
		at, _, claimed, err := s.retryUntilAnswered(ctx, s.p.owner.NewToken(), nil, one)
		if err != nil {
			s.p.log.Error("claim rejected, queue skipped until its next wake-up", "queue", w.Queue.String(), "err", err)
			claimed = store.ClaimResult{} // nothing came: what was reserved is free again
		}
		s.startClaimed(ctx, work, one, claimed, at)
	}
}

// settle makes settlements, one by one where that fails for another reason than the store's absence. A job that cannot be
// settlement comes back when its lease lapses. It answers those for which ctx ended first.
func (s *shardLoop) settle(ctx context.Context, token store.Token, items []settlement) (left []settlement) {
	if len(items) == 0 {
		return nil
	}
	_, errs, _, err := s.retryUntilAnswered(ctx, token, items, store.ClaimRequest{})
	switch {
	case err == nil:
		s.logRefused(items, errs)
	case ctx.Err() != nil:
		return items
	case len(items) == 1:
		s.logRefused(items, []error{err})
	default:
		for i := range items {
			left = append(left, s.settle(ctx, store.NewToken(), items[i:i+1])...)
		}
	}
	return left
}

// recordCallTime notes how long a call to the shard took.
func (s *shardLoop) recordCallTime(took time.Duration) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.sched.RecordCall(took)
}

// settleAndClaim sends the trip. Outcomes are recorded even while the process stops, so the context is the flush's.
func (s *shardLoop) settleAndClaim(ctx context.Context, token store.Token, items []settlement, request store.ClaimRequest) ([]error, store.ClaimResult, error) {
	if len(items) == 0 {
		claimed, err := s.store.Claim(ctx, token, request)
		return nil, claimed, err
	}
	settlements := make([]store.Settlement, len(items))
	for i := range items {
		settlements[i] = items[i].Settlement
	}
	next := &request
	if len(request.Queues) == 0 {
		next = nil
	}
	return s.store.Settle(ctx, token, settlements, next)
}

// logRefused logs settlements that were refused.
func (s *shardLoop) logRefused(items []settlement, errs []error) {
	for i, err := range errs {
		if err == nil {
			continue
		}
		if items[i].Lane.Cooldown > 0 {
			s.p.mu.Lock()
			items[i].lane.EndCooldown()
			s.p.mu.Unlock()
		}
		s.p.log.Warn("settlement rejected, outcome not recorded", "job", items[i].Ref.ID, "topic", items[i].Queue.Topic,
			"lane", items[i].Queue.Lane, "err", err)
	}
}

// abandon gives up an exchange when the grace is over: its jobs come back when their leases expire.
func (s *shardLoop) abandon(items []settlement, request store.ClaimRequest) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.unsettled += len(items)
	s.sched.Abandon(request)
}
