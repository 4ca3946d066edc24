package internaljobs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// queueLoop claims the jobs of one queue and runs them, one at a time, until none is due.
type queueLoop struct {
	r        *Runner
	queue    job.Queue
	store    store.Queue
	shard    int
	notified bool // while it runs; guarded by the runner's mutex
}

// run makes steps until no job is due or claimCtx ends. It has a worker during a step, not between two, so that
// namespaces and queues take turns.
func (l *queueLoop) run(claimCtx, stepCtx, settleCtx context.Context) {
	var pause store.Backoff
	token := l.r.owner.NewToken()
	for {
		var found bool
		var err error
		holder := capacity.Holder{Namespace: l.queue.Namespace}
		if claimCtx.Err() == nil && l.r.workers.Acquire(claimCtx, holder, 1) == nil {
			found, err = l.runSome(claimCtx, stepCtx, settleCtx, token)
			l.r.workers.Release(holder, 1)
		}
		switch {
		case claimCtx.Err() == nil && store.IsUnavailable(err):
			// The claim may have taken effect: it is repeated with its token.
			l.r.log.Log(claimCtx, pause.Level(), "store unavailable, "+
				"retrying", "call", "claim", "queue", l.queue.String(), "err", err)
			pause.Wait(claimCtx)
			continue
		case claimCtx.Err() == nil && err != nil:
			l.r.log.Error("internal job could not be claimed, it is due again when its lease "+
				"expires", "queue", l.queue.String(), "err", err)
		}
		pause.Reset()
		token = l.r.owner.NewToken()
		if (!found || claimCtx.Err() != nil) && l.r.ended(claimCtx, l) {
			break
		}
	}
	if claimCtx.Err() != nil { // the wake-up may have been for a job that this process has not claimed
		// after an error the carrier notifies within a second
		_ = store.Call(settleCtx, func(ctx context.Context) error { return l.store.Notify(ctx, []job.Queue{l.queue}) })
	}
}

// runSome claims jobs and makes a step of each; found: there was one. An error is one of the claim. The end of claimCtx
// does not cancel a claim, which may have taken effect: what it claims is released.
func (l *queueLoop) runSome(claimCtx, stepCtx, settleCtx context.Context, token store.Token) (found bool, err error) {
	started := time.Now()
	var claimed store.ClaimResult
	err = store.Call(settleCtx, func(ctx context.Context) (err error) {
		claimed, err = l.store.Claim(ctx, token, *l.claimRequest())
		return err
	})
	if err != nil || len(claimed.Jobs) == 0 {
		return false, err
	}
	leased, endLease := context.WithDeadline(settleCtx, started.Add(claimed.Jobs[0].LeaseFor))
	defer endLease()
	var ended []store.Settlement
	outbox, size := 0, 0
	for i := range claimed.Jobs {
		s := release(&claimed.Jobs[i])
		if i == 0 || time.Since(started) < atOnceTime {
			s = l.settlement(claimCtx, stepCtx, &claimed.Jobs[i])
		}
		ended, outbox, size = append(ended, s), outbox+len(s.Outbox), size+len(s.Body)
		for k := range s.Outbox {
			size += len(s.Outbox[k].Body)
		}
		if outbox >= atOnceJobs || size >= atOnceBytes || i == len(claimed.Jobs)-1 {
			l.settle(leased, ended)
			ended, outbox, size = nil, 0, 0
		}
	}
	return true, nil
}

// claimRequest asks for the first jobs.
func (l *queueLoop) claimRequest() *store.ClaimRequest {
	n := max(1, l.r.opts.AtOnce[l.queue.Topic])
	return &store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: l.queue, Max: n, Timeout: StepTimeout}}, Max: n, MaxBytes: job.MaxBody,
		Margin: store.LeaseMargin,
	}
}

// release returns the settlement that makes a job due again at once.
func release(j *store.ClaimedJob) store.Settlement {
	return store.Settlement{Ref: j.Ref(), Queue: j.Queue, Lease: j.Lease, Verdict: policy.Verdict{Kind: policy.Again}}
}

// settle writes settlements. While the store is unavailable it tries again until ctx ends: then the leases are over,
// and the jobs are due again.
func (l *queueLoop) settle(ctx context.Context, all []store.Settlement) {
	exchange := store.Exchange{Queue: l.store, Shard: l.shard, Log: l.r.log}
	exchange.Settle(ctx, l.r.owner.NewToken(), all, func(i int, err error) {
		switch s := &all[i]; {
		case err == nil:
		case errors.Is(err, store.ErrLeaseLost):
			l.r.log.Warn("settlement rejected, step is repeated", "job", s.Ref.ID, "topic", s.Queue.Topic, "err", err)
		default:
			l.r.log.Error("internal job could not be settled, its step is repeated when its lease "+
				"expires", "job", s.Ref.ID, "topic", s.Queue.Topic, "err", err)
		}
	})
}

// settlement makes a step of a job and returns its settlement. No attempt is recorded.
func (l *queueLoop) settlement(claimCtx, stepCtx context.Context, j *store.ClaimedJob) store.Settlement {
	s := release(j)
	if claimCtx.Err() != nil {
		return s // due again at once, for another process
	}
	step, err := l.step(stepCtx, j)
	switch {
	case err != nil && stepCtx.Err() != nil:
	case err != nil:
		pause, level := l.r.pauseAfter(j.Ref())
		l.r.log.Log(stepCtx, level, "step of an internal job failed, "+
			"retrying", "job", j.ID, "topic", j.Topic, "in", pause, "err", err)
		s.Verdict.Wait = pause
	default:
		l.r.succeeded(j.Ref())
		if step.Done {
			s.Verdict.Kind = policy.Delivered
		}
		s.Verdict.Wait, s.Body, s.Outbox = step.Wait, step.Body, step.Outbox
	}
	return s
}

// step calls the handler of a job. A panic is an error.
func (l *queueLoop) step(ctx context.Context, j *store.ClaimedJob) (step Step, err error) {
	handle := l.r.opts.Handlers[j.Topic]
	if handle == nil {
		return Step{}, errors.New("this program does not know the topic")
	}
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			step, err = Step{}, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if step, err = handle(ctx, j); err == nil && len(step.Body) > job.MaxBody {
		return Step{}, fmt.Errorf("the body of the step has %d bytes, more than %d", len(step.Body), job.MaxBody)
	}
	return step, err
}
