package pool

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool/sched"
	"github.com/ringback/ringback/store"
)

// attempt is one claimed job on its way through a worker.
type attempt struct {
	shard        *shardLoop
	job          *store.ClaimedJob
	sched        sched.Job // guarded by the pool's mutex, but for what Claimed has set
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
	// stalePolicyWait puts off what may only be decided by a policy that could not be read.
	stalePolicyWait = time.Second
	// unsignableCooldown keeps a lane back whose attempts cannot be signed as they should.
	unsignableCooldown = 10 * time.Second
)

// workerIdleTimeout is how long a worker waits for another attempt of its topic before it leaves.
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

// next returns the attempt that a worker of a topic goes on with; nil: there is none.
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
	switch {
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
		// The timeout grew since the claim, or the claim took long: another claim brings a lease that lasts, and leaves
		// time to settle.
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
	case err == nil:
		request.Credentials, err = a.credentials()
	}
	if err != nil { // who gives them has said so
		cooldown := unsignableCooldown
		if h.Kind != "" {
			cooldown = 0 // others' callbacks share its lane
		}
		a.releaseUnrecorded(ctx, unsignableCooldown, cooldown)
		return
	}
	switch {
	case topic.Rate.Limited() && topic.Rate != a.sched.GrantRate: // it was claimed under another, or none
		a.releaseUnrecorded(ctx, 0, 0)
		return
	case !h.Rated && a.limits(topic).Rate.Limited(): // it did not count as a start, because it had expired by an older policy
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

// deliver makes the request and decides what follows.
func (a *attempt) deliver(ctx context.Context, request job.Request, topic policy.Topic, terms policy.Terms) {
	h, p := a.job, a.shard.p
	late, url := h.Late+time.Since(a.claimStarted), request.URL
	if a.tracksSent(terms) {
		request.Sent = a.bodySent
	}
	result := p.opts.Deliverer.Deliver(ctx, request) // nothing keeps the request, and its body, from here on
	verdict := a.judge(terms, result)
	record := job.Attempt{
		N: h.Attempts + 1, Kind: job.KindAttempt, StartedAt: job.Millis(result.StartedAt), Duration: result.Duration,
		Status: result.Status, Verdict: verdict.Kind.String(), Reason: verdict.Reason,
		Error: cmp.Or(result.Error, verdict.Note), ErrorClass: result.Class, Header: result.Header,
		Body: result.Body,
	}
	if len(record.Body) > job.MaxAttemptBody {
		record.Body = slices.Clone(record.Body[:job.MaxAttemptBody]) // the rest must not be kept with it
	}
	if verdict.Kind == policy.Released {
		record.Kind = job.KindReleased
	}
	a.end(ctx, outcome{
		terms: terms, url: url, verdict: verdict, record: record, result: &result, late: late, breaker: topic.Breaker,
		cooldown: verdict.LaneWait, concurrency: a.limits(topic).Concurrency,
	})
}

// judge decides what follows the attempt. By a policy that could not be read no job runs out of retries or becomes too old.
func (a *attempt) judge(terms policy.Terms, result policy.Result) policy.Verdict {
	progress := a.progress()
	progress.FailedAttempts++
	if a.policyStale {
		terms.Retries, terms.MaxAge = new(math.MaxInt), math.MaxInt64
	}
	return policy.Judge(terms, result, progress, a.shard.p.opts.Random())
}

// progress is how far the job has come by now. The time since the call that claimed it is added to what the store's clock
// said at the claim, so a wait is never thought to end before it does.
func (a *attempt) progress() policy.Progress { return progressOf(a.job, a.claimStarted) }

// progressOf is how far a job has come that was claimed by a call begun then.
func progressOf(h *store.ClaimedJob, began time.Time) policy.Progress {
	passed := time.Since(began)
	return policy.Progress{
		FailedAttempts: h.FailedAttempts, Age: h.Age + passed, Expires: !h.ExpiresAt.IsZero(), ExpiresIn: h.ExpiresAt.Sub(h.Now()) - passed,
	}
}

// limits are what holds for the attempt's lane.
func (a *attempt) limits(topic policy.Topic) policy.Limits {
	return a.lanePolicy().Limits().Over(topic.Limits())
}

// lanePolicy is what the lane says itself.
func (a *attempt) lanePolicy() policy.Lane {
	if a.sched.Settings == nil {
		return policy.Lane{}
	}
	return a.sched.Settings.Settings
}

// credentials are what the attempt proves itself with. A job of our own that tells of a topic is signed as that topic's.
func (a *attempt) credentials() (job.Credentials, error) {
	topic := a.job.Topic
	if a.job.Kind != "" {
		topic = cmp.Or(a.job.Labels[job.LabelTopic], topic)
	}
	p := a.shard.p
	c, err := p.opts.Policies.Credentials(a.job.Namespace, topic)
	if a.sched.Settings == nil || len(a.sched.Settings.Settings.Secrets) == 0 {
		return c, err
	}
	// The topic's secrets are not needed, but a certificate of its is. The policy is read last: one that has none by now
	// is no reason to wait for one.
	if err != nil && c.Certificate == nil && p.topicPolicy(sched.TopicName{Namespace: a.job.Namespace, Name: topic}).ClientCert != nil {
		return c, err
	}
	c.Signer = a.sched.Settings.Signer
	return c, a.sched.Settings.Err
}

// request is what the deliverer gets: the job's own settings over the lane's, over the topic's.
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

// openHeaders opens the headers of a request that are stored sealed, as far as they were given for the origin that it goes
// to. Those of a topic and of a lane are left out otherwise; of the job's own it names one that strays.
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

// release gives the job back, uncounted and due after wait.
func (a *attempt) release(ctx context.Context, wait time.Duration) {
	verdict := policy.Verdict{Kind: policy.Released, Wait: wait}
	a.end(ctx, outcome{verdict: verdict, record: job.Attempt{
		N: a.job.Attempts + 1, Kind: job.KindReleased, StartedAt: job.Millis(time.Now()), Verdict: verdict.Kind.String(),
	}})
}

// releaseUnrecorded gives the job back without a line in its record: so often may it happen that the record would tell of nothing
// else.
func (a *attempt) releaseUnrecorded(ctx context.Context, wait time.Duration, cooldown time.Duration) {
	a.end(ctx, outcome{verdict: policy.Verdict{Kind: policy.Released, Wait: wait}, cooldown: cooldown})
}

// outcome is what came of an attempt.
type outcome struct {
	terms       policy.Terms
	url         string
	verdict     policy.Verdict
	record      job.Attempt    // its Kind is empty when nothing is to be recorded
	result      *policy.Result // nil: no request was made
	late        time.Duration
	breaker     policy.Breaker
	cooldown    time.Duration // of the lane
	concurrency int           // the lane's concurrency
}

// end queues the settlement and has the lane's state updated by the result.
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
	if o.result != nil && o.verdict.Kind == policy.Delivered { // whatever status the policy calls a success
		out.Result = &policy.Result{Status: 200, Duration: o.result.Duration}
	}
	p.mu.Lock()
	item.Lane = p.sched.End(&a.sched, out, time.Now())
	h.Body = nil // the jobs of a claim lie side by side: one that hangs must not keep the bodies of all
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

// bodySent is called by the deliverer when it does not hold the body any more.
func (a *attempt) bodySent() {
	p := a.shard.p
	p.mu.Lock()
	defer p.mu.Unlock()
	a.job.Body = nil
	p.sched.Sent(&a.sched)
}

// tracksSent reports whether it matters when the attempt's body was sent. Short ones stay in the count, since the process
// has room for as many as it has workers, and so do those that a callback repeats.
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
