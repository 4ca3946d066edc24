package pool

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool/sched"
	"github.com/ringback/ringback/store"
)

// attempt is a claimed job from the claim to its settlement.
type attempt struct {
	shard        *shardLoop
	job          *store.ClaimedJob
	schedJob     sched.Job // guarded by the pool's mutex, except the fields set by Claimed
	claimStarted time.Time // of the call
	leaseEnds    time.Time // by the process's clock
	policyStale  bool      // the topic's policy may be older than the store's
}

// attemptOf returns the attempt of a scheduled job.
func attemptOf(j *sched.Job) *attempt {
	a, _ := j.Value.(*attempt)
	return a
}

// workerIdleTimeout is the time after which an idle worker exits.
const workerIdleTimeout = 5 * time.Second

// assign gives an attempt to an idle worker, or to a new one.
func (p *Pool) assign(ctx context.Context, a *attempt) {
	select {
	case p.idle <- a:
		return
	default:
	}
	p.workers.Go(func() {
		idle := time.NewTimer(workerIdleTimeout)
		defer idle.Stop()
		for {
			for a != nil {
				a.run(ctx)
				a = p.next(&a.schedJob)
			}
			idle.Reset(workerIdleTimeout)
			select {
			case a = <-p.idle:
			case <-idle.C:
				return
			case <-p.quit:
				return
			}
		}
	})
}

// next returns the next attempt for a worker after another; nil: none.
func (p *Pool) next(after *sched.Job) *attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.scheduler.Next(after, time.Now())
	if j == nil {
		return nil
	}
	p.armHangTimer()
	return attemptOf(j)
}

// run makes the attempt, unless policy forbids it, and queues its settlement.
func (a *attempt) run(ctx context.Context) {
	topic := a.shard.p.topicPolicy(a.schedJob.Lane.Topic().Name())
	terms := topic.Terms(a.job.Terms)
	request := a.request(topic, terms)
	if verdict := policy.CheckBefore(terms, a.progress(), a.preflight(&request, topic)); verdict.Kind != 0 {
		a.end(ctx, attemptResult{AttemptEvent: AttemptEvent{
			Terms: terms, URL: request.URL, Verdict: verdict, Record: a.unsentRecord(verdict),
		}})
		return
	}
	a.deliver(ctx, request, topic, terms)
}

// preflight opens what the request needs and returns what forbids it.
func (a *attempt) preflight(r *job.Request, topic policy.Topic) policy.Preflight {
	p := a.shard.p
	credentials, unsigned := a.credentials()
	if a.isHandled() && !errors.Is(unsigned, store.ErrUnreadable) { // a function needs the settings, but no signature
		credentials, unsigned = job.Credentials{}, nil
	}
	wrongOrigin, unopened := a.openHeaders(r) // logs the error
	r.Credentials = credentials
	now := time.Now()
	late := !a.schedJob.StartBy.IsZero() && now.After(a.schedJob.StartBy)
	if late {
		p.mu.Lock()
		p.scheduler.LateStart(now)
		p.mu.Unlock()
	}
	return policy.Preflight{
		SettingsUnreadable: errors.Is(unsigned, store.ErrUnreadable),
		LaneStopped:        a.schedJob.Cancelled,
		PolicyStale:        a.policyStale,
		NoURL:              a.lacksURL(r),
		// The timeout grew since the claim, or the claim took long.
		LeaseTooShort:     now.Add(r.Timeout + store.LeaseMargin/2).After(a.leaseEnds),
		WrongOriginHeader: wrongOrigin,
		SecretsUnreadable: unsigned != nil || unopened != nil,
		RateChanged:       topic.Rate.Limited() && topic.Rate != a.schedJob.GrantRate,
		Late:              late,
		// It had expired by an older policy.
		Uncounted:  !a.job.Rated && a.schedJob.Settings.Limits(topic).Rate.Limited(),
		SharedLane: a.job.Kind != "", // a callback
	}
}

// isHandled reports whether the job was claimed for the deliverer of its topic, instead of that of requests.
func (a *attempt) isHandled() bool { return a.schedJob.Deliver == policy.DeliverHandler }

// deliverer returns what makes the attempt.
func (a *attempt) deliverer() Deliverer {
	if a.isHandled() {
		return a.shard.p.handler(a.schedJob.Lane.Topic().Name())
	}
	return a.shard.p.opts.Deliverer
}

// unsentRecord returns the entry in the history of a job whose attempt was not made. Only verdicts with a note have
// one: the causes of others are shown elsewhere, or repeat often.
func (a *attempt) unsentRecord(v policy.Verdict) job.Attempt {
	if v.Note == "" {
		return job.Attempt{}
	}
	r := job.Attempt{
		N: a.job.Attempts + 1, Kind: job.KindReleased, StartedAt: job.Millis(time.Now()), Verdict: v.Kind.String(),
		Reason: v.Reason, Error: v.Note, Process: a.shard.p.recorder.process,
	}
	if v.Reason == policy.ReasonInvalid {
		r.ErrorClass = policy.ClassInvalid
	}
	return r
}

// deliver makes the request and decides what follows.
func (a *attempt) deliver(ctx context.Context, request job.Request, topic policy.Topic, terms policy.Terms) {
	claimedJob, p := a.job, a.shard.p
	late, url := claimedJob.Late+time.Since(a.claimStarted), request.URL
	if a.tracksSent(terms) {
		request.Sent = a.bodySent
	}
	ctx, span := a.startSpan(ctx, &request)
	result := a.send(ctx, request) // the request and its body are not used after this
	verdict := a.judge(terms, result)
	record := p.recorder.Attempt(claimedJob.Attempts+1, &result, verdict)
	if url != claimedJob.AttemptURL() {
		record.URL = url
	}
	a.end(ctx, attemptResult{
		AttemptEvent: AttemptEvent{
			Terms: terms, URL: url, Verdict: verdict, Record: record, Result: &result, Late: late,
		},
		breaker: topic.Breaker, concurrency: a.schedJob.Settings.Limits(topic).Concurrency, span: span,
	})
}

// send makes the request. Without a URL it fails: the policy may get one before the retries are used up.
func (a *attempt) send(ctx context.Context, request job.Request) policy.Result {
	if a.lacksURL(&request) {
		return policy.Result{
			Class: policy.ClassNoURL,
			Error: "neither the job, its lane nor its topic has a URL", StartedAt: time.Now(),
		}
	}
	return a.deliverer().Deliver(ctx, request)
}

// lacksURL reports whether the request needs a URL and has none.
func (a *attempt) lacksURL(r *job.Request) bool { return r.URL == "" && !a.isHandled() }

// judge returns the verdict of the attempt. Under a stale policy no job dies for its retries or its age.
func (a *attempt) judge(terms policy.Terms, result policy.Result) policy.Verdict {
	progress := a.progress()
	progress.FailedAttempts++
	if a.policyStale {
		terms = terms.Unlimited()
	}
	return policy.Judge(terms, result, progress, a.shard.p.opts.Random())
}

// progress returns the job's progress now. The elapsed time counts from the start of the claim's call, so that the
// job's age is never underestimated.
func (a *attempt) progress() policy.Progress { return progressOf(a.job, a.claimStarted) }

// progressOf is progress for a job claimed by a call that began at a time.
func progressOf(claimedJob *store.ClaimedJob, began time.Time) policy.Progress {
	passed := time.Since(began)
	return policy.Progress{
		FailedAttempts: claimedJob.FailedAttempts, ConsecutiveLost: claimedJob.ConsecutiveLost,
		Age:     claimedJob.Age + passed,
		Expires: !claimedJob.ExpiresAt.IsZero(), ExpiresIn: claimedJob.ExpiresAt.Sub(claimedJob.Now()) - passed,
	}
}

// credentials returns the attempt's signer and certificate. A callback is signed with the secrets of its subject's
// topic.
func (a *attempt) credentials() (job.Credentials, error) {
	topic := a.job.Topic
	if a.job.Kind != "" {
		topic = cmp.Or(a.job.Labels[job.LabelTopic], topic)
	}
	p := a.shard.p
	c, err := p.opts.Policies.Credentials(a.job.Namespace, topic)
	switch lane := a.schedJob.Settings; {
	case lane != nil && errors.Is(lane.Err, store.ErrUnreadable):
		return c, lane.Err
	case lane == nil || len(lane.Settings.Secrets) == 0:
		return c, err
	}
	// The topic's secrets are not needed, but its certificate is. The policy is read last: if it has no certificate by
	// now, the attempt need not wait for one.
	if err != nil && c.Certificate == nil &&
		p.topicPolicy(sched.TopicName{Namespace: a.job.Namespace, Name: topic}).ClientCert != nil {
		return c, err
	}
	c.Signer = a.schedJob.Settings.Signer
	return c, a.schedJob.Settings.Err
}

// request returns the request for the deliverer.
func (a *attempt) request(topic policy.Topic, terms policy.Terms) job.Request {
	lane := a.schedJob.Settings.Policy()
	if a.isHandled() { // headers of topics and lanes are for receivers
		topic.Headers, lane.Headers = nil, nil
	}
	return NewRequest(a.job, topic, lane, terms)
}

// NewRequest returns the request of a claimed job's attempt: the job's settings override the lane's, which override the
// topic's. It has no credentials, and secret headers are sealed.
func NewRequest(claimedJob *store.ClaimedJob, topic policy.Topic, lane policy.Lane, terms policy.Terms) job.Request {
	request := job.Request{
		Ref: claimedJob.Ref(), Queue: claimedJob.Queue, URL: cmp.Or(claimedJob.URL, lane.URL, topic.URL),
		Method: claimedJob.Method, Header: claimedJob.Header, ContentType: claimedJob.ContentType,
		Body: claimedJob.Body, Labels: claimedJob.Labels,
		Attempt: claimedJob.Attempts + 1, RetriesLeft: max(0, *terms.Retries-claimedJob.FailedAttempts),
		DueAt: claimedJob.DueAt, Timeout: terms.Timeout,
	}
	if len(topic.Headers)+len(lane.Headers) > 0 {
		request.Header = make(map[string][]string, len(topic.Headers)+len(lane.Headers)+len(claimedJob.Header))
		maps.Copy(request.Header, topic.Headers)
		maps.Copy(request.Header, lane.Headers)
		maps.Copy(request.Header, claimedJob.Header)
	}
	if terms.Success.ReadsBody() {
		request.KeepBody = math.MaxInt
	}
	return request
}

// openHeaders opens the sealed headers of a request that are for the origin of its URL. Others of the topic or the lane
// are dropped; of the job it returns the name of one for another origin.
func (a *attempt) openHeaders(r *job.Request) (wrongOrigin string, err error) {
	var opened map[string][]string
	for name, values := range r.Header {
		sealed, ok := job.Sealed(values)
		if !ok {
			continue
		}
		if opened == nil {
			opened = maps.Clone(r.Header)
		}
		secret, err := a.shard.p.opts.Policies.OpenHeader(r.Queue, name, sealed)
		if err != nil {
			return "", err
		}
		switch _, own := a.job.Header[name]; {
		case a.isHandled() || secret.Origin == "" || secret.Origin == job.Origin(r.URL):
			opened[name] = secret.Values
			r.Sealed = append(r.Sealed, name)
		case own && (wrongOrigin == "" || name < wrongOrigin):
			wrongOrigin = name
		default:
			delete(opened, name)
		}
	}
	if opened != nil {
		r.Header = opened
	}
	return wrongOrigin, nil
}

// release returns the job at once, without counting an attempt.
func (a *attempt) release(ctx context.Context) {
	a.end(ctx, attemptResult{AttemptEvent: AttemptEvent{Verdict: policy.Verdict{Kind: policy.Released}}})
}

// attemptResult is the result of a claimed job's attempt, and what its lane learns from it.
type attemptResult struct {
	AttemptEvent

	breaker     policy.Breaker
	concurrency int  // the lane's concurrency
	span        Span // nil: none
}

// end queues the settlement and updates the lane's state.
func (a *attempt) end(ctx context.Context, r attemptResult) {
	claimedJob, s, p := a.job, a.shard, a.shard.p
	r.Namespace, r.Topic, r.Job = claimedJob.Namespace, claimedJob.Topic, claimedJob
	item := settlement{Settlement: p.recorder.Settlement(&r.AttemptEvent, r.span), lane: a.schedJob.Lane}
	out := sched.AttemptResult{
		Result: r.Result, Probe: claimedJob.Probe, Breaker: r.breaker, Concurrency: r.concurrency,
		Cooldown: r.Verdict.LaneWait,
	}
	if r.Verdict.Unreadable() {
		out.Cause = store.CooldownUnreadable
	}
	switch {
	case r.Result == nil:
	case r.Result.Class == policy.ClassLocalResources && a.isHandled():
		out.Result = nil // its handler is full: nothing was tried
	case r.Result.Class == policy.ClassLocalResources:
		out.Shortage = true
		p.recordShortage(*r.Result)
	case r.Verdict.Kind == policy.Delivered, r.Result.Class == policy.ClassConsumer:
		// By the policy's success rule, or a function: its failures show nothing of a receiver.
		out.Result = &policy.Result{Status: 200, Duration: r.Result.Duration}
	}
	p.mu.Lock()
	item.LaneChange = p.scheduler.EndAttempt(&a.schedJob, out, time.Now())
	claimedJob.Body = nil // claimed jobs share an array: a hanging one must not keep all bodies
	s.settlements = append(s.settlements, item)
	s.working--
	wake := len(s.settlements) == 1 || !s.shouldBatch()
	p.mu.Unlock()
	if wake {
		s.wake()
	}
	if item.LaneChange.Breaker == store.OpenBreaker && !claimedJob.Probe {
		p.breakerLog.Warn("breaker opened, lane waits for its cooldown", "topic", claimedJob.Topic,
			"lane", claimedJob.Lane, "namespace", claimedJob.Namespace, "job", claimedJob.ID, "status", r.Result.Status,
			"error_class", r.Result.Class, "open", item.LaneChange.Cooldown)
	}
	p.recorder.Ended(ctx, r.AttemptEvent, r.span)
}

// bodySent is called by the deliverer when it has released the body.
func (a *attempt) bodySent() {
	p := a.shard.p
	p.mu.Lock()
	defer p.mu.Unlock()
	a.job.Body = nil
	p.scheduler.Sent(&a.schedJob)
}

// tracksSent reports whether the attempt's body leaves the byte budget when it was sent. Short bodies stay, since the
// budget has room for one per worker, and so do bodies that a callback includes.
func (a *attempt) tracksSent(terms policy.Terms) bool {
	p := a.shard.p
	if len(a.job.Body) <= p.opts.MaxBytes/(2*p.opts.Workers) {
		return false
	}
	for _, to := range []*policy.Callback{terms.OnDelivered, terms.OnDead} {
		if to != nil && slices.Contains(to.Include, policy.IncludeBody) {
			return false
		}
	}
	return true
}
