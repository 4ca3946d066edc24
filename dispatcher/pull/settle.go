package pull

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

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
}

// Settle ends or extends the leases of a namespace's clients, up to store.MaxBatch of them, and returns an error for each: nil or
// store.ErrLeaseLost. Leases of one shard are settled in order. Then it leases jobs as next asks, if it is not nil, as Lease does,
// but none of a topic that is not pulled any more. After an error some may be settled, and none are leased. Without reports it is
// Lease.
func (p *Puller) Settle(ctx context.Context, reports []store.LeaseReport, next *store.LeaseRequest) ([]error, []store.LeasedJob, error) {
	if len(reports) == 0 && next != nil {
		leased, err := p.Lease(ctx, *next)
		return nil, leased, err
	}
	if err := p.opts.Policies.Update(ctx); err != nil {
		return nil, nil, fmt.Errorf("read topic policies: %w", err)
	}
	var c *client
	if next != nil && p.checkPulled(ctx, next) == nil {
		if entered, err := p.enter(next); err == nil {
			c = entered
			defer p.leave(c)
		}
	}
	items, errs, err := p.settlements(ctx, reports)
	if err != nil {
		return nil, nil, err
	}
	leased, err := p.settleAll(ctx, items, errs, c)
	if err == nil && len(leased) == 0 && c != nil {
		leased, err = p.await(ctx, c)
	}
	if err != nil {
		return nil, nil, err
	}
	return errs, leased, nil
}

// settleAll settles, all shards at once, and claims for a client (nil: none) in the same call as a shard's settlements.
func (p *Puller) settleAll(ctx context.Context, items []settled, errs []error, c *client) ([]store.LeasedJob, error) {
	byShard := make([][]int, len(p.shards)) // indexes of items
	for i := range items {
		if errs[i] == nil {
			n := store.ShardOf(len(p.shards), items[i].Queue)
			byShard[n] = append(byShard[n], i)
		}
	}
	var from *picked
	var g grant
	if c != nil {
		if from = p.pickSettled(c, items, byShard); from != nil {
			var err error
			if g, err = p.takeStarts(ctx, c.topic, c.request.Max); err != nil || g.n == 0 {
				from = nil
			}
		}
	}
	var calls sync.WaitGroup
	var leased []store.LeasedJob
	failures := make([]error, len(p.shards))
	for n, indexes := range byShard {
		if len(indexes) == 0 {
			continue
		}
		calls.Go(func() {
			part := make([]store.Settlement, len(indexes))
			for k, i := range indexes {
				part[k] = items[i].Settlement
			}
			if from == nil || from.shard != n {
				failures[n] = p.settleOn(ctx, n, part, func(k int, err error) { errs[indexes[k]] = err })
				return
			}
			request := p.claimRequest(c, from, g)
			began, settledErrs, claimed, err := p.exchange(ctx, n, part, &request)
			if err != nil {
				p.claimed(c.topic, from, store.ClaimResult{})
				if !isUnavailable(err) {
					err = p.settleOn(ctx, n, part, func(k int, err error) { errs[indexes[k]] = err })
				}
				failures[n] = err
				return
			}
			for k, err := range settledErrs {
				errs[indexes[k]] = err
			}
			leased = p.receive(ctx, c, from, g, claimed, began)
		})
	}
	calls.Wait()
	for i := range items {
		p.observe(ctx, &items[i], errs[i])
	}
	if err := errors.Join(failures...); err != nil {
		p.Release(ctx, leased)
		return nil, fmt.Errorf("settle leases: %w", err)
	}
	return leased, nil
}

// pickSettled returns queues to claim from in the same call as settlements: those of the leases that are settled, which have just
// had jobs and may have room now, and runnable ones. Nil: none that the client asks for.
func (p *Puller) pickSettled(c *client, items []settled, byShard [][]int) *picked {
	best := -1
	for n, indexes := range byShard {
		if len(indexes) > 0 && (best < 0 || len(indexes) > len(byShard[best])) {
			best = n
		}
	}
	if best < 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.sleep()
	if p.stopped || time.Now().Before(c.topic.starts.next) {
		return nil
	}
	from := &picked{shard: best, queues: c.topic.runnable[best].pick(claimQueues, c.asksFor)}
	seen := make(map[job.Queue]bool, claimQueues)
	for _, r := range from.queues {
		seen[r.queue] = true
	}
	for _, i := range byShard[best] {
		q := items[i].Queue
		if len(from.queues) < claimQueues && !seen[q] && q.Topic == c.topic.name && c.asksFor(q.Lane) {
			seen[q] = true
			from.queues = append(from.queues, runnable{queue: q})
		}
	}
	if len(from.queues) == 0 {
		return nil
	}
	return from
}

// settleOn settles on one shard, one by one after a rejection. put takes the error of each item. It returns an error when the store
// is unavailable.
func (p *Puller) settleOn(ctx context.Context, n int, items []store.Settlement, put func(k int, err error)) error {
	_, errs, _, err := p.exchange(ctx, n, items, nil)
	switch {
	case err == nil:
		for k, err := range errs {
			put(k, err)
		}
		return nil
	case isUnavailable(err):
		return err
	case len(items) == 1:
		p.log.Error("settlement of a lease rejected, its job is due again when the lease expires", "job", items[0].Ref.ID, "topic", items[0].Queue.Topic, "err", err)
		put(0, store.ErrLeaseLost)
		return nil
	}
	for k := range items {
		if err := p.settleOn(ctx, n, items[k:k+1], func(_ int, err error) { put(k, err) }); err != nil {
			return err
		}
	}
	return nil
}

// settleQuietly settles what no client waits for.
func (p *Puller) settleQuietly(ctx context.Context, n int, items []store.Settlement) {
	err := p.settleOn(ctx, n, items, func(int, error) {})
	if err != nil {
		p.log.Warn("leased jobs could not be put back, they are due again when their leases expire", "shard", n, "jobs", len(items), "err", err)
	}
}

// settlements judges reports. Its errors are those of jobs that are gone, by report, and one of the store.
func (p *Puller) settlements(ctx context.Context, reports []store.LeaseReport) ([]settled, []error, error) {
	items, errs := make([]settled, len(reports)), make([]error, len(reports))
	var reads sync.WaitGroup
	slots := make(chan struct{}, 16) // reads in flight
	for i := range reports {
		r, item := &reports[i], &items[i]
		item.lease = &r.Lease
		item.Settlement = store.Settlement{Ref: r.Lease.Ref(), Queue: r.Lease.Queue, Lease: r.Lease.Token}
		if r.Result == store.LeaseExtend {
			item.Extend = r.For + store.LeaseMargin
			continue
		}
		topic := p.opts.Policies.Topic(r.Lease.Queue.Namespace, r.Lease.Queue.Topic)
		item.job = &store.ClaimedJob{Job: job.Job{Spec: job.Spec{ID: r.Lease.ID, Queue: r.Lease.Queue}}}
		if !needsJob(r, &topic) {
			p.judge(item, r, topic)
			continue
		}
		slots <- struct{}{}
		reads.Go(func() {
			defer func() { <-slots }()
			callCtx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			item.job.Job, errs[i] = p.shards[store.ShardOf(len(p.shards), item.Queue)].Get(callCtx, item.Ref)
			if errs[i] == nil {
				p.judge(item, r, topic)
			}
		})
	}
	reads.Wait()
	for i, err := range errs {
		if errors.Is(err, store.ErrNotFound) || err == nil && items[i].job != nil && items[i].job.Queue != items[i].Queue {
			errs[i] = store.ErrLeaseLost // the lease was not for this job
		} else if err != nil {
			return nil, nil, fmt.Errorf("read a leased job: %w", err)
		}
	}
	return items, errs, nil
}

// needsJob reports whether a report cannot be settled without reading the job: it has terms of its own, or its end makes a callback.
func needsJob(r *store.LeaseReport, topic *policy.Topic) bool {
	switch {
	case r.Lease.OwnTerms:
		return true
	case r.Result == store.LeaseDone:
		return topic.OnDelivered != nil
	default:
		return topic.OnDead != nil
	}
}

// judge decides about a report and completes its settlement.
func (p *Puller) judge(item *settled, r *store.LeaseReport, topic policy.Topic) {
	l, terms := &r.Lease, topic.Terms(item.job.Terms)
	lasted := max(0, time.Since(l.LeasedAt))
	result := policy.Result{
		StartedAt: l.LeasedAt, Duration: policy.RoundUp(lasted), Body: r.Response, Accepted: r.Result == store.LeaseDone,
		NonRetryable: r.Result == store.LeaseDead,
	}
	if !result.Accepted {
		result.Class, result.Error = policy.ClassConsumer, truncate(r.Error)
	}
	if r.After != nil {
		result.RetryAfter = max(*r.After, time.Millisecond) // zero is the ladder's wait
	}
	verdict := policy.Judge(terms, result, policy.Progress{
		FailedAttempts: l.FailedAttempts + 1, Age: l.Age + lasted, Expires: l.Expires, ExpiresIn: l.ExpiresIn - lasted,
	}, p.opts.Random())
	item.result, item.Verdict = &result, verdict
	item.Attempt = job.Attempt{
		N: l.Attempts + 1, Kind: job.KindAttempt, StartedAt: l.LeasedAt, Duration: result.Duration, Process: p.opts.Process,
		Verdict: verdict.Kind.String(), Reason: verdict.Reason, Error: result.Error, ErrorClass: result.Class,
		Body: r.Response[:min(len(r.Response), job.MaxAttemptBody)],
	}
	if l.Probe {
		item.LaneChange.Breaker = store.CloseBreaker // there is no receiver that could be down
	}
	if verdict.Kind == policy.Delivered || verdict.Kind == policy.Dead {
		item.Outbox = p.opts.Callbacks(pool.EndedJob{
			Job: item.job, URL: item.job.URL, Terms: terms, Verdict: verdict, Attempt: item.Attempt,
		})
	}
}

// truncate shortens an error.
func truncate(text string) string {
	if len(text) <= maxError {
		return text
	}
	end := maxError
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// refuse returns the settlement of a claimed job that must not be attempted.
func (p *Puller) refuse(ctx context.Context, j *store.ClaimedJob, terms policy.Terms, verdict policy.Verdict) store.Settlement {
	item := store.Settlement{
		Ref: j.Ref(), Queue: j.Queue, Lease: j.Lease, Verdict: verdict, LaneChange: store.LaneChange{Cooldown: verdict.LaneWait},
	}
	if verdict.Kind == policy.Dead {
		item.Outbox = p.opts.Callbacks(pool.EndedJob{Job: j, URL: j.URL, Terms: terms, Verdict: verdict})
	}
	p.attemptEnded(ctx, pool.AttemptEvent{Namespace: j.Namespace, Topic: j.Topic, Verdict: verdict, Job: j})
	return item
}

// observe reports an attempt that was settled.
func (p *Puller) observe(ctx context.Context, item *settled, err error) {
	if err != nil {
		p.log.Debug("lease lost, result not recorded", "job", item.Ref.ID, "topic", item.Queue.Topic, "err", err)
		return
	}
	if item.result != nil {
		p.attemptEnded(ctx, pool.AttemptEvent{
			Namespace: item.Queue.Namespace, Topic: item.Queue.Topic, Verdict: item.Verdict, Result: item.result, Late: item.lease.Late,
			Job: item.job, Record: item.Attempt,
		})
	}
}

// attemptEnded notifies the observer, and logs.
func (p *Puller) attemptEnded(ctx context.Context, e pool.AttemptEvent) {
	if p.opts.Observer != nil {
		p.opts.Observer.AttemptEnded(e)
	}
	if !p.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	suppressed, ok := p.attemptLog.Allow()
	if !ok {
		return
	}
	p.log.LogAttrs(ctx, slog.LevelInfo, "attempt", slog.String("job", e.Job.ID), slog.String("namespace", e.Namespace), slog.String("topic", e.Topic),
		slog.String("lane", e.Job.Lane), slog.Int("attempt", e.Record.N), slog.String("verdict", e.Verdict.Kind.String()),
		slog.String("reason", string(e.Verdict.Reason)), slog.String("err", e.Record.Error), slog.Int("suppressed", suppressed))
}
