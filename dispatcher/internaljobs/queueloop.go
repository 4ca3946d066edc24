package internaljobs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// queueLoop claims the jobs of one queue and runs them, one at a time, until none is due.
type queueLoop struct {
	r        *Runner
	queue    job.Queue
	store    store.Queue
	notified bool // while it runs; guarded by the runner's mutex
}

// run runs jobs until none is due or claimCtx ends.
func (l *queueLoop) run(claimCtx, stepCtx, settleCtx context.Context) {
	for {
		select {
		case l.r.workers <- struct{}{}:
			l.runDue(claimCtx, stepCtx, settleCtx)
			<-l.r.workers
		case <-claimCtx.Done():
		}
		if l.r.ended(claimCtx, l) {
			break
		}
	}
	if claimCtx.Err() != nil { // the wake-up may have been for a job that this process has not claimed
		ctx, cancel := context.WithTimeout(settleCtx, callTimeout)
		defer cancel()
		_ = l.store.Notify(ctx, []job.Queue{l.queue}) // after an error the carrier notifies within a second
	}
}

// runDue claims jobs and runs them while the queue has due ones.
func (l *queueLoop) runDue(claimCtx, stepCtx, settleCtx context.Context) {
	claim := l.claimRequest()
	var claimed store.ClaimResult
	token := l.r.owner.NewToken()
	started := time.Now()
	err := l.retry(claimCtx, "claim", func(ctx context.Context) (err error) {
		started = time.Now()
		claimed, err = l.store.Claim(ctx, token, *claim)
		return err
	})
	for err == nil && len(claimed.Jobs) > 0 {
		j := &claimed.Jobs[0]
		leased, endLease := context.WithDeadline(settleCtx, started.Add(j.LeaseFor))
		settlement := l.settlement(claimCtx, stepCtx, j)
		next := claim
		if claimCtx.Err() != nil {
			next = nil
		}
		claimed, started, err = l.settle(leased, settlement, next)
		endLease()
	}
	if err != nil && claimCtx.Err() == nil {
		l.r.log.Error("internal job could not be claimed or settled, it is repeated when its lease expires", "queue", l.queue.String(), "err", err)
	}
}

// claimRequest asks for one job.
func (l *queueLoop) claimRequest() *store.ClaimRequest {
	return &store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: l.queue, Max: 1, Timeout: StepTimeout}}, Max: 1, MaxBytes: job.MaxBody,
		Margin: store.LeaseMargin,
	}
}

// settle writes a settlement and claims the next job. It gives up when the lease of the settlement is over, whose job is then
// due again.
func (l *queueLoop) settle(ctx context.Context, s store.Settlement, next *store.ClaimRequest) (claimed store.ClaimResult, started time.Time, err error) {
	token := l.r.owner.NewToken()
	var errs []error
	err = l.retry(ctx, "settle", func(ctx context.Context) (err error) {
		started = time.Now()
		errs, claimed, err = l.store.Settle(ctx, token, []store.Settlement{s}, next)
		return err
	})
	if err == nil && errs[0] != nil {
		l.r.log.Warn("settlement rejected, step is repeated", "job", s.Ref.ID, "topic", s.Queue.Topic, "err", errs[0])
	}
	return claimed, started, err
}

// retry repeats a call while the store is unavailable, until ctx ends.
func (l *queueLoop) retry(ctx context.Context, what string, call func(context.Context) error) error {
	var pause store.Backoff
	for {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		err := call(limited)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		l.r.log.Log(ctx, pause.Level(), "store unavailable, retrying", "call", what, "queue", l.queue.String(), "err", err)
		if !pause.Wait(ctx) {
			return err
		}
	}
}

// settlement makes a step of a job and returns its settlement. No attempt is recorded.
func (l *queueLoop) settlement(claimCtx, stepCtx context.Context, j *store.ClaimedJob) store.Settlement {
	s := store.Settlement{Ref: j.Ref(), Queue: j.Queue, Lease: j.Lease, Verdict: policy.Verdict{Kind: policy.Again}}
	if claimCtx.Err() != nil {
		return s // due again at once, for another process
	}
	step, err := l.step(stepCtx, j)
	switch {
	case err != nil && stepCtx.Err() != nil:
	case err != nil:
		pause, level := l.r.pauseAfter(j.Ref())
		l.r.log.Log(stepCtx, level, "step of an internal job failed, retrying", "job", j.ID, "topic", j.Topic, "in", pause, "err", err)
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
	return handle(ctx, j)
}
