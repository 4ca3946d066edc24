package pool

import (
	"context"
	"maps"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// attempt is one claimed job on its way through a worker.
type attempt struct {
	desk  *desk
	lane  *lane
	held  *store.Held
	until time.Time // the lease's end, by the process's clock
	stale bool      // the topic's policy may be older than the store's
	most  int       // the topic's lane_concurrency at the attempt
}

// staleWait puts off what may only be decided by a policy that could not be read.
const staleWait = time.Second

// idleWorker is how long a worker waits for another attempt of its topic before it leaves.
const idleWorker = 5 * time.Second

// hand gives an attempt to an idle worker of its topic, or to a new one.
func (p *Pool) hand(ctx context.Context, a *attempt) {
	work := a.lane.topic.work
	select {
	case work <- a:
		return
	default:
	}
	p.crew.Go(func() {
		a.run(ctx)
		idle := time.NewTimer(idleWorker)
		defer idle.Stop()
		for {
			select {
			case next := <-work:
				next.run(ctx)
				idle.Reset(idleWorker)
			case <-idle.C:
				return
			case <-p.quit:
				return
			}
		}
	})
}

// run makes the attempt, unless policy or the lease forbid it, and queues its settlement.
func (a *attempt) run(ctx context.Context) {
	h := a.held
	topic := a.desk.p.policy(a.lane.topic.name)
	terms := topic.Terms(h.Terms)
	a.most = topic.LaneConcurrency
	verdict, ok := policy.Before(terms, h.Tries, h.Age, h.Expired)
	request := a.request(topic, terms)
	switch {
	case a.stale && (!ok || request.URL == ""):
		a.release(ctx, staleWait)
		return
	case !ok:
		a.end(ctx, verdict, job.Attempt{}, nil)
		return
	case request.URL == "":
		a.end(ctx, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonInvalid}, job.Attempt{
			N: h.Made + 1, Kind: job.KindReleased, StartedAt: job.Millis(time.Now()), Verdict: policy.Dead.String(),
			Reason: policy.ReasonInvalid, ErrorClass: policy.ClassInvalid, Error: "neither the job nor its topic has a URL",
		}, nil)
		return
	case time.Now().Add(terms.Timeout + a.desk.p.opts.Margin/2).After(a.until):
		// The timeout grew since the claim, or the claim took long: another claim brings a lease that lasts, and leaves
		// time to settle.
		a.release(ctx, staleWait)
		return
	}
	result := a.desk.p.opts.Deliverer.Deliver(ctx, request)
	verdict = policy.Judge(terms, result, h.Tries+1, a.desk.p.opts.Random())
	if a.stale && verdict.Kind == policy.Dead && verdict.Reason == policy.ReasonExhausted {
		verdict = policy.Verdict{Kind: policy.Again, Wait: terms.Ladder.Rung(h.Tries + 1)}
	}
	record := job.Attempt{
		N: h.Made + 1, Kind: job.KindAttempt, StartedAt: job.Millis(result.StartedAt), Duration: result.Duration,
		Status: result.Status, Verdict: verdict.Kind.String(), Reason: verdict.Reason,
		Error: result.Error, ErrorClass: result.Class, Header: result.Header, Body: result.Body,
	}
	if verdict.Kind == policy.Released {
		record.Kind = job.KindReleased
	}
	a.end(ctx, verdict, record, &result)
}

// request is what the deliverer gets: the job's own settings over the topic's.
func (a *attempt) request(topic policy.Topic, terms policy.Terms) job.Request {
	h := a.held
	request := job.Request{
		Ref: h.Ref(), Queue: h.Queue, URL: h.URL, Method: h.Method, Header: h.Header, ContentType: h.ContentType,
		Body: h.Body, Attempt: h.Made + 1, RetriesLeft: max(0, *terms.Retries-h.Tries), DueAt: h.DueAt,
		Timeout: terms.Timeout,
	}
	if request.URL == "" {
		request.URL = topic.URL
	}
	if len(topic.Headers) > 0 {
		request.Header = maps.Clone(topic.Headers)
		maps.Copy(request.Header, h.Header)
	}
	return request
}

// release gives the job back, uncounted and due after wait.
func (a *attempt) release(ctx context.Context, wait time.Duration) {
	verdict := policy.Verdict{Kind: policy.Released, Wait: wait}
	a.end(ctx, verdict, job.Attempt{
		N: a.held.Made + 1, Kind: job.KindReleased, StartedAt: job.Millis(time.Now()), Verdict: verdict.Kind.String(),
	}, nil)
}

// end queues the settlement; the lane learns from the result of a request.
func (a *attempt) end(ctx context.Context, verdict policy.Verdict, record job.Attempt, result *policy.Result) {
	h, d, p := a.held, a.desk, a.desk.p
	item := settled{
		Settlement: store.Settlement{Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease, Verdict: verdict, Attempt: record},
		bytes:      len(h.Body),
	}
	p.mu.Lock()
	if result != nil {
		a.lane.learn(*result, a.most)
	}
	d.ended = append(d.ended, item)
	d.working--
	p.mu.Unlock()
	d.nudge()
	p.lines.attempt(ctx, h, verdict, record)
}
