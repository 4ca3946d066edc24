package pull

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// maxError bounds the error of an attempt, in bytes.
const maxError = 1 << 10

// settled is what a report comes to.
type settled struct {
	store.Settlement
	lease  *store.ClientLease
	job    *store.ClaimedJob // what is known of it
	result *policy.Result    // nil: the lease was extended
	span   pool.Span         // nil: none
}

// settlements judges reports. The errors are those of leases that were changed, and of jobs that could not be read.
func (p *Puller) settlements(
	ctx context.Context, reports []store.LeaseReport, key store.LeaseKey,
) ([]settled, []error) {
	items, errs := make([]settled, len(reports)), make([]error, len(reports))
	var reads sync.WaitGroup
	slots := make(chan struct{}, 16) // reads in flight
	for i := range reports {
		r, item := &reports[i], &items[i]
		item.lease = &r.Lease
		item.Settlement = store.Settlement{
			Ref: r.Lease.Ref(), Queue: r.Lease.Queue, Lease: r.Lease.Token,
			Verdict: policy.Verdict{Kind: policy.Released},
		}
		if !r.Lease.IsSigned(key) {
			errs[i] = store.ErrLeaseLost
			continue
		}
		if r.Result == store.LeaseExtend {
			item.Extend = r.For + store.LeaseMargin
			continue
		}
		if r.Result == store.LeaseRelease {
			continue
		}
		topic := p.opts.Policies.Topic(r.Lease.Queue.Namespace, r.Lease.Queue.Topic)
		item.job = &store.ClaimedJob{Job: job.Job{Spec: job.Spec{
			ID: r.Lease.ID, Queue: r.Lease.Queue,
			Terms: ownTerms(&r.Lease),
		}}}
		p.judge(item, r, topic)
		if p.opts.Tracer != nil {
			item.span = p.startSpan(ctx, item)
		}
		if !callsBack(item, &topic) {
			continue
		}
		slots <- struct{}{}
		reads.Go(func() {
			defer func() { <-slots }()
			errs[i] = p.readForCallback(ctx, item, topic)
		})
	}
	reads.Wait()
	return items, errs
}

// judge decides about a report and completes its settlement, but for a callback.
func (p *Puller) judge(item *settled, r *store.LeaseReport, topic policy.Topic) {
	l, terms := &r.Lease, topic.Terms(item.job.Terms)
	lasted := max(0, time.Since(l.LeasedAt)+time.Duration(p.clockAhead.Load()))
	result := policy.Result{
		StartedAt: l.LeasedAt, Duration: policy.RoundUp(lasted), Body: r.Response,
		Accepted: r.Result == store.LeaseDone,
		Status:   r.Status, NonRetryable: r.Result == store.LeaseDead || r.NonRetryable,
	}
	if r.Result == store.LeaseRetry || r.Result == store.LeaseDead {
		result.Class, result.Error = policy.ClassConsumer, policy.OneLine(r.Error, maxError)
	}
	if r.After != nil {
		result.RetryAfter = max(*r.After, time.Millisecond) // zero is the ladder's wait
	}
	verdict := policy.Judge(terms, result, policy.Progress{
		FailedAttempts: l.FailedAttempts + 1, Age: l.Age + lasted, Expires: l.Expires, ExpiresIn: l.ExpiresIn - lasted,
	}, p.opts.Random())
	item.result, item.Verdict, item.Late = &result, verdict, l.Late
	item.LaneChange.Cooldown = verdict.LaneWait // a receiver that a client asked has asked for a pause
	item.Attempt = p.recorder.Attempt(l.Attempts+1, &result, verdict)
	if l.Probe {
		// it is left from a time when the topic was pushed: pull opens none
		item.LaneChange.Breaker = store.CloseBreaker
	}
}

// ownTerms returns the terms of a leased job that are not its topic's, as far as a lease has them.
func ownTerms(l *store.ClientLease) (own policy.Terms) {
	if l.OwnRetries {
		own.Retries = &l.Retries
	}
	if l.Rung > 0 {
		own.Ladder = policy.Ladder{l.Rung}
	}
	return own
}

// callsBack reports whether a report ends its job with a callback, for which the job must be read: its topic asks for
// one, or the job has its own.
func callsBack(item *settled, topic *policy.Topic) bool {
	switch item.Verdict.Kind {
	case policy.Delivered:
		return item.lease.OwnCallbacks || topic.OnDelivered != nil
	case policy.Dead:
		return item.lease.OwnCallbacks || topic.OnDead != nil
	default:
		return false
	}
}

// startSpan begins the span of an attempt that a client reports, at the time of its lease. Its parent is the trace of
// the job, not that of the report.
func (p *Puller) startSpan(ctx context.Context, item *settled) pool.Span {
	request := job.Request{Ref: item.Ref, Queue: item.Queue, Attempt: item.Attempt.N}
	if item.lease.Trace != "" {
		request.Header = map[string][]string{job.HeaderTraceparent: {item.lease.Trace}}
	}
	_, span := p.opts.Tracer.StartAttempt(ctx, request, policy.DeliverPull, item.lease.LeasedAt)
	return span
}

// readForCallback reads a job that has ended, and adds the callback that its end makes. A job that is gone has no lease
// any more.
func (p *Puller) readForCallback(ctx context.Context, item *settled, topic policy.Topic) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.CallTimeout)
	defer cancel()
	found, err := p.shards[store.ShardOf(len(p.shards), item.Queue)].Get(ctx, item.Ref)
	switch {
	case store.IsUnavailable(err):
		return fmt.Errorf("read a leased job: %w", err)
	case err != nil && !errors.Is(err, store.ErrNotFound):
		p.log.Error("leased job unreadable, it is due again when the lease "+
			"expires", "job", item.Ref.ID, "topic", item.Queue.Topic, "err", err)
		return store.ErrLeaseLost
	case err == nil && found.Queue == item.Queue:
		item.job.Job = found
		item.Outbox = p.recorder.Outbox(&pool.AttemptEvent{
			Namespace: item.Queue.Namespace, Topic: item.Queue.Topic, Job: item.job, URL: found.URL,
			Terms: topic.Terms(found.Terms), Verdict: item.Verdict, Record: item.Attempt,
		}, item.span)
	}
	return nil
}

// refuse returns the settlement of a claimed job that must not be attempted.
func (p *Puller) refuse(
	ctx context.Context, j *store.ClaimedJob, terms policy.Terms, verdict policy.Verdict,
) store.Settlement {
	e := pool.AttemptEvent{
		Namespace: j.Namespace, Topic: j.Topic, Job: j, URL: j.URL, Terms: terms, Verdict: verdict,
	}
	item := p.recorder.Settlement(&e, nil)
	item.LaneChange.Cooldown = verdict.LaneWait
	if verdict.Unreadable() {
		item.LaneChange.Cause = store.CooldownUnreadable
	}
	p.recorder.Ended(ctx, e, nil)
	return item
}
