package pull

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// claim claims jobs of picked queues for a client; none if there are none, or the topic's rate allows none.
func (p *Puller) claim(ctx context.Context, c *client, from *picked) ([]store.LeasedJob, error) {
	g, err := p.takeStarts(ctx, c.topic, c.most)
	if err != nil || g.n == 0 {
		p.unpick(c.topic, from)
		return nil, err
	}
	leased, err := p.claimGranted(ctx, c, from, g)
	return p.unlessLate(ctx, g, leased), err
}

// unlessLate returns leased jobs unless they are too late for their topic's rate: it releases those.
func (p *Puller) unlessLate(ctx context.Context, g grant, leased []store.LeasedJob) []store.LeasedJob {
	if !g.isLate() {
		return leased
	}
	p.Release(ctx, leased)
	return nil
}

// claimGranted claims as many jobs of picked queues as were granted.
func (p *Puller) claimGranted(ctx context.Context, c *client, from *picked, g grant) ([]store.LeasedJob, error) {
	request := p.claimRequest(c, from, g)
	began, _, claimed, err := p.exchange(ctx, from.shard, request.Token, nil, &request)
	if err != nil {
		p.claimed(c.topic, from, store.ClaimResult{})
		return nil, err
	}
	return p.receive(ctx, c, from, g, claimed, began), nil
}

// claimRequest asks for jobs of picked queues, an equal share of each.
func (p *Puller) claimRequest(c *client, from *picked, g grant) store.ClaimRequest {
	r := store.ClaimRequest{
		Max: g.n, MaxBytes: maxBytes, Margin: store.LeaseMargin, Queues: make([]store.QueueClaim, len(from.queues)),
		Token: p.opts.Owner.NewToken(),
	}
	timeout := cmp.Or(c.request.Lease, p.opts.Policies.Topic(c.topic.namespace, c.topic.name).Timeout)
	for i := range from.queues {
		r.Queues[i] = store.QueueClaim{
			Queue: from.queues[i].queue, Max: (g.n + len(from.queues) - 1) / len(from.queues), Timeout: timeout,
			Deliver: policy.DeliverPull,
		}
	}
	return r
}

// receive returns the claimed jobs that may be attempted, and settles the others. When the client has gone it releases
// them.
func (p *Puller) receive(
	ctx context.Context, c *client, from *picked, g grant, claimed store.ClaimResult, began time.Time,
) []store.LeasedJob {
	lasting := context.WithoutCancel(ctx)
	fresh := p.opts.Policies.Sync(lasting, claimed.Revision)
	p.keepStarts(c.topic, g, len(claimed.Jobs))
	if len(claimed.Jobs) > 0 {
		p.clockAhead.Store(int64(claimed.Jobs[0].Now().Sub(began)))
	}
	p.claimed(c.topic, from, claimed)
	lanes := readLanes(claimed.Queues)
	topic := p.opts.Policies.Topic(c.topic.namespace, c.topic.name)
	var leased []store.LeasedJob
	var refused []store.Settlement
	for i := range claimed.Jobs {
		j := &claimed.Jobs[i]
		lane := lanes[j.Queue]
		terms := topic.Terms(j.Terms)
		var request *job.Request
		var unsigned, unopened error
		j.Header, unopened = p.openHeaders(j.Queue, j.Header)
		if c.request.Request && unopened == nil {
			request, unsigned = p.requestOf(j, topic, lane.Lane, terms)
		}
		verdict := policy.CheckBefore(terms, progressOf(j, began), policy.Preflight{
			SettingsUnreadable: lane.unreadable, PolicyStale: !fresh, Late: g.isLate(),
			SecretsUnreadable: unsigned != nil || unopened != nil,
			RateChanged:       topic.Rate.Limited() && topic.Rate != g.rate,
			// it had expired by an older policy
			Uncounted: !j.Rated && lane.Settings.Limits().Over(topic.Limits()).Rate.Limited(),
		})
		if verdict.Kind != 0 {
			refused = append(refused, p.refuse(ctx, j, terms, verdict))
			continue
		}
		l := newLease(j)
		l.Trace = p.traceOf(j)
		l.Sign(c.key)
		leased = append(leased, store.LeasedJob{
			ClaimedJob: *j, ClientLease: l, Until: j.Now().Add(j.LeaseFor - store.LeaseMargin), Request: request,
		})
	}
	if ctx.Err() != nil {
		p.Release(lasting, leased)
		leased = nil
	}
	if len(refused) > 0 && len(leased) == 0 {
		c.most = min(2*c.most, store.MaxLeased)
	}
	if len(leased) > c.request.Max {
		p.Release(lasting, leased[c.request.Max:])
		leased = leased[:c.request.Max]
	}
	if len(refused) > 0 {
		p.settleQuietly(lasting, from.shard, refused)
	}
	return leased
}

// laneSettings are a lane's own settings.
type laneSettings struct {
	store.Lane
	unreadable bool
}

// readLanes reads the settings of lanes that have some.
func readLanes(queues []store.QueueStatus) map[job.Queue]laneSettings {
	var lanes map[job.Queue]laneSettings
	for i := range queues {
		document := queues[i].LaneDocument
		if document == nil {
			continue
		}
		lane, err := document.Lane()
		if lanes == nil {
			lanes = make(map[job.Queue]laneSettings)
		}
		lanes[queues[i].Queue] = laneSettings{lane, errors.Is(err, store.ErrUnreadable)}
	}
	return lanes
}

// requestOf returns the request that a push of a claimed job would make, without its secret headers: they are for the
// receiver that they were registered for. The job's other headers must be opened. The error says why the request cannot
// be signed.
func (p *Puller) requestOf(
	j *store.ClaimedJob, topic policy.Topic, lane store.Lane, terms policy.Terms,
) (*job.Request, error) {
	r := pool.NewRequest(j, topic, lane.Settings, terms)
	header, err := p.openHeaders(j.Queue, r.Header)
	if err != nil {
		return nil, err
	}
	r.Header = maps.Clone(header)
	maps.DeleteFunc(r.Header, func(name string, _ []string) bool { return job.SecretHeader(name) })
	if len(lane.Settings.Secrets) > 0 {
		r.Signer, err = p.opts.Policies.Signer(lane)
	} else {
		r.Credentials, err = p.opts.Policies.Credentials(j.Namespace, j.Topic)
	}
	return &r, err
}

// openHeaders opens headers but for credentials, which are for the receiver.
func (p *Puller) openHeaders(q job.Queue, header map[string][]string) (map[string][]string, error) {
	return job.OpenOthers(header, func(name, sealed string) (job.HeaderSecret, error) {
		return p.opts.Policies.OpenHeader(q, name, sealed)
	})
}

// progressOf returns the progress of a job that a call that began at a time has claimed.
func progressOf(j *store.ClaimedJob, began time.Time) policy.Progress {
	passed := time.Since(began)
	return policy.Progress{
		FailedAttempts: j.FailedAttempts, ConsecutiveLost: j.ConsecutiveLost, Age: j.Age + passed,
		Expires: !j.ExpiresAt.IsZero(), ExpiresIn: j.ExpiresAt.Sub(j.Now()) - passed,
	}
}

// newLease returns the lease of a claimed job.
func newLease(j *store.ClaimedJob) store.ClientLease {
	l := store.ClientLease{
		ID: j.ID, Queue: j.Queue, Token: j.Lease, LeasedAt: job.Millis(j.Now()), Age: max(0, j.Age),
		Late: max(0, j.Late), Attempts: j.Attempts, FailedAttempts: j.FailedAttempts, Probe: j.Probe,
		OwnCallbacks: j.OnDelivered != nil || j.OnDead != nil, OwnRetries: len(j.Ladder) > 0 || j.Retries != nil,
	}
	if l.OwnRetries {
		l.Retries = len(j.Ladder)
		if j.Retries != nil {
			l.Retries = *j.Retries
		}
		if len(j.Ladder) > 0 {
			l.Rung = j.Ladder.Rung(j.FailedAttempts + 1)
		}
	}
	if l.Expires = !j.ExpiresAt.IsZero(); l.Expires {
		l.ExpiresIn = max(0, j.ExpiresAt.Sub(j.Now()))
	}
	return l
}

// traceOf returns the trace that a job carries, if attempts are traced.
func (p *Puller) traceOf(j *store.ClaimedJob) string {
	if p.opts.Tracer == nil {
		return ""
	}
	if values := j.Header[job.HeaderTraceparent]; len(values) == 1 && len(values[0]) <= store.MaxLeaseTrace {
		return values[0]
	}
	return ""
}

// claimed notes which of the queues of a claim have more jobs. Those that got none come first the next time.
func (p *Puller) claimed(t *topic, from *picked, result store.ClaimResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	served := make(map[job.Queue]bool, len(from.queues))
	for i := range result.Jobs {
		served[result.Jobs[i].Queue] = true
	}
	for i := range from.queues {
		r := &from.queues[i]
		more := i < len(result.Queues) && result.Queues[i].More && !result.Queues[i].Blocked
		if !more || len(result.Jobs) == 0 { // else a claim that brings nothing would be repeated at once
			t.runnable[from.shard].remove(r)
		} else if t.runnable[from.shard].known[r.queue] == nil {
			t.runnable[from.shard].add(r.queue)
		}
	}
	t.runnable[from.shard].putBack(from.queues, func(name job.Queue) bool { return served[name] })
	p.wakeClients(t)
}

// Release makes leased jobs due again that no client has received. It costs no attempt. What cannot be released is due
// again when its lease expires.
func (p *Puller) Release(ctx context.Context, leased []store.LeasedJob) {
	byShard := make([][]store.Settlement, len(p.shards))
	for i := range leased {
		j := &leased[i]
		n := store.ShardOf(len(p.shards), j.Queue)
		byShard[n] = append(byShard[n], releaseOf(&j.ClaimedJob))
	}
	for n, items := range byShard {
		if len(items) > 0 {
			p.settleQuietly(context.WithoutCancel(ctx), n, items)
		}
	}
}

// releaseOf returns the settlement that makes a claimed job due again.
func releaseOf(j *store.ClaimedJob) store.Settlement {
	return store.Settlement{
		Ref: j.Ref(), Queue: j.Queue, Lease: j.Lease,
		Verdict: policy.Verdict{Kind: policy.Released},
	}
}

// exchange settles under a token and claims in one call; next may be nil. While the store is unavailable it repeats the
// call until ctx or tryFor ends: the call may have taken effect. What a call claims after that is released.
func (p *Puller) exchange(
	ctx context.Context, n int, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) (began time.Time, errs []error, claimed store.ClaimResult, err error) {
	err = p.exchanges[n].Retry(ctx, "settle and claim leases", func(context.Context) error {
		return store.Call(context.WithoutCancel(ctx), func(ctx context.Context) error {
			began = time.Now()
			errs, claimed, err = p.exchanges[n].SettleAndClaim(ctx, token, items, next)
			return err
		})
	})
	if next != nil && store.IsUnavailable(err) {
		p.inBackground(func() { p.releaseClaim(n, token, items, next) })
	}
	return began, errs, claimed, err
}

// releaseClaim repeats a call whose result nobody waits for any more, and releases the jobs that it claimed.
func (p *Puller) releaseClaim(n int, token store.Token, items []store.Settlement, next *store.ClaimRequest) {
	ctx, cancel := context.WithTimeout(context.Background(), store.TokenTTL/2)
	defer cancel()
	var pause store.Backoff
	for pause.Wait(ctx) && !isClosed(p.stopping) {
		var claimed store.ClaimResult
		err := store.Call(ctx, func(ctx context.Context) (err error) {
			_, claimed, err = p.exchanges[n].SettleAndClaim(ctx, token, items, next)
			return err
		})
		if store.IsUnavailable(err) {
			continue
		}
		if err == nil && len(claimed.Jobs) > 0 {
			released := make([]store.Settlement, len(claimed.Jobs))
			for i := range claimed.Jobs {
				released[i] = releaseOf(&claimed.Jobs[i])
			}
			p.settleQuietly(ctx, n, released)
		}
		return
	}
}

// inBackground calls a function that Run waits for; not while the process stops.
func (p *Puller) inBackground(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		p.background.Go(f)
	}
}
