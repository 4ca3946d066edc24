package pool

import (
	"cmp"
	"container/list"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// attempt is one claimed job on its way through a worker.
type attempt struct {
	desk     *desk
	lane     *lane
	held     *store.ClaimedJob
	settings *settings     // the lane's own, at the claim; nil: none
	began    time.Time     // of the call that claimed it
	until    time.Time     // the lease's end, by the process's clock
	by       time.Time     // it may not begin later, because of a rate; zero: at any time
	slack    time.Duration // of its lane's start, as it was claimed
	grant    store.Permit  // of its topic's starts, where that has a rate
	rate     policy.Rate   // under which it was granted
	stale    bool          // the topic's policy may be older than the store's
	admitted time.Time     // when it began to wait for a worker
	void     bool          // its lane was held back or paused meanwhile

	started time.Time
	element *list.Element // where it is in Pool.started; nil: not there
	hangs   bool          // it has been under way for longer than slowAnswer

	bytes  int  // of its body, as long as that is counted
	beyond bool // it has the place beyond the budget
}

const (
	// staleWait puts off what may only be decided by a policy that could not be read.
	staleWait = time.Second
	// keylessHold keeps a lane back whose attempts cannot be signed as they should.
	keylessHold = 10 * time.Second
)

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
	t := a.lane.topic
	p.crew.Go(func() {
		idle := time.NewTimer(idleWorker)
		defer idle.Stop()
		for {
			for ; a != nil; a = p.next(t) {
				a.run(ctx)
			}
			idle.Reset(idleWorker)
			select {
			case a = <-work:
			case <-idle.C:
				return
			case <-p.quit:
				return
			}
		}
	})
}

// run makes the attempt, unless policy, a rate or the lease forbid it, and queues its settlement.
func (a *attempt) run(ctx context.Context) {
	h, p := a.held, a.desk.p
	topic := p.policy(a.lane.topic.name)
	terms := topic.Terms(h.Terms)
	verdict, ok := policy.CheckBefore(terms, a.progress())
	request := a.request(topic, terms)
	switch {
	case a.void:
		a.putBack(ctx, 0, store.LaneChange{})
		return
	case a.stale && (!ok || request.URL == ""):
		a.release(ctx, staleWait)
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
	case time.Now().Add(terms.Timeout + p.opts.Margin/2).After(a.until):
		// The timeout grew since the claim, or the claim took long: another claim brings a lease that lasts, and leaves
		// time to settle.
		a.release(ctx, staleWait)
		return
	}
	strays, err := a.openHeaders(&request)
	switch {
	case strays != "" && a.stale:
		a.release(ctx, staleWait)
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
		hold := store.LaneChange{Cooldown: keylessHold}
		if h.Kind != "" {
			hold = store.LaneChange{} // others' callbacks share its lane
		}
		a.putBack(ctx, keylessHold, hold)
		return
	}
	switch {
	case topic.Rate.Limited() && topic.Rate != a.rate: // it was claimed under another, or none
		a.putBack(ctx, 0, store.LaneChange{})
		return
	case !a.by.IsZero() && time.Now().After(a.by):
		p.mu.Lock()
		p.wasLate()
		p.mu.Unlock()
		a.putBack(ctx, 0, store.LaneChange{})
		return
	}
	a.deliver(ctx, request, topic, terms)
}

// unstarted gives back the start of its topic that an attempt was to have which is not made; that of its lane goes back with
// the settlement.
func (a *attempt) unstarted() {
	if a.grant.At.IsZero() {
		return
	}
	p := a.desk.p
	p.mu.Lock()
	defer p.mu.Unlock()
	a.lane.topic.rated.giveBack(a.grant, 1)
	a.desk.idle(a.lane.topic)
}

// deliver makes the request and decides what follows.
func (a *attempt) deliver(ctx context.Context, request job.Request, topic policy.Topic, terms policy.Terms) {
	h, p := a.held, a.desk.p
	late, url := h.Late+time.Since(a.began), request.URL
	if a.wantsSent(terms) {
		request.Sent = a.sent
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
		change: store.LaneChange{Cooldown: verdict.LaneWait}, most: a.limits(topic).Concurrency,
	})
}

// judge decides what follows the attempt. By a policy that could not be read no job runs out of retries or becomes too old.
func (a *attempt) judge(terms policy.Terms, result policy.Result) policy.Verdict {
	progress := a.progress()
	progress.Tries++
	if a.stale {
		terms.Retries, terms.MaxAge = new(math.MaxInt), math.MaxInt64
	}
	return policy.Judge(terms, result, progress, a.desk.p.opts.Random())
}

// progress is how far the job has come by now. The time since the call that claimed it is added to what the store's clock
// said at the claim, so a wait is never thought to end before it does.
func (a *attempt) progress() policy.Progress { return progressOf(a.held, a.began) }

// progressOf is how far a job has come that was claimed by a call begun then.
func progressOf(h *store.ClaimedJob, began time.Time) policy.Progress {
	passed := time.Since(began)
	return policy.Progress{
		Tries: h.FailedAttempts, Age: h.Age + passed, Expires: !h.ExpiresAt.IsZero(), ExpiresIn: h.ExpiresAt.Sub(h.Now()) - passed,
	}
}

// limits are what holds for the attempt's lane.
func (a *attempt) limits(topic policy.Topic) policy.Limits { return topic.Limits(a.lanePolicy()) }

// lanePolicy is what the lane says itself.
func (a *attempt) lanePolicy() policy.Lane {
	if a.settings == nil {
		return policy.Lane{}
	}
	return a.settings.Settings
}

// credentials are what the attempt proves itself with. A job of our own that tells of a topic is signed as that topic's.
func (a *attempt) credentials() (job.Credentials, error) {
	topic := a.held.Topic
	if a.held.Kind != "" {
		topic = cmp.Or(a.held.Labels[job.LabelTopic], topic)
	}
	p := a.desk.p
	c, err := p.opts.Policies.Credentials(a.held.Namespace, topic)
	if a.settings == nil || len(a.settings.Settings.Secrets) == 0 {
		return c, err
	}
	// The topic's secrets are not needed, but a certificate of its is. The policy is read last: one that has none by now
	// is no reason to wait for one.
	if err != nil && c.Certificate == nil && p.policy(topicName{a.held.Namespace, topic}).ClientCert != nil {
		return c, err
	}
	c.Signer = a.settings.signer
	return c, a.settings.err
}

// request is what the deliverer gets: the job's own settings over the lane's, over the topic's.
func (a *attempt) request(topic policy.Topic, terms policy.Terms) job.Request {
	h, lane := a.held, a.lanePolicy()
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
		secret, err := a.desk.p.opts.Policies.OpenHeader(r.Queue, name, sealed)
		if err != nil {
			return "", err
		}
		switch _, own := a.held.Header[name]; {
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
		N: a.held.Attempts + 1, Kind: job.KindReleased, StartedAt: job.Millis(time.Now()), Verdict: verdict.Kind.String(),
	}})
}

// putBack gives the job back without a line in its record: so often may it happen that the record would tell of nothing
// else.
func (a *attempt) putBack(ctx context.Context, wait time.Duration, change store.LaneChange) {
	a.end(ctx, outcome{verdict: policy.Verdict{Kind: policy.Released, Wait: wait}, change: change})
}

// outcome is what came of an attempt.
type outcome struct {
	terms   policy.Terms
	url     string
	verdict policy.Verdict
	record  job.Attempt    // its Kind is empty when nothing is to be recorded
	result  *policy.Result // nil: no request was made
	late    time.Duration
	breaker policy.Breaker
	change  store.LaneChange
	most    int // the lane's concurrency
}

// end queues the settlement; the lane learns from the result of a request.
func (a *attempt) end(ctx context.Context, o outcome) {
	h, d, p := a.held, a.desk, a.desk.p
	item := settled{
		Settlement: store.Settlement{
			Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease, Verdict: o.verdict, Attempt: o.record, Lane: o.change,
		},
		lane: a.lane,
	}
	if o.verdict.Kind == policy.Delivered || o.verdict.Kind == policy.Dead {
		item.Outbox = p.opts.Births(End{Held: h, URL: o.url, Terms: o.terms, Verdict: o.verdict, Attempt: o.record})
	}
	short := o.result != nil && o.result.Class == policy.ClassLocalResources
	if short {
		p.noteShortage(*o.result)
	}
	if o.result == nil || short {
		a.unstarted()
		if h.Rated {
			item.Lane.StartUnused, item.Lane.Slack = true, a.slack
		}
	}
	p.mu.Lock()
	p.unwatch(a)
	if o.result != nil {
		if !short {
			p.limit.pause = 0
		}
		shown := *o.result
		if o.verdict.Kind == policy.Delivered { // whatever status the policy calls a success
			shown = policy.Result{Status: 200, Duration: shown.Duration}
		}
		a.lane.learn(shown, o.most)
		change := a.lane.guard(shown, h.Probe, o.breaker)
		item.Lane = store.LaneChange{Cooldown: max(o.change.Cooldown, change.Cooldown), Breaker: change.Breaker}
	}
	a.letGo()
	d.ended = append(d.ended, item)
	d.working--
	if item.Lane.Cooldown > 0 {
		if until := time.Now().Add(item.Lane.Cooldown); until.After(a.lane.holds) {
			a.lane.holds = until
		}
	}
	wake := len(d.ended) == 1 || !d.gathers()
	p.mu.Unlock()
	if wake {
		d.nudge()
	}
	p.opts.Observer.Ended(Ended{Namespace: h.Namespace, Topic: h.Topic, Verdict: o.verdict, Result: o.result, Late: o.late})
	p.lines.attempt(ctx, h, o.verdict, o.record)
}
