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
	sched        sched.Job // guarded by the pool's mutex, except the fields set by Claimed
	claimStarted time.Time // of the call
	leaseEnds    time.Time // by the process's clock
	policyStale  bool      // the topic's policy may be older than the store's
}

// attemptOf returns the attempt of a scheduled job.
func attemptOf(j *sched.Job) *attempt {
	a, _ := j.Value.(*attempt)
	return a
}

const (
	// stalePolicyWait is the delay of a job whose verdict needs a policy that could not be read.
	stalePolicyWait = time.Second
	// unsignableCooldown is the cooldown of a lane whose attempts cannot be signed.
	unsignableCooldown = 10 * time.Second
)

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
				topic := a.sched.Lane.Topic()
				a.run(ctx)
				a = p.next(topic)
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

// next returns the next attempt for a worker of a topic; nil: none.
func (p *Pool) next(t *sched.Topic) *attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.sched.Next(t, time.Now())
	if j == nil {
		return nil
	}
	p.armHangTimer()
	return attemptOf(j)
}

// run makes the attempt, unless policy, a rate or the lease forbid it, and queues its settlement.
func (a *attempt) run(ctx context.Context) {
	h, p := a.job, a.shard.p
	topic := p.topicPolicy(a.sched.Lane.Topic().Name())
	terms := topic.Terms(h.Terms)
	verdict, ok := policy.CheckBefore(terms, a.progress())
	request := a.request(topic, terms)
	credentials, unsigned := a.credentials()
	switch {
	case errors.Is(unsigned, store.ErrUnreadable):
		a.hold(ctx)
		return
	case a.sched.Cancelled:
		a.releaseUnrecorded(ctx, 0, 0)
		return
	case a.policyStale && (!ok || request.URL == ""):
		a.release(ctx, stalePolicyWait)
		return
	case !ok:
		a.end(ctx, outcome{terms: terms, url: request.URL, verdict: verdict})
		return
	case request.URL == "":
		a.end(ctx, outcome{terms: terms, verdict: policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonInvalid}, record: job.Attempt{
			N: h.Attempts + 1, Kind: job.KindReleased, StartedAt: job.Millis(time.Now()), Verdict: policy.Dead.String(),
			Reason: policy.ReasonInvalid, ErrorClass: policy.ClassInvalid, Error: "neither the job, its lane nor its topic has a URL",
		}})
		return
	case time.Now().Add(terms.Timeout + p.opts.Margin/2).After(a.leaseEnds):
		// The timeout grew since the claim, or the claim took long: the lease would not outlast the attempt.
		a.release(ctx, stalePolicyWait)
		return
	}
	strays, err := a.openHeaders(&request)
	switch {
	case strays != "" && a.policyStale:
		a.release(ctx, stalePolicyWait)
		return
	case strays != "":
		a.end(ctx, outcome{terms: terms, url: request.URL, verdict: policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonInvalid}, record: job.Attempt{
			N: h.Attempts + 1, Kind: job.KindReleased, StartedAt: job.Millis(time.Now()), Verdict: policy.Dead.String(),
			Reason: policy.ReasonInvalid, ErrorClass: policy.ClassInvalid,
			Error: "the header " + strays + " carries a secret that was given for another host than its topic's or lane's URL leads to now",
		}})
		return
	case err != nil || unsigned != nil: // already logged
		a.hold(ctx)
		return
	}
	request.Credentials = credentials
	switch {
	case topic.Rate.Limited() && topic.Rate != a.sched.GrantRate: // the rate changed since the claim
		a.releaseUnrecorded(ctx, 0, 0)
		return
	case !h.Rated && a.limits(topic).Rate.Limited(): // it was not counted as a start, since it had expired by an older policy
		a.releaseUnrecorded(ctx, stalePolicyWait, 0)
		return
	case !a.sched.StartBy.IsZero() && time.Now().After(a.sched.StartBy):
		p.mu.Lock()
		p.sched.LateStart(time.Now())
		p.mu.Unlock()
		a.releaseUnrecorded(ctx, 0, 0)
		return
	}
	a.deliver(ctx, request, topic, terms)
}

// hold releases the job for a while, and its lane: settings or secrets that the attempt needs cannot be read.
func (a *attempt) hold(ctx context.Context) {
	cooldown := unsignableCooldown
	if a.job.Kind != "" {
		cooldown = 0 // callbacks of other topics share its lane
	}
	a.releaseUnrecorded(ctx, unsignableCooldown, cooldown)
}

// deliver makes the request and decides what follows.
func (a *attempt) deliver(ctx context.Context, request job.Request, topic policy.Topic, terms policy.Terms) {
	h, p := a.job, a.shard.p
	late, url := h.Late+time.Since(a.claimStarted), request.URL
	if a.tracksSent(terms) {
		request.Sent = a.bodySent
	}
	result := p.opts.Deliverer.Deliver(ctx, request) // the request and its body are not used after this
	verdict := a.judge(terms, result)
	record := job.Attempt{
		N: h.Attempts + 1, Kind: job.KindAttempt, StartedAt: job.Millis(result.StartedAt), Duration: result.Duration,
		Status: result.Status, Verdict: verdict.Kind.String(), Reason: verdict.Reason,
		Error: cmp.Or(result.Error, verdict.Note), ErrorClass: result.Class, Header: result.Header,
		Body: result.Body,
	}
	if len(record.Body) > job.MaxAttemptBody {
		record.Body = slices.Clone(record.Body[:job.MaxAttemptBody]) // does not keep the rest in memory
	}
	if verdict.Kind == policy.Released {
		record.Kind = job.KindReleased
	}
	a.end(ctx, outcome{
		terms: terms, url: url, verdict: verdict, record: record, result: &result, late: late, breaker: topic.Breaker,
		cooldown: verdict.LaneWait, concurrency: a.limits(topic).Concurrency,
	})
}

// judge returns the verdict of the attempt. Under a stale policy no job dies for its retries or its age.
func (a *attempt) judge(terms policy.Terms, result policy.Result) policy.Verdict {
	progress := a.progress()
	progress.FailedAttempts++
	if a.policyStale {
		terms.Retries, terms.MaxAge = new(math.MaxInt), math.MaxInt64
	}
	return policy.Judge(terms, result, progress, a.shard.p.opts.Random())
}

// progress returns the job's progress now. The elapsed time counts from the start of the claim's call, so that the job's
// age is never underestimated.
func (a *attempt) progress() policy.Progress { return progressOf(a.job, a.claimStarted) }

// progressOf is progress for a job claimed by a call that began at a time.
func progressOf(h *store.ClaimedJob, began time.Time) policy.Progress {
	passed := time.Since(began)
	return policy.Progress{
		FailedAttempts: h.FailedAttempts, Age: h.Age + passed, Expires: !h.ExpiresAt.IsZero(), ExpiresIn: h.ExpiresAt.Sub(h.Now()) - passed,
	}
}

// limits returns the limits of the attempt's lane.
func (a *attempt) limits(topic policy.Topic) policy.Limits {
	return a.lanePolicy().Limits().Over(topic.Limits())
}

// lanePolicy returns the settings of the lane.
func (a *attempt) lanePolicy() policy.Lane {
	if a.sched.Settings == nil {
		return policy.Lane{}
	}
	return a.sched.Settings.Settings
}

// credentials returns the attempt's signer and certificate. A callback is signed with the secrets of its subject's topic.
func (a *attempt) credentials() (job.Credentials, error) {
	topic := a.job.Topic
	if a.job.Kind != "" {
		topic = cmp.Or(a.job.Labels[job.LabelTopic], topic)
	}
	p := a.shard.p
	c, err := p.opts.Policies.Credentials(a.job.Namespace, topic)
	switch lane := a.sched.Settings; {
	case lane != nil && errors.Is(lane.Err, store.ErrUnreadable):
		return c, lane.Err
	case lane == nil || len(lane.Settings.Secrets) == 0:
		return c, err
	}
	// The topic's secrets are not needed, but its certificate is. The policy is read last: if it has no certificate by now,
	// the attempt need not wait for one.
	if err != nil && c.Certificate == nil && p.topicPolicy(sched.TopicName{Namespace: a.job.Namespace, Name: topic}).ClientCert != nil {
		return c, err
	}
	c.Signer = a.sched.Settings.Signer
	return c, a.sched.Settings.Err
}

// request returns the request for the deliverer: the job's settings override the lane's, which override the topic's.
func (a *attempt) request(topic policy.Topic, terms policy.Terms) job.Request {
	h, lane := a.job, a.lanePolicy()
	request := job.Request{
		Ref: h.Ref(), Queue: h.Queue, URL: cmp.Or(h.URL, lane.URL, topic.URL), Method: h.Method, Header: h.Header,
		ContentType: h.ContentType, Body: h.Body, Attempt: h.Attempts + 1, RetriesLeft: max(0, *terms.Retries-h.FailedAttempts),
		DueAt: h.DueAt, Timeout: terms.Timeout,
	}
	if len(topic.Headers)+len(lane.Headers) > 0 {
		request.Header = make(map[string][]string, len(topic.Headers)+len(lane.Headers)+len(h.Header))
		maps.Copy(request.Header, topic.Headers)
		maps.Copy(request.Header, lane.Headers)
		maps.Copy(request.Header, h.Header)
	}
	if terms.Success.ReadsBody() {
		request.KeepBody = math.MaxInt
	}
	return request
}

// openHeaders opens the sealed headers of a request that are for the origin of its URL. Others of the topic or the lane are
// dropped; of the job it returns the name of one for another origin.
func (a *attempt) openHeaders(r *job.Request) (strays string, err error) {
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
		case secret.Origin == "" || secret.Origin == job.Origin(r.URL):
			opened[name] = secret.Values
		case own && (strays == "" || name < strays):
			strays = name
		default:
			delete(opened, name)
		}
	}
	if opened != nil {
		r.Header = opened
	}
	return strays, nil
}

// release returns the job without counting an attempt, due after wait.
func (a *attempt) release(ctx context.Context, wait time.Duration) {
	verdict := policy.Verdict{Kind: policy.Released, Wait: wait}
	a.end(ctx, outcome{verdict: verdict, record: job.Attempt{
		N: a.job.Attempts + 1, Kind: job.KindReleased, StartedAt: job.Millis(time.Now()), Verdict: verdict.Kind.String(),
	}})
}

// releaseUnrecorded is release without an entry in the job's history, for causes that repeat often.
func (a *attempt) releaseUnrecorded(ctx context.Context, wait time.Duration, cooldown time.Duration) {
	a.end(ctx, outcome{verdict: policy.Verdict{Kind: policy.Released, Wait: wait}, cooldown: cooldown})
}

// outcome is the result of an attempt and its verdict.
type outcome struct {
	terms       policy.Terms
	url         string
	verdict     policy.Verdict
	record      job.Attempt    // Kind is empty: nothing is recorded
	result      *policy.Result // nil: no request was made
	late        time.Duration
	breaker     policy.Breaker
	cooldown    time.Duration // of the lane
	concurrency int           // the lane's concurrency
}

// end queues the settlement and updates the lane's state.
func (a *attempt) end(ctx context.Context, o outcome) {
	h, s, p := a.job, a.shard, a.shard.p
	item := settlement{
		Settlement: store.Settlement{
			Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease, Verdict: o.verdict, Attempt: o.record,
		},
		lane: a.sched.Lane,
	}
	if o.verdict.Kind == policy.Delivered || o.verdict.Kind == policy.Dead {
		item.Outbox = p.opts.Callbacks(End{Job: h, URL: o.url, Terms: o.terms, Verdict: o.verdict, Attempt: o.record})
	}
	out := sched.Outcome{
		Result: o.result, Shortage: o.result != nil && o.result.Class == policy.ClassLocalResources, Probe: h.Probe,
		Breaker: o.breaker, Concurrency: o.concurrency, Cooldown: o.cooldown,
	}
	if out.Shortage {
		p.recordShortage(*o.result)
	}
	if o.result != nil && o.verdict.Kind == policy.Delivered { // by the policy's success rule
		out.Result = &policy.Result{Status: 200, Duration: o.result.Duration}
	}
	p.mu.Lock()
	item.Lane = p.sched.End(&a.sched, out, time.Now())
	h.Body = nil // claimed jobs share an array: a hanging one must not keep all bodies
	s.ended = append(s.ended, item)
	s.working--
	wake := len(s.ended) == 1 || !s.shouldBatch()
	p.mu.Unlock()
	if wake {
		s.wake()
	}
	p.opts.Observer.Ended(Ended{Namespace: h.Namespace, Topic: h.Topic, Verdict: o.verdict, Result: o.result, Late: o.late})
	p.attemptLog.attempt(ctx, h, o.verdict, o.record)
}

// bodySent is called by the deliverer when it has released the body.
func (a *attempt) bodySent() {
	p := a.shard.p
	p.mu.Lock()
	defer p.mu.Unlock()
	a.job.Body = nil
	p.sched.Sent(&a.sched)
}

// tracksSent reports whether the attempt's body leaves the byte budget when it was sent. Short bodies stay, since the budget
// has room for one per worker, and so do bodies that a callback includes.
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
