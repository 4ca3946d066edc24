package sched

import (
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// rateState is the state of a topic's rate: the starts that were granted last, and when more may be requested. A topic's
// starts are counted by one shard for all processes, so they are requested before jobs are claimed. What a claim did not
// use is used by the next, or returned.
type rateState struct {
	rate       policy.Rate // for which the rest holds
	grant      store.Permit
	startsLeft int       // of the grant
	grantEnds  time.Time // no attempt of the grant may begin later
	returned   []store.Permit
	requested  bool
	retryAt    time.Time // nothing is requested before
}

const (
	// PermitRetry is how long a topic that needs starts waits at most before it requests more. The store says when more can
	// be granted, but not that another process returns some before, or that the rate was changed.
	PermitRetry = time.Second
	// maxReturnedGrants bounds the grants that are returned with one request; what is beyond stays counted.
	maxReturnedGrants = 64
)

// startsLeft returns how many starts a topic has at hand. Those that were not used in time are returned. What was granted,
// or put off, under another rate is void.
func (t *Topic) startsLeft(rate policy.Rate, now time.Time) int {
	r := &t.rate
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

// giveBack notes starts of a grant of which no attempt was made: they go back with the next request, which is made at once.
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

// addUnused takes starts back that a claim did not need.
func (r *rateState) addUnused(grant store.Permit, starts int) {
	if starts > 0 && grant.At.Equal(r.grant.At) && grant.Slack == r.grant.Slack {
		r.startsLeft += starts
		return
	}
	r.giveBack(grant, starts)
}

// returnUnusedStarts returns what a topic without queued lanes was granted, so that other processes have it.
func (s *Scheduler) returnUnusedStarts(t *Topic) {
	r := &t.rate
	if r.startsLeft == 0 && len(r.returned) == 0 || r.requested {
		return
	}
	for _, sh := range s.shards {
		if sh.runnable.byTopic[t] != nil {
			return
		}
	}
	r.giveBack(r.grant, r.startsLeft)
	r.startsLeft, r.requested = 0, true
	s.needPermits = append(s.needPermits, t)
}

// returnStart returns the start of its topic that a job was to have.
func (s *Scheduler) returnStart(j *Job) {
	if !j.grant.At.IsZero() {
		j.Lane.topic.rate.giveBack(j.grant, 1)
		s.returnUnusedStarts(j.Lane.topic)
	}
}

// needPermit has starts requested for a topic, unless that is under way, or too early: then a timer is set.
func (s *Scheduler) needPermit(t *Topic, now time.Time) {
	if r := &t.rate; !r.requested && !now.Before(r.retryAt) {
		r.requested = true
		s.needPermits = append(s.needPermits, t)
	}
}

// PermitCall is one call for starts: for topics of one shard, a request each.
type PermitCall struct {
	Shard    int
	Topics   []*Topic
	Requests []store.PermitRequest

	weight int // requests, and grants returned with them
}

// PermitCalls returns the calls for the topics that need starts, or return some. A call has up to store.MaxBatch requests
// and returned grants. The caller reports each outcome by Granted.
func (sh *Shard) PermitCalls() (calls []*PermitCall) {
	s := sh.s
	if len(s.needPermits) == 0 {
		return nil
	}
	open := make(map[int]*PermitCall)
	for _, t := range s.needPermits {
		shard, weight := store.ShardOfTopic(len(s.shards), t.name.Namespace, t.name.Name), 1+len(t.rate.returned)
		call := open[shard]
		if call == nil || call.weight+weight > store.MaxBatch {
			call = &PermitCall{Shard: shard}
			calls, open[shard] = append(calls, call), call
		}
		call.weight += weight
		call.Topics = append(call.Topics, t)
		call.Requests = append(call.Requests, store.PermitRequest{
			Namespace: t.name.Namespace, Topic: t.name.Name, Rate: t.rate.rate, Back: t.rate.returned,
			Starts: min(s.startsWanted(t), s.opts.Policy(t.name).Workers, store.MaxBatch),
			Slack:  s.window.length(sh.callTime, t.rate.rate),
		})
		t.rate.returned = nil
	}
	s.needPermits = nil
	return calls
}

// Granted takes in the answers to a call that began at a time, and wakes all shards. retries are the moments at which more
// starts can be requested: Wake is due for all shards then.
func (s *Scheduler) Granted(call *PermitCall, permits []store.Permit, began, now time.Time) (retries []time.Time) {
	seen := make(map[time.Duration]bool, 1)
	for i, t := range call.Topics {
		if wait := s.addGrant(t, call.Requests[i], permits[i], began, now); wait > 0 && !seen[wait] {
			seen[wait] = true
			retries = append(retries, began.Add(wait))
		}
	}
	s.wakeAll()
	return retries
}

// addGrant notes the outcome of a request, and returns after what time since its call more can be requested; zero: whenever
// it is needed.
func (s *Scheduler) addGrant(t *Topic, request store.PermitRequest, permit store.Permit, began, now time.Time) (wait time.Duration) {
	r := &t.rate
	r.requested = false
	if request.Starts > 0 {
		wait = min(permit.Next, PermitRetry)
	}
	switch {
	case r.rate != request.Rate: // it was changed meanwhile
		r.giveBack(permit, permit.Starts)
	case permit.Starts > 0:
		r.giveBack(r.grant, r.startsLeft)
		r.grant, r.startsLeft, r.grantEnds = permit, permit.Starts, began.Add(request.Slack)
		r.retryAt = began.Add(wait)
		if !now.Before(r.grantEnds) {
			s.window.widen(now)
		}
	case request.Starts > 0:
		r.retryAt = began.Add(wait)
	}
	return wait
}

// startsWanted returns how many starts a topic's queued lanes have room for, at least 1 where one is queued.
func (s *Scheduler) startsWanted(t *Topic) int {
	n, least, scans := 0, 0, maxScans
	for _, sh := range s.shards {
		q := sh.runnable.byTopic[t]
		if q == nil {
			continue
		}
		for i := range q.lanes {
			for l := range q.lanes[i].all() {
				n, least = n+max(0, l.slots-l.inFlight), 1
				if scans--; scans == 0 {
					return max(n, least)
				}
			}
		}
	}
	return max(n, least)
}
