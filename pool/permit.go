package pool

import (
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// rateState is what the pool knows of a topic with a rate: the starts it was granted last, and when it may ask for more. A
// topic's starts are counted by one shard for all processes, so they are asked for before jobs are claimed; what a claim
// did not use is used by the next, or given back. Its fields are guarded by the pool's mutex.
type rateState struct {
	rate       policy.Rate // for which the rest holds
	grant      store.Permit
	startsLeft int       // of the grant, not used yet
	grantEnds  time.Time // no attempt of the grant may begin later
	returned   []store.Permit
	requested  bool
	retryAt    time.Time // nothing is asked for before
}

// permitRetry is how long a topic that came short waits at most before it asks again. The store says when more can be
// granted, but not that another process gives some back before, or that the rate was changed.
const permitRetry = time.Second

// maxReturnedGrants bounds the grants that are given back with one ask; what is beyond stays counted.
const maxReturnedGrants = 64

// startsLeft is how many starts a topic has at hand. Those that could not be used in time are given back, and more time is
// callTimes for with the next. What was granted, or put off, under another rate holds no more. p.mu is held.
func (p *Pool) startsLeft(r *rateState, rate policy.Rate, now time.Time) int {
	if r.rate != rate {
		r.giveBack(r.grant, r.startsLeft)
		r.rate, r.startsLeft, r.retryAt = rate, 0, time.Time{}
	}
	if r.startsLeft > 0 && !now.Before(r.grantEnds) {
		r.giveBack(r.grant, r.startsLeft)
		r.startsLeft = 0
	}
	return r.startsLeft
}

// giveBack notes starts of a grant of which no attempt was made: they go back with the next ask, which is made at once.
func (r *rateState) giveBack(grant store.Permit, starts int) {
	if starts <= 0 {
		return
	}
	r.retryAt = time.Time{}
	for i := range r.returned {
		if r.returned[i].At.Equal(grant.At) && r.returned[i].Slack == grant.Slack {
			r.returned[i].Starts += starts
			return
		}
	}
	if len(r.returned) < maxReturnedGrants {
		r.returned = append(r.returned, store.Permit{Starts: starts, At: grant.At, Slack: grant.Slack})
	}
}

// returnUnusedPermits gives back what a topic without hot lanes was granted, so that other processes have it. p.mu is held.
func (s *shardLoop) returnUnusedPermits(t *topic) {
	r := &t.rate
	if r.startsLeft == 0 && len(r.returned) == 0 || r.requested {
		return
	}
	for _, other := range s.p.shards {
		if other.runnable.byTopic[t] != nil {
			return
		}
	}
	r.giveBack(r.grant, r.startsLeft)
	r.startsLeft, r.requested = 0, true
	s.p.needPermits = append(s.p.needPermits, t)
}

// addUnused takes starts back that a claim did not need.
func (r *rateState) addUnused(grant store.Permit, starts int) {
	if starts > 0 && grant.At.Equal(r.grant.At) && grant.Slack == r.grant.Slack {
		r.startsLeft += starts
		return
	}
	r.giveBack(grant, starts)
}

// needPermit asks for starts of a topic that came short of them, unless that is under way, or too early: who asked last set
// a timer then. p.mu is held.
func (s *shardLoop) needPermit(t *topic, now time.Time) {
	if r := &t.rate; !r.requested && !now.Before(r.retryAt) {
		r.requested = true
		s.p.needPermits = append(s.p.needPermits, t)
	}
}

// A permitCall is one call for starts: topics of one shard that came short together, and what is asked for each.
type permitCall struct {
	shard    int
	topics   []*topic
	requests []store.PermitRequest
	weight   int // asks, and grants given back with them
}

// askPermits asks for the topics that came short, those of one shard in one call.
func (s *shardLoop) askPermits(ctx context.Context) {
	for _, call := range s.permitCalls() {
		s.p.workers.Go(func() { s.requestPermits(ctx, call) })
	}
}

// permitCalls lays out the calls for the topics that came short. A call carries up to store.MaxBatch asks and grants given back.
func (s *shardLoop) permitCalls() (calls []*permitCall) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.needPermits) == 0 {
		return nil
	}
	open := make(map[int]*permitCall)
	for _, t := range p.needPermits {
		shard, weight := store.ShardOfTopic(len(p.shards), t.name.namespace, t.name.name), 1+len(t.rate.returned)
		call := open[shard]
		if call == nil || call.weight+weight > store.MaxBatch {
			call = &permitCall{shard: shard}
			calls, open[shard] = append(calls, call), call
		}
		call.weight += weight
		call.topics = append(call.topics, t)
		call.requests = append(call.requests, store.PermitRequest{
			Namespace: t.name.namespace, Topic: t.name.name, Rate: t.rate.rate, Back: t.rate.returned,
			Starts: min(p.startsWanted(t), p.topicPolicy(t.name).Workers, store.MaxBatch), Slack: p.startWindow(s.callTime, t.rate.rate),
		})
		t.rate.returned = nil
	}
	p.needPermits = nil
	return calls
}

// requestPermits makes a call once. What it gave back counts as given back even when the call failed: had it been taken back twice,
// there would be more starts than the rate allows.
func (s *shardLoop) requestPermits(ctx context.Context, call *permitCall) {
	p := s.p
	claiming := ctx
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := time.Now()
	permits, err := p.shards[call.shard].store.Permit(ctx, store.NewToken(), call.requests)
	s.recordCallTime(time.Since(began))
	if err != nil {
		if claiming.Err() != nil {
			return // the process stops: nothing is claimed any more
		}
		if len(call.topics) > 1 && !isUnavailable(err) {
			s.requestPermitsOneByOne(claiming, call)
			return
		}
		permits = p.permitFailed(ctx, call, err)
	} else {
		p.permitAnswered(call.shard)
	}
	for i, ask := range call.requests {
		if permits[i].Starts < ask.Starts {
			p.opts.Policies.Refresh(ctx) // who claims nothing hears of no change
			break
		}
	}
	waits := make(map[time.Duration]bool, 1)
	p.mu.Lock()
	for i, t := range call.topics {
		if wait := p.addGrant(t, call.requests[i], permits[i], began); wait > 0 {
			waits[wait] = true
		}
	}
	p.mu.Unlock()
	p.wakeAll()
	for wait := range waits {
		time.AfterFunc(time.Until(began.Add(wait)), p.wakeAll)
	}
}

// requestPermitsOneByOne asks for each topic of a call that failed for another reason than the store's absence, so that one whose starts
// cannot be read stops no other. What the call gave back may have been taken, and is not given back once more.
func (s *shardLoop) requestPermitsOneByOne(ctx context.Context, call *permitCall) {
	for i := range call.topics {
		ask := call.requests[i]
		ask.Back = nil
		s.requestPermits(ctx, &permitCall{shard: call.shard, topics: call.topics[i : i+1], requests: []store.PermitRequest{ask}})
	}
}

// addGrant notes what came of an ask, and answers after what time since its call more can be asked for; zero: whenever it
// is needed. p.mu is held.
func (p *Pool) addGrant(t *topic, ask store.PermitRequest, permit store.Permit, began time.Time) (wait time.Duration) {
	r := &t.rate
	r.requested = false
	if ask.Starts > 0 {
		wait = min(permit.Next, permitRetry)
	}
	switch {
	case r.rate != ask.Rate: // it was changed meanwhile
		r.giveBack(permit, permit.Starts)
	case permit.Starts > 0:
		r.giveBack(r.grant, r.startsLeft)
		r.grant, r.startsLeft, r.grantEnds = permit, permit.Starts, began.Add(ask.Slack)
		r.retryAt = began.Add(wait)
		if !time.Now().Before(r.grantEnds) {
			p.widenStartWindow()
		}
	case ask.Starts > 0:
		r.retryAt = began.Add(wait)
	}
	return wait
}

// permitFailed tells that a call failed. All of its topics ask again in a while: not as soon as a trip is made again, since a call
// whose answer was lost has spent its starts.
func (p *Pool) permitFailed(ctx context.Context, call *permitCall, err error) []store.Permit {
	p.mu.Lock()
	away := &p.shards[call.shard].permitBackoff
	level := away.Level()
	away.Next() // counts the fault; the pause is permitRetry
	p.mu.Unlock()
	p.log.Log(ctx, level, "rate permit request failed, retrying", "shard", call.shard, "topic", call.topics[0].name.name,
		"topics", len(call.topics), "err", err)
	return slices.Repeat([]store.Permit{{Next: permitRetry}}, len(call.topics))
}

// permitAnswered notes that the shard answers.
func (p *Pool) permitAnswered(shard int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shards[shard].permitBackoff.Reset()
}

// wakeAll makes all desks look again.
func (p *Pool) wakeAll() {
	for _, s := range p.shards {
		s.wake()
	}
}

// startsWanted is how many starts a topic's hot lanes have room for, at least 1 where one stands in line. p.mu is held.
func (p *Pool) startsWanted(t *topic) int {
	n, least, looks := 0, 0, maxScans
	for _, s := range p.shards {
		l := s.runnable.byTopic[t]
		if l == nil {
			continue
		}
		for i := range l.lanes {
			for x := range l.lanes[i].all() {
				n, least = n+max(0, x.slots-x.inFlight), 1
				if looks--; looks == 0 {
					return max(n, least)
				}
			}
		}
	}
	return max(n, least)
}
