package pool

import (
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/pool/sched"
	"github.com/ringback/ringback/store"
)

// askPermits requests starts for the topics that need some.
func (s *shardLoop) askPermits(ctx context.Context) {
	s.p.mu.Lock()
	calls := s.scheduler.PermitCalls()
	s.p.mu.Unlock()
	for _, call := range calls {
		s.p.workers.Go(func() { s.requestPermits(ctx, call) })
	}
}

// requestPermits makes a call once.
func (s *shardLoop) requestPermits(ctx context.Context, call *sched.PermitCall) {
	p := s.p
	callCtx, cancel := context.WithTimeout(ctx, store.CallTimeout)
	defer cancel()
	began := time.Now()
	counting := p.shards[call.Shard]
	permits, err := counting.store.Permit(callCtx, store.NewToken(), call.Requests)
	s.recordCallTime(time.Since(began))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return // the process stops claiming
	case len(call.Topics) > 1 && !store.IsUnavailable(err):
		s.requestPermitsOneByOne(ctx, call)
		return
	default:
		permits = counting.permitFailed(callCtx, call, err)
	}
	for i, request := range call.Requests {
		if permits[i].Starts < request.Starts {
			p.opts.Policies.Refresh(callCtx) // no claim reports a change while there is none
			break
		}
	}
	p.mu.Lock()
	if err == nil {
		counting.permitBackoff.Reset()
	}
	retries := p.scheduler.Granted(call, permits, began, time.Now())
	p.mu.Unlock()
	for _, at := range retries {
		time.AfterFunc(time.Until(at), p.wakeAll)
	}
}

// requestPermitsOneByOne makes a call that was rejected again for each topic, so that one whose starts cannot be read
// stops no other.
func (s *shardLoop) requestPermitsOneByOne(ctx context.Context, call *sched.PermitCall) {
	for i, request := range call.Requests {
		s.requestPermits(ctx, &sched.PermitCall{
			Shard: call.Shard, Topics: call.Topics[i : i+1], Requests: []store.PermitRequest{request},
		})
	}
}

// permitFailed logs a failed call and returns answers that have its topics request again after sched.PermitRetry: not
// as soon as the store is reached again, since a call whose answer was lost has spent its starts.
func (s *shardLoop) permitFailed(ctx context.Context, call *sched.PermitCall, err error) []store.Permit {
	s.p.mu.Lock()
	level := s.permitBackoff.Level()
	s.permitBackoff.Next() // counts the failure; the pause is PermitRetry
	s.p.mu.Unlock()
	s.p.log.Log(ctx, level, "rate permit request failed, retrying", "shard", call.Shard, "topic",
		call.Topics[0].Name().Name, "topics", len(call.Topics), "err", err)
	return slices.Repeat([]store.Permit{{Next: sched.PermitRetry}}, len(call.Topics))
}

// wakeAll wakes all shard loops.
func (p *Pool) wakeAll() {
	for _, s := range p.shards {
		s.wake()
	}
}
